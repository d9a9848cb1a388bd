"""How accurate detectors are, and how two annotators agree, as sections (METHODS 1.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name

_MEASURES = ("precision", "recall", "f1")
_MOST = 12
_SHOWN_CURVE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def _cell(estimate: Any) -> str | None:
    if estimate is None or estimate.value is None:
        return None
    if estimate.low is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _plain(kind: str) -> str:
    return kind.replace("_", " ")


def _head(*before: Column) -> tuple[Column, ...]:
    return (*before, *(Column(head=h, right=True) for h in ("labelled", *_MEASURES)))


def _row(row: Mapping[str, Any]) -> tuple[str | None, ...]:
    return (numbers.count(row["n_positive"]), *(_cell(row[m]) for m in _MEASURES))


def _by_kind(caption: str, kinds: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = tuple((_plain(kind), *_row(row)) for kind, row in kinds.items())
    return Table(caption=caption, columns=_head(Column(head="kind")), rows=rows)


def _split(caption: str, head: str, parts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    n = len(parts)
    if n > _MOST:
        most = sorted(parts, key=lambda part: -sum(row["n_positive"] for row in parts[part].values()))[:_MOST]
        parts = {part: kinds for part, kinds in parts.items() if part in most}
        caption += f": the {_MOST} with most labels of {n} (--json has all)"
    rows = tuple(
        (clip(name(part), 30), _plain(kind), *_row(row))
        for part, kinds in parts.items()
        for kind, row in kinds.items()
        if row["n_positive"]
    )
    columns = _head(Column(head=head, name=True), Column(head="kind"))
    return Table(caption=caption, columns=columns, rows=rows, grouped=True)


def _curves(curves: Mapping[str, Any]) -> Table:
    shown = [
        (kind, p)
        for kind, points in curves.items()
        for p in points
        if round(p.threshold, 2) in _SHOWN_CURVE and p.found
    ]
    rows = tuple(
        (
            _plain(kind),
            f"{p.threshold:.1f}",
            numbers.count(p.found),
            _share(p.precision),
            _share(p.recall),
            _share(p.f1),
        )
        for kind, p in shown
    )
    head = (
        Column(head="kind"),
        *(Column(head=h, right=True) for h in ("threshold", "found", "precision", "recall", "f1")),
    )
    return Table(caption="What a threshold costs", columns=head, rows=rows, grouped=True)


def _calibration(calibration: Mapping[str, Any]) -> Table:
    rows = tuple(
        (_plain(kind), f"{b.low:.1f} to {b.high:.1f}", numbers.count(b.n), f"{b.confidence:.2f}", f"{b.right:.2f}")
        for kind, one in calibration.items()
        for b in one.bins
    )
    head = (Column(head="kind"), *(Column(head=h, right=True) for h in ("confidence", "verdicts", "mean", "right")))
    return Table(caption="Can confidences be believed?", columns=head, rows=rows, grouped=True)


def _confusion(confusion: Any) -> Table:
    rows = tuple(
        (
            _plain(c.labelled),
            _plain(c.found),
            numbers.count(c.n),
            "\n".join(clip(clean(e.turn), 60) for e in c.examples),
        )
        for c in confusion
    )
    head = (Column(head="labelled"), Column(head="found"), Column(head="turns", right=True),
            Column(head="for example", name=True))  # fmt: skip
    return Table(caption="Mistaken for what", columns=head, rows=rows)


def accuracy(result: Any) -> Section:
    """Everything that `signals.evaluate` measured (its `Accuracy`)."""
    tables = [_by_kind("By kind", result.kinds)]
    if result.n_disputed:
        tables.append(_by_kind("By kind, disputed turns included", result.with_disputed))
    tables.append(_split("By source, kinds with at least one labelled turn", "source", result.by_source))
    if len(result.by_model) > 1:
        tables.append(_split("By model, kinds with at least one labelled turn", "model", result.by_model))
    tables += [_curves(result.curves), _calibration(result.calibration), _confusion(result.confusion)]
    alarm = result.false_alarm
    said = "no turn is labelled other" if alarm is None else (
        f"a complaint or correction falls on {_cell(alarm)} of the turns labelled only other"
    )  # fmt: skip
    left = f"{result.n_disputed} disputed turns count only where it is said, {result.n_harness} were typed by no person"
    return Section(
        heading="How accurate the detectors are",
        paragraphs=(f"{numbers.count(result.n_turns)} turns; {said}; {left}.",),
        tables=tuple(tables),
        notes=("intervals treat the turns of one source as one cluster; confidences are strengths to threshold",),
    )


def agreement(result: Any) -> Section:
    """How two annotators agree (`flows.label.Agreement`)."""
    rows = tuple((_plain(label), None if k is None else _cell(k)) for label, k in result.kappa.items())
    return Section(
        heading="How two annotators agree",
        paragraphs=(f"{numbers.count(result.n)} items labelled by both; the same labels on {result.same:.2f}.",),
        tables=(
            Table(caption="Cohen's kappa", columns=(Column(head="label"), Column(head="kappa", right=True)), rows=rows),
        ),
    )


def weights(run: Any) -> Section:
    """Fitted weights, their worth, and how the board moves with them (`flows.weights.WeightsRun`)."""
    fitted, stable = run.fitted, run.stability
    rows = tuple((_plain(w.kind), _cell(w)) for w in fitted.intervals)
    worth = (
        ("fitted", _share(fitted.auc), _share(fitted.log_loss)),
        ("unit", _share(fitted.unit_auc), _share(fitted.unit_log_loss)),
    )
    boards = tuple((b.weights, str(i), name(m)) for b in stable.boards for i, m in enumerate(b.order, 1))
    top = ", ".join(f"{name(m)} {share:.0%}" for m, share in sorted(stable.top.items(), key=lambda p: (-p[1], p[0])))
    text = [f"{fitted.n_labels} labelled sessions of {fitted.n_users} users; weights: {fitted.weights.name}."]
    if run.unknown:
        text.append(f"{run.unknown} labels belong to sessions that are not here.")
    return Section(
        heading="Weights of the count score",
        paragraphs=(*text, f"First in {stable.draws} weight draws ({stable.drawn_from}): {top}."),
        tables=(
            Table(
                caption="Weights, scaled to sum to 5",
                columns=(Column(head="signal"), Column(head="weight", right=True)),
                rows=rows,
            ),
            Table(
                caption="Out of fold, users left out",
                columns=(Column(head="weights"), Column(head="AUC", right=True), Column(head="log loss", right=True)),
                rows=worth,
            ),
            Table(
                caption="Order of models by the count score",
                columns=(Column(head="weights"), Column(head="place", right=True), Column(head="model", name=True)),
                rows=boards,
                grouped=True,
            ),
        ),
        notes=tuple(fitted.why),
    )
