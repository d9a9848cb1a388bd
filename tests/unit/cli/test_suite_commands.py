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


GATED = """
from seatrial.records import AgentTurn, ToolCall, ToolSpec, Usage, WorldStart
from seatrial.world import MemoryWorld, Output, Tool

SCHEMA = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}


def put(state, args, draws):
    state["n"] += args["by"]
    return Output(text=str(state["n"]))


def world(seed):
    made = MemoryWorld("counter", "1", [Tool(ToolSpec(name="add", description="add", parameters=SCHEMA), put)])
    made.reset(WorldStart(state={"n": 0}, seed=seed))
    return made


class Payer:
    name, version = "payer", "1"

    def begin(self, tools, seed):
        return Talk()


class Talk:
    def send(self, incoming):
        used = Usage(input_tokens=1000, output_tokens=500)
        if isinstance(incoming, tuple):
            return AgentTurn(text="done", usage=used, model="toy-1")
        return AgentTurn(calls=(ToolCall(id="c", name="add", arguments={"by": 5}),), usage=used, model="toy-1")


PAYER = Payer()
"""


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "paying.py").write_text(GATED)
    task = {"id": "pay", "input": "pay 5", "check_final": [{"path": "n", "op": "eq", "value": 5}],
            "gates": [{"name": "money", "tool": "add", "mode": "enforced"}]}  # fmt: skip
    lines = [{"suite": {"name": "paying", "world": "paying.py:world"}}, task]
    (tmp_path / "paying.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "paying.jsonl"


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    status = run([*arguments, "--json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out or captured.err)


@pytest.mark.parametrize(
    ("word", "passed", "n"),
    [
        ("approve", 1, 5),
        ("deny", 0, 0),
        ("absent", 0, 0),
        ('amend:{"by": 2}', 0, 2),
        ("delay:30", 1, 5),
        ("delay:30:deny", 0, 0),
    ],
)
def test_the_person_who_is_asked(
    gated: str, capsys: pytest.CaptureFixture[str], word: str, passed: int, n: int
) -> None:
    from seatrial.store import Store

    arguments = ("run", gated, "--agent", "python:paying:PAYER", "-k", "1", "--store", "s", "--approver", word)
    status, said = made(capsys, *arguments)
    assert status == 0
    assert said["result"]["result"]["tasks"][0]["passed"] == passed
    store = Store.open("s", create=False)
    (blob,) = store.table("attempts").collect()["blob"].to_list()
    trace = store.trace_of(blob)
    assert trace.extra["final"]["n"] == n
    waited = 600.0 if word == "absent" else 30.0 if word.startswith("delay") else 0.0
    first, last = trace.steps[0].time, trace.steps[-1].time
    assert first is not None
    assert last is not None
    assert waited <= last - first < waited + 20
    assert trace.totals.wall is not None
    assert trace.totals.wall < 20, "nobody waits in earnest"


@pytest.mark.parametrize("word", ["aprove", "delay:", "delay:-1", "delay:x", "amend:[]", "amend:{", "delay:1:never"])
def test_an_unknown_person_is_refused_before_anything_runs(
    gated: str, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    status, said = made(capsys, "run", gated, "--agent", "python:paying:PAYER", "--store", "s", "--approver", word)
    assert status == 2
    assert "approver" in said["error"]["message"]
    assert "amend" in said["error"]["hint"]
    assert not Path("s").exists()


def test_settings_say_how_suites_run_and_what_models_cost(gated: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("run", gated, "--agent", "python:paying:PAYER", "--store", "s")
    _, unpriced = made(capsys, *base)
    assert unpriced["result"]["k"] == 5
    assert unpriced["result"]["result"]["cost_usd"]["p50"] is None
    assert any("not known" in w for w in unpriced["warnings"])
    Path("seatrial.toml").write_text(
        '[suites]\nk = 2\napprover = "deny"\nconcurrency = 1\ntimeout = 60\n\n'
        "[prices]\ntoy-1 = { input = 2.0, output = 10.0 }\n"
    )
    _, priced = made(capsys, *base)
    assert priced["result"]["k"] == 2
    assert priced["result"]["result"]["tasks"][0]["passed"] == 0
    assert priced["result"]["result"]["cost_usd"]["p50"] == pytest.approx(2 * (1000 * 2 + 500 * 10) / 1e6)
    assert not any("not known" in w for w in priced["warnings"])
    _, told = made(capsys, *base, "-k", "1", "--approver", "approve")
    assert (told["result"]["k"], told["result"]["result"]["tasks"][0]["passed"]) == (1, 1)
    status, limited = made(capsys, *base, "-k", "1", "--max-cost", "0.001")
    assert status == 0
    assert limited["result"]["result"]["tasks"][0]["statuses"] == {"timeout": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[suites]\nk = 0\n", "suites.k"),
        ("[suites]\nkk = 1\n", "did you mean 'k'"),
        ('[suites]\napprover = "maybe"\n', "suites.approver"),
        ("[prices]\ntoy-1 = { input = 1.0 }\n", "prices"),
        ("[prices]\ntoy-1 = { input = -1.0, output = 1.0 }\n", "prices"),
        ("[prices]\ntoy-1 = { input = 1.0, output = 1.0, in = 1.0 }\n", "prices"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    gated: str, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    Path("seatrial.toml").write_text(text)
    status, said = made(capsys, "run", gated, "--agent", "python:paying:PAYER", "--store", "s")
    assert status == 2
    assert says in said["error"]["message"] + str(said["error"].get("hint"))
