"""Sufficient statistics, influence and the jackknife, each against a computation that knows nothing of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from seatrial.causal import cells
from seatrial.causal.uncertainty import contrasts, net_coefficients


def _data(seed: int = 0, n: int = 500, g: int = 35, s: int = 4, k: int = 3):
    rng = np.random.default_rng(seed)
    share = rng.pareto(1.5, g) + 0.3
    cluster = rng.choice(g, n, p=share / share.sum())
    cluster = np.unique(cluster, return_inverse=True)[1]
    return cluster, rng.integers(0, s, n), rng.integers(0, k, n), rng.random(n), rng.uniform(1, 3, n)


def _means(s, k, y, w, keep, weighting):
    s_count, k_count = s.max() + 1, k.max() + 1
    n = np.array([[(keep & (s == i) & (k == j)).sum() for j in range(k_count)] for i in range(s_count)], float)
    mean = np.array(
        [
            [np.average(y[m], weights=w[m]) if (m := keep & (s == i) & (k == j)).any() else 0 for j in range(k_count)]
            for i in range(s_count)
        ]
    )
    h = n.sum(axis=1) if weighting == "share" else 1 / (1 / n).sum(axis=1)
    return h / h.sum() @ mean


@pytest.mark.parametrize("weighting", ["share", "overlap"])
def test_jackknife_is_leaving_each_cluster_out_and_starting_again(weighting: cells.Weighting) -> None:
    g, s, k, y, w = _data()
    m = cells.moments(cells.build(g, s, k, y, weight=w), weighting=weighting, keep=True)
    again = np.array([_means(s, k, y, w, g != i, weighting) for i in range(g.max() + 1)])
    assert m.mean == pytest.approx(_means(s, k, y, w, g >= 0, weighting))
    assert m.jackknife == pytest.approx(again)
    size = len(again)
    shift = again - again.mean(axis=0)
    assert m.cr3 == pytest.approx((size - 1) / size * shift.T @ shift)


def test_influence_predicts_what_a_small_reweighting_does() -> None:
    """psi is the derivative: raising one cluster's weight by eps moves the mean by eps x psi_g."""
    g, s, k, y, _ = _data(1)
    m = cells.moments(cells.build(g, s, k, y), keep=True)
    eps = 1e-6
    for i in (0, 3, 7):
        w = np.where(g == i, 1 + eps, 1.0)
        n_s = np.array([w[s == j].sum() for j in range(4)])
        cell = [[(s == a) & (k == b) for b in range(3)] for a in range(4)]
        mean = np.array([[np.average(y[m_], weights=w[m_]) for m_ in row] for row in cell])
        moved = n_s / n_s.sum() @ mean
        assert m.influence is not None
        assert (moved - m.mean) / eps == pytest.approx(m.influence[i], abs=1e-5)


def test_agrees_with_interacted_ols_and_its_cluster_error() -> None:
    """statsmodels: y on every stratum x arm cell, contrast sum_s W_s c_k with W fixed, clustered covariance."""
    g, s, k, y, _ = _data(2, n=800, g=50)
    q = np.array([0.2, 0.3, 0.5])
    c = net_coefficients(q)
    cell = s * 3 + k
    fit = sm.OLS(y, np.eye(12)[cell]).fit(cov_type="cluster", cov_kwds={"groups": g, "use_correction": False})
    share = np.bincount(s) / s.size
    loading = np.stack([(share[:, None] * row).ravel() for row in c])
    m = cells.moments(cells.build(g, s, k, y), keep=True)
    each = contrasts(m, c)
    assert each.value == pytest.approx(loading @ fit.params)
    # Our influence has the term for estimated weights as well; without it the two errors are one number.
    assert m.influence is not None
    mean_sk = fit.params.reshape(4, 3)
    visits = np.array([[((g == i) & (s == j)).sum() for j in range(4)] for i in range(g.max() + 1)])
    fixed = m.influence - visits @ (mean_sk - m.mean) / s.size
    ours = np.sqrt(((fixed @ c.T) ** 2).sum(axis=0))
    theirs = np.sqrt(np.diag(loading @ fit.cov_params() @ loading.T))
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_crossed_rows_give_the_paired_t_error_and_no_own_influence() -> None:
    """Stratum = cluster = task: influence inside cells is 0, the jackknife is the paired standard error (3.4e)."""
    rng = np.random.default_rng(3)
    table = rng.random((12, 3))
    task, arm = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    m = cells.moments(cells.build(task, task, arm, table.ravel()))
    each = contrasts(m, np.array([[1.0, -1.0, 0.0]]))
    difference = table[:, 0] - table[:, 1]
    assert each.se[0] == pytest.approx(difference.std(ddof=1) / math.sqrt(12))
    assert m.part == pytest.approx(np.zeros(3), abs=1e-20)
    assert each.df[0] == pytest.approx(11)


def test_equal_sessions_are_counted_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    n = 4000
    s, k, y = rng.integers(0, 5, n), rng.integers(0, 4, n), rng.integers(0, 3, n) / 2
    plain = cells.moments(cells.build(np.arange(n), s, k, y))
    monkeypatch.setattr(cells, "CHUNK", 512)
    small = cells.compress(cells.build(np.arange(n), s, k, y))
    assert small.n_distinct == 5 * 4 * 3
    short = cells.moments(cells.build(np.arange(n), s, k, y))
    for name in ("mean", "cr1", "cr3", "part", "g_star", "g_star_k", "largest", "n", "n_clusters", "n_k", "clusters_k"):
        assert getattr(short, name) == pytest.approx(getattr(plain, name)), name


def test_blocks_of_clusters_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    g, s, k, y, w = _data(5)
    whole = cells.moments(cells.build(g, s, k, y, weight=w))
    monkeypatch.setattr(cells, "CHUNK", 4)
    parts = cells.moments(cells.build(g, s, k, y, weight=w))
    assert parts.cr3 == pytest.approx(whole.cr3)
    assert parts.cr1 == pytest.approx(whole.cr1)


def test_effective_clusters() -> None:
    """Ten equal clusters count ten; one that holds half of an arm's sessions halves what that arm knows."""
    g = np.repeat(np.arange(10), 4)
    k = np.tile([0, 1], 20)
    m = cells.moments(cells.build(g, np.zeros(40, int), k, np.arange(40) % 3 / 2))
    assert m.g_star == pytest.approx(10)
    assert m.g_star_k == pytest.approx([10, 10])
    assert m.largest == pytest.approx(0.1)
