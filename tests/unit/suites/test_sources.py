"""A change of what a suite, an agent or a command line is made of changes its hash; nothing else does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seatrial import plugins
from seatrial.flows.making import identity
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.suite import open_suite
from seatrial.suites.sources import code_hash, command_hash
from seatrial.world.agents import parse_agent

AGENT = """import json, sys
import helper
for line in sys.stdin:
    json.loads(line)
    print(json.dumps({"type": "answer", "text": helper.say()}), flush=True)
"""
SUITE = '{"suite": {"world": "w.py:make", "name": "s"}}\n{"id": "t", "input": "hi", "check_final": "c.py:check"}\n'
CHECK = "def check(final_answer, world_state):\n    return final_answer == 'yes'\n"
WORLD = """from seatrial.world import MemoryWorld

def make(seed):
    from lib import deep
    return MemoryWorld("w", "1", deep.TOOLS)
"""


def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "helper.py").write_text("def say():\n    return 'yes'\n")
    (tmp_path / "s.jsonl").write_text(SUITE)
    (tmp_path / "c.py").write_text(CHECK)
    (tmp_path / "w.py").write_text(WORLD)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "deep.py").write_text("TOOLS = ()\n")
    return tmp_path


@pytest.mark.parametrize("changed", ["agent.py", "helper.py", "c.py", "w.py", "lib/deep.py", "lib/__init__.py"])
def test_a_changed_file_of_agent_or_suite_is_another_run(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = folder(tmp_path)
    monkeypatch.syspath_prepend(str(where))

    def named() -> str:
        for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(where))]:
            del sys.modules[name]
        suite = open_suite(where / "s.jsonl")
        return identity(suite, parse_agent(f"cmd:{sys.executable} {where / 'agent.py'}"), RunOptions())

    before = named()
    assert named() == before
    (where / "unrelated.py").write_text("X = 1\n")
    assert named() == before
    (where / changed).write_text((where / changed).read_text() + "\n# changed\n")
    assert named() != before


@pytest.mark.parametrize(("one", "other"), [
    ("chat:m@http://localhost:1/v1", "chat:m@http://localhost:2/v1"),
    ("http://localhost:1", "http://localhost:2"),
    ("cmd:true 1", "cmd:true 2"),
])  # fmt: skip
def test_another_address_or_command_line_is_another_run(one: str, other: str, tmp_path: Path) -> None:
    suite = open_suite(folder(tmp_path) / "s.jsonl")
    names = [identity(suite, parse_agent(spec), RunOptions()) for spec in (one, other, one)]
    assert names[0] == names[2] != names[1]


def test_a_changed_program_is_run_again_and_what_was_made_before_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = folder(tmp_path)
    monkeypatch.syspath_prepend(str(where))
    spec = f"cmd:{sys.executable} {where / 'agent.py'}"

    def passed() -> tuple[int, int, str]:
        made = run_suite(where / "s.jsonl", agent=spec, store=tmp_path / "st", options=RunOptions(k=2))
        told = [w for w in made.warnings if "made before" in w]
        return made.resumed, sum(a.passed for a in made.result.tasks), told[0] if told else ""

    assert passed() == (0, 2, "")
    resumed, good, told = passed()
    assert (resumed, good) == (2, 2)
    assert told.startswith("2 of the 2 attempts were made before")
    (where / "helper.py").write_text("def say():\n    return 'no'\n")
    assert passed() == (0, 0, "")


def test_a_command_line_without_files_and_odd_words_has_no_hash(tmp_path: Path) -> None:
    assert command_hash(["true", "--x=1", "-m", "no.such", "a\0b", "x" * 5000]) is None
    (tmp_path / "bad.py").write_text("def (")
    assert command_hash([str(tmp_path / "bad.py")]) is not None


def test_code_that_imports_in_a_circle_is_hashed_once(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import two\ndef f():\n    return 1\n")
    (tmp_path / "two.py").write_text("import one\n")
    sys.path.insert(0, str(tmp_path))
    try:
        found = plugins.named("one.py:f", tmp_path)
        assert code_hash([found]) == code_hash([found, found])
    finally:
        sys.path.remove(str(tmp_path))
