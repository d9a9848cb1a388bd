"""Signals of one session to its count score and the five per-signal outcomes (METHODS 2).

A human signal belongs to the task episode of the agent turn that it judges; a tool signal to the episode of its
step. Episodes in which the agent did nothing do not count. Outcomes are averaged over the episodes that have one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.records import OUTCOMES, SIGNAL_KINDS, CallFact, Episode, SessionScore, Signal, Trace, Weights

VERSION = "1"

_ACCEPTING = frozenset({"confirmation", "praise"})
_REJECTING = frozenset({"correction", "complaint"})
_WHY_NONE = {
    "confirmed_success": "no human verdict in any task episode",
    "praise_over_complaint": "neither praise nor complaint in any task episode",
    "steerability": "the agent did nothing",
    "command_recovery": "the agent did nothing",
    "no_tool_hallucination": "the agent did nothing",
}


NEEDS: dict[str, tuple[str, ...]] = {
    "confirmed_success": ("confirmation", "correction"),
    "praise_over_complaint": ("praise", "complaint"),
    "steerability": ("correction", "confirmation"),
    "command_recovery": ("execution_error",),
    "no_tool_hallucination": (),
}
"""Kinds without which an outcome would say something else. The other kinds that accept or reject may be missing
from the first and third: they only refine them. A call to a tool that does not exist is a fact of the log."""

VOICES = ("confirmation", "praise", "complaint", "correction", "explicit_feedback", "execution_error")
"""Kinds that some outcome hears."""


class Rules(NamedTuple):
    """Options of METHODS 2: `accept_implicit` counts acting on work as accepting it; `graded` recovery is
    1/(follow-ups until success) instead of recovered or not."""

    accept_implicit: bool = False
    graded: bool = False


def score(
    trace: Trace,
    signals: Sequence[Signal],
    episodes: Sequence[Episode],
    weights: Weights,
    *,
    calls: Sequence[CallFact] | None = None,
    accept_implicit: bool = False,
    graded: bool = False,
    silent: Collection[str] = (),
) -> SessionScore:
    """One session's count score and outcomes.

    `signals` may hold dropped ones: only those without `dropped_by` count. `calls` are the session's call facts
    (None: a coarser intent, the tool's name, is used for command recovery). Kinds in `silent` have no part in the
    `mean`: their signals are not heard, and outcomes that cannot do without them are left out. The five outcomes and
    the count score are as defined, with every kind.

    Raises:
        UsageError: a signal or episode of another session.
    """
    strangers = {s.session for s in signals} | {e.session for e in episodes}
    if strangers - {trace.id}:
        raise UsageError(f"signals or episodes of {sorted(strangers - {trace.id})} were given for {trace.id!r}")
    rules = Rules(accept_implicit, graded)
    facts = list(calls) if calls is not None else _facts(trace, signals)
    kept = [s for s in signals if s.dropped_by is None]
    counts: dict[str, int] = {str(kind): 0 for kind in SIGNAL_KINDS}
    for signal in kept:
        counts[signal.kind] += 1
    worked = [episode for episode in episodes if _worked(trace, episode)]
    outcomes = _averaged([episode_outcomes(episode, kept, facts, rules) for episode in worked])
    why = {
        name: _WHY_NONE[name] if worked else "the agent did nothing"
        for name, value in outcomes.items()
        if value is None
    }
    heard = [s for s in kept if s.kind not in silent]
    same = len(heard) == len(kept)
    voiced = outcomes if same else _averaged([episode_outcomes(e, heard, facts, rules) for e in worked])
    return SessionScore(
        session=trace.id,
        score=_count_score(counts, weights, accept_implicit),
        signals=outcomes,
        counts=counts,
        episodes=len(worked),
        why=why,
        mean=_mean([value for name, value in voiced.items() if not set(NEEDS[name]) & set(silent)]),
    )


def _averaged(rows: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    """Each outcome's mean over the episodes that have it."""
    return {name: _mean([row[name] for row in rows]) for name in OUTCOMES}


def _mean(values: Sequence[float | None]) -> float | None:
    present = [v for v in values if v is not None]
    return sum(present) / len(present) if present else None


def _count_score(counts: dict[str, int], weights: Weights, accept_implicit: bool) -> float:
    confirmed = counts["confirmation"] + (counts["accept_implicit"] if accept_implicit else 0)
    return (
        weights.confirmation * confirmed
        + weights.praise * counts["praise"]
        - weights.complaint * counts["complaint"]
        - weights.correction * counts["correction"]
        - weights.execution_error * counts["execution_error"]
    )


def _worked(trace: Trace, episode: Episode) -> bool:
    return any(
        step.event_class == "agent" and not step.copied and (step.text or step.tool_calls)
        for step in trace.steps
        if episode.start <= step.index < episode.end
    )


def episode_outcomes(
    episode: Episode, signals: Sequence[Signal], calls: Sequence[CallFact], rules: Rules = Rules()
) -> dict[str, float | None]:
    """The five outcomes of one episode, each in [0, 1] or None; `signals` are those that count."""
    mine = [s for s in signals if episode.start <= _judged(s) < episode.end]
    verdicts = _verdicts(mine, rules)
    called = [c for c in calls if episode.start <= c.step < episode.end]
    return {
        "confirmed_success": float(verdicts[-1][1]) if verdicts else None,
        "praise_over_complaint": _praise(mine),
        "steerability": _steerability(mine, verdicts),
        "command_recovery": _recovery(called, rules.graded),
        "no_tool_hallucination": 0.0 if any(c.hallucinated for c in called) else 1.0,
    }


def _judged(signal: Signal) -> int:
    return signal.judges_step if signal.judges_step is not None else signal.step


def _verdicts(signals: Sequence[Signal], rules: Rules) -> list[tuple[int, bool]]:
    """(step, accepts) of every turn with a verdict, in order. A turn that accepts and rejects at once rejects: its
    last word is what is still wrong."""
    by_step: dict[int, list[bool]] = {}
    for signal in signals:
        if signal.kind in _REJECTING or (signal.kind == "explicit_feedback" and (signal.value or 0.0) < 0.5):
            by_step.setdefault(signal.step, []).append(False)
        elif (
            signal.kind in _ACCEPTING
            or (signal.kind == "accept_implicit" and rules.accept_implicit)
            or (signal.kind == "explicit_feedback" and (signal.value or 0.0) > 0.5)
        ):
            by_step.setdefault(signal.step, []).append(True)
    return [(step, all(votes)) for step, votes in sorted(by_step.items())]


def _praise(signals: Sequence[Signal]) -> float | None:
    praise = sum(s.kind == "praise" for s in signals)
    complaint = sum(s.kind == "complaint" for s in signals)
    if praise == complaint:
        return 0.5 if praise else None
    return 1.0 if praise > complaint else 0.0


def _steerability(signals: Sequence[Signal], verdicts: Sequence[tuple[int, bool]]) -> float:
    """Share of corrections whose next human verdict accepts; none follows: not accepted; no correction: 1."""
    corrected = sorted({s.step for s in signals if s.kind == "correction"})
    if not corrected:
        return 1.0
    followed = [next((accepts for at, accepts in verdicts if at > step), False) for step in corrected]
    return sum(followed) / len(followed)


def _recovery(calls: Sequence[CallFact], graded: bool) -> float:
    """Mean over runs of model-caused errors of one intent: recovered by a later call of that intent.

    A further failure of the same intent is a follow-up of the same run. Environment faults, refusals and
    interrupted calls are no follow-ups. Graded: 1/(follow-ups up to and with the success), 0 when given up.
    """
    ordered = sorted(calls, key=lambda c: (c.step, c.call))
    values = []
    done: set[int] = set()
    for i, call in enumerate(ordered):
        if call.cause != "model" or i in done:
            continue
        follow_ups = 0
        value = 0.0
        for j in range(i + 1, len(ordered)):
            later = ordered[j]
            if later.intent != call.intent or later.cause in ("environment", "rejected", "interrupted"):
                continue
            follow_ups += 1
            done.add(j)
            if _succeeded(later):
                value = 1.0 / follow_ups if graded else 1.0
                break
        values.append(value)
    return sum(values) / len(values) if values else 1.0


def _succeeded(call: CallFact) -> bool:
    return (
        not call.abnormal and not call.hallucinated and (call.cause == "benign" or (call.cause is None and _ran(call)))
    )


def _ran(call: CallFact) -> bool:
    return call.outcome == "ok" or (call.outcome == "unknown" and call.exit_code in (0, None))


def _facts(trace: Trace, signals: Sequence[Signal]) -> list[CallFact]:
    """Call facts from the trace and the error signals alone; the intent is the tool's name."""
    errors = {(s.step, s.call_id): s for s in signals if s.kind in ("execution_error", "abnormal_output") and s.call_id}
    out = []
    for step in trace.steps:
        if step.copied:
            continue
        results = {r.call_id: r for r in step.results if r.call_id is not None}
        for position, call in enumerate(step.tool_calls):
            error = errors.get((step.index, call.id))
            result = results.get(call.id)
            out.append(
                CallFact(
                    session=trace.id,
                    step=step.index,
                    call=position,
                    tool=call.name,
                    outcome=result.outcome if result else "unknown",
                    intent=call.name,
                    call_id=call.id,
                    model=step.model or trace.model,
                    cause=error.cause if error else None,
                    exit_code=result.exit_code if result else None,
                    abnormal=error is not None and error.kind == "abnormal_output",
                    hallucinated=call.validity == "unknown_tool",
                )
            )
    return out
