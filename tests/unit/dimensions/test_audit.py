"""D7: six components, present and consistent; whatever is changed afterwards is caught (METHODS 5)."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.audit import Audit, load
from seatrial.dimensions.audit_check import examine
from seatrial.dimensions.audit_record import COMPONENTS, audit_of
from seatrial.errors import InputError
from seatrial.records import Agent, Attempt, Evidence, Provenance, Step, TaskRef, ToolCall, ToolResult, Trace

D7: Any = Audit()
CALLS = [
    ("request_approval", {"tool": "pay", "arguments": {"to": "Weber", "amount": 240}, "why": ""}),
    ("pay", {"to": "Weber", "amount": 240}),
    ("pay", {"to": "Nobody", "amount": 2}),
    ("look", {}),
]


@pytest.fixture
def audit(at_till: Any) -> dict[str, Any]:
    run = at_till.work(CALLS, intent=at_till.INTENT)
    return audit_of(run.trace)


def test_a_run_of_our_own_scores_one_by_construction(at_till: Any) -> None:
    for calls in (CALLS, [], [("look", {})]):
        found = D7.measure(at_till.work(calls))
        assert found.value == 1.0, found.why
        assert found.numerator == 6.0


def test_a_recorded_empty_error_log_is_present(at_till: Any) -> None:
    record = audit_of(at_till.work([("look", {})]).trace)
    assert record["error_log"] == []
    assert examine(record).value == 1.0


def test_a_run_without_a_seal_has_no_chain(at_till: Any) -> None:
    found = D7.measure(at_till.work(CALLS, seal=False))
    assert found.value == pytest.approx(5 / 6)
    assert "provenance_chain" in found.why


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _leaves(item, (*path, i))
    else:
        yield path


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return (value or "") + "x"


def _tampered(audit: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    out = copy.deepcopy(audit)
    place = out
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = _other(place[path[-1]])
    return out


def test_every_single_field_tampering_is_caught(audit: dict[str, Any]) -> None:
    """Every leaf of the record, far more than thirty, one at a time."""
    assert examine(audit).problems == ()
    paths = list(_leaves(audit))
    assert len(paths) > 100
    missed = [path for path in paths if examine(_tampered(audit, path)).value == 1.0]
    assert missed == []


THIRTY: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("outcome", lambda a: a["run"]["outcome"].update(status="failed")),
    ("trial", lambda a: a["run"].update(trial=9)),
    ("trace", lambda a: a["run"].update(trace="another")),
    ("format", lambda a: a.update(seatrial_audit="2")),
    ("task text", lambda a: a["task_spec"]["content"].update(input="Please pay Okafor.")),
    ("task id", lambda a: a["task_spec"].update(id="u")),
    ("task hash", lambda a: a["task_spec"].update(hash="0" * 64)),
    ("gate removed", lambda a: a["task_spec"]["content"]["gates"].clear()),
    ("argument", lambda a: a["action_log"][1]["arguments"].update(amount=24)),
    ("tool", lambda a: a["action_log"][1].update(tool="look")),
    ("observation", lambda a: a["action_log"][1].update(observation="paid 24")),
    ("outcome of an action", lambda a: a["action_log"][2].update(outcome="ok")),
    ("time of an action", lambda a: a["action_log"][1].update(time=99.0)),
    ("action removed", lambda a: a["action_log"].pop(1)),
    ("action doubled", lambda a: a["action_log"].insert(1, dict(a["action_log"][1]))),
    ("actions exchanged", lambda a: a["action_log"].reverse()),
    ("what was asked", lambda a: a["decision_log"][0].update(text="Please pay Weber 240.")),
    ("reasoning", lambda a: a["decision_log"][1].update(reasoning="because")),
    ("a decision removed", lambda a: a["decision_log"].pop(2)),
    ("an approval invented", lambda a: a["decision_log"].append(dict(a["decision_log"][-1]))),
    ("who approved", lambda a: a["decision_log"][-2].update(by="the chief")),
    ("start state", lambda a: a["state_snapshots"][0]["state"]["paid"].update(Okafor=6)),
    ("final state", lambda a: a["state_snapshots"][-1]["state"]["paid"].update(Weber=0)),
    ("hash of a snapshot", lambda a: a["state_snapshots"][2].update(hash="0" * 64)),
    ("a snapshot removed", lambda a: a["state_snapshots"].pop(1)),
    ("error removed", lambda a: a["error_log"].clear()),
    ("error changed", lambda a: a["error_log"][0].update(text="all is well")),
    ("agent", lambda a: a["provenance_chain"]["agent"].update(name="other")),
    ("head", lambda a: a["provenance_chain"].update(head="0" * 64)),
    ("a link", lambda a: a["provenance_chain"]["links"].__setitem__(3, "0" * 64)),
    ("recorder", lambda a: a["provenance_chain"]["recorder"].update(version="0")),
    ("a field added", lambda a: a.update(signed="yes")),
]


@pytest.mark.parametrize(("what", "change"), THIRTY, ids=[what for what, _ in THIRTY])
def test_thirty_tamperings_are_caught(
    audit: dict[str, Any], what: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    changed = copy.deepcopy(audit)
    change(changed)
    assert changed != audit
    found = examine(changed)
    assert found.value < 1.0
    assert any(p.startswith("provenance_chain") for p in found.problems)


def test_a_chain_computed_anew_does_not_have_the_head_that_was_kept(audit: dict[str, Any]) -> None:
    from seatrial.canon import chain
    from seatrial.dimensions.audit_record import links

    kept = audit["provenance_chain"]["head"]
    assert examine(audit, kept).value == 1.0
    audit["action_log"][1]["observation"] = "paid 24"
    audit["provenance_chain"]["links"] = chain(links(audit))
    audit["provenance_chain"]["head"] = audit["provenance_chain"]["links"][-1]
    assert examine(audit).value == 1.0  # nobody can tell from the record alone
    assert "not the one that was kept" in examine(audit, kept).problems[0]


def test_a_changed_trace_no_longer_fits_its_seal(at_till: Any) -> None:
    run = at_till.work(CALLS)
    steps = list(run.trace.steps)
    steps[-1] = msgspec.structs.replace(steps[-1], text="I paid nobody.")
    changed = msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, steps=tuple(steps)))
    found = D7.measure(changed)
    assert found.value == pytest.approx(5 / 6)
    assert "head is not its last link" in found.findings[0].what


def test_the_broken_link_is_named(audit: dict[str, Any]) -> None:
    audit["action_log"][1]["observation"] = "paid 24"
    assert "action_log[1]" in " ".join(examine(audit).problems)


def foreign(**more: Any) -> Trace:
    given: dict[str, Any] = {
        "id": "f", "agent": Agent(name="other"), "task": TaskRef(id="t"),
        "provenance": Provenance(format="tau-bench", reader="tau-bench", reader_version="1"),
    }  # fmt: skip
    return Trace(**{**given, **more})


def step(index: int, outcome: Any = "ok", time: float | None = None, text: str = "fine") -> Step:
    call = ToolCall(id=f"c{index}", name="look")
    result = ToolResult(call_id=f"c{index}", outcome=outcome, text=text)
    return Step(index=index, event_class="agent", text="so", tool_calls=(call,), results=(result,), time=time)


def components(trace: Trace) -> set[str]:
    run = Evidence(attempt=Attempt(task="t", trial=0, status="passed"), trace=trace)
    return {name for name, ok in D7.measure(run).parts["components"].items() if ok}


def test_a_foreign_log_has_what_it_holds() -> None:
    assert components(foreign(steps=(step(0), step(1)))) == {"action_log", "decision_log", "error_log"}
    assert components(foreign(steps=(step(0, "unknown"),))) == {"action_log", "decision_log"}
    assert "task_spec" in components(foreign(steps=(step(0),), extra={"task": {"id": "t", "input": "x"}}))
    assert components(foreign()) == set()


def test_times_that_run_backwards_are_inconsistent() -> None:
    assert "action_log" not in components(foreign(steps=(step(0, time=5.0), step(1, time=4.0))))


def test_an_action_without_an_observation_is_inconsistent() -> None:
    lonely = Step(index=0, event_class="agent", tool_calls=(ToolCall(id="c0", name="look"),))
    assert "action_log" not in components(foreign(steps=(lonely, step(1))))


def test_two_actions_of_one_id_are_inconsistent() -> None:
    twice = msgspec.structs.replace(step(1), tool_calls=(ToolCall(id="c0", name="look"),))
    assert "action_log" not in components(foreign(steps=(step(0), twice)))


def test_no_log_no_value() -> None:
    found = D7.measure(Evidence(attempt=Attempt(task="t", trial=0, status="passed")))
    assert (found.value, found.why) == (None, "no log is stored")


def test_results_count_components(at_till: Any) -> None:
    values = [D7.measure(at_till.work(CALLS, task=t, seal=t == "a")) for t in ("a", "b")]
    found = D7.combine(values, 0.95)
    assert found.estimate.value == pytest.approx((1 + 5 / 6) / 2)
    assert found.detail["components"] == {**dict.fromkeys(COMPONENTS, 2), "provenance_chain": 1}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", "is no audit record"),
        ('{"seatrial_audit": "1", "seatrial_audit": "1"}', "a key stands twice"),
        ('{"seatrial_audit": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_files_that_are_no_record(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "x.audit.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        load(file)


def test_a_hostile_record_is_a_finding_and_no_traceback(audit: dict[str, Any]) -> None:
    draws = random.Random(3)
    odd: list[Any] = [None, 7, "x", [], {}, [[]], {"a": [1]}, 2**70, [{"step": "x"}], "\ud800"]
    for _ in range(300):
        changed = json.loads(json.dumps(audit))
        place: Any = changed
        while isinstance(place, dict | list) and place:
            key = draws.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if draws.random() < 0.3 or not isinstance(place[key], dict | list) or not place[key]:
                place[key] = draws.choice(odd)
                break
            place = place[key]
        if changed != audit:
            assert examine(changed).value < 1.0
