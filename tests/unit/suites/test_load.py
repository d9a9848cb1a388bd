"""Suites from every kind of file, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.errors import InputError, MissingExtra, UsageError
from seatrial.records import Task
from seatrial.suites import Suite, file_schema, load, part_of, task_hash, task_schema

TASK: dict[str, Any] = {
    "id": "a",
    "input": "Close T1.",
    "expected_tools": ["close"],
    "max_turns": 3,
    "check_final": [{"path": "t.T1", "op": "eq", "value": "closed"}],
    "extra": {"added": "2026-11-30"},
}
TOML = """
[suite]
name = "desk"
[[tasks]]
id = "a"
input = "Close T1."
expected_tools = ["close"]
max_turns = 3
check_final = [{path = "t.T1", op = "eq", value = "closed"}]
extra = {added = 2026-11-30}
"""
YAML = """
suite: {name: desk}
tasks:
  - id: a
    input: Close T1.
    expected_tools: [close]
    max_turns: 3
    check_final: [{path: t.T1, op: eq, value: closed}]
    extra: {added: 2026-11-30}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", ["json", "json-list", "jsonl", "toml", "yaml"])
def test_every_kind_of_file_gives_the_same_task(tmp_path: Path, kind: str) -> None:
    texts = {
        "json": json.dumps({"suite": {"name": "desk"}, "tasks": [TASK]}),
        "json-list": json.dumps([TASK]),
        "jsonl": '{"suite": {"name": "desk"}}\n\n' + json.dumps(TASK) + "\n",
        "toml": TOML,
        "yaml": YAML,
    }
    if kind == "yaml":
        pytest.importorskip("yaml")
    suite = load(write(tmp_path, f"desk.{kind.partition('-')[0]}", texts[kind]))
    assert suite.name == "desk"
    assert suite.tasks == (Task(**TASK),)


def test_yaml_without_its_parser_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match=r"\[yaml\]"):
        load(write(tmp_path, "s.yaml", YAML))


def test_python_files_and_functions_beside_the_suite(tmp_path: Path) -> None:
    write(
        tmp_path,
        "made.py",
        "from seatrial import Task\nSUITE = [Task(id='x', input='hi')]\ndef other():\n    return SUITE\n"
        "def final(answer, state):\n    return True\ndef start():\n    return {'n': 1}\n",
    )
    assert load(tmp_path / "made.py").name == "made"
    assert [t.id for t in load(f"{tmp_path}/made.py:other").tasks] == ["x"]
    task = {"id": "y", "input": "", "check_final": "made.py:final", "setup": "made.py:start"}
    suite = load(write(tmp_path, "s.jsonl", json.dumps(task)))
    assert callable(suite.tasks[0].check_final)
    assert callable(suite.tasks[0].setup)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_turns": 0}, "max_turns"),
        ({"expected_tool": ["x"]}, "expected_tool"),
        ({"order": "sorted"}, "order"),
        ({"check_final": [{"path": "x", "op": "equals"}]}, "equals"),
        ({"check_final": "nowhere"}, "check_final"),
        ({"source": "made up"}, "source"),
        ({"check_final": "missing.py:f"}, "missing.py"),
    ],
)
def test_a_bad_task_is_named_with_its_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = write(tmp_path, "s.jsonl", json.dumps({"id": "ok", "input": ""}) + "\n" + json.dumps({**TASK, **change}))
    with pytest.raises(InputError, match=said) as found:
        load(path)
    assert (found.value.file, found.value.line) == (str(path), 2)
    assert "task a" in found.value.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", "{"),
        ("s.json", '{"tasks": [], "extra": 1}'),
        ("s.json", '[{"id": "a", "id": "b", "input": ""}]'),
        ("s.jsonl", "not json"),
        ("s.jsonl", ""),
        ("s.toml", "= 3"),
        ("s.json", "3"),
        ("s.json", '["a"]'),
        ("s.json", '[{"id": "a", "input": ""}, {"id": "a", "input": ""}]'),
        ("s.json", '{"suite": {"colour": 1}, "tasks": [{"id": "a", "input": ""}]}'),
    ],
)
def test_a_bad_file_is_an_error_that_names_it(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as found:
        load(write(tmp_path, name, text))
    assert found.value.file is not None


@pytest.mark.parametrize("spec", ["nothing", "seatrial:nothing", "no_such_module:x", "seatrial.canon:GENESIS"])
def test_what_names_no_suite(spec: str) -> None:
    with pytest.raises(UsageError):
        load(spec)


def test_drafts_are_never_among_the_tasks(tmp_path: Path) -> None:
    lines = [json.dumps(TASK), json.dumps({"id": "d", "input": "", "extra": {"draft": True}})]
    suite = load(write(tmp_path, "s.jsonl", "\n".join(lines)))
    assert ([t.id for t in suite.tasks], suite.drafts) == (["a"], ("d",))


def test_schema_names_every_field_of_a_task() -> None:
    assert set(task_schema()["properties"]) == set(Task.__struct_fields__)
    assert file_schema()["$defs"]["task"]["properties"] == task_schema()["properties"]


def test_published_schema_is_the_one_in_use() -> None:
    published = Path(__file__).resolve().parents[3] / "docs" / "reference" / "task.schema.json"
    assert json.loads(published.read_text()) == file_schema(), (
        "run: seatrial suite schema > docs/reference/task.schema.json"
    )


def base() -> Task:
    return Task(**TASK)


def test_hash_covers_what_is_asked_and_judged_and_nothing_else() -> None:
    same = [
        msgspec.structs.replace(base(), tags=["x"]),
        msgspec.structs.replace(base(), id="b"),
        msgspec.structs.replace(base(), source="synthetic"),
        msgspec.structs.replace(base(), extra={"added": "2027-01-01"}),
    ]
    other = [
        msgspec.structs.replace(base(), input="Close T2."),
        msgspec.structs.replace(base(), max_turns=4),
        msgspec.structs.replace(base(), forbidden_tools=["x"]),
        msgspec.structs.replace(base(), check_final=None),
        msgspec.structs.replace(base(), extra={"meaning": {"x": 1}}),
        msgspec.structs.replace(base(), check_final=lambda a, s: True),
        msgspec.structs.replace(base(), check_final=lambda a, s: False),
    ]
    assert {task_hash(t) for t in same} == {task_hash(base())}
    assert len({task_hash(t) for t in [base(), *other]}) == 1 + len(other)


def test_parts_are_stable_near_their_share_and_keep_families_together() -> None:
    parts = [part_of(f"task-{i}") for i in range(2000)]
    assert 0.26 < parts.count("holdout") / 2000 < 0.34
    family = tuple(Task(id=f"x~{i}", input=str(i), extra={"template": "x"}) for i in range(9))
    suite = Suite("s", (*family, Task(id="x", input=""), Task(id="h", input="", extra={"part": "holdout"})))
    assert len({suite.part(t) for t in suite.tasks if t.id.startswith("x")}) == 1
    assert suite.part(suite.tasks[-1]) == "holdout"
    assert {t.id for t in suite.select(part="dev")} | {t.id for t in suite.select(part="holdout")} == {
        t.id for t in suite.tasks
    }
    with pytest.raises(UsageError, match="no task"):
        suite.select(("y",))
