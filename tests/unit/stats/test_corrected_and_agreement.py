from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference
from sklearn.metrics import cohen_kappa_score

from seatrial.errors import UsageError
from seatrial.stats import (
    clustered_mean,
    cohen_kappa,
    krippendorff_alpha,
    ppi_mean,
    raw_agreement,
    rogan_gladen,
    table_ratings,
)


def test_perfect_detector_changes_nothing() -> None:
    e = rogan_gladen(0.37, 1.0, 1.0)
    assert e is not None
    assert (e.value, e.low) == (pytest.approx(0.37), None)
    assert e.why is not None


def test_detector_without_information_is_none() -> None:
    assert rogan_gladen(0.5, 0.4, 0.6) is None
    assert rogan_gladen(0.5, 0.3, 0.5) is None


def test_correction_stays_a_share() -> None:
    e = rogan_gladen(0.1, 0.8, 0.9, 100, 50, 50)
    assert e is not None
    assert e.value == 0.0
    assert e.low == 0.0
    assert e.high is not None
    assert 0 < e.high < 1
    with pytest.raises(UsageError):
        rogan_gladen(1.1, 0.8, 0.9)
    with pytest.raises(UsageError):
        rogan_gladen(0.5, 0.8, 0.9, 0, 10, 10)


def test_delta_method_by_simulation() -> None:
    rng = np.random.default_rng(0)
    n, m0, m1, q0, q1, truth = 2000, 300, 300, 0.85, 0.9, 0.3
    p = rng.binomial(n, truth * q1 + (1 - truth) * (1 - q0), 20_000) / n
    a, b = rng.binomial(m0, q0, 20_000) / m0, rng.binomial(m1, q1, 20_000) / m1
    e = rogan_gladen(truth * q1 + (1 - truth) * (1 - q0), q0, q1, n, m0, m1, interval="delta")
    assert e is not None
    assert e.se == pytest.approx(((p + a - 1) / (a + b - 1)).std(), rel=0.03)


def ppi_sample(seed: int, n: int = 200, big: int = 2000) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    y = rng.normal(1, 1, n)
    return y, 0.8 * y + rng.normal(0, 0.5, n) + 3, 0.8 * rng.normal(1, 1, big) + rng.normal(0, 0.5, big) + 3


def test_ppi_is_the_published_formula_for_independent_rows() -> None:
    y, f, other = ppi_sample(0)
    n, big = y.size, other.size
    e = ppi_mean(y, f, other)
    # The published lambda pools Var f over both samples; ours weighs each sample by its own error.
    lam = np.cov(y, f)[0, 1] / f.var(ddof=1) / (1 + n * other.var() / (big * f.var(ddof=1)))
    assert e is not None
    assert e.value == pytest.approx(y.mean() + lam * (other.mean() - f.mean()), abs=2e-3)
    variance = (y - lam * f).var(ddof=1) / n + lam**2 * other.var() / big
    assert e.se == pytest.approx(np.sqrt(variance), rel=0.01)
    assert e.se is not None
    assert e.se < reference.sem(y)


def test_ppi_limits_of_lambda() -> None:
    y, f, other = ppi_sample(1)
    zero, one = ppi_mean(y, f, other, lam=0.0), ppi_mean(y, f, other, lam=1.0)
    plain = clustered_mean(y, range(y.size), bounded=False)
    assert zero is not None
    assert one is not None
    assert plain is not None
    assert [zero.value, zero.low, zero.high] == pytest.approx([plain.value, plain.low, plain.high])
    assert one.value == pytest.approx((y - f).mean() + other.mean())
    useless = ppi_mean(y, -f, other)
    assert useless is not None
    assert "lambda 0.000" in useless.method


def test_ppi_chosen_lambda_is_the_best() -> None:
    y, f, other = ppi_sample(2)
    g, h = np.arange(200) // 4, np.arange(2000) // 20
    best = ppi_mean(y, f, other, clusters=g, other_clusters=h)
    assert best is not None
    assert best.se is not None
    for lam in np.linspace(0, 1, 21):
        e = ppi_mean(y, f, other, clusters=g, other_clusters=h, lam=float(lam))
        assert e is not None
        assert e.se is not None
        assert e.se >= best.se - 1e-12


def test_ppi_all_rows_or_unlabelled_rows_is_one_estimator() -> None:
    """Averaging f over all rows, labelled included, only renames lambda (METHODS 3.4d)."""
    y, f, other = ppi_sample(3)
    ids = np.arange(y.size + other.size)
    apart = ppi_mean(y, f, other)
    together = ppi_mean(y, f, np.concatenate([f, other]), clusters=ids[: y.size], other_clusters=ids)
    assert apart is not None
    assert together is not None
    assert together.value == pytest.approx(apart.value, abs=1e-3)
    assert together.se == pytest.approx(apart.se, rel=2e-3)


def test_ppi_weights_undo_uneven_labelling() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(60_000)
    f = y**2
    chance = np.where(y > 0.5, 0.02, 0.08)
    taken = rng.random(y.size) < chance
    e = ppi_mean(y[taken], f[taken], f[~taken], weights=1 / chance[taken], other_weights=1 / (1 - chance[~taken]))
    assert e is not None
    assert e.se is not None
    assert abs(e.value - y.mean()) < 4 * e.se
    naive = ppi_mean(y[taken], f[taken], f[~taken], lam=0.0)
    assert naive is not None
    assert abs(naive.value - y.mean()) > 0.1


def test_ppi_refusals() -> None:
    y, f, other = ppi_sample(0)
    assert ppi_mean(y[:29], f[:29], other) is None
    assert ppi_mean(y, f, other, clusters=np.zeros(200), other_clusters=np.ones(2000)) is None
    with pytest.raises(UsageError, match="both samples"):
        ppi_mean(y, f, other, clusters=np.arange(200))
    with pytest.raises(UsageError, match="other"):
        ppi_mean(y, f, [])
    with pytest.raises(UsageError, match="lam"):
        ppi_mean(y, f, other, lam=2.0)


def test_kappa_is_scikit_learns_for_any_labels() -> None:
    rng = np.random.default_rng(0)
    a = rng.choice(["good", "fair", "poor"], 80)
    b = np.where(rng.random(80) < 0.7, a, rng.choice(["good", "fair", "poor"], 80))
    assert cohen_kappa(a, b, draws=999).value == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_tables_and_ratings_are_one_input() -> None:
    table = [[4, 1], [2, 9]]
    a, b = table_ratings(table)
    assert cohen_kappa(table, seed=3) == cohen_kappa(a, b, seed=3)
    with pytest.raises(UsageError):
        cohen_kappa([[1, 2, 3], [1, 2, 3]])
    with pytest.raises(UsageError, match="different length"):
        cohen_kappa([1, 2], [1])


def test_perfect_agreement_keeps_a_width() -> None:
    kappa, agree = cohen_kappa([[10, 0], [0, 10]]), raw_agreement([[10, 0], [0, 10]])
    alike = 0.025 ** (1 / 20)
    assert agree is not None
    assert [agree.low, agree.high] == pytest.approx([alike, 1.0])
    assert [kappa.low, kappa.high] == pytest.approx([1 - (1 - alike) / 0.5, 1.0])
    alpha = krippendorff_alpha([[0, 1, 0, 1], [0, 1, 0, 1]])
    assert alpha.value == 1.0
    assert alpha.low is not None
    assert alpha.low < 1.0
    assert raw_agreement([], []) is None


def test_tasks_shared_by_items_widen_the_interval() -> None:
    a = np.tile([1, 0, 1, 1, 0, 1, 0, 0], 10)
    b = np.tile([1, 0, 1, 0, 0, 1, 1, 0], 10)
    items, tasks = cohen_kappa(a, b), cohen_kappa(a, b, clusters=np.tile(np.arange(8), 10))
    assert items.low is not None
    assert tasks.low is not None
    assert tasks.low < items.low - 0.1


def test_alpha_of_two_raters_by_coincidences() -> None:
    a, b = [1, 2, 2, 3, 1, 2], [1, 2, 3, 3, 1, 1]
    pooled = np.bincount(a + b)
    n = 12
    observed = sum(2 for x, y in zip(a, b, strict=True) if x != y) / n
    expected = (n * n - (pooled**2).sum()) / (n * (n - 1))
    assert krippendorff_alpha([a, b]).value == pytest.approx(1 - observed / expected, abs=1e-12)


def test_alpha_edges() -> None:
    assert krippendorff_alpha([["x", "x"], ["x", "x"]]).why == "one class only: alpha is undefined"
    lonely = krippendorff_alpha([[1.0, np.nan], [np.nan, 2.0]])
    assert (lonely.value, lonely.why) == (None, "no item has two ratings")
    with pytest.raises(UsageError, match="numbers"):
        krippendorff_alpha([["a", "b"], ["a", "c"]], "interval")
    with pytest.raises(UsageError):
        krippendorff_alpha([1, 2, 3])
    gaps = krippendorff_alpha([["a", None, "b"], ["a", "b", "b"], [None, "b", "a"]])
    assert gaps.n == 3
