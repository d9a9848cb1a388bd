"""The randomisation test rejects a true null as often as it says, with clustered users and with sticky assignment."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from seatrial.causal import randomise

_PATH = Path(__file__).parent / "coverage_designs.py"
_SPEC = importlib.util.spec_from_file_location("coverage_designs", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
designs = importlib.util.module_from_spec(_SPEC)
sys.modules["coverage_designs"] = designs
_SPEC.loader.exec_module(designs)

RUNS = 120
THIRD = np.full(3, 1 / 3)


def _null(rng: np.random.Generator, *, sticky: bool, weak: bool):
    """Binary outcomes, 30 uneven users. Sharp null: no arm matters; weak: arms suit users differently, evenly."""
    users, n = 30, 240
    share = rng.pareto(2.0, users) + 0.5
    user = rng.choice(users, n, p=share / share.sum())
    stratum = rng.integers(0, 2, n)
    arm = rng.permutation(np.resize(np.arange(3), users))[user] if sticky else rng.integers(0, 3, n)
    score = rng.normal(0, 0.9, users)[user] + 0.5 * stratum
    if weak:
        score = score + rng.normal(0, 0.9, (users, 3))[user, arm]
    return designs.make_sample(arm, rng.random(n) < 1 / (1 + np.exp(-score)), user, stratum, 3)


def _rejections(*, sticky: bool, weak: bool, alpha: float = 0.05) -> float:
    design = designs.Design("null", np.zeros(3), lambda rng: _null(rng, sticky=sticky, weak=weak))
    out = []
    for r in range(RUNS):
        analysis = designs.analyse(design, design.draw(np.random.default_rng([11, r])))
        if analysis is None:
            continue
        test = randomise.run(analysis, THIRD, randomised=False, draws=999, seed=r).test
        assert test is not None
        out.append(test.p_values <= alpha)
    assert len(out) > RUNS * 0.9
    return float(np.mean(out))


@pytest.mark.parametrize(("sticky", "weak"), [(False, False), (True, False), (False, True)])
def test_type_one_error(sticky: bool, weak: bool) -> None:
    """5% nominal: within 2.6 Monte Carlo errors, and 3 points more under the weak null, which holds asymptotically."""
    rate = _rejections(sticky=sticky, weak=weak)
    allowed = 0.08 if weak else 0.05
    assert rate <= allowed + 2.6 * math.sqrt(allowed * (1 - allowed) / RUNS)
    assert rate > 0.005
