"""A gate's decision to sections: the verdict, the metrics, findings, and the difference of each regressed task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.records import Comparison, MetricRow, RegressedTask
from seatrial.report import numbers
from seatrial.report.numbers import Unit
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, clip, name

SAYS: dict[str, str] = {
    "PASS": "The candidate is not worse than the baseline by more than the margin.",
    "REVIEW": "Quality holds; cost or latency worsened beyond its margin. A person should look.",
    "REGRESSION": "The candidate is worse than the baseline.",
    "INCONCLUSIVE": "These runs do not decide whether the candidate is worse. They show neither a regression nor "
    "that there is none.",
}
SHOWN_DIFFS = 10
SHOWN_TASKS = 50


def gate(c: Comparison, *, baseline: str = "baseline", candidate: str = "candidate", proposals: Sequence[str] = ()
         ) -> tuple[Section, ...]:  # fmt: skip
    """All sections of a gate's report, in reading order."""
    return tuple(
        section
        for section in (_verdict(c, baseline, candidate), _metrics(c), _findings(c), _tasks(c), *_diffs(c),
                        _proposals(proposals), _reading(c))
        if section is not None
    )  # fmt: skip


def _verdict(c: Comparison, baseline: str, candidate: str) -> Section:
    changed = f"Changed in the agent's fingerprint: {', '.join(c.changed)}." if c.changed else ""
    items = [*(f"Missing evidence: {text}" for text in c.missing_evidence), *(f"Warning: {w}" for w in c.warnings)]
    return Section(
        heading=f"Gate: {c.verdict}",
        paragraphs=tuple(
            filter(None, (SAYS[c.verdict], f"Why: {clean(c.why)}." if c.why else "",
                          f"Baseline {name(baseline)}, candidate {name(candidate)}.", changed))
        ),
        items=tuple(clean(i) for i in dict.fromkeys(items)),
        key="gate",
        place="answer",
    )  # fmt: skip


def _unit(row: MetricRow) -> Unit:
    values = [abs(v) for v in (row.baseline, row.candidate) if v is not None]
    return "points" if row.kind != "quality" or not values or max(values) <= 1.0 else "units"


def _level(row: MetricRow, value: float | None) -> str:
    if row.kind == "quality" and _unit(row) == "points":
        return numbers.number(value, "percent")
    return numbers.NA if value is None else f"{value:.4g}"


def _metrics(c: Comparison) -> Section:
    head = (
        Column(head="metric", name=True),
        Column(head="verdict"),
        Column(head="baseline", right=True),
        Column(head="candidate", right=True),
        Column(head="difference [90%]", right=True),
        Column(head="margin", right=True),
        Column(head="p (Holm)", right=True),
        Column(head="sees drops of", right=True),
    )
    rows = tuple(
        (
            r.metric,
            r.verdict,
            _level(r, r.baseline),
            _level(r, r.candidate),
            numbers.stacked(r.difference, _unit(r)),
            numbers.number(r.margin, "size" if _unit(r) == "points" else "plain"),
            numbers.p_value(r.p_holm if r.p_value is not None else None),
            numbers.number(r.mde, "size" if _unit(r) == "points" else "plain"),
        )
        for r in c.metrics
    )
    notes = [
        "differences are candidate minus baseline over the same tasks, higher is better"
        + ("; of cost and latency, in percent of the baseline" if any(r.kind != "quality" for r in c.metrics) else "")
        + "; 'sees drops of' is the drop that this run detects in 4 of 5 cases"
    ]
    items = [f"{name(r.metric)}: {clean(r.why)}" for r in c.metrics if r.why]
    items += [
        f"{name(r.metric)}: {sum(r.excluded.values())} attempts of the candidate are excluded ("
        + ", ".join(f"{n} {s}" for s, n in sorted(r.excluded.items())) + ")"
        for r in c.metrics if r.excluded
    ]  # fmt: skip
    drawn = [r for r in c.metrics if r.difference is not None and _unit(r) == "points"]
    chart = Chart(
        title="Difference by metric, with the 90% interval",
        description="Each row is a metric; left of zero the candidate is worse.",
        panels=(Panel(
            marks=tuple(
                Mark(label=r.metric, value=r.difference.value, low=r.difference.low, high=r.difference.high,
                     text=r.verdict)
                for r in drawn if r.difference is not None
            ),
            unit="points", zero=0.0,
        ),),
        less="worse", more="better", legend=(("value", "difference"), ("interval", "90% interval")),
    )  # fmt: skip
    return Section(
        heading="Metrics",
        charts=(chart,) if drawn else (),
        tables=(Table(caption="Metrics, each decided by itself", columns=head, rows=rows),),
        items=tuple(items),
        notes=tuple(notes),
        key="metrics",
    )


def _findings(c: Comparison) -> Section | None:
    found = (
        ("must-pass failed", c.must_pass_failed), ("missing", c.population.missing), ("new", c.population.new),
        ("changed content", c.population.changed),
    )  # fmt: skip
    rows = tuple((what, numbers.count(len(cases)), numbers.some([name(t) for t in cases], 10))
                 for what, cases in found if cases)  # fmt: skip
    if not rows:
        return None
    head = (Column(head="finding"), Column(head="cases", right=True), Column(head="which"))
    return Section(heading="Cases", tables=(Table(caption="Cases that need a look", columns=head, rows=rows),),
                   key="cases")  # fmt: skip


def _tasks(c: Comparison) -> Section | None:
    if not c.regressed_tasks:
        return None
    decided = any(r.verdict == "REGRESSION" for r in c.metrics) or c.must_pass_failed
    head = (Column(head="task", name=True), Column(head="metric", name=True), Column(head="baseline", right=True),
            Column(head="candidate", right=True), Column(head="first divergence"))  # fmt: skip
    rows = tuple(
        (t.task, t.metric, f"{t.baseline:.2f}", f"{t.candidate:.2f}", clean(t.diff["summary"]) if t.diff else None)
        for t in c.regressed_tasks[:SHOWN_TASKS]
    )
    more = len(c.regressed_tasks) - SHOWN_TASKS
    return Section(
        heading="Tasks that got worse" if decided else "Tasks with lower results (not decided)",
        tables=(Table(caption="Worst first", columns=head, rows=rows),),
        notes=(f"{more} more; the JSON lists all",) if more > 0 else (),
        key="tasks",
    )


def _diffs(c: Comparison) -> list[Section]:
    shown: dict[str, RegressedTask] = {}
    for t in c.regressed_tasks:
        if t.diff is not None:
            shown.setdefault(t.task, t)
    parts = [diff(t.diff or {}, task=t.task) for t in list(shown.values())[:SHOWN_DIFFS]]
    if not parts:
        return []
    more = len(shown) - len(parts)
    return [
        Section(
            heading="What the agent did differently",
            parts=tuple(parts),
            notes=(f"{more} more differences are in the JSON",) if more > 0 else (),
            key="differences",
        )
    ]


def diff(d: Mapping[str, Any], *, task: str | None = None) -> Section:
    """One difference of traces (`gate.difference.compact`) as a section."""
    rows = []
    first = d["first"]
    for i, row in enumerate(d["rows"], d["rows_before"]):
        mark = "▶ " if i == first else ""
        rows.append((mark + row["change"], _item(row["baseline"]), _item(row["candidate"])))
    head = (Column(head="change"), Column(head="baseline"), Column(head="candidate"))
    skipped = [f"{d[key]} {text}" for key, text in (
        ("rows_before", "aligned rows before these"), ("rows_after", "after them"),
        ("left_out", "beyond the first 1,500 of a trace left out")) if d[key]]  # fmt: skip
    effects = tuple((what, *(_plain(v) for v in pair)) for what, pair in d["consequences"].items())
    return Section(
        heading=f"Task {name(task)}" if task else "Difference",
        paragraphs=(f"First divergence: {clean(d['summary'])}.",),
        tables=(
            Table(caption="Aligned steps around the first divergence (▶)", columns=head, rows=tuple(rows)),
            Table(caption="What followed", columns=(Column(head="consequence"), Column(head="baseline", right=True),
                                                    Column(head="candidate", right=True)), rows=effects),
        ),
        notes=("; ".join(skipped),) if skipped else (),
    )  # fmt: skip


def _item(item: Mapping[str, Any] | None) -> str:
    if item is None:
        return "–"
    if item["kind"] != "call":
        return f"{item['step']} {item['kind']}: {clip(clean(item['text']), 100)}"
    arguments = item["arguments"]
    if isinstance(arguments, Mapping):
        arguments = ", ".join(f"{k}={numbers.anything(v)}" for k, v in arguments.items())
    call = f"{item['step']} {name(item['name'])}({clip(clean(str(arguments)), 90)})"
    outcome = f"[{item['outcome']}] " if item["outcome"] not in ("", "unknown") else ""
    return f"{call}\n{outcome}{clip(clean(item['result']), 80)}" if item["result"] or outcome else call


def _plain(value: Any) -> str | None:
    return None if value is None else clean(numbers.anything(value))


def _proposals(lines: Sequence[str]) -> Section | None:
    if not lines:
        return None
    return Section(heading="Tighter margins", items=tuple(clean(line) for line in lines), key="proposals",
                   paragraphs=("The green history supports these; margins change in the settings alone.",))  # fmt: skip


def _reading(c: Comparison) -> Section:
    text: tuple[str, ...]
    if c.rule == "point":
        text = ("Rule: block on a drop of more than the margin, whatever its noise. With 30 tasks and 5 runs this rule "
                "blocks an unchanged agent in about one of four comparisons per metric.",)  # fmt: skip
    else:
        text = (
            "REGRESSION: the drop is larger than the margin, and a paired t test over tasks, corrected over all "
            "metrics (Holm), finds a drop at 5%.",
            "PASS: the one-sided 95% bound of the difference lies above minus the margin in every metric, also if "
            "every excluded attempt of the candidate had failed.",
            "INCONCLUSIVE: neither.",
        )
    return Section(heading="How this was decided", items=text, folded=True, key="reading")
