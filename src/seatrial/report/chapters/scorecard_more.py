"""The small print of scorecards: companions, rubric levels, what was not measured, profiles, independence, power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from seatrial.records import Estimate, Scorecard
from seatrial.report import numbers, words
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name


class Weighed(Protocol):
    """What a deployment profile makes of one agent."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def why(self) -> str: ...


def names_of(cards: Sequence[Scorecard]) -> list[str]:
    """The dimensions that occur, D1 to D7 first."""
    return sorted({d for c in cards for d in c.dimensions}, key=lambda d: (not d.startswith("D"), d))


def level(value: float | None) -> str | None:
    """A rubric level."""
    return None if value is None else f"{value:.2f}"


def beside(cards: Sequence[Scorecard]) -> Section | None:
    """Companions of each dimension, never blended into it."""
    rows = []
    for card in cards:
        for d in names_of([card]):
            found = card.dimensions[d]
            rows += [(name(card.agent), d, clean(k), _companion(k, e)) for k, e in found.beside.items()]
    if not rows:
        return None
    return Section(
        heading="Beside the seven",
        folded=True,
        tables=(
            Table(
                caption="Companions that are shown next to a dimension and never blended into it",
                columns=(Column(head="agent", name=True), Column(head=""), Column(head="what"),
                         Column(head="value", right=True)),
                rows=tuple(rows),
                grouped=True,
            ),
        ),
        items=tuple(dict.fromkeys(words.sentence(clean(n)) for c in cards for d in names_of([c])
                                  for n in c.dimensions[d].notes)),
        key="scorecard-beside",
    )  # fmt: skip


def _companion(what: str, e: Estimate | float | None) -> str | None:
    if e is None:
        return None
    if isinstance(e, Estimate):
        return numbers.estimate(e)
    return f"{e:.3g}"


def rubric(cards: Sequence[Scorecard]) -> Section:
    """The source's rubric levels with their reasons: a separate field, not the ratio."""
    return Section(
        heading="Levels of the published rubric",
        folded=True,
        paragraphs=("The source gives each dimension steps in words. Each level follows from a stated rule.",),
        tables=(
            Table(
                caption="Level and reason",
                columns=(Column(head="agent", name=True), Column(head=""), Column(head="level", right=True),
                         Column(head="because")),
                rows=tuple(
                    (name(c.agent), d, level(c.dimensions[d].level), clip(clean(c.dimensions[d].level_why), 110))
                    for c in cards for d in names_of([c])
                ),
                grouped=True,
            ),
        ),
        key="scorecard-rubric",
    )  # fmt: skip


def unmeasured(cards: Sequence[Scorecard]) -> Section | None:
    """Runs without a value, by dimension and reason."""
    rows = [
        (name(c.agent), d, str(n), clip(clean(why), 110))
        for c in cards for d in names_of([c]) for why, n in list(c.dimensions[d].unmeasured.items())[:4]
    ]  # fmt: skip
    if not rows:
        return None
    return Section(
        heading="What was not measured",
        folded=True,
        tables=(
            Table(
                caption="Scored runs without a value of their own, and why",
                columns=(Column(head="agent", name=True), Column(head=""), Column(head="runs", right=True),
                         Column(head="why")),
                rows=tuple(rows),
                grouped=True,
            ),
        ),
        key="scorecard-unmeasured",
    )  # fmt: skip


def weighing(profiles: Mapping[str, Mapping[str, Weighed]]) -> Section | None:
    """What deployment profiles make of the measurements: weights that a user gave, not a finding."""
    if not profiles:
        return None
    rows = []
    for profile, agents in profiles.items():
        for agent, found in agents.items():
            given = ", ".join(f"{d} {w:.0%}" for d, w in found.weights.items())
            value = numbers.number(found.value) if found.value is not None else None
            span = numbers.interval(found.low, found.high)
            told = clip(clean(found.why), 60) if found.value is None else span
            rows.append((name(profile), name(agent), value, told, given))
    return Section(
        heading="Deployment profiles",
        paragraphs=(
            "Weights are a decision of whoever deploys, and no measurement. A profile has no value where a dimension "
            "that it weighs was not measured.",
        ),
        tables=(
            Table(
                caption="Weighted means under the weights that were given",
                columns=(Column(head="profile", name=True), Column(head="agent", name=True),
                         Column(head="value", right=True), Column(head="between"), Column(head="weights")),
                rows=tuple(rows),
                grouped=True,
            ),
        ),
        key="scorecard-profiles",
    )  # fmt: skip


def dependence(correlations: Mapping[str, float | None]) -> Section | None:
    """The table of correlations between dimensions."""
    names = sorted({part for pair in correlations for part in pair.split("~")})
    if not names or all(v is None for v in correlations.values()):
        return None

    def cell(a: str, b: str) -> str | None:
        if a == b:
            return "1"
        r = correlations.get(f"{a}~{b}", correlations.get(f"{b}~{a}"))
        return None if r is None else f"{r:+.2f}".replace("-", "−")

    return Section(
        heading="How far the dimensions are independent here",
        folded=True,
        tables=(
            Table(
                caption="Correlation over tasks; n/a: one of the two does not vary, or fewer than three have both",
                columns=(Column(head=""), *(Column(head=n, right=True) for n in names)),
                rows=tuple((a, *(cell(a, b) for b in names)) for a in names),
            ),
        ),
        notes=(
            "D3 depends on D1 by its definition: a task's D3 is 1 − 4p(1 − p) of the chance p whose estimate is its D1",
            "D4 is measured on failed runs only, D6 on runs that triggered a gate: what is correlated are those tasks",
        ),
        key="scorecard-dependence",
    )


def reading(cards: Sequence[Scorecard]) -> Section:
    """What so many runs can and cannot certify."""
    told = dict.fromkeys(words.sentence(s) for c in cards for s in c.certifies)
    return Section(heading="What these runs can and cannot certify", items=tuple(told), key="scorecard-certifies")
