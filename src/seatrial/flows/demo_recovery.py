"""The demo's recovery chapter: a tidy-up agent branched at misleading observations, and a router that is certified.

Worlds, branches, contrast and router are the public ones; nothing in them knows the agent's weaknesses.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from seatrial.examples import household
from seatrial.records import Contrast, Pair, PolicyRow, RouterFit
from seatrial.records.protocols import AgentUnderTest
from seatrial.recovery import contrast as contrasts
from seatrial.recovery import table
from seatrial.recovery.branch import Design, branch
from seatrial.recovery.episodes import DELAYS, episodes, first_crossing
from seatrial.recovery.evaluate import policy_rows
from seatrial.recovery.fit import FitOptions, fit
from seatrial.recovery.live import Case
from seatrial.recovery.perturb import Clean, Missing, Perturbation, Stale
from seatrial.report import numbers
from seatrial.report.chapters import recovery as chapter
from seatrial.report.chapters import router as router_chapter
from seatrial.report.section import Column, Section, Table

ProgressFn = Callable[[int, int | None, str], None]
FITTED, FRESH = 220, 60
"""Homes to fit and certify on (149 of them clean and untouched: a limit of 2%), and homes that nothing has seen."""
OPERATION = "refresh"
SHOWN: tuple[Perturbation, ...] = (Clean(), Stale(2), Missing())


class RecoveryDemo(msgspec.Struct, frozen=True, kw_only=True):
    """Rescue and harm in the homes that were fitted on, the router, and what policies do in `fresh` homes."""

    contrast: Contrast
    router: RouterFit
    rows: tuple[PolicyRow, ...]
    fresh: int


class Homes:
    """Homes as cases to branch: ``python:seatrial.flows.demo_recovery:homes`` for ``recover branch``."""

    def __init__(self, n: int = 400) -> None:
        self._n = n
        self._world = household.home()

    def tasks(self) -> tuple[str, ...]:
        """``home-0`` and so on."""
        return tuple(f"home-{i}" for i in range(self._n))

    def case(self, task: str, agent: AgentUnderTest, *, max_actions: int, seed: int) -> Case:
        """One home; the agent's luck is the home's own, so that every home is searched in another order."""
        i = int(task.removeprefix("home-"))
        start, opening = household.start(i)
        return Case(
            task=task, world=self._world, start=start, opening=opening, agent=agent, score=household.score,
            query=household.query, over=household.over, max_actions=max_actions, seed=seed + i,
        )  # fmt: skip


def homes() -> Homes:
    """All homes."""
    return Homes()


def pairs(first: int, n: int, *, progress: Callable[[int], None] | None = None) -> list[Pair]:
    """The pairs of homes `first` to `first + n`: a refresh and a placebo after 1, 2 and 4 actions, by condition."""
    source = Homes()
    made: list[Pair] = []
    for i in range(first, first + n):
        case = source.case(f"home-{i}", household.AGENT, max_actions=household.PATIENCE, seed=0)
        made += branch(case, Design(conditions=SHOWN, delays=DELAYS)).pairs
        if progress is not None:
            progress(i - first + 1)
    return made


def run(*, seed: int = 7, fitted: int = FITTED, fresh: int = FRESH, progress: ProgressFn | None = None) -> RecoveryDemo:
    """Branch, contrast, fit and certify, and try the router in homes that nothing has seen."""

    def told(done: int) -> None:
        if progress is not None:
            progress(done, fitted + fresh, "homes branched")

    first = 1_000 * seed
    known = table.from_pairs(pairs(first, fitted, progress=told))
    held = table.from_pairs(pairs(first + fitted, fresh, progress=lambda done: told(fitted + done)))
    made = fit(episodes(known, OPERATION), OPERATION, FitOptions(seed=seed))
    test = episodes(held, OPERATION)
    policies = {
        "never": np.full(len(test), -1, dtype=np.int64),
        "always": first_crossing(test.alive),
        "router": made.at(test),
    }
    return RecoveryDemo(
        contrast=contrasts.contrast(known, seed=seed),
        router=made.record,
        rows=policy_rows(test, policies, seed=seed),
        fresh=fresh,
    )


def section(found: RecoveryDemo) -> Section:
    """Rescue, harm and the floor of noise, the router's certificate, and what it did in fresh homes."""
    tables, charts = chapter.cells(found.contrast)
    fitted = router_chapter.fit(found.router)[0]
    floor = max((r.placebo["floor"] for r in found.contrast.rows if r.placebo), default=None)
    return Section(
        heading="Should an agent look again, and when?",
        paragraphs=(
            f"An agent tidies up {found.contrast.tasks} homes. After a quarter of its actions one observation is "
            "altered, or none is; from the same saved moment the run goes on with one more look, and without. Rescue: "
            "fails without, passes with it. Harm: the reverse.",
            f"Placebo: two runs without a look differ in at most {numbers.number(floor, 'percent')} of homes.",
            *fitted.paragraphs,
        ),
        charts=charts,
        tables=(*tables, _fresh(found)),
        notes=("decisions come after 1, 2 and 4 actions, at most once; a limit of 2% at 95% confidence takes 149 clean "
               "homes that the fit did not use",),
        key="demo-recovery",
    )  # fmt: skip


def _fresh(found: RecoveryDemo) -> Table:
    head = (Column(head="policy"), Column(head="observations"), Column(head="success", right=True),
            Column(head="gain [95%]", right=True), Column(head="rescue", right=True), Column(head="harm", right=True),
            Column(head="looks again in", right=True))  # fmt: skip
    rows = tuple(
        (
            r.policy, r.condition, numbers.number(r.success.value if r.success else None, "percent"),
            numbers.stacked(r.gain, "points"), numbers.number(r.rescue, "percent"), numbers.number(r.harm, "percent"),
            numbers.number(r.intervention_rate, "percent"),
        )
        for r in found.rows if r.condition in ("clean", "all")
    )  # fmt: skip
    return Table(caption=f"In {found.fresh} homes that nothing was fitted on", columns=head, rows=rows)
