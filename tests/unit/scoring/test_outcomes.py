"""Signals to outcomes: every rule of METHODS 2 by a small case."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from seatrial import scoring
from seatrial.errors import EvidenceError, UsageError
from seatrial.records import OUTCOMES, Agent, CallFact, Episode, Provenance, Signal, Step, ToolCall, ToolResult, Trace
from seatrial.scoring.outcomes import Rules


def trace(n: int = 12, *extra: Step) -> Trace:
    steps = tuple(Step(index=i, event_class="human" if i % 2 == 0 else "agent", text="x") for i in range(n)) + extra
    provenance = Provenance(format="f", reader="f", reader_version="1")
    return Trace(id="t", agent=Agent(name="a"), provenance=provenance, steps=steps)


def signal(kind: Any, step: int, **rest: Any) -> Signal:
    rest.setdefault("judges_step", step - 1)
    return Signal(kind=kind, session="t", step=step, detector="d", version="1", confidence=1.0, **rest)


def call(step: int, intent: str = "Bash:make", **rest: Any) -> CallFact:
    rest.setdefault("outcome", "error" if rest.get("cause") else "ok")
    return CallFact(session="t", step=step, call=0, tool="Bash", intent=intent, **rest)


WHOLE = (Episode(session="t", index=0, start=0, end=12),)


def score(*signals: Signal, calls: tuple[CallFact, ...] = (), episodes: Any = WHOLE, **options: Any) -> Any:
    return scoring.score(trace(), signals, episodes, scoring.UNIT, calls=calls, **options)


def outcome(name: str, *signals: Signal, **options: Any) -> float | None:
    value: float | None = score(*signals, **options).signals[name]
    return value


def test_a_silent_session_has_no_human_verdict_and_no_fault() -> None:
    result = score()
    assert result.signals == {
        "confirmed_success": None,
        "praise_over_complaint": None,
        "steerability": 1.0,
        "command_recovery": 1.0,
        "no_tool_hallucination": 1.0,
    }
    assert set(result.why) == {"confirmed_success", "praise_over_complaint"}
    assert result.score == 0


def test_the_last_verdict_decides_success() -> None:
    assert outcome("confirmed_success", signal("correction", 2), signal("confirmation", 4)) == 1
    assert outcome("confirmed_success", signal("confirmation", 2), signal("complaint", 4)) == 0
    assert outcome("confirmed_success", signal("confirmation", 4), signal("correction", 4)) == 0
    assert outcome("confirmed_success", signal("praise", 4)) == 1
    assert outcome("confirmed_success", signal("explicit_feedback", 4, value=0.0)) == 0
    assert outcome("confirmed_success", signal("explicit_feedback", 4, value=0.5)) is None


def test_implicit_acceptance_counts_only_on_request() -> None:
    assert outcome("confirmed_success", signal("accept_implicit", 2)) is None
    assert outcome("confirmed_success", signal("accept_implicit", 2), accept_implicit=True) == 1
    assert score(signal("accept_implicit", 2)).score == 0
    assert score(signal("accept_implicit", 2), accept_implicit=True).score == 1


def test_praise_against_complaint() -> None:
    assert outcome("praise_over_complaint", signal("praise", 2)) == 1
    assert outcome("praise_over_complaint", signal("complaint", 2)) == 0
    assert outcome("praise_over_complaint", signal("complaint", 2), signal("praise", 4)) == 0.5


def test_steerability_asks_whether_the_next_verdict_accepts() -> None:
    assert outcome("steerability", signal("correction", 2), signal("confirmation", 4)) == 1
    assert outcome("steerability", signal("correction", 2), signal("correction", 4), signal("confirmation", 6)) == 0.5
    assert outcome("steerability", signal("correction", 2)) == 0
    assert outcome("steerability", signal("correction", 2), signal("confirmation", 2)) == 0


def test_command_recovery_follows_the_intent() -> None:
    fail, win = call(1, cause="model"), call(5)
    assert outcome("command_recovery", calls=(fail, win)) == 1
    assert outcome("command_recovery", calls=(fail, call(5, "Bash:ls"))) == 0
    assert outcome("command_recovery", calls=(fail, call(3, cause="model"), win)) == 1
    assert outcome("command_recovery", calls=(fail, call(3, cause="model"), win), graded=True) == 0.5
    assert outcome("command_recovery", calls=(fail, call(3, cause="environment"), win), graded=True) == 1
    assert outcome("command_recovery", calls=(fail, call(3, cause="benign"))) == 1
    assert outcome("command_recovery", calls=(fail, call(3, abnormal=True))) == 0
    assert outcome("command_recovery", calls=(fail, win, call(7, cause="model"))) == 0.5
    assert outcome("command_recovery", calls=(call(1, cause="environment"), call(3, cause="rejected"))) == 1


def test_calling_a_tool_that_does_not_exist() -> None:
    assert outcome("no_tool_hallucination", calls=(call(1, hallucinated=True),)) == 0


def test_dropped_signals_do_not_count() -> None:
    result = score(signal("correction", 2, dropped_by="below_threshold: 0.5 < 0.7"))
    assert result.counts["correction"] == 0
    assert result.signals["confirmed_success"] is None


def test_outcomes_are_averaged_over_episodes_and_a_verdict_judges_the_work_before_it() -> None:
    two = (Episode(session="t", index=0, start=0, end=6), Episode(session="t", index=1, start=6, end=12))
    result = score(signal("confirmation", 6), signal("correction", 8), episodes=two)
    assert result.episodes == 2
    assert result.signals["confirmed_success"] == 0.5
    assert result.signals["steerability"] == 0.5


def test_episodes_without_agent_work_do_not_count() -> None:
    end = Step(index=12, event_class="human", text="one more thing")
    two = (*WHOLE, Episode(session="t", index=1, start=12, end=13))
    assert scoring.score(trace(12, end), (), two, scoring.UNIT).episodes == 1
    nothing = scoring.score(trace(1), (), (Episode(session="t", index=0, start=0, end=1),), scoring.UNIT)
    assert set(nothing.signals.values()) == {None}
    assert set(nothing.why) == set(OUTCOMES)


def test_count_scores_of_the_presets() -> None:
    found = [signal(k, 2) for k in ("confirmation", "praise", "complaint", "correction", "execution_error")]
    found.append(signal("praise", 4))
    args = (trace(), found, WHOLE)
    assert scoring.score(*args, scoring.UNIT).score == 0
    assert scoring.score(*args, scoring.EMPHASIS).score == 1
    assert not scoring.UNIT.fitted
    assert [w.name for w in scoring.PRESETS] == ["unit", "emphasis"]


def test_without_call_facts_the_trace_is_read() -> None:
    failed = Step(
        index=12,
        event_class="agent",
        tool_calls=(ToolCall(id="a", name="Edit"), ToolCall(id="b", name="Nope", validity="unknown_tool")),
        results=(ToolResult(call_id="a", outcome="error"), ToolResult(call_id="b", outcome="error")),
    )
    won = Step(
        index=13,
        event_class="agent",
        tool_calls=(ToolCall(id="c", name="Edit"),),
        results=(ToolResult(call_id="c", outcome="ok"),),
    )
    whole = (Episode(session="t", index=0, start=0, end=14),)
    error = signal("execution_error", 12, cause="model", call_id="a")
    result = scoring.score(trace(12, failed, won), [error], whole, scoring.UNIT)
    assert result.signals["command_recovery"] == 1
    assert result.signals["no_tool_hallucination"] == 0


def test_another_sessions_signals_are_refused() -> None:
    with pytest.raises(UsageError, match="other"):
        scoring.score(trace(), (), (Episode(session="other", index=0, start=0, end=2),), scoring.UNIT)


def table(**columns: list[float | None]) -> pl.DataFrame:
    base: dict[str, list[float | None]] = {name: [None, 1.0] for name in ("outcome", *OUTCOMES, "score")}
    return pl.DataFrame(base | columns, schema_overrides=dict.fromkeys(base, pl.Float64))


def test_the_headline_follows_the_order_of_methods() -> None:
    assert scoring.headline(table())[0] == "outcome"
    assert scoring.headline(table(), "steerability")[0] == "steerability"
    name, values = scoring.headline(table(outcome=[None, None], steerability=[0.0, 0.0]))
    assert name == "signals_mean"
    assert values.to_list() == [0.0, 0.8]
    name, values = scoring.headline(table(outcome=[None, None]), without=OUTCOMES[1:])
    assert values.to_list() == [None, 1.0]


def test_the_headline_refuses_nonsense() -> None:
    with pytest.raises(UsageError, match="never the headline"):
        scoring.headline(table(), "score")
    with pytest.raises(UsageError, match="no outcome"):
        scoring.headline(table(), "moon")
    with pytest.raises(UsageError, match="not signals"):
        scoring.headline(table(), without=("moon",))
    with pytest.raises(EvidenceError):
        scoring.headline(table(outcome=[None, None]), "outcome")
    with pytest.raises(EvidenceError):
        scoring.headline(table(outcome=[None, None]), without=OUTCOMES)


def test_rules_default_to_methods() -> None:
    assert Rules() == Rules(accept_implicit=False, graded=False)


def test_a_silent_kind_is_not_heard_in_the_mean_but_stays_in_the_outcomes() -> None:
    said = (signal("confirmation", 2), signal("complaint", 4))
    loud, quiet = score(*said), score(*said, silent=("complaint",))
    assert quiet.signals == loud.signals
    assert quiet.counts == loud.counts
    assert quiet.score == loud.score
    # Confirmed success, praise over complaint, steerability, recovery, no invented tool.
    assert loud.mean == pytest.approx((0 + 0 + 1 + 1 + 1) / 5)
    assert quiet.mean == pytest.approx((1 + 1 + 1 + 1) / 4)
    assert quiet.mean == score(said[0], silent=("complaint",)).mean


def test_an_outcome_that_rests_on_a_silent_kind_leaves_the_mean() -> None:
    said = (signal("confirmation", 2), signal("correction", 4))
    assert score(*said).mean == pytest.approx((0 + 0 + 1 + 1) / 4)
    assert score(*said, silent=("correction",)).mean == pytest.approx((1 + 1) / 2)
    assert score(*said, silent=("execution_error",)).mean == pytest.approx((0 + 0 + 1) / 3)
    rating = signal("explicit_feedback", 4, value=0.0)
    assert score(said[0], rating).mean == pytest.approx((0 + 1 + 1 + 1) / 4)
    assert score(said[0], rating, silent=("explicit_feedback",)).mean == 1


def test_the_headline_is_the_mean_that_was_stored() -> None:
    stored = table(outcome=[None, None]).with_columns(signals_mean=pl.Series([0.25, None], dtype=pl.Float64))
    name, values = scoring.headline(stored)
    assert (name, values.to_list()) == ("signals_mean", [0.25, None])
    assert scoring.headline(stored, without=OUTCOMES[1:])[1].to_list() == [None, 1.0]
