"""A judge's standing, its plan and its lint findings to sections (METHODS 6.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, name

STANDS = {
    "usable": "may gate",
    "provisional": "may not gate: the points clear the thresholds, the lower limits do not",
    "refused": "may not gate",
    "fix the rubric": "people do not agree on this criterion: write it so that they do",
}


def standing(rows: Sequence[Mapping[str, Any]]) -> Section:
    """Validation of a judge; rows are `Standing` records as plain values."""
    head = (
        Column(head="criterion", name=True),
        Column(head="standing"),
        Column(head="items", right=True),
        Column(head="agreement", right=True),
        Column(head="kappa", right=True),
        Column(head="human-human kappa", right=True),
        Column(head="sensitivity", right=True),
        Column(head="specificity", right=True),
    )
    body = tuple(
        (r["criterion"], r["status"], numbers.count(r["n_items"]), _cell(r["agreement"]), _cell(r["kappa"]),
         _cell(r["human_kappa"]), _cell(r["sensitivity"]), _cell(r["specificity"]))
        for r in rows
    )  # fmt: skip
    items = [f"{name(r['criterion'])}: {STANDS[r['status']]}; {clean(r['why'])}" for r in rows]
    for r in rows:
        items += [
            f"{name(r['criterion'])}: {b['name']} bias {_cell(b['estimate'])}".replace("\n", " ")
            for b in r["bias"] if b["estimate"] is not None
        ]  # fmt: skip
        if r["unscored"]:
            items.append(f"{name(r['criterion'])}: {r['unscored']} items have no verdict of the judge and do not count")
    return Section(
        heading="Judge against people",
        tables=(Table(caption="By criterion; 95% intervals below the values", columns=head, rows=body),),
        items=tuple(items),
        notes=("usable takes lower limits of .85 agreement and .60 kappa; the judge's numbers are means over people",),
    )


def _cell(e: Any) -> str | None:
    if e is None or e["value"] is None:
        return None
    low, high = e["low"], e["high"]
    return f"{e['value']:.2f}" + (f"\n[{low:.2f}, {high:.2f}]" if low is not None and high is not None else "")


def lint(findings: Sequence[tuple[str, str, str]], criteria: int) -> Section:
    """Findings of `judge lint`: criterion, rule, text."""
    if not findings:
        return Section(heading="Rubric", paragraphs=(f"All {criteria} criteria name something to look for.",))
    head = (Column(head="criterion", name=True), Column(head="finding"), Column(head="what to do"))
    return Section(heading="Rubric", tables=(Table(caption=f"{len(findings)} findings", columns=head,
                                                   rows=tuple((c, r, clean(t)) for c, r, t in findings)),))  # fmt: skip


def plan(outputs: int, cached: int, tokens: int, cost: float | None, what: str = "outputs") -> str:
    """What judging will take, in one line."""
    price = "price unknown" if cost is None else f"about {cost:.4f} USD"
    return f"{outputs} {what}, {cached} known already; the others take about {numbers.count(tokens)} tokens, {price}."


def preferences(found: Any, a: str, b: str) -> Section:
    """What a pairwise judge preferred, and how much the order moved it; `found` is `flows.judge_pairs.Preferences`."""
    price = "0 USD" if not found.asked else "cost unknown" if found.cost_usd is None else f"{found.cost_usd:.4f} USD"
    rows = (
        ("B preferred, a tie counts half", found.a + found.b + found.ties, found.preferred),
        ("choice changed with the order", found.pairs - found.unscored, found.moved),
        ("chose the record shown first (50%: no bias)", None, found.first),
    )
    items = []
    if found.position:
        items.append(f"{found.position} pairs have no winner: the judge chose by position, not by quality")
    if found.unscored:
        items.append(f"{found.unscored} pairs have no winner: an answer of the judge cannot be read")
    if found.unmatched:
        items.append(f"{found.unmatched} attempts have no partner in the other run")
    return Section(
        heading="Preferred",
        paragraphs=(
            f"A is {name(a)}, B is {name(b)}. Of {found.pairs} pairs, each asked in both orders, A wins {found.a}, B "
            f"{found.b}, {found.ties} are ties. {found.asked} questions asked, {price}.",
        ),
        tables=(
            Table(
                caption="Shares with intervals by task",
                columns=(Column(head="what"), Column(head="pairs", right=True), Column(head="share", right=True)),
                rows=tuple(
                    (what, None if n is None else str(n), numbers.estimate(e, "percent") if e else None)
                    for what, n, e in rows
                ),
            ),
        ),
        items=tuple(items),
        notes=("a preference is no pass or fail: the gate takes criteria of a validated judge",),
    )


def judged(by_metric: Mapping[str, tuple[int, int, int]], asked: int, cost: float | None) -> Section:
    """What a run of a judge gave: met, not met and unscored by criterion."""
    head = (Column(head="criterion", name=True), *(Column(head=h, right=True) for h in ("met", "not met", "unscored")))
    price = "0 USD" if not asked else "cost unknown" if cost is None else f"{cost:.4f} USD"
    return Section(
        heading="Judged",
        paragraphs=(f"{asked} questions asked, {price}.",),
        tables=(Table(caption="By criterion", columns=head,
                      rows=tuple((m, *(str(n) for n in counts)) for m, counts in by_metric.items())),),
    )  # fmt: skip
