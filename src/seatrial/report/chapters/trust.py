"""How far to trust the answer: null distribution, power, what was left out, the basis."""

from __future__ import annotations

from seatrial.records import ModelRow, NullDistribution, Ranking
from seatrial.report import numbers, words
from seatrial.report.chapters import answer, kinds
from seatrial.report.chapters.measures import MODEL, keys
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name


def null(r: Ranking) -> Section | None:
    """The permutation distribution beside the observed effects, labelled null (METHODS 3.2)."""
    if r.null is None:
        return None
    unit, places = words.outcome_unit(r), answer.decimals(r)
    rows = [m for m in answer.ordered(r) if m.model in r.null.mean]
    observed = {m.model: _observed(r.null, m) for m in rows}
    spans = {m.model: _span(r.null.percentiles.get(m.model, {})) for m in rows}
    marks, cells = [], []
    for m in rows:
        low, high, _ = spans[m.model]
        seen = observed[m.model]
        marks.append(
            Mark(
                label=name(m.model),
                value=seen,
                band_low=low,
                band_high=high,
                text="" if seen is None else numbers.number(seen, unit, places),
                why="n/a",
            )
        )
        cells.append(
            (
                name(m.model),
                None if seen is None else numbers.number(seen, unit, places),
                numbers.number(r.null.mean[m.model], unit, 2),
                numbers.interval(low, high, unit, places),
                numbers.p_value(m.p_value),
            )
        )
    covers = next((text for *_, text in spans.values() if text), "range")
    method = f" Method: {clean(r.null.method)}." if r.null.method else ""
    return Section(
        key="null",
        heading="Null distribution (a check, not a result)",
        paragraphs=(
            (
                f"Model names were shuffled {numbers.count(r.null.draws)} times inside the design. {_centre(r.null)} "
                "An observed effect far outside their range is hard to explain without any difference between "
                f"models.{_other_estimate(r, observed)}{method}"
            ),
        ),
        charts=(
            Chart(
                title="Observed effects against the null",
                description="One row per model: the grey range holds the effects under shuffled names, the point is "
                "the observed effect. The table below has all values.",
                panels=(Panel(marks=tuple(marks), unit=unit, zero=0.0),),
                legend=(("value", "observed"), ("bar", f"null, {covers} of draws")),
                bar=True,
            ),
        )
        if marks
        else (),
        tables=(
            Table(
                caption="Observed and null",
                columns=(
                    MODEL,
                    Column(head="Observed", right=True),
                    Column(head="Null mean", right=True),
                    Column(head=f"Null {covers}", right=True),
                    Column(head="p", right=True),
                ),
                rows=tuple(cells),
            ),
        ),
    )


def _centre(null: NullDistribution) -> str:
    if null.centred:
        return "Effects of shuffled names centre on zero by construction."
    return (
        "Effects of shuffled names centre near zero, though not exactly on it, because the comparison pools groups "
        "inside which names were shuffled; p counts them as they are, without moving them to zero."
    )


def _observed(null: NullDistribution, m: ModelRow) -> float | None:
    """The tested statistic under the real names; the estimate where a result does not carry it."""
    if m.model in null.observed:
        return null.observed[m.model]
    return m.net_improvement.value if m.net_improvement else None


def _other_estimate(r: Ranking, observed: dict[str, float | None]) -> str:
    """Said where the headline adjusts further than the tested statistic."""
    for m in r.models:
        seen = observed.get(m.model)
        if seen is not None and m.net_improvement and abs(seen - m.net_improvement.value) > 5e-4:
            return " The test is of the estimate without regression or labels, shown here as observed."
    return ""


def _span(percentiles: dict[str, float]) -> tuple[float | None, float | None, str]:
    """The widest pair of percentiles and the share of draws between them."""
    found = []
    for key, value in percentiles.items():
        try:
            at = float(key.strip().lstrip("pP").rstrip("%"))
        except ValueError:
            continue
        found.append((at, value))
    if len(found) < 2:
        return None, None, ""
    found.sort()
    share = found[-1][0] - found[0][0]
    return found[0][1], found[-1][1], numbers.level(share if share <= 1 else share / 100)


def power(r: Ranking) -> Section | None:
    """What this much data can see (METHODS 3.11)."""
    p = r.power
    if p is None:
        return None
    unit, places = words.outcome_unit(r), answer.decimals(r)
    rows = [m for m in answer.ordered(r) if m.model in p.mde]
    known = [(m, p.mde[m.model]) for m in rows]
    size: numbers.Unit = "size" if unit == "points" else "plain"
    marks = tuple(
        Mark(
            label=name(m.model),
            value=abs(m.net_improvement.value) if m.net_improvement else None,
            band_low=0.0 if mde is not None else None,
            band_high=mde,
            text="" if mde is None else "needs " + numbers.number(mde, size),
            why="n/a",
        )
        for m, mde in known
    )
    chart = Chart(
        title="Observed size against what the data can see",
        description="One row per model: the grey range is too small to be found reliably, the point is the size of "
        "the observed net improvement. The table below has all values.",
        panels=(Panel(marks=marks, unit=size, zero=0.0),),
        legend=(("value", "size of the observed net improvement"), ("bar", "would be missed too often")),
        bar=True,
    )
    return Section(
        key="power",
        heading="Power: what these data can see",
        paragraphs=tuple(filter(None, (_power_sentence(r), clean(p.why) if p.why else ""))),
        charts=(chart,) if any(mde is not None for _, mde in known) else (),
        tables=(
            *(
                (
                    Table(
                        caption=f"Minimum detectable effect at 80% power, level {numbers.level(p.level)}",
                        columns=(
                            MODEL,
                            Column(head="Detectable from", right=True),
                            Column(head="Observed", right=True),
                        ),
                        rows=tuple(
                            (
                                name(m.model),
                                None if mde is None else numbers.number(mde, size, places),
                                numbers.number(m.net_improvement.value, unit, places) if m.net_improvement else None,
                            )
                            for m, mde in known
                        ),
                    ),
                )
                if known
                else ()
            ),
            *plan_table(p.sessions_for),
        ),
    )


def _power_sentence(r: Ranking) -> str:
    assert r.power is not None
    mdes = [v for v in r.power.mde.values() if v is not None]
    if not mdes:
        return ""
    unit = words.outcome_unit(r)
    low, high = (numbers.number(v, "size" if unit == "points" else "plain") for v in (min(mdes), max(mdes)))
    size = low if low == high else f"{low} to {high}"
    what = "points" if unit == "points" else "units"
    return (
        f"With these data a true net improvement must reach about {size} {what} to be found in 80% of such studies. "
        "A smaller one that shows no difference here may still exist."
    )


def plan_table(sessions_for: dict[str, int | None]) -> tuple[Table, ...]:
    """Sessions per model by difference in points; no table when there is nothing to say."""
    if not sessions_for:
        return ()
    return (
        Table(
            caption="Sessions per model needed for 80% power",
            columns=(Column(head="To see a difference of", right=True), Column(head="Sessions per model", right=True)),
            rows=tuple(
                (f"{clean(points)} point{'' if points == '1' else 's'}" if _numeric(points) else clean(points),
                 None if n is None else numbers.count(n))
                for points, n in sessions_for.items()
            ),
        ),
    )  # fmt: skip


def _numeric(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def dropped(r: Ranking) -> Section:
    """What does not count, how many and why; then the warnings."""
    table = Table(
        caption="Left out",
        columns=(Column(head="What"), Column(head="How many", right=True), Column(head="Why")),
        rows=tuple((clean(d.what), numbers.count(d.n), clean(d.why)) for d in r.dropped),
    )
    return Section(
        key="dropped",
        heading="Left out, and warnings",
        paragraphs=() if r.dropped else ("Nothing was left out.",),
        tables=(table,) if r.dropped else (),
        items=tuple(f"Warning: {clean(w)}" for w in r.warnings),
    )


def reading(r: Ranking) -> Section:
    """How to read the report."""
    return Section(key="reading", heading="How to read this", items=words.reading(r))


_BASIS: dict[str, str] = {
    "seatrial": "seatrial",
    "n_sessions": "Sessions",
    "n_scored": "Scored sessions",
    "n_estimate": "Sessions in the estimate",
    "n_clusters": "Clusters",
    "n_tasks": "Tasks",
    "cluster": "What is a cluster",
    "draws": "Draws",
    "where": "Only sessions where",
    "harnesses": "Agents",
}


def basis(r: Ranking) -> Section:
    """What the numbers rest on (METHODS 3.11)."""
    rows: list[tuple[str | None, ...]] = [
        ("Outcome", clean(kinds.outcome(r))),
        ("Baseline", words.baseline(r)),
        ("Estimator", clean(r.estimator)),
        ("Weights", clean(weights(r))),
    ]
    for key in keys([r.basis], _BASIS):
        value = r.basis[key]
        if key == "weights" or value in ({}, [], (), None):
            continue
        ends = list(value.values()) if isinstance(value, dict) else value
        if key == "window" and isinstance(ends, list | tuple) and len(ends) == 2:
            rows.append(("Window", " to ".join(_moment(v) for v in ends)))
        elif isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values()):
            rows.extend(
                (f"{plain(key)}, {plain(str(k)).lower()}", clean(numbers.anything(v))) for k, v in sorted(value.items())
            )
        elif key == "seed":
            rows.append(("Seed", str(value)))
        else:
            rows.append((_BASIS.get(key) or plain(key), clean(numbers.anything(value))))
    return Section(
        key="basis",
        heading="Basis",
        tables=(
            Table(
                caption="What the numbers rest on",
                columns=(Column(head="What"), Column(head="Value")),
                rows=tuple(rows),
            ),
        ),
    )


def weights(r: Ranking) -> str:
    """The weights' name, with ``unfitted`` unless they were fitted."""
    return r.weights if r.weights == "fitted" else f"unfitted ({r.weights})" if r.weights != "unfitted" else "unfitted"


def plain(key: str) -> str:
    """A detail's key in words."""
    return words.plain_name(clean(key))


def _moment(value: object) -> str:
    """A time in seconds since 1970 as a UTC date and minute."""
    from datetime import UTC, datetime

    if isinstance(value, int | float) and 0 < value < 2.5e11:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return clean(numbers.anything(value))
