"""D2: who is believed first, what stays beside it, and what is left open (METHODS 5)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.annotations import Annotations
from seatrial.dimensions.fidelity import Fidelity
from seatrial.errors import FormatError, InputError
from seatrial.records import ActionVerdict, Attempt, DimensionValue, Evidence

_spec = importlib.util.spec_from_file_location("shelf", Path(__file__).resolve().parents[2] / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)

D2 = Fidelity()
PUT: Any = ("put", {"key": "lamp", "value": "on"})
LITTER: Any = ("put", {"key": "litter", "value": "left"})
LOOK: Any = ("read", {"key": "old"})


def lamp(calls: list[Any], **more: Any) -> Evidence:
    given = {"intent": shelf.wants(lamp="on"), "required": shelf.holding(lamp="on"), **more}
    found: Evidence = shelf.run(calls, **given)
    return found


def verdict(step: int, call: str, relevant: bool, source: Any) -> ActionVerdict:
    return ActionVerdict(index=0, step=step, call_id=call, tool="put", relevant=relevant, source=source, why="said so")


def test_the_share_of_relevant_actions_over_the_whole_sequence() -> None:
    value = D2.measure(lamp([LOOK, LOOK, PUT, LITTER]))
    assert value.value == 0.25
    assert (value.numerator, value.denominator) == (1.0, 4.0)
    assert [a.relevant for a in value.actions] == [False, False, True, False]
    assert value.level == 0.5
    assert value.findings[0].what.startswith("put is extraneous")
    assert value.findings[0].step == 4


def test_a_run_without_actions_has_no_value() -> None:
    value = D2.measure(lamp([]))
    assert value.value is None
    assert "no action" in value.why
    assert D2.measure(msgspec.structs.replace(lamp([PUT]), trace=None)).value is None


def test_a_refused_call_is_no_executed_action() -> None:
    value = D2.measure(lamp([("put", {"key": 1}), ("unheard_of", {}), PUT]))
    assert value.denominator == 1.0
    assert value.value == 1.0


def test_annotation_outranks_intent_outranks_ablation_outranks_the_judge() -> None:
    run = lamp([PUT, LITTER])
    judged = (verdict(1, "c0", False, "judge"),)
    value = D2.measure(msgspec.structs.replace(run, judged=judged))
    first = value.actions[0]
    assert (first.source, first.relevant) == ("intent", True)
    assert first.others == {"ablation": True, "judge": False}
    annotated = (verdict(1, "c0", False, "annotation"),)
    value = D2.measure(msgspec.structs.replace(run, judged=judged, annotations=annotated))
    assert (value.actions[0].source, value.actions[0].relevant) == ("annotation", False)
    assert value.actions[0].others["intent"] is True
    # Without an intent, ablation speaks on a run that passed.
    bare = msgspec.structs.replace(run, task=msgspec.structs.replace(run.task, intent=None), judged=judged)
    value = D2.measure(bare)
    assert (value.actions[0].source, value.actions[0].relevant) == ("ablation", True)
    # And where nothing can be re-executed either, the judge.
    value = D2.measure(msgspec.structs.replace(bare, world=None))
    assert [a.source for a in value.actions] == ["judge", None]
    assert value.value is None


@pytest.mark.parametrize("intent", [None, {"text": "switch the lamp on"}])
def test_free_text_alone_and_no_intent_give_none_and_never_one(intent: Any) -> None:
    value = D2.measure(lamp([PUT], intent=intent, required=None, status="failed"))
    assert value.value is None
    assert "did not pass" in value.why
    assert ("free text" in value.why) == (intent is not None)


def test_an_intent_without_a_world_judges_by_tool_arguments_and_data_flow() -> None:
    put: Any = ("put", {"key": "lamp", "value": "amber-17"})
    run = lamp([("read", {"key": "source"}), LOOK, put, ("lucky", {"key": "x"})])
    value = D2.measure(msgspec.structs.replace(run, world=None))
    assert [(a.relevant, a.source) for a in value.actions] == [
        (True, "intent"), (False, "intent"), (True, "intent"), (False, "intent"),
    ]  # fmt: skip
    assert value.parts["no_ablation"]


def test_an_allowed_tool_that_changes_another_place_is_no_allowed_effect() -> None:
    value = D2.measure(lamp([PUT, LITTER]))
    assert [a.relevant for a in value.actions] == [True, False]
    assert "no allowed effect" in value.actions[1].why


def test_a_prohibited_effect_is_extraneous_forbidden_and_sets_the_level() -> None:
    intent = {**shelf.wants(lamp="on"), "prohibited": [{"tool": "remove", "arguments": [], "paths": []}]}
    value = D2.measure(lamp([PUT, ("remove", {"key": "old"})], intent=intent))
    assert value.actions[1].compliant is False
    assert value.actions[0].compliant is True
    assert value.level == 0.25
    assert "forbids" in value.level_why
    assert value.findings[0].weight == 0.9


def test_an_intent_without_allowed_effects_leaves_the_rest_to_ablation() -> None:
    intent = {"required": [{"path": "items.lamp", "op": "eq", "value": "on"}],
              "prohibited": [{"tool": "remove", "arguments": [], "paths": []}]}  # fmt: skip
    value = D2.measure(lamp([PUT, LITTER, ("remove", {"key": "old"})], intent=intent, status="failed"))
    assert [(a.relevant, a.source) for a in value.actions] == [
        (True, "ablation"), (False, "ablation"), (False, "intent"),
    ]  # fmt: skip


def test_an_intent_that_cannot_be_read_is_a_reason() -> None:
    value = D2.measure(lamp([PUT], intent={"allowed": [{"tol": "put"}]}))
    assert value.value is None
    assert "its intent cannot be read" in value.why


@pytest.mark.parametrize(
    ("calls", "status", "level"),
    [
        ([PUT], "passed", 1.0),
        ([PUT, PUT, PUT, LOOK], "passed", 0.5),
        ([PUT, LOOK], "passed", 0.75),
        ([LITTER], "failed", 0.0),
        ([LOOK], "failed", 0.5),
    ],
)
def test_the_rubric_level_follows_its_rule(calls: list[Any], status: Any, level: float) -> None:
    value = D2.measure(lamp(calls, status=status))
    assert value.level == level
    assert value.level_why


def _gated() -> Evidence:
    """A world whose `put` needs an approval, asked for by a rule of the task."""
    from seatrial.records import Agent, AgentTurn, Task, ToolCall, WorldStart
    from seatrial.world import Approve, FixedText, ScriptedAgent, offered, rules, run_episode, trace_of

    gates = [{"name": "puts", "tool": "put", "mode": "advisory", "why": "a put needs a word", "severity": "high"}]
    world = shelf.world()

    def script(message: Any, tools: Any, draws: Any) -> Any:
        request = {"tool": "put", "arguments": PUT[1]}
        yield AgentTurn(calls=(ToolCall(id="r", name="request_approval", arguments=request),))
        yield AgentTurn(calls=(ToolCall(id="p", name="put", arguments=PUT[1]),))
        needless = {"tool": "read", "arguments": {"key": "old"}}
        yield AgentTurn(calls=(ToolCall(id="n", name="request_approval", arguments=needless),))
        yield AgentTurn(text="done")

    talk = ScriptedAgent("hand", "1", script).begin(offered(world.tools, rules(gates)), 0)
    done = run_episode(world, talk, FixedText("please"), approver=Approve(), gates=rules(gates), hashes=True)
    trace = trace_of(done, id="run", agent=Agent(name="hand"), world=world, start=WorldStart(state=shelf.START, seed=7))
    return Evidence(
        attempt=Attempt(task="t", trial=0, status="passed"),
        task=Task(id="t", input="please", intent=shelf.wants(lamp="on"), gates=gates),
        trace=trace, world=shelf.world, required=shelf.holding(lamp="on"),
    )  # fmt: skip


def test_a_request_for_approval_is_as_relevant_as_what_it_asks_for_and_a_needless_one_is_not() -> None:
    value = D2.measure(_gated())
    assert [(a.tool, a.relevant) for a in value.actions] == [
        ("request_approval", True), ("put", True), ("request_approval", False),
    ]  # fmt: skip


def _values(*runs: Evidence) -> list[DimensionValue]:
    out = []
    for n, run in enumerate(runs):
        attempt = msgspec.structs.replace(run.attempt, task=f"t{n // 2}", trial=n)
        out.append(D2.measure(msgspec.structs.replace(run, attempt=attempt)))
    return out


def test_the_result_is_the_mean_of_task_means_with_sources_agreement_and_cost() -> None:
    values = _values(lamp([PUT]), lamp([PUT, LITTER]), lamp([PUT, LOOK, LOOK, LOOK]))
    found = D2.combine(values, 0.95)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(((1 + 0.5) / 2 + 0.25) / 2)
    assert found.detail["sources"] == {"intent": 7}
    row = found.detail["agreement"]["intent~ablation"]
    assert (row["n"], row["agree"], row["kappa"]) == (7, 1.0, 1.0)
    assert row["both"] == {"relevant, relevant": 3, "extraneous, extraneous": 4}
    assert found.detail["cost"]["calls"] >= 7
    assert "calls for 7 actions" in found.notes[0]
    assert found.worst[0].value == 0.25


def test_disagreeing_sources_are_counted() -> None:
    run = lamp([PUT, LITTER])
    wrong = (verdict(1, "c0", False, "annotation"), verdict(2, "c1", True, "annotation"))
    found = D2.combine(_values(msgspec.structs.replace(run, annotations=wrong), run), 0.95)
    row = found.detail["agreement"]["annotation~ablation"]
    assert (row["n"], row["agree"], row["kappa"]) == (2, 0.0, -1.0)
    assert found.detail["sources"] == {"annotation": 2, "intent": 2}


ROW = b'{"task": "t", "attempt": 0, "index": 0, "tool": "put", "relevant": false, "why": "not asked", "doubt": true}\n'


def test_an_annotation_file_speaks_of_its_runs_and_of_no_others(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(ROW + b'{"task": "t", "trial": 1, "index": 1, "agent": "other", "relevant": true}\n\n')
    held = Annotations(file)
    assert len(held) == 2
    run = lamp([PUT, LITTER])
    given = held.of(run.attempt, run.trace)
    assert [(a.call_id, a.relevant, a.why, a.source) for a in given] == [("c0", False, "not asked", "annotation")]
    assert held.of(msgspec.structs.replace(run.attempt, trial=1), run.trace) == ()
    assert held.of(msgspec.structs.replace(run.attempt, trial=1, agent="other"), run.trace)[0].call_id == "c1"
    moved = lamp([LOOK, PUT])
    assert held.of(moved.attempt, moved.trace) == ()
    assert "is read" in held.warnings[0]


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        (b"{", FormatError, "not an annotation"),
        (b'{"task": "t", "index": 0, "relevant": true}', FormatError, "names no attempt"),
        (b'{"task": "t", "attempt": 0, "index": 0, "relevant": "yes"}', FormatError, "bool"),
        (ROW.replace(b"false", b"true"), InputError, "both relevant and extraneous"),
    ],
)
def test_a_bad_annotation_names_its_line(tmp_path: Path, line: bytes, kind: type[Exception], said: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(ROW + line)
    with pytest.raises(kind, match=said) as caught:
        Annotations(file)
    assert caught.value.line == 2  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        Annotations(tmp_path / "none.jsonl")
