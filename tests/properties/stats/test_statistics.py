"""What must hold for any numbers at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.stats import (
    align,
    clopper_pearson,
    clustered_mean,
    clustered_proportion,
    holm,
    match_unordered,
    pass_at_k,
    pass_hat_k,
    rank_intervals,
    row_permutation,
    sign_flip_test,
    wilson,
)

shares = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
unit = st.floats(0, 1, allow_nan=False)


@given(shares, st.floats(0.5, 0.999))
def test_intervals_hold_the_share_keep_a_width_and_mirror(kn: tuple[int, int], level: float) -> None:
    k, n = kn
    for interval in (wilson, clopper_pearson):
        e, mirror = interval(k, n, level), interval(n - k, n, level)
        assert e is not None
        assert mirror is not None
        assert e.low is not None
        assert e.high is not None
        assert 0 <= e.low <= e.value <= e.high <= 1
        assert e.low < e.high
        assert [mirror.low, mirror.high] == pytest.approx([1 - e.high, 1 - e.low], abs=1e-9)


@given(st.lists(st.tuples(unit, st.integers(0, 5)), min_size=1, max_size=40))
def test_means_do_not_depend_on_order_or_names(rows: list[tuple[float, int]]) -> None:
    values, clusters = [v for v, _ in rows], [c for _, c in rows]
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    names = np.array([f"user {9 - c}" for c in clusters])
    a = clustered_mean(values, clusters)
    b = clustered_mean(np.array(values)[order], names[order])
    assert a is not None
    assert b is not None
    assert a.value == pytest.approx(b.value, abs=1e-12)
    if a.low is not None and b.low is not None and (a.se or 0) > 1e-9:
        assert [a.low, a.high] == pytest.approx([b.low, b.high], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=1, max_size=60))
def test_clustered_shares_stay_shares(rows: list[tuple[int, int]]) -> None:
    e = clustered_proportion([v for v, _ in rows], [c for _, c in rows])
    assert e is not None
    if e.low is not None and e.high is not None:
        assert 0 <= e.low <= e.value + 1e-12
        assert e.value - 1e-12 <= e.high <= 1
        assert e.low < e.high


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_all_k_pass_is_never_likelier_than_any_passes(nck: tuple[int, int, int]) -> None:
    n, c, k = nck
    every, some = pass_hat_k(n, c, k), pass_at_k(n, c, k)
    assert 0 <= every <= c / n + 1e-12 <= some + 2e-12 <= 1 + 1e-9
    assert every + pass_at_k(n, n - c, k) == pytest.approx(1, abs=1e-12)


@given(st.lists(unit, max_size=20))
def test_holm_never_lowers_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= -1e-15).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-5, 5, allow_nan=False), min_size=2, max_size=6), st.floats(0.01, 5))
def test_rank_bounds_hold_the_rank(estimates: list[float], spread: float) -> None:
    k = len(estimates)
    for r in rank_intervals(estimates, np.eye(k) * spread, 20, draws=2000):
        assert 1 <= r.low <= r.value <= r.high <= k


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12))
def test_sign_flips_ignore_sign_scale_and_order(d: list[int]) -> None:
    p = sign_flip_test(d).p_value
    assert 0 < p <= 1
    assert sign_flip_test([-x for x in reversed(d)]).p_value == p
    assert sign_flip_test([x / 7 for x in d]).p_value == p


@given(st.lists(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=3, max_size=3), min_size=1, max_size=6))
def test_pairing_in_any_order_is_at_least_as_good(rows: list[list[float]]) -> None:
    matrix = np.array(rows)
    free, ordered = match_unordered(matrix), align(matrix)
    assert free.score >= ordered.score - 1e-12
    assert match_unordered(matrix[::-1]).score == pytest.approx(free.score)
    assert align(matrix.T).score == pytest.approx(ordered.score)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(-3, 3))
def test_relabelling_ignores_scale_and_shift_of_outcomes(seed: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    y, k = rng.integers(0, 3, 8).astype(float), np.array([0, 1] * 4)
    one = row_permutation(np.zeros(8, int), k, y, rng.integers(0, 5, 8) + [0, 9] * 4, baseline=[0.5, 0.5])
    two = row_permutation(np.zeros(8, int), k, y, baseline=[0.5, 0.5])
    moved = row_permutation(np.zeros(8, int), k, scale * y + shift, baseline=[0.5, 0.5])
    assert one.exact
    assert moved.p_values == pytest.approx(two.p_values)
    assert one.null_mean == pytest.approx([0, 0], abs=1e-12)
