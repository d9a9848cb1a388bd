"""What must not change net improvement, and what must change it in a known way."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.causal import cells, effect, prepare
from seatrial.causal.uncertainty import contrasts, net_coefficients


@st.composite
def samples(draw: st.DrawFn) -> tuple[pl.DataFrame, np.ndarray]:
    """A table with 2-4 arms, 1-3 task types and users, every cell with two users or more, and a baseline policy."""
    arms, kinds = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    cell = np.arange(arms * kinds).repeat(2 + draw(st.integers(0, 6)))
    n = cell.size
    frame = pl.DataFrame(
        {
            "session": [f"s{i:04d}" for i in range(n)],
            "arm": [f"m{c % arms}" for c in cell],
            "task_type": [f"t{c // arms}" for c in cell],
            "user": [f"u{i % draw(st.just(7))}" for i in range(n)],
            "_y": rng.integers(0, 5, n) / 4,
        }
    )
    q = np.array(draw(st.lists(st.integers(0, 5), min_size=arms, max_size=arms)), dtype=float) + 0.25
    return frame, q / q.sum()


def _run(frame: pl.DataFrame, q: np.ndarray):
    analysis = effect.stratified(prepare.sample(prepare.complete(frame)), observational=False)
    return None if analysis is None else contrasts(analysis.moments, net_coefficients(q))


@settings(max_examples=40, deadline=None)
@given(samples(), st.integers(0, 1000))
def test_row_order_changes_nothing_at_all(given_: tuple[pl.DataFrame, np.ndarray], seed: int) -> None:
    frame, q = given_
    one, two = _run(frame, q), _run(frame.sample(fraction=1.0, shuffle=True, seed=seed), q)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert (one.value == two.value).all()
        assert (one.se == two.se).all()


@settings(max_examples=40, deadline=None)
@given(samples(), st.randoms(use_true_random=False))
def test_renaming_models_renames_the_answer(given_: tuple[pl.DataFrame, np.ndarray], random: object) -> None:
    frame, q = given_
    k = q.size
    order = list(range(k))
    random.shuffle(order)  # type: ignore[attr-defined]
    renamed = frame.with_columns(arm=pl.col("arm").replace_strict({f"m{i}": f"m{order[i]}" for i in range(k)}))
    q_new = np.empty(k)
    q_new[order] = q
    one, two = _run(frame, q), _run(renamed, q_new)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert two.value[order] == pytest.approx(one.value, abs=1e-12)
        assert two.se[order] == pytest.approx(one.se, abs=1e-12)
        assert two.df[order] == pytest.approx(one.df)


@settings(max_examples=40, deadline=None)
@given(samples(), st.floats(-5, 5), st.floats(0.1, 4))
def test_shifting_changes_nothing_and_scaling_scales(
    given_: tuple[pl.DataFrame, np.ndarray], shift: float, scale: float
) -> None:
    frame, q = given_
    one, two = _run(frame, q), _run(frame.with_columns(_y=pl.col("_y") * scale + shift), q)
    if one is not None and two is not None:
        assert two.value == pytest.approx(one.value * scale, abs=1e-9)
        assert two.se == pytest.approx(one.se * scale, abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(samples())
def test_net_improvements_weighted_by_the_policy_sum_to_zero(given_: tuple[pl.DataFrame, np.ndarray]) -> None:
    frame, q = given_
    found = _run(frame, q)
    if found is not None:
        assert float(q @ found.value) == pytest.approx(0.0, abs=1e-12)
        assert q @ found.cov @ q == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(samples(), st.integers(2, 4))
def test_repeating_every_cluster_divides_the_variance_and_moves_nothing(
    given_: tuple[pl.DataFrame, np.ndarray], times: int
) -> None:
    """CR1 without its small-sample factor falls exactly as 1/times."""
    frame, _q = given_
    sample = prepare.sample(prepare.complete(frame))
    code = prepare.codes(sample.frame["task_type"])[0]
    g = sample.n_clusters
    plain = cells.moments(cells.build(sample.cluster, code, sample.arm, sample.y))
    many = cells.moments(
        cells.build(
            np.concatenate([sample.cluster + g * i for i in range(times)]), np.tile(code, times),
            np.tile(sample.arm, times), np.tile(sample.y, times),
        )
    )  # fmt: skip
    assert many.mean == pytest.approx(plain.mean)
    factor = (g - 1) / g * (g * times) / (g * times - 1) / times
    assert many.cr1 == pytest.approx(plain.cr1 * factor, abs=1e-12)
    assert many.g_star == pytest.approx(plain.g_star * times)
