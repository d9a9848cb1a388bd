"""A file that cannot be written is bad input: exit code 2, the file's name and what to do, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.errors import InputError
from seatrial.flows.label import Answer, save

Fails = Callable[..., None]
RESULT = '{"task": "%s", "trial": %d, "passed": %d}\n'


@pytest.fixture
def fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Runs a command that must not be able to write: a folder stands where the file should be, then a file where
    its folder should be."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")

    def command(*arguments: str) -> None:
        for target in ("folder", "file/below.txt"):
            capsys.readouterr()
            status = run([*(target if a == "OUT" else a for a in arguments), "--json"])
            told = capsys.readouterr().err
            assert status == 2, told
            error = json.loads(told.strip().splitlines()[-1])["error"]
            assert "cannot be written" in error["message"] or "cannot write" in error["message"], error
            assert error["file"] == target
        assert list((tmp_path / "folder").iterdir()) == []
        assert (tmp_path / "file").read_text() == ""

    return command


SUITE = {"id": "t", "input": "say hi", "check_final": [{"path": "answer", "op": "contains", "value": "hi"}]}
HELLO = f'cmd:{sys.executable} -c "print(\'{{\\"type\\": \\"answer\\", \\"text\\": \\"hi\\"}}\')"'


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_run(fails: Fails, tmp_path: Path, option: str) -> None:
    (tmp_path / "suite.jsonl").write_text(json.dumps(SUITE) + "\n")
    (tmp_path / "hello.py").write_text("def hello(text, tools):\n    return 'hi'\n")
    fails("run", "suite.jsonl", "--agent", "python:hello:hello", "-k", "1", "--store", "s", option, "OUT")


@pytest.fixture(autouse=True)
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))


def sessions(folder: Path) -> None:
    """Four sessions of a person and two models, in a store."""
    folder.mkdir()
    for n in range(4):
        last = "Perfect, thanks!" if n % 2 else "No, wrong."
        said = [("user", "Rename foo."), ("assistant", "Done."), ("user", last)]
        made = {"id": f"m{n}", "model": f"model-{n // 2}"}
        lines = [
            {"type": who, "uuid": f"{n}-{i}", "parentUuid": None, "sessionId": f"s{n}", "cwd": "/x", "version": "2.0.0",
             "timestamp": f"2026-01-02T10:0{i}:00.000Z",
             "message": {"role": who, "content": text} | (made if i == 1 else {})}
            for i, (who, text) in enumerate(said)
        ]  # fmt: skip
        (folder / f"log{n}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["ingest", str(folder), "--store", "s"]) == 0


def test_label(fails: Fails, tmp_path: Path) -> None:
    sessions(tmp_path / "logs")
    fails("label", "--store", "s", "--export", "OUT")
    answer = Answer(id="i", unit="output", session="s", step=0, labels=("pass",), annotator="me", probability=1.0,
                    drawn="random")  # fmt: skip
    for target in ("folder", "file/below.txt"):
        with pytest.raises(InputError, match="cannot"):
            save(tmp_path / target, answer)


def test_weights(fails: Fails, tmp_path: Path) -> None:
    sessions(tmp_path / "logs")
    ids = _ids()
    labels = [{"session": s, "label": n % 2} for n, s in enumerate(ids)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    fails("weights", "fit", "--labels", "labels.jsonl", "--store", "s", "--draws", "20", "--out", "OUT")


def _ids() -> list[str]:
    from seatrial.store import Store

    return Store.open("s", create=False).session_ids()


def test_judge(fails: Fails, tmp_path: Path) -> None:
    rows = ["item,human_1,human_2,judge"] + [f"i{n},{n % 2},{n % 2},{n % 2}" for n in range(40)]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "judge.toml").write_text(
        'name = "j"\nmodel = "m"\n[[criteria]]\nid = "passed"\nstatement = "It says done."\n'
    )
    fails("judge", "validate", "labels.csv", "--judge", "judge.toml", "--stamp", "OUT")


def test_what_a_judge_said(fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.flows import judge_endpoint
    from seatrial.records.judge import Reply

    def nobody(*given: object, **named: object) -> object:
        return lambda messages: Reply(text="nothing that can be read")

    monkeypatch.setattr(judge_endpoint, "endpoint", nobody)
    (tmp_path / "judge.toml").write_text(
        'name = "j"\nmodel = "m"\n[[criteria]]\nid = "passed"\nstatement = "It says done."\n'
    )
    (tmp_path / "pairs.toml").write_text((tmp_path / "judge.toml").read_text().replace("[[", 'kind = "pairwise"\n[['))
    run_of(tmp_path / "a.json", "a")
    fails("judge", "run", "a.json", "--judge", "judge.toml", "--out", "OUT")
    fails("judge", "compare", "a.json", "a.json", "--judge", "pairs.toml", "--out", "OUT")


def run_of(path: Path, said: str) -> None:
    """A benchmark's run of one task."""
    simulation = {"id": f"s-{said}", "task_id": "t", "trial": 0, "reward_info": {"reward": 1.0 if said == "a" else 0.0},
                  "termination_reason": "user_stop",
                  "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": said}]}  # fmt: skip
    info = {"agent_info": {"llm": "m1", "implementation": "x"}, "user_info": {"llm": "u"},
            "environment_info": {"domain_name": "d"}}  # fmt: skip
    path.write_text(json.dumps({"info": info, "tasks": [{"id": "t"}], "simulations": [simulation]}))


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_diff(fails: Fails, tmp_path: Path, option: str) -> None:
    run_of(tmp_path / "a.json", "a")
    run_of(tmp_path / "b.json", "b")
    fails("diff", "a.json", "b.json", option, "OUT")


@pytest.mark.parametrize("option", ["--html", "--markdown", "--junit", "--sarif", "--history"])
def test_gate(fails: Fails, tmp_path: Path, option: str) -> None:
    (tmp_path / "a.jsonl").write_text("".join(RESULT % (f"t{n}", 0, 1) for n in range(4)))
    fails("gate", "--baseline", "a.jsonl", "--candidate", "a.jsonl", option, "OUT")


def test_no_traceback_reaches_the_terminal(tmp_path: Path) -> None:
    """As a program, not as a function."""
    (tmp_path / "suite.jsonl").write_text(json.dumps(SUITE) + "\n")
    (tmp_path / "folder").mkdir()
    program = str(Path(sys.executable).parent / "seatrial")
    command = [program, "run", "suite.jsonl", "--agent", HELLO, "-k", "1", "--store", "s", "--html", "folder"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "folder" in done.stderr
