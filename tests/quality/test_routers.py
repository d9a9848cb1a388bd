"""Does the certificate hold, and is the router at least CIR? Known truth, fixed seeds (METHODS 4.5).

A small version of `benchmarks/recovery.py`; the whole grid runs with ``--full``.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from seatrial.recovery.simulate import PROCESSES

_PATH = Path(__file__).parent / "recovery_designs.py"
_SPEC = importlib.util.spec_from_file_location("recovery_designs", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
designs = importlib.util.module_from_spec(_SPEC)
sys.modules["recovery_designs"] = designs
_SPEC.loader.exec_module(designs)

NAMES = [p.name for p in PROCESSES]


def test_the_grid_is_wide_enough() -> None:
    assert len(PROCESSES) >= 6
    assert sum(p.exact for p in PROCESSES) >= 2


def test_processes_draw_what_they_say() -> None:
    """Cells are chances, the branch without recovery has one outcome, and replays average to shares."""
    for p in PROCESSES:
        e = designs.episodes(p.name, 200, seed=1)
        assert set(np.unique(e.y0)) <= {0.0, 1.0}
        assert (e.y0 == e.y0[:, :1]).all()
        five = designs.episodes(p.name, 20, seed=1, replays=5)
        assert set(np.unique(np.round(five.y0 * 5, 9))) <= set(range(6))


def test_ahead_of_cir_at_equal_harm_where_cirs_form_is_true() -> None:
    found = designs.compare("three models, coupled", repetitions=4)
    assert found.ahead[0] > 0


def test_certificate_holds_where_clean_runs_are_treacherous() -> None:
    found = designs.certify("treacherous clean", repetitions=5)
    assert found.feasible.any()
    assert (found.harm > 2).sum() <= 1


@pytest.mark.full
def test_certificates_hold_over_the_grid() -> None:
    """At most 5% of certificates fail, of all that are given, Monte Carlo error allowed."""
    broken = np.concatenate([(designs.certify(n, repetitions=20).harm > 2) for n in NAMES])
    assert broken.mean() <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / broken.size)


@pytest.mark.full
def test_certificates_hold_at_the_limit() -> None:
    """A limit that many rules come close to: 5% on the process where harm grows with the gain."""
    found = designs.certify("stochastic agent", repetitions=60, limit=0.05)
    assert (found.harm > 5).mean() <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 60)


@pytest.mark.full
def test_ahead_of_cir_over_the_grid() -> None:
    """On average over the grid the gain at CIR's harm is above CIR's, and in no process far below."""
    ahead = {n: designs.compare(n, repetitions=12).ahead for n in NAMES}
    assert np.mean([d for d, _ in ahead.values()]) > 0.5
    assert all(d > -0.5 for d, _ in ahead.values()), ahead
    assert all(ahead[p.name][0] > 0 for p in PROCESSES if p.exact)
