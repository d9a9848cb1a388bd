"""The verdict and the answer: may differences be believed, and which model did better by how much?"""

from __future__ import annotations

from seatrial.records import ModelRow, Ranking
from seatrial.report import numbers, words
from seatrial.report.numbers import some
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name

EXTRA = (
    ("Unadjusted", "raw"),
    ("With labels (PPI++)", "ppi"),
    ("Error-corrected", "rogan_gladen"),
    ("Without labels", "signals_only"),
    ("Net benefit", "net_benefit"),
)
"""Further estimates of a model, shown where any model has one."""


def ordered(r: Ranking) -> list[ModelRow]:
    """Ranked models by rank, then unranked ones by estimate, then those without one."""

    def key(m: ModelRow) -> tuple[int, float, str]:
        if m.rank is not None:
            return (0, m.rank.value, m.model)
        if m.net_improvement is not None:
            return (1, -m.net_improvement.value, m.model)
        return (2, 0.0, m.model)

    return sorted(r.models, key=key)


def decimals(r: Ranking) -> int | None:
    """One decimal, two when intervals are narrower than one point."""
    widths = [
        e.high - e.low
        for m in r.models
        if (e := m.net_improvement) is not None and e.low is not None and e.high is not None
    ]
    narrow = words.outcome_unit(r) == "points" and widths and sorted(widths)[len(widths) // 2] < 0.01
    return 2 if narrow else None


def verdict(r: Ranking) -> Section:
    """The design verdict with its checks (METHODS 3.6)."""
    return Section(
        key="verdict",
        heading=f"Design verdict: {words.VERDICT_NAME[r.design.verdict].lower()}",
        paragraphs=(words.VERDICT_MEANS[r.design.verdict],),
        items=tuple(words.sentence(text) for text in r.design.caveats),
        checks=r.design.checks,
    )


def models(r: Ranking) -> Section:
    """The ranking itself, titled as its design allows."""
    rows = ordered(r)
    return Section(
        key="models",
        heading=r.design.title[:1].upper() + r.design.title[1:],
        paragraphs=summary(r),
        charts=(forest(r, rows),) if any(m.net_improvement for m in rows) else (),
        tables=(_table(r, rows),),
        notes=reasons(r, rows),
    )


def summary(r: Ranking) -> tuple[str, ...]:
    """The answer in a few sentences, read off the intervals and never beyond them.

    A model without an interval or a rank is never called the best, however high its estimate.
    """
    rows = [m for m in ordered(r) if m.net_improvement is not None]
    if not rows:
        return ("No net improvement can be estimated from these sessions; the reasons are below.",)
    firm = [m for m in rows if m.net_improvement and m.net_improvement.low is not None]
    ranked = [m for m in firm if m.rank is not None] or firm
    if not ranked:
        return (
            f"No model has an interval that can be defended, so none is called better than {words.baseline(r)}. "
            "The estimates below only describe these sessions.",
        )
    apart = any(m.simultaneous and (m.simultaneous[0] > 0 or m.simultaneous[1] < 0) for m in rows)
    best = max(ranked, key=lambda m: m.net_improvement.value if m.net_improvement else 0.0)
    told = _told_apart(r, rows)
    first = _highest(r, best)
    return (first, *told, *_places(r)) if apart else (*told, first, *_places(r))


def _highest(r: Ranking, best: ModelRow) -> str:
    unit, places = words.outcome_unit(r), decimals(r)
    e = best.net_improvement
    assert e is not None
    measure = "percentage points" if unit == "points" else "units"
    low, high = numbers.number(e.low, unit, places), numbers.number(e.high, unit, places)
    verb = "has the highest estimate" if words.is_causal(r) else "did best in these sessions"
    if best.simultaneous is None or best.simultaneous[0] <= 0:
        verb = "has the highest estimate, which may be chance"
    span = f"{numbers.level(e.level)} interval {low} to {high}"
    value = numbers.number(e.value, unit, places)
    return f"{name(best.model)} {verb}: {value} {measure} against {words.baseline(r)} ({span})."


def _told_apart(r: Ranking, rows: list[ModelRow]) -> tuple[str, ...]:
    known = [(m, m.simultaneous) for m in rows if m.simultaneous is not None]
    if not known:
        return ("No model has a simultaneous interval, so none is called better or worse than the baseline.",)
    above = [name(m.model) for m, (low, _) in known if low > 0]
    below = [name(m.model) for m, (_, high) in known if high < 0]
    rest = [name(m.model) for m, (low, high) in known if low <= 0 <= high]
    parts = []
    if above:
        parts.append(f"above the baseline: {some(above)}")
    if below:
        parts.append(f"below it: {some(below)}" if above else f"below the baseline: {some(below)}")
    if rest:
        if not parts:
            return (f"No model is told apart from {words.baseline(r)}, all considered together.",)
        parts.append(f"not told apart from it: {some(rest)}")
    return ("All models considered together, " + "; ".join(parts) + ".",)


def _places(r: Ranking) -> tuple[str, ...]:
    ranked = [m for m in ordered(r) if m.rank is not None]
    if not ranked:
        return ()
    first = [name(m.model) for m in ranked if m.rank is not None and m.rank.low == 1]
    if len(first) == 1:
        text = f"Only {first[0]} can hold first place"
    elif len(first) == len(ranked):
        text = "The data leave open which model is first"
    else:
        text = f"First place lies between {some(first)}"
    return (text + f" (rank intervals, {words.ranking_level(r)} for all of them together).",)


def reasons(r: Ranking, rows: list[ModelRow]) -> tuple[str, ...]:
    """Why something of a model is missing: no estimate, no interval, no rank; equal reasons are told once."""
    found: dict[str, list[str]] = {}
    for m in rows:
        e = m.net_improvement
        if m.why:
            found.setdefault(m.why, []).append(name(m.model))
        if e is not None and e.low is None and e.why and e.why != m.why:
            found.setdefault(e.why, []).append(name(m.model))
    notes = [f"{some(who)}: {words.sentence(clean(why))}" for why, who in found.items()]
    mixed = [(m, m.mixed_share) for m in rows if m.mixed_share]
    if mixed:
        shares = ", ".join(f"{name(m.model)} {numbers.number(s, 'percent')}" for m, s in mixed)
        notes.append(f"Sessions that also used another model count for the one that began them: {shares}.")
    return tuple(notes)


def mark(r: Ranking, m: ModelRow) -> Mark:
    """A model's row in a forest plot."""
    e, unit, places = m.net_improvement, words.outcome_unit(r), decimals(r)
    low, high = m.simultaneous or (None, None)
    return Mark(
        label=name(m.model),
        value=None if e is None else e.value,
        low=None if e is None else e.low,
        high=None if e is None else e.high,
        band_low=low,
        band_high=high,
        rank=m.rank,
        text=numbers.estimate(e, unit, places).replace(" (no interval)", ""),
        why=(m.why or "no estimate").partition(";")[0].removesuffix(": listed, unranked"),
    )


def forest(r: Ranking, rows: list[ModelRow]) -> Chart:
    """Net improvement with pointwise and simultaneous intervals, and ranks with theirs."""
    unit, at = words.outcome_unit(r), words.ranking_level(r)
    parts = [
        f"{name(m.model)}: {numbers.estimate(m.net_improvement, unit, decimals(r))}, rank {numbers.rank(m.rank)}"
        for m in rows
    ]
    bands = any(m.simultaneous for m in rows)
    hollow = any(m.net_improvement is not None and m.net_improvement.low is None for m in rows)
    return Chart(
        title="Net improvement in " + ("percentage points" if unit == "points" else "outcome units"),
        description="One row per model, best estimate first. " + "; ".join(parts) + ".",
        panels=(Panel(marks=tuple(mark(r, m) for m in rows), unit=unit, zero=0.0),),
        legend=(
            ("value", "estimate"),
            ("interval", f"{at} interval, this model alone"),
            *((("band", f"{at} interval, all models together"),) if bands else ()),
            *((("hollow", "estimate without a defensible interval"),) if hollow else ()),
        ),
        less="worse than the baseline",
        more="better",
        n_ranks=len([m for m in rows if m.rank is not None]) or None,
    )


def _table(r: Ranking, rows: list[ModelRow]) -> Table:
    unit, at, places = words.outcome_unit(r), words.ranking_level(r), decimals(r)
    extra = [(label, field) for label, field in EXTRA if any(getattr(m, field) is not None for m in rows)]
    columns = [
        Column(head="Model", name=True),
        Column(head="Rank [low–high]", right=True),
        Column(head=f"{'Points' if unit == 'points' else 'Net improvement'} [{at}]", right=True),
        Column(head="All models together", right=True),
        Column(head="Against the others", right=True),
        Column(head="p", right=True),
        *(Column(head=label, right=True) for label, _ in extra),
        Column(head="Mean outcome", right=True),
        Column(head="Sessions", right=True),
        Column(head="Clusters", right=True),
        Column(head="G*", right=True),
    ]
    cells = tuple(
        (
            name(m.model),
            numbers.rank(m.rank),
            numbers.stacked(m.net_improvement, unit, places),
            numbers.interval(*m.simultaneous, unit, places) if m.simultaneous else None,
            numbers.stacked(m.versus_others, unit, places),
            numbers.p_value(m.p_value),
            *(numbers.stacked(getattr(m, field), unit, places) for _, field in extra),
            numbers.stacked(m.mean, words.mean_unit(r)),
            numbers.count(m.n_sessions),
            numbers.count(m.n_clusters),
            numbers.effective(m.g_effective),
        )
        for m in rows
    )
    return Table(caption="Every model's numbers", columns=tuple(columns), rows=cells)


def others_table(r: Ranking) -> Table | None:
    """For narrow renderers: the numbers of each model beside net improvement and its intervals."""
    rows, unit, places = ordered(r), words.outcome_unit(r), decimals(r)
    fields = (("Against the others", "versus_others"), *EXTRA)
    shown = [(head, field) for head, field in fields if any(getattr(m, field) is not None for m in rows)]
    if not shown and not any(m.p_value is not None for m in rows):
        return None
    return Table(
        caption="Against the others, unadjusted, and p of the null that no model matters",
        columns=(
            Column(head="Model", name=True),
            *(Column(head=head, right=True) for head, _ in shown),
            Column(head="p", right=True),
        ),
        rows=tuple(
            (
                name(m.model),
                *(
                    None if getattr(m, field) is None else numbers.estimate(getattr(m, field), unit, places)
                    for _, field in shown
                ),
                numbers.p_value(m.p_value),
            )
            for m in rows
        ),
    )
