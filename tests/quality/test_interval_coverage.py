"""Do the intervals of METHODS 3.4 cover, and do they warn and refuse where they must?

A small version of `benchmarks/interval_coverage.py`. Monte Carlo error is allowed for and nothing else: a design
fails when its coverage is below 93% or above 98% by more than 2.6 standard errors of a simulation of this size. All
designs together are held to a far tighter band, and the benchmark to the tightest.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).parent / "coverage_designs.py"
_SPEC = importlib.util.spec_from_file_location("coverage_designs", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
designs = importlib.util.module_from_spec(_SPEC)
sys.modules["coverage_designs"] = designs
_SPEC.loader.exec_module(designs)

REPLICATES = 120
"""With these a design fails below 86.9% (Monte Carlo error 2.3 points), all of them together outside 94% to 97% (error
about half a point, and the draws are the same in every run); with --full each is held to 89.7% by 400."""
GRID = {d.name: d for d in designs.grid()}
FAST = [name for name, d in GRID.items() if d.estimator == "post-stratified"]
_FOUND: dict[tuple[str, int], object] = {}


def _measured(name: str, replicates: int = REPLICATES):
    if (name, replicates) not in _FOUND:
        _FOUND[name, replicates] = designs.measure(GRID[name], replicates, seed=20261)
    return _FOUND[name, replicates]


def _slack(p: float, n: int) -> float:
    return 2.6 * math.sqrt(p * (1 - p) / n)


@pytest.mark.parametrize("replicates", [REPLICATES, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", FAST)
def test_each_design_covers(name: str, replicates: int) -> None:
    m = _measured(name, replicates)
    kept = m.replicates - m.refused
    assert m.silent == 0
    assert kept >= replicates / 2
    assert 0.93 - _slack(0.93, kept) <= m.cover <= 0.98 + _slack(0.98, kept), m


def test_all_designs_together_cover() -> None:
    all_ = [_measured(name) for name in FAST]
    kept = np.array([m.replicates - m.refused for m in all_])
    cover = float(np.average([m.cover for m in all_], weights=kept))
    assert 0.94 <= cover <= 0.97
    plain = float(np.average([m.cr1 for m in all_], weights=kept))
    assert plain < cover


def test_thin_designs_warn_and_the_thinnest_refuse() -> None:
    assert _measured("few even users").warned == REPLICATES
    assert _measured("few even users").refused == 0
    assert _measured("many even users").warned == 0
    heavy = _measured("mix of three heavy users")
    assert heavy.refused > REPLICATES / 5
    assert heavy.refused + heavy.warned == REPLICATES


@pytest.mark.parametrize("name", [n for n in GRID if n not in FAST])
def test_regression_estimators_cover(name: str) -> None:
    m = designs.measure(GRID[name], 120, seed=20262)
    assert m.refused == 0
    assert 0.93 - _slack(0.93, 120) <= m.cover <= 0.98 + _slack(0.98, 120), m


def test_simultaneous_intervals_cover_all_arms_together() -> None:
    """Eight arms, 40 even users: all truths inside at once in 93% or more of the runs, one at a time far fewer."""
    from seatrial.causal.uncertainty import contrasts, net_coefficients, simultaneous
    from seatrial.stats.quantiles import two_sided_t

    design = designs.sessions("eight arms", n=1600, users=40, k=8, strata=1)
    c = net_coefficients(np.full(8, 1 / 8))
    truth = c @ design.truth
    together = singly = 0
    runs = 100
    for r in range(runs):
        analysis = designs.analyse(design, design.draw(np.random.default_rng([3, r])))
        each = contrasts(analysis.moments, c)
        wide = simultaneous(each, level=0.95, seed=r)
        together += all(w is not None and w[0] <= t <= w[1] for w, t in zip(wide, truth, strict=True))
        half = np.array([two_sided_t(0.95, df) for df in each.df]) * each.se
        singly += bool((np.abs(each.value - truth) <= half).all())
    assert together / runs >= 0.93 - _slack(0.93, runs)
    assert singly < together


def test_bootstrap_t_covers() -> None:
    from seatrial.causal import bootstrap
    from seatrial.causal.uncertainty import contrasts, net_coefficients

    design = designs.sessions("few users, bootstrap-t", n=300, users=30, strata=2)
    c = net_coefficients(np.full(3, 1 / 3))
    truth = c @ design.truth
    hits = []
    for r in range(60):
        analysis = designs.analyse(design, design.draw(np.random.default_rng([4, r])))
        each = contrasts(analysis.moments, c)
        t = bootstrap.t_draws(analysis.cells, c, seed=r, replicates=199)
        half = np.quantile(t, 0.95, axis=0, method="higher") * each.se_cr1
        hits.append(np.abs(each.value - truth) <= half)
    assert 0.93 - _slack(0.93, 60) <= float(np.mean(hits)) <= 1.0
