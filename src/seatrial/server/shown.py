"""Stored results to sections of a report, by the command that made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from seatrial.errors import UsageError
from seatrial.records import Comparison, Contrast, Evaluation, Ranking, RouterFit, Scorecard
from seatrial.records.drift import Drift
from seatrial.report import chapters, numbers
from seatrial.report.chapters import drift as drift_chapter
from seatrial.report.chapters import gate as gate_chapter
from seatrial.report.chapters import judge as judge_chapter
from seatrial.report.chapters import recovery as recovery_chapter
from seatrial.report.chapters import router as router_chapter
from seatrial.report.chapters import scorecard as scorecard_chapter
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name
from seatrial.server.stored import as_record
from seatrial.store import StoredResult

_OVER_TIME = 12


def sections(result: StoredResult) -> tuple[Section, ...]:
    """What a result says. One of a command that is not known here becomes a table of what it holds.

    Raises:
        UsageError: another version of seatrial made it, and it does not fit any more.
    """
    make = _BY_COMMAND.get(result.command, _anything)
    try:
        return make(result)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"this result was made by seatrial {result.envelope.get('seatrial')} and cannot be shown: {error!r}",
            hint="run its command again",
        ) from error


def _held(result: StoredResult) -> dict[str, Any]:
    held = result.envelope.get("result")
    if not isinstance(held, dict):
        raise TypeError("the result is no object")
    return held


def _rank(result: StoredResult) -> tuple[Section, ...]:
    return tuple(chapters.ranking(as_record(result, Ranking)))


def _gate(result: StoredResult) -> tuple[Section, ...]:
    candidate, _, baseline = result.name.partition(" against ")
    found = as_record(result, Comparison)
    return gate_chapter.gate(found, baseline=baseline or "baseline", candidate=candidate or "candidate")


def _diff(result: StoredResult) -> tuple[Section, ...]:
    held = _held(result)
    return (gate_chapter.diff(held, task=held.get("task")),)


def _drift(result: StoredResult) -> tuple[Section, ...]:
    return (drift_chapter.drift(as_record(result, Drift)),)


def _contrast(result: StoredResult) -> tuple[Section, ...]:
    return recovery_chapter.contrast(as_record(result, Contrast))


def _fit(result: StoredResult) -> tuple[Section, ...]:
    return router_chapter.fit(as_record(result, RouterFit))


def _evaluation(result: StoredResult) -> tuple[Section, ...]:
    return router_chapter.evaluation(as_record(result, Evaluation))


def cards(result: StoredResult) -> list[Scorecard]:
    """The scorecards of a result, one for each agent."""
    held = _held(result)
    return [_card(one) for one in held.get("agents") or [held]]


def _card(held: Mapping[str, Any]) -> Scorecard:
    dimensions = {
        key: {**found, "per_task": found.get("task_detail", {})} for key, found in held.get("dimensions", {}).items()
    }
    plain = {**held, "counts": held["attempts"], "statuses": held["counts"], "dimensions": dimensions}
    return msgspec.convert(plain, Scorecard)


def _scorecard(result: StoredResult) -> tuple[Section, ...]:
    held = _held(result)
    return scorecard_chapter.scorecards(
        cards(result),
        correlations=held.get("correlations"),
        profiles=_things(held.get("profiles") or {}, 2),
        separated=_things(held.get("separation") or {}, 1),
    )


def _things(value: Any, keys: int) -> Any:
    """Objects with attributes out of plain values, below so many levels of names."""
    if isinstance(value, dict):
        made = {k: _things(v, keys - 1) for k, v in value.items()}
        return made if keys > 0 or keys <= -1 else SimpleNamespace(**made)
    return [_things(v, keys) if isinstance(v, dict) else v for v in value] if isinstance(value, list) else value


def _standing(result: StoredResult) -> tuple[Section, ...]:
    rows = _held(result)["criteria"]
    return (judge_chapter.standing(rows), *_agreement(rows), *_bias(rows))


def _agreement(rows: Sequence[Mapping[str, Any]]) -> tuple[Section, ...]:
    measures = (("agreement", "Agreement"), ("kappa", "Kappa"), ("sensitivity", "Sensitivity"),
                ("specificity", "Specificity"))  # fmt: skip
    panels = []
    for key, title in measures:
        marks = tuple(_mark(r["criterion"], r.get(key)) for r in rows)
        if any(m.value is not None for m in marks):
            panels.append(Panel(marks=marks, unit="plain", title=title, domain=(min(0.0, *_lows(marks)), 1.0)))
    if not panels:
        return ()
    chart = Chart(title="Agreement with people", description="One row for each criterion.", panels=tuple(panels),
                  legend=(("value", "judge against people"), ("interval", "95% interval")))  # fmt: skip
    return (Section(heading="How far it agrees", charts=(chart,), key="agreement"),)


def _bias(rows: Sequence[Mapping[str, Any]]) -> tuple[Section, ...]:
    panels = []
    for r in rows:
        marks = tuple(_mark(b["name"], b["estimate"]) for b in r.get("bias", ()) if b.get("estimate") is not None)
        if marks:
            panels.append(Panel(marks=marks, unit="points", title=name(r["criterion"]), zero=0.0))
    if not panels:
        return ()
    chart = Chart(title="Biases in percentage points", description="Zero is none.", panels=tuple(panels),
                  legend=(("value", "bias"), ("interval", "95% interval")))  # fmt: skip
    return (Section(heading="What else moves it", charts=(chart,), key="bias"),)


def _lows(marks: Sequence[Mark]) -> list[float]:
    return [m.low for m in marks if m.low is not None] or [0.0]


def _mark(label: str, e: Any) -> Mark:
    if e is None or e.get("value") is None:
        return Mark(label=name(label), value=None, why="not estimated")
    span = numbers.interval(e.get("low"), e.get("high"))
    return Mark(label=name(label), value=e["value"], low=e.get("low"), high=e.get("high"),
                text=f"{e['value']:.2f}" + ("" if span == numbers.NA else f" {span}"))  # fmt: skip


def _judged(result: StoredResult) -> tuple[Section, ...]:
    held = _held(result)
    counts = {m: (c["met"], c["not_met"], c["unscored"]) for m, c in held["criteria"].items()}
    return (judge_chapter.judged(counts, held["asked"], held["cost_usd"]),)


def _anything(result: StoredResult) -> tuple[Section, ...]:
    rows = tuple((clean(key), clean(numbers.anything(value))[:2000]) for key, value in _held(result).items())
    columns = (Column(head="What"), Column(head="Value"))
    return (
        Section(
            heading=clean(result.command), tables=(Table(caption="What the command gave", columns=columns, rows=rows),)
        ),
    )


_BY_COMMAND: dict[str, Callable[[StoredResult], tuple[Section, ...]]] = {
    "rank": _rank,
    "gate": _gate,
    "diff": _diff,
    "drift": _drift,
    "watch": _drift,
    "recover contrast": _contrast,
    "recover fit": _fit,
    "recover evaluate": _evaluation,
    "scorecard": _scorecard,
    "judge validate": _standing,
    "judge run": _judged,
}


def drift_over_time(results: Sequence[StoredResult]) -> Section | None:
    """What each look found, one after the other: net improvement by model, and how many measures changed."""
    looks, older = [], 0
    for result in list(results)[:_OVER_TIME][::-1]:
        try:
            looks.append((result, as_record(result, Drift)))
        except UsageError:
            older += 1
    if len(looks) < 2:
        return None
    models = list(dict.fromkeys(m.model for _, d in looks for m in d.models))[:8]
    panels = []
    for model in models:
        marks = []
        for result, d in looks:
            e = next((m.now for m in d.models if m.model == model), None)
            label = datetime.fromtimestamp(d.now.end or result.time, UTC).strftime("%Y-%m-%d")
            marks.append(
                Mark(label=label, value=None, why="not estimated")
                if e is None
                else Mark(label=label, value=e.value, low=e.low, high=e.high, text=numbers.number(e.value, "points"))
            )
        panels.append(Panel(marks=tuple(marks), unit="points", title=name(model), zero=0.0))
    chart = Chart(
        title="Net improvement in each window", description="One row for each look, the newest last.",
        panels=tuple(panels), legend=(("value", "estimate"), ("interval", "interval of that look alone")),
    )  # fmt: skip
    rows = tuple(
        (
            datetime.fromtimestamp(r.time, UTC).strftime("%Y-%m-%d %H:%M"),
            clean(r.command),
            str(sum(c.changed is True for c in d.changes)),
            ", ".join(clean(c.measure) for c in d.changes if c.changed) or "none",
            ", ".join(clean(m.text) for m in d.marks) or "none",
        )
        for r, d in looks[::-1]
    )
    head = ("Looked (UTC)", "Command", "Changed", "Which", "Deploys")
    table = Table(caption="Every look", columns=tuple(Column(head=h, right=h == "Changed") for h in head), rows=rows)
    return Section(
        heading="Over time",
        paragraphs=(
            "Looks are shown side by side; only a board of 'seatrial watch' holds at every look together.",
            *((f"Left out, because another version of seatrial made them: {older}.",) if older else ()),
        ),
        charts=(chart,) if panels else (),
        tables=(table,),
        key="over-time",
    )
