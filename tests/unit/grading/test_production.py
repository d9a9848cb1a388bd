"""Checks of the layer production: how people took an answer, and what it cost, from signals that were handed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial import grading, signals
from seatrial.flows.grade import grade_paths, grade_trace
from seatrial.records import Agent, Provenance, Signal, Step, Task, Totals, Trace, Usage, Verdict

TASK = Task(id="t", input="go")


def conversation(*said: tuple[str, str], cost: float | None = None, wall: float | None = None) -> Trace:
    steps = tuple(
        Step(index=i, event_class=who, text=text, time=60.0 * i)  # type: ignore[arg-type]
        for i, (who, text) in enumerate(said)
    )
    source = Provenance(format="test", reader="test", reader_version="1")
    totals = Totals(usage=Usage(cost_usd=cost), wall=wall)
    return Trace(id="s", agent=Agent(name="a"), provenance=source, steps=steps, totals=totals)


def judged(trace: Trace, task: Task = TASK, found: tuple[Signal, ...] | None = None) -> dict[str, Verdict]:
    given = signals.extract(trace).signals if found is None else found
    return {v.metric: v for v in grading.grade(task, grading.of_trace(trace, signals=given))}


ASKED = ("human", "Please rename the function foo to bar.")
DONE = ("agent", "Done: I renamed the function foo to bar.")


def test_a_reaction_is_judged_by_its_kind() -> None:
    complained = judged(conversation(ASKED, DONE, ("human", "This is terrible, you are useless and it is broken!")))
    assert complained["no_complaint"].passed is False
    assert complained["no_complaint"].steps == (2,)
    assert "terrible" in complained["no_complaint"].reason
    assert complained["no_complaint"].layer == "production"
    corrected = judged(conversation(ASKED, DONE, ("human", "No, that's wrong. I said bar, not baz. Undo that.")))
    assert corrected["no_correction"].passed is False
    pleased = judged(conversation(ASKED, DONE, ("human", "Perfect, thank you, that works!")))
    assert pleased["no_complaint"].passed is True
    assert pleased["no_correction"].passed is True
    assert pleased["no_escalation"].passed is True


def test_silence_is_no_praise() -> None:
    silent = judged(conversation(ASKED, DONE))
    for name in ("no_complaint", "no_correction", "no_retry_request", "no_escalation", "rated_well"):
        assert silent[name].passed is None
        assert silent[name].reason
    unknown = {v.metric: v for v in grading.grade(TASK, grading.of_trace(conversation(ASKED, DONE)))}
    assert unknown["no_complaint"].passed is None
    assert "handed over" in unknown["no_complaint"].reason


def signal(kind: Any, **more: Any) -> Signal:
    return Signal(kind=kind, session="s", step=2, detector="d", version="1", confidence=1.0, **more)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("complaint", "no_complaint"),
        ("correction", "no_correction"),
        ("retry_request", "no_retry_request"),
        ("escalation", "no_escalation"),
        ("abandonment", "not_abandoned"),
    ],
)
def test_only_signals_that_count_are_looked_at(kind: str, check: str) -> None:
    trace = conversation(ASKED, DONE, ("human", "Hm."))
    assert judged(trace, found=(signal(kind),))[check].passed is False
    assert judged(trace, found=(signal(kind, dropped_by="below_threshold: 0.5"),))[check].passed is True
    assert judged(trace, found=(signal("praise"),))[check].passed is True
    twice = judged(trace, found=(signal(kind), signal(kind)))[check]
    assert twice.value == 2
    assert "2 times" in twice.reason


def test_ratings_are_averaged() -> None:
    trace = conversation(ASKED, DONE, ("human", "Hm."))
    low = judged(trace, found=(signal("explicit_feedback", value=0.0), signal("explicit_feedback", value=0.5)))
    assert (low["rated_well"].passed, low["rated_well"].value) == (False, 0.25)
    high = judged(trace, found=(signal("explicit_feedback", value=1.0), signal("complaint")))
    assert high["rated_well"].passed is True


def test_budgets_of_money_and_time() -> None:
    task = Task(id="t", input="go", max_cost_usd=0.10, max_seconds=30)
    trace = conversation(ASKED, DONE, cost=0.11, wall=29.0)
    found = judged(trace, task)
    assert (found["within_cost"].passed, found["within_cost"].value) == (False, 0.11)
    assert found["within_time"].passed is True
    unknown = judged(conversation(ASKED, DONE), task)
    assert unknown["within_cost"].passed is None
    assert "not known" in unknown["within_cost"].reason
    free = judged(trace)
    assert free["within_cost"].passed is None
    assert "no limit" in free["within_cost"].reason


def test_a_sandbox_has_no_reactions() -> None:
    named = {c.name for c in grading.checks(reactions=False)}
    assert named < {c.name for c in grading.checks()}
    assert "within_cost" in named
    assert "no_complaint" not in named


def test_a_log_from_production_is_graded_by_its_signals(tmp_path: Path) -> None:
    """From a file: what the user wrote is found by the signals and judged by the checks."""
    lines = [
        '{"messages": [{"role": "user", "content": "Rename foo to bar."},'
        ' {"role": "assistant", "content": "Done."},'
        ' {"role": "user", "content": "No, that\'s wrong. I said bar, not baz. Undo that."},'
        ' {"role": "assistant", "content": "Sorry, it is bar now."}]}'
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines) + "\n")
    (system,) = grade_paths([path], max_cost_usd=1.0).systems
    rows = {m.metric: m for m in system.result.metrics}
    assert (rows["no_correction"].layer, rows["no_correction"].n, rows["no_correction"].passed) == ("production", 1, 0)
    assert rows["no_complaint"].passed == 1
    assert (rows["within_cost"].n, rows["within_cost"].not_applicable) == (0, 1)


def test_the_layers_do_not_mix() -> None:
    """What production says decides neither the answer nor the way."""
    trace = conversation(ASKED, DONE, ("human", "No, that's wrong. I said bar, not baz. Undo that."))
    verdicts = grade_trace(Task(id="t", input="go", check_final=[{"path": "answer", "op": "contains", "value": "bar"}]),
                           trace)  # fmt: skip
    assert grading.outcome(verdicts)[0] == "passed"
    assert grading.trajectory_passed(verdicts) is True
    assert {v.layer for v in verdicts} == {"final", "trajectory", "production"}
