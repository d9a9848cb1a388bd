"""D5: planted nondeterminism is found at its step, in process and in a fresh process; reading back is no replay."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.agent_again import decide_again
from seatrial.dimensions.fresh import FreshProcess
from seatrial.dimensions.observation import Mask
from seatrial.dimensions.reexecute import Reexecution, reexecute
from seatrial.dimensions.replay import NO_WORLD, ReplayIntegrity
from seatrial.errors import InputError
from seatrial.records import AgentTurn, Evidence, ToolCall, ToolResult
from seatrial.world import FixedText, MemoryWorld, ScriptedAgent

TESTS = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("shelf", TESTS / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)

CALLS: Any = [
    ("read", {"key": "old"}),
    ("put", {"key": "lamp", "value": "on"}),
    ("lucky", {"key": "coin"}),
    ("clock", {}),
    ("remove", {"key": "old"}),
    ("remove", {"key": "old"}),
]


class Planted(MemoryWorld):
    """A world whose call number `at` comes out otherwise: its observation, or its state."""

    at = 3
    what = "observation"

    def call(self, call: ToolCall) -> ToolResult:
        """The call; the planted one differs."""
        result = super().call(call)
        if self._calls == self.at:
            if self.what == "state":
                self._state["items"]["ghost"] = "boo"
            elif self.what == "raise":
                raise RuntimeError("the disk is full")
            else:
                return msgspec.structs.replace(result, text="something else")
        return result


@pytest.fixture(autouse=True)
def _same_path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def planted(at: int, what: str) -> Any:
    kind = type("P", (Planted,), {"at": at, "what": what})
    return lambda: shelf.world(kind=kind)


def no_child(trace: Any, origin: Any, patterns: Any) -> Reexecution:
    raise AssertionError("no origin, so no child")


D5 = ReplayIntegrity(fresh=no_child)


def test_a_deterministic_run_comes_out_the_same() -> None:
    value = D5.measure(shelf.run(CALLS))
    assert value.value == 1.0
    assert value.level == 1.0
    assert value.parts["steps"] == 6
    assert value.parts["state_hashes"] is True
    assert value.parts["final_state"] is True
    assert value.findings == ()


@pytest.mark.parametrize("at", [1, 2, 4, 6])
def test_an_observation_that_differs_is_found_at_its_step_and_the_logged_calls_go_on(at: int) -> None:
    value = D5.measure(shelf.run(CALLS, made=planted(at, "observation")))
    assert value.numerator == 5.0
    assert value.value == 5 / 6
    assert value.findings[0].step == at
    assert value.findings[0].detail["again"].endswith("something else")
    assert value.level == 0.75


@pytest.mark.parametrize("at", [2, 5])
def test_a_state_that_differs_is_found_from_its_step_on(at: int) -> None:
    value = D5.measure(shelf.run(CALLS, made=planted(at, "state")))
    assert value.numerator == at - 1
    assert value.findings[0].step == at
    assert "the state of" in value.findings[0].what
    assert value.parts["final_state"] is False


def test_a_world_that_breaks_loses_the_steps_after_it() -> None:
    value = D5.measure(shelf.run(CALLS, made=planted(3, "raise")))
    assert value.value == 2 / 6
    assert "the disk is full" in value.findings[0].what
    assert value.level == 0.25


def test_luck_with_another_seed_differs_and_its_own_seed_does_not() -> None:
    run = shelf.run(CALLS, made=lambda: shelf.world(seed=8))
    again = reexecute(run.trace, run.world())
    assert again.first is not None
    assert (again.first.tool, again.first.step, again.first.state) == ("lucky", 3, False)
    # From there on the state is another in every step.
    assert [s.same for s in again.steps] == [True, True, False, False, False, False]


def test_a_volatile_field_is_masked_and_any_other_is_not() -> None:
    ahead = {**shelf.START, "clock": 40}
    run = shelf.run([("clock", {})])
    again = reexecute(run.trace, shelf.world(ahead))
    assert again.steps[0].same
    assert Mask((("clock",),)).text('{"clock": 1, "said": "tick"}') == '{"said":"tick"}'
    assert Mask((("rows", "*", "at"),)).text('{"at": 1, "n": 2}\nplain') == '{"n":2}\nplain'
    assert Mask((), (r"took \d+ ms",)).text("ok, took 31 ms") == "ok, <volatile>"
    with pytest.raises(InputError):
        Mask((), ("(",))


def test_declared_patterns_of_the_task_mask_prose() -> None:
    run = shelf.run(CALLS, made=planted(1, "observation"))
    task = msgspec.structs.replace(run.task, extra={"volatile_text": ["as it was|something else"]})
    assert D5.measure(msgspec.structs.replace(run, task=task)).value == 1.0


def test_without_a_world_there_is_no_replay_and_without_actions_nothing_to_replay() -> None:
    run = shelf.run(CALLS)
    bare = D5.measure(msgspec.structs.replace(run, world=None))
    assert (bare.value, bare.why) == (None, NO_WORLD)
    assert D5.measure(shelf.run([])).value is None
    gone = D5.measure(msgspec.structs.replace(run, trace=None))
    assert (gone.value, gone.level) == (None, None)


def test_a_world_that_begins_elsewhere_is_brought_into_the_recorded_start() -> None:
    assert D5.measure(shelf.run(CALLS, made=lambda: shelf.world({"items": {}, "clock": 0}))).value == 1.0


def test_another_version_of_the_world_is_refused() -> None:
    run = shelf.run(CALLS)
    held = {**run.trace.extra, "world": {**run.trace.extra["world"], "version": "0"}}
    old = msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, extra=held))
    value = D5.measure(old)
    assert value.value is None
    assert "shelf 0" in value.why


def test_a_log_without_hashes_is_compared_by_observation_alone_and_says_so() -> None:
    run = shelf.run(CALLS)
    steps = tuple(
        msgspec.structs.replace(s, results=tuple(msgspec.structs.replace(r, extra={}) for r in s.results))
        for s in run.trace.steps
    )
    bare = msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, steps=steps))
    value = D5.measure(bare)
    assert value.value == 1.0
    assert "observation alone" in value.why
    assert "observation alone" in " ".join(D5.combine([value], 0.95).notes)


def test_refused_calls_are_re_executed_and_calls_that_a_person_stopped_are_not() -> None:
    value = D5.measure(shelf.run([("put", {"key": 3}), ("nothing_like_it", {}), ("read", {"key": "old"})]))
    assert value.parts["steps"] == 3
    assert value.value == 1.0


@pytest.fixture(scope="module")
def child() -> Iterator[FreshProcess]:
    process = FreshProcess(seconds=20)
    yield process
    process.close()


def _origin(tmp: Path, body: str) -> dict[str, Any]:
    """A module that another process can find: the child gets this process' path."""
    name = f"world_{abs(hash(body)) % 10**8}"
    (tmp / f"{name}.py").write_text(
        f"import importlib.util, os, random\n"
        f"spec = importlib.util.spec_from_file_location('shelf', {str(TESTS / 'shelf.py')!r})\n"
        f"shelf = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(shelf)\n{body}\n"
    )
    sys.path.insert(0, str(tmp))
    return {"build": f"{name}:build"}


def test_a_fresh_process_gives_the_same(child: FreshProcess, tmp_path: Path) -> None:
    run = shelf.run(CALLS, origin=_origin(tmp_path, "def build(origin): return shelf.world()"))
    value = ReplayIntegrity(fresh=child).measure(run)
    assert value.value == 1.0
    assert value.parts["fresh_process"] == 1.0


def test_what_this_process_alone_remembers_is_found_by_a_fresh_one(child: FreshProcess, tmp_path: Path) -> None:
    """The order of a set, kept in a module: the same in this process for ever, and another in the next."""
    body = (
        "ORDER = list({'amber', 'basalt', 'coral', 'dune', 'ember', 'flint', 'grove', 'heath'})\n"
        "def names(state, a, draws): return shelf.Output(text=' '.join(ORDER))\n"
        "def build(origin):\n"
        "    tool = shelf._tool('names', 'read', names)\n"
        "    tools = tuple(tool if t.spec.name == 'names' else t for t in shelf.TOOLS)\n"
        "    world = shelf.MemoryWorld('shelf', '1', tools, (('clock',),))\n"
        "    world.reset(shelf.WorldStart(state=shelf.START, seed=7))\n"
        "    return world\n"
    )
    origin = _origin(tmp_path, body)
    build = importlib.import_module(origin["build"].partition(":")[0]).build
    calls: Any = [("read", {"key": "old"}), ("names", {}), ("put", {"key": "lamp", "value": "on"})]
    run = shelf.run(calls, recorded=build({}), made=lambda: build({}), origin=origin)
    value = ReplayIntegrity(fresh=child).measure(run)
    assert value.parts["in_process"] == 1.0
    assert value.parts["fresh_process"] == 2 / 3
    assert value.value == 2 / 3
    assert "in a fresh process" in value.findings[0].what
    assert value.findings[0].step == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def build(origin): raise ValueError('no such world')", "no such world"),
        ("def build(origin): os._exit(3)", "died"),
        ("def other(origin): pass", "cannot make the world"),
    ],
)
def test_a_fresh_process_that_cannot_is_told_and_the_next_run_goes_on(
    child: FreshProcess, tmp_path: Path, body: str, said: str
) -> None:
    run = shelf.run(CALLS, origin=_origin(tmp_path, body))
    value = ReplayIntegrity(fresh=child).measure(run)
    assert value.value == 1.0
    assert value.parts["fresh_process"] is None
    assert said in value.parts["no_fresh_process"]
    good = child(run.trace, _origin(tmp_path, "def build(origin): return shelf.world()"))
    assert good.refusal is None


def test_a_fresh_process_that_hangs_is_ended(tmp_path: Path) -> None:
    process = FreshProcess(seconds=1)
    run = shelf.run(CALLS, origin=_origin(tmp_path, "import time\ndef build(origin): time.sleep(60)"))
    again = process(run.trace, run.origin)
    process.close()
    assert again.refusal is not None
    assert "took longer than 1 s" in again.refusal


def test_what_a_world_prints_does_not_disturb_the_answer(child: FreshProcess, tmp_path: Path) -> None:
    body = "def build(origin):\n    print('loud', flush=True)\n    return shelf.world()"
    run = shelf.run(CALLS, origin=_origin(tmp_path, body))
    assert child(run.trace, run.origin).refusal is None


def _agent(slip: bool = False) -> Any:
    def script(message: Any, tools: Any, draws: random.Random) -> Any:
        results = yield AgentTurn(calls=(ToolCall(id="a", name="read", arguments={"key": "source"}),))
        value = "wrong" if slip else results[0].text
        yield AgentTurn(calls=(ToolCall(id="b", name="put", arguments={"key": "lamp", "value": value}),))
        yield AgentTurn(text="done")

    return ScriptedAgent("hand", "1", script)


def test_the_agent_again_decides_the_same_or_the_first_other_decision_is_told() -> None:
    from seatrial.records import Agent, Attempt
    from seatrial.world import run_episode, trace_of

    world = shelf.world()
    done = run_episode(world, _agent().begin(world.tools, 0), FixedText("please"), hashes=True)
    trace = trace_of(done, id="run", agent=Agent(name="hand"), world=world)
    same = decide_again(trace, _agent().begin(world.tools, 0))
    assert (same.n, same.same, same.first) == (3, 3, None)
    other = decide_again(trace, _agent(slip=True).begin(world.tools, 0))
    assert (other.same, other.first) == (2, 2)
    assert "wrong" in other.said
    run = Evidence(
        attempt=Attempt(task="t", trial=0, status="passed"), trace=trace, world=shelf.world,
        agent=lambda: _agent(slip=True).begin(world.tools, 0),
    )  # fmt: skip
    value = D5.measure(run)
    assert value.value == 1.0, "agent replay stands beside the value, and is no part of it"
    assert value.parts["agent"] == 2 / 3
    assert any("decides otherwise" in f.what for f in value.findings)


def test_an_agent_that_breaks_is_a_finding() -> None:
    class Broken:
        def send(self, incoming: Any) -> AgentTurn:
            raise RuntimeError("no")

    again = decide_again(shelf.run(CALLS).trace, Broken())
    assert (again.same, again.n) == (0, 7)
    assert "the agent failed: no" in again.said


def test_the_result_is_the_mean_of_task_means_with_what_stands_beside_it() -> None:
    runs = [shelf.run(CALLS), shelf.run(CALLS, made=planted(4, "observation")), shelf.run(CALLS)]
    values = []
    for n, run in enumerate(runs):
        attempt = msgspec.structs.replace(run.attempt, task="a" if n < 2 else "b", trial=n)
        values.append(D5.measure(msgspec.structs.replace(run, attempt=attempt)))
    found = D5.combine(values, 0.95)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(((1 + 5 / 6) / 2 + 1) / 2)
    assert found.worst[0].task == "a"
    assert "in process" in found.beside
