"""A run: every attempt once, resumable at any moment, with the same results (issue of record: killed runs)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import EvidenceError, InputError, StoreError, UsageError
from seatrial.flows import attempts as rows
from seatrial.flows.grade import regrade
from seatrial.flows.run import RunOptions, SuiteRun, run_suite, stored
from seatrial.records import AgentTurn, Task, ToolCall, ToolSpec, WorldStart
from seatrial.store import Store
from seatrial.suites import Limits, Suite
from seatrial.world import MemoryWorld, Output, Tool

SCHEMA = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}


def put(state: dict[str, Any], args: dict[str, Any], draws: Any) -> Output:
    state["n"] += args["by"] + draws.randrange(2)
    return Output(text=str(state["n"]))


ADD = Tool(ToolSpec(name="add", description="add", parameters=SCHEMA), put)


def world(seed: int) -> MemoryWorld:
    made = MemoryWorld("counter", "1", [ADD])
    made.reset(WorldStart(state={"n": 0}, seed=seed))
    return made


class Adder:
    """Adds one; slow on request; its luck is its seed's."""

    version = "1"

    def __init__(self, name: str = "adder", pause: float = 0.0) -> None:
        self.name = name
        self.pause = pause
        self.begun = 0

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Any:
        self.begun += 1
        return _Talk(self, seed)


class _Talk:
    def __init__(self, agent: Adder, seed: int) -> None:
        self.agent, self.seed, self.turn = agent, seed, 0

    def send(self, incoming: Any) -> AgentTurn:
        time.sleep(self.agent.pause)
        self.turn += 1
        if self.agent.name == "crashes" and self.seed % 2:
            raise ValueError("odd")
        if self.turn == 1:
            return AgentTurn(calls=(ToolCall(id="c", name="add", arguments={"by": 1}),), model="m")
        return AgentTurn(text=f"It is {incoming[0].text}.", model="m")


def suite(n: int = 4) -> Suite:
    tasks = tuple(
        Task(
            id=f"t{i}", input="add one", expected_tools=["add"], max_turns=3, must_pass=i == 0,
            check_final=[{"path": "n", "op": "eq", "value": 1}, {"path": "answer", "op": "contains", "value": "1"}],
        )
        for i in range(n)
    )  # fmt: skip
    return Suite("adding", tasks, world=world, agents={"adder": Adder()})


def essence(run: SuiteRun, store: Path) -> list[tuple[Any, ...]]:
    """What a run found, times aside."""
    opened = Store.open(store)
    return [
        (a.task, a.trial, a.status, a.reason, a.task_hash, tuple(sorted(a.fingerprint.items())),
         tuple((v.metric, v.passed, v.reason, v.value) for v in vs),
         opened.trace_of(a.extra["blob"]).extra["final"])
        for a, vs in rows.stored_run(opened, run.run)
    ]  # fmt: skip


def test_every_attempt_is_made_once_graded_and_kept(tmp_path: Path) -> None:
    agent = Adder()
    made = run_suite(suite(), agent=agent, store=tmp_path / "s", options=RunOptions(k=5))
    assert agent.begun == 20
    assert made.result.counts.n_scored == 20
    found = {m.metric: (m.passed, m.n) for m in made.result.metrics}
    passed = found["world_state"][0]
    assert 2 < passed < 18
    assert found["required_present"] == (20, 20)
    assert made.result.crossing.sound == passed
    assert made.result.crossing.unlucky == 20 - passed
    assert [p.k for p in made.result.curve] == [1, 2, 3, 4, 5]
    judged = rows.stored_run(Store.open(tmp_path / "s"), made.run)
    assert len({(a.task, a.trial) for a, _ in judged}) == 20
    assert [a.task for a, _ in judged if a.extra.get("must_pass")] == ["t0"] * 5
    assert all(a.fingerprint.keys() == {"harness", "model", "tools"} for a, _ in judged)
    trace = Store.open(tmp_path / "s").trace(f"{made.run}~t1~0")
    assert trace.steps[1].tool_calls[0].arguments == {"by": 1}
    assert Store.open(tmp_path / "s").verify().ok


def test_concurrency_and_order_change_nothing(tmp_path: Path) -> None:
    first = run_suite(suite(), agent=Adder(), store=tmp_path / "a", options=RunOptions(k=3, concurrency=1))
    second = run_suite(suite(), agent=Adder(), store=tmp_path / "b", options=RunOptions(k=3, concurrency=8))
    assert essence(first, tmp_path / "a") == essence(second, tmp_path / "b")
    other = run_suite(suite(), agent=Adder(), store=tmp_path / "b", options=RunOptions(k=3, seed=1))
    assert other.run != second.run


def test_the_same_command_again_makes_nothing_new_and_more_attempts_are_added(tmp_path: Path) -> None:
    agent = Adder()
    first = run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=2))
    again = run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=2))
    assert (agent.begun, again.resumed, again.run) == (8, 8, first.run)
    more = run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=3))
    assert (agent.begun, more.run, more.result.counts.n_planned) == (12, first.run, 12)


def test_a_changed_task_is_tried_again_and_the_others_are_not(tmp_path: Path) -> None:
    agent = Adder()
    run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=1, name="mine"))
    changed = Suite("adding", (*suite().tasks[:3], Task(id="t3", input="other")), world=world)
    made = run_suite(changed, agent=agent, store=tmp_path, options=RunOptions(k=1, name="mine"))
    assert agent.begun == 5
    assert made.result.counts.excluded == {"unscored": 1}
    assert any("not scored" in w for w in made.warnings)


def test_a_lost_trace_is_made_again(tmp_path: Path) -> None:
    agent = Adder()
    first = run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=1))
    before = essence(first, tmp_path)
    store = Store.open(tmp_path)
    blob = rows.stored_run(store, first.run)[0][0].extra["blob"]
    store.blobs.path(blob).unlink()
    run_suite(suite(), agent=agent, store=tmp_path, options=RunOptions(k=1))
    assert agent.begun == 5
    assert essence(first, tmp_path) == before


def test_crashes_count_as_not_passed_and_infrastructure_is_retried(tmp_path: Path) -> None:
    made = run_suite(suite(), agent=Adder("crashes"), store=tmp_path, options=RunOptions(k=4))
    statuses = {s: n for t in made.result.tasks for s, n in t.statuses.items()}
    assert "error_agent" in statuses
    assert made.result.counts.n_scored == 16

    class Down:
        name, version = "down", "1"
        begun = 0

        def begin(self, tools: Any, seed: int) -> Any:
            type(self).begun += 1
            raise ConnectionError("no route")

    down = run_suite(suite(2), agent=Down(), store=tmp_path, options=RunOptions(k=1, retries=2))
    assert Down.begun == 6
    assert down.result.counts.excluded == {"error_infra": 2}
    assert down.result.counts.n_scored == 0


CHILD = """
import sys
sys.path.insert(0, {folder!r})
import test_run as t
from pathlib import Path
from seatrial.flows.run import RunOptions, run_suite
run_suite(t.suite(6), agent=t.Adder(pause=0.01), store=Path(sys.argv[1]), options=RunOptions(k=4, concurrency=3))
print("done", flush=True)
"""


def test_a_run_killed_at_random_points_gives_what_an_uninterrupted_run_gives(tmp_path: Path) -> None:
    whole = run_suite(suite(6), agent=Adder(pause=0.01), store=tmp_path / "whole", options=RunOptions(k=4))
    code = CHILD.format(folder=str(Path(__file__).parent))
    killed, ledger = 0, tmp_path / "cut" / "runs" / f"{whole.run}.jsonl"
    for wanted in (1, 11, 10_000):
        child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "cut")], stdout=subprocess.PIPE)
        while child.poll() is None:
            if ledger.exists() and ledger.read_bytes().count(b"\n") >= wanted:
                os.kill(child.pid, signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.002)
        child.communicate()
        if child.returncode:
            listed = rows.runs(Store.open(tmp_path / "cut")).to_dicts()
            held = ledger.read_bytes().count(b"\n")
            assert [(r["run"], r["suite"], r["agent"], r["model"]) for r in listed] == [
                (whole.run, "adding", "adder", "m")
            ]
            assert listed[0]["attempts"] == held >= wanted
            assert 0 <= listed[0]["passed"] <= held
            assert listed[0]["start"] > 0
            with pytest.raises(EvidenceError, match="not finished"):
                stored(Store.open(tmp_path / "cut"), None)
    assert killed == 2
    assert len(rows.runs(Store.open(tmp_path / "cut"))) == 1
    resumed = run_suite(suite(6), agent=Adder(pause=0.01), store=tmp_path / "cut", options=RunOptions(k=4))
    assert resumed.run == whole.run
    assert essence(resumed, tmp_path / "cut") == essence(whole, tmp_path / "whole")
    assert Store.open(tmp_path / "cut").verify().ok
    lines = ledger.read_bytes().splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == len(lines) == 24, "no attempt was made twice"


def test_two_processes_never_work_on_one_run(tmp_path: Path) -> None:
    code = CHILD.format(folder=str(Path(__file__).parent))
    child = subprocess.Popen([sys.executable, "-c", code.replace("pause=0.01", "pause=0.3"), str(tmp_path)])
    try:
        deadline = time.time() + 60
        while not list(tmp_path.glob("runs/*.jsonl")) and time.time() < deadline:
            time.sleep(0.01)
        with pytest.raises(StoreError, match="another process"):
            run_suite(suite(6), agent=Adder(pause=0.3), store=tmp_path, options=RunOptions(k=4))
    finally:
        child.kill()
        child.wait()


def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no task to run; 1 drafts"):
        run_suite(Suite("s", (), drafts=("d",)), agent=Adder())
    with pytest.raises(UsageError, match="k must"):
        run_suite(suite(), agent=Adder(), options=RunOptions(k=0))
    with pytest.raises(UsageError, match="no task 'x'"):
        run_suite(suite(), agent=Adder(), options=RunOptions(tasks=("x",)))
    with pytest.raises(EvidenceError):
        stored(Store.open(tmp_path / "empty", create=True), None)
    run_suite(suite(1), agent=Adder(), store=tmp_path / "s", options=RunOptions(k=1, name="one"))
    with pytest.raises(InputError, match="no run begins"):
        stored(Store.open(tmp_path / "s"), "two")


def test_grading_again_uses_the_checks_of_today_and_leaves_changed_tasks(tmp_path: Path) -> None:
    made = run_suite(suite(), agent=Adder(), store=tmp_path, options=RunOptions(k=2))
    store = Store.open(tmp_path)
    before = essence(made, tmp_path)
    _, changed = regrade(store, made.run, suite())
    assert (changed, essence(made, tmp_path)) == ([], before)
    other = Suite("adding", (*suite().tasks[:3], Task(id="t3", input="other")), world=world)
    assert regrade(store, made.run, other)[1] == ["t3"]


def test_redaction_is_only_on_request(tmp_path: Path) -> None:
    class Tells(Adder):
        def begin(self, tools: Any, seed: int) -> Any:
            return self

        def send(self, incoming: Any) -> AgentTurn:
            return AgentTurn(text="Write to ana@example.com")

    for redact in (False, True):
        options = RunOptions(k=1, redact=redact)
        made = run_suite(suite(1), agent=Tells("tells"), store=tmp_path, options=options)
        said = Store.open(tmp_path).trace(f"{made.run}~t0~0").steps[-1].text
        assert ("ana@example.com" in said) is not redact


@pytest.mark.parametrize("limit", [0.020, pytest.param(0.005, marks=pytest.mark.full)])
def test_the_runner_costs_few_milliseconds_an_attempt(tmp_path: Path, limit: float) -> None:
    """The whole cost of an attempt whose agent and world cost next to nothing: threads, trace, grading, disk.

    On a machine that does other things at the same time even processor time grows several times over, so normal runs
    see only a cost that is out of all proportion; the promise itself is for a machine that is left alone.
    """
    tasks = suite(20)
    run_suite(suite(2), agent=Adder(), store=tmp_path / "warm", options=RunOptions(k=1))
    best = min(_per_attempt(tasks, tmp_path / str(i)) for i in range(3))
    assert best < limit, f"{best * 1000:.2f} ms"


def _per_attempt(tasks: Suite, store: Path) -> float:
    began = time.process_time()
    run_suite(tasks, agent=Adder(), store=store, options=RunOptions(k=5, limits=Limits(seconds=60)))
    return (time.process_time() - began) / 100


def test_tool_calls_are_recorded_once_and_replayed(tmp_path: Path) -> None:
    tapes = tmp_path / "tapes"
    options = RunOptions(k=2, cassette=tapes)
    first = run_suite(suite(2), agent=Adder(), store=tmp_path / "a", options=options)
    assert len(list(tapes.iterdir())) == 4

    def dead(state: Any, args: Any, draws: Any) -> Output:
        raise AssertionError("the real tool was called")

    def silent(seed: int) -> MemoryWorld:
        made = MemoryWorld("counter", "1", [Tool(ADD.spec, dead)])
        made.reset(WorldStart(state={"n": 0}, seed=seed))
        return made

    replayed = Suite("adding", suite(2).tasks, world=silent)
    again = run_suite(replayed, agent=Adder(), store=tmp_path / "b", options=options)
    assert essence(again, tmp_path / "b") == essence(first, tmp_path / "a")
    none = run_suite(
        suite(1), agent=Adder(), options=RunOptions(k=1, cassette=tmp_path / "no", cassette_mode="replay", retries=0)
    )
    assert none.result.counts.excluded == {"error_infra": 1}


def test_a_turn_of_a_program_never_outlasts_the_attempt(tmp_path: Path) -> None:
    own = Suite("s", (Task(id="t", input="go"),), world=world)
    started = time.monotonic()
    program = f"cmd:{sys.executable} -c 'import time; time.sleep(60)'"
    options = RunOptions(k=1, limits=Limits(seconds=0.5))
    done = run_suite(own, agent=program, store=tmp_path / "store", options=options)
    assert time.monotonic() - started < 10
    (attempt, _) = stored(Store.open(tmp_path / "store"), done.run)[1][0]
    assert (attempt.status, attempt.reason.split(" sent ")[1]) == ("timeout", "nothing within 0.5 s")
