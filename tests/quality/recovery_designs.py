"""Routers on processes with known truth: what CIR and the direct router gain and harm; do certificates hold?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seatrial.recovery.cir import LIMIT, fit_cir, summary
from seatrial.recovery.direct import fit_direct, grid
from seatrial.recovery.episodes import Episodes, play
from seatrial.recovery.fit import FitOptions, fit
from seatrial.recovery.simulate import episodes

TRUTH_TASKS = 1_000


class Compared(NamedTuple):
    """Of each repetition, in points: true gain on erroneous and true harm on clean observations of CIR and of the
    direct router, both tuned to a limit of 2% on the same tasks; and the direct router's gain at CIR's harm, its
    threshold set where its true harm is at most CIR's."""

    cir_gain: np.ndarray
    cir_harm: np.ndarray
    gain: np.ndarray
    harm: np.ndarray
    gain_at_cirs_harm: np.ndarray

    @property
    def ahead(self) -> tuple[float, float]:
        """Mean difference in gain at equal harm and its standard error over repetitions."""
        d = self.gain_at_cirs_harm - self.cir_gain
        return float(d.mean()), float(d.std(ddof=1) / np.sqrt(d.size))


class Certified(NamedTuple):
    """Of each repetition: whether a router was certified, its true gain and true clean harm in points."""

    feasible: np.ndarray
    gain: np.ndarray
    harm: np.ndarray


def truth(process: str) -> Episodes:
    """Fresh tasks, many of them: what a router does to these is what it does."""
    return episodes(process, TRUTH_TASKS, seed=10_000)


def compare(process: str, *, tasks: int = 93, repetitions: int = 20, replays: int = 1, seed: int = 0) -> Compared:
    """Fit both routers again and again on new tasks of one process."""
    fresh, rows = truth(process), []
    for r in range(repetitions):
        e = episodes(process, tasks, seed=seed + r, replays=replays)
        cir = fit_cir(e, seed=r)
        gain, harm, _ = summary(fresh, play(fresh, cir.at(fresh)))
        ours = fit_direct(e, seed=r)
        mine = summary(fresh, play(fresh, ours.at(fresh)))
        reached = [rule.gain for rule in grid(fresh, ours.value.score(fresh)) if rule.harm <= harm + 1e-12]
        rows.append((gain, harm, mine[0], mine[1], max([0.0, *reached])))
    return Compared(*(100 * np.array(rows).T))


def certify(process: str, *, tasks: int = 250, repetitions: int = 20, limit: float = LIMIT, seed: int = 500,
            replays: int = 1) -> Certified:  # fmt: skip
    """Fit and certify on new tasks of one process, again and again."""
    fresh, rows = truth(process), []
    for r in range(repetitions):
        e = episodes(process, tasks, seed=seed + r, replays=replays)
        made = fit(e, "refresh", FitOptions(limit=limit, seed=r))
        gain, harm, _ = summary(fresh, play(fresh, made.at(fresh)))
        assert made.record.certificate is not None
        rows.append((float(made.record.certificate.feasible), 100 * gain, 100 * harm))
    found = np.array(rows).T
    return Certified(found[0] > 0, found[1], found[2])
