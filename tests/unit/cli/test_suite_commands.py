"""`run`, `grade`, `triage`, `task` and `suite` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.app import run

AGENT = """
from seatrial.records import AgentTurn, ToolCall, ToolSpec, WorldStart
from seatrial.world import MemoryWorld, Output, Tool

SCHEMA = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}


def put(state, args, draws):
    state["n"] += args["by"]
    return Output(text=str(state["n"]))


def world(seed):
    made = MemoryWorld("counter", "1", [Tool(ToolSpec(name="add", description="add", parameters=SCHEMA), put)])
    made.reset(WorldStart(state={"n": 0}, seed=seed))
    return made


class Adder:
    name, version = "adder", "1"

    def begin(self, tools, seed):
        return Talk()


class Talk:
    def send(self, incoming):
        if isinstance(incoming, tuple):
            return AgentTurn(text="done")
        return AgentTurn(calls=(ToolCall(id="c", name="add", arguments={"by": 1}),))


ADDER = Adder()
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "adding.py").write_text(AGENT)
    tasks = [
        {"id": f"t{n}", "input": f"add {n}", "expected_tools": ["add"], "source": "representative",
         "check_final": [{"path": "n", "op": "eq", "value": n}]}
        for n in (1, 2)
    ]  # fmt: skip
    lines = [{"suite": {"name": "adding", "world": "adding.py:world"}}, *tasks]
    (tmp_path / "suite.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "suite.jsonl"


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any], str]:
    status = run([*argv, "--json"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else {}, err


def test_run_grade_and_list(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, body, _ = call(capsys, "run", suite, "--agent", "python:adding:ADDER", "-k", "2", "--store", "s")
    result = body["result"]
    assert status == 0
    assert body["data_version"]
    assert (result["suite"], result["agent"], result["k"]) == ("adding", "adder", 2)
    assert result["result"]["counts"]["n_scored"] == 4
    assert result["result"]["crossing"] == {"sound": 2, "lucky": 0, "unlucky": 2, "failed": 0, "unjudged": 0}
    metrics = {m["metric"]: (m["passed"], m["n"]) for m in result["result"]["metrics"]}
    assert metrics["world_state"] == (2, 4)
    _, body, _ = call(capsys, "run", "--list", "--store", "s")
    assert [r["run"] for r in body["result"]["runs"]] == [result["run"]]
    status, body, _ = call(capsys, "grade", "--store", "s")
    assert status == 0
    assert len(body["result"]["attempts"]) == 4
    assert {v["metric"] for v in body["result"]["attempts"][0]["verdicts"]} >= {"world_state", "no_invalid_args"}
    status, _, _ = call(capsys, "grade", "--again", "--suite", suite, "--store", "s")
    assert status == 0
    status, _, err = call(capsys, "grade", "--again", "--store", "s")
    assert (status, json.loads(err)["error"]["code"]) == (2, "usage")


def test_the_screen_shows_metrics_apart_and_never_one_score(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--html", "run.html", "--markdown", "run.md"]
    assert run(["run", suite, "--agent", "python:adding:ADDER", "-k", "2", "--store", "s", *files]) == 0
    assert "no_verbatim_retries" in Path("run.html").read_text()
    assert "2 unlucky" in Path("run.md").read_text()
    out = capsys.readouterr().out
    for word in ("world_state", "no_verbatim_retries", "pass^k", "2 sound", "2 unlucky", "time p50"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 100


def test_nothing_scored_is_exit_3_and_bad_words_are_exit_2(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("open.jsonl").write_text('{"id": "x", "input": "hi"}\n')
    status, body, _ = call(capsys, "run", "open.jsonl", "--agent", "python:adding:ADDER", "-k", "1", "--store", "s")
    assert (status, body["result"]["result"]["counts"]["excluded"]) == (3, {"unscored": 1})
    for argv in (
        ["run", "nowhere.jsonl", "--agent", "x"],
        ["run", suite, "--agent", "nonsense"],
        ["run", suite],
        ["run", suite, "--agent", "python:adding:ADDER", "--task", "t9"],
        ["run", "example:nothing", "--agent", "x"],
    ):
        status, _, err = call(capsys, *argv, "--store", "s")
        assert status == 2, argv
        assert json.loads(err)["error"]["message"]


def test_a_bad_task_is_found_before_anything_runs(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(suite).open("a") as out:
        out.write('{"id": "bad", "input": "", "expected_tools": ["a"], "order": "prefix 3"}\n')
    status, _, err = call(capsys, "run", suite, "--agent", "python:adding:ADDER", "--store", "s")
    assert (status, "prefix 3" in err, Path("s").exists()) == (2, True, False)


def test_suite_list_health_and_schema(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, body, _ = call(capsys, "suite", "list", suite)
    assert [t["task"] for t in body["result"]["tasks"]] == ["t1", "t2"]
    _, body, _ = call(capsys, "suite", "health", suite, "--store", "nowhere")
    assert body["result"]["tasks"] == 2
    assert body["result"]["untriaged"] is None
    _, body, _ = call(capsys, "suite", "schema", "--task")
    assert "check_final" in body["result"]["properties"]
    assert run(["suite", "list", suite]) == run(["suite", "health", suite]) == 0


def test_vary_writes_tasks_that_load(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, body, _ = call(
        capsys, "task", "vary", suite, "t1", "--phrasing", "Please: {input}", "--phrasing", "Now: {input}",
        "-n", "2", "--out", "more.jsonl",
    )  # fmt: skip
    assert (status, len(body["result"]["tasks"])) == (0, 2)
    _, body, _ = call(capsys, "suite", "list", "more.jsonl")
    assert [t["source"] for t in body["result"]["tasks"]] == ["synthetic", "synthetic"]


def test_triage_and_drafts_from_sessions(suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from seatrial.flows import demo

    demo.make_sessions(tmp_path / "fleet", sessions=40, seed=3)
    assert run(["ingest", str(tmp_path / "fleet"), "--store", "s"]) == 0
    capsys.readouterr()
    _, body, _ = call(capsys, "triage", "--state", "new", "--store", "s")
    items = body["result"]["items"]
    assert items
    assert all(i["why"] for i in items)
    first, second = items[0]["session"], items[1]["session"]
    status, _, _ = call(capsys, "triage", "--dismiss", first, "--reason", "a test", "--store", "s")
    assert status == 0
    _, body, _ = call(capsys, "task", "from-session", second, "--suite", "new.jsonl", "--store", "s")
    draft = body["result"]["drafts"][0]
    assert draft["extra"]["draft"] is True
    assert draft["input"]
    _, body, _ = call(capsys, "triage", "--store", "s")
    assert body["result"]["counts"] == {"new": len(items) - 2, "task": 1, "dismissed": 1}
    status, _, err = call(capsys, "task", "approve", "new.jsonl", draft["id"], "--by", "ana", "--store", "s")
    assert (status, "neither check_final nor rubric" in err) == (2, True)
    _, body, _ = call(capsys, "task", "from-session", "--success", "-n", "3", "--store", "s")
    assert len(body["result"]["drafts"]) == 3
    assert run(["triage", "--store", "s"]) == run(["task", "from-session", second, "--store", "s"]) == 0
