"""Do intervals cover and tests keep their level? Fixed seeds, sized for every run."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.stats import cluster_permutation, clustered_proportion, ppi_mean, row_permutation, wilson


def test_clustered_shares_cover_where_plain_ones_do_not() -> None:
    """METHODS 0.3: 94-98% where plain Wilson covers 57-95%."""
    rng = np.random.default_rng(0)
    truth, clustered, plain, runs = 0.8, 0, 0, 800
    groups = np.repeat(np.arange(20), 5)
    for _ in range(runs):
        p = rng.beta(truth * 2, (1 - truth) * 2, 20)
        x = (rng.random(100) < p[groups]).astype(int)
        e, w = clustered_proportion(x, groups), wilson(int(x.sum()), 100)
        assert e is not None
        assert w is not None
        assert e.low is not None
        assert e.high is not None
        assert w.low is not None
        assert w.high is not None
        clustered += e.low <= truth <= e.high
        plain += w.low <= truth <= w.high
    assert 0.93 <= clustered / runs <= 0.985
    assert plain / runs < 0.85


def test_permuting_sessions_keeps_its_level_with_clustered_users() -> None:
    """No arm matters, users differ widely: one p-value in twenty is below .05."""
    rng, runs, low = np.random.default_rng(1), 200, 0
    for i in range(runs):
        users = rng.integers(0, 12, 90)
        y = rng.normal(size=12)[users] + rng.normal(size=90)
        s, k = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
        r = row_permutation(s, k, y, users, baseline=[0.5, 0.5], draws=999, seed=i, engine="numpy")
        low += r.p_values[0] <= 0.05
    assert 0.01 <= low / runs <= 0.1


def test_permuting_clusters_keeps_its_level_where_permuting_sessions_would_not() -> None:
    rng, runs, right, wrong = np.random.default_rng(2), 200, 0, 0
    users = np.repeat(np.arange(12), 6)
    for i in range(runs):
        y = rng.normal(size=12)[users] + 0.3 * rng.normal(size=72)
        arm = rng.permutation(np.arange(12) % 2)[users]
        s = np.zeros(72, int)
        right += cluster_permutation(s, arm, y, users, baseline=[0.5, 0.5], seed=i).p_values[0] <= 0.05
        wrong += row_permutation(s, arm, y, baseline=[0.5, 0.5], draws=999, seed=i, engine="numpy").p_values[0] <= 0.05
    assert 0.02 <= right / runs <= 0.09
    assert wrong / runs > 0.25


@pytest.mark.parametrize("useful", [True, False])
def test_prediction_powered_means_cover(useful: bool) -> None:
    rng, runs, hits, width, plain_width = np.random.default_rng(3), 600, 0, 0.0, 0.0
    for _ in range(runs):
        y = (rng.random(1100) < 0.4).astype(float)
        f = np.where(rng.random(1100) < (0.9 if useful else 0.0), y, 0.9) + 0.2
        e, plain = ppi_mean(y[:100], f[:100], f[100:]), ppi_mean(y[:100], f[:100], f[100:], lam=0.0)
        assert e is not None
        assert plain is not None
        assert e.low is not None
        assert e.high is not None
        hits += e.low <= 0.4 <= e.high
        width += e.se or 0.0
        plain_width += plain.se or 0.0
    assert 0.925 <= hits / runs <= 0.975
    assert width <= plain_width + 1e-9
    assert (width < 0.6 * plain_width) == useful
