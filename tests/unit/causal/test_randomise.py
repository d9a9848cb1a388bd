"""The randomisation test is wired to the design, and its draws are what they are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seatrial.causal import effect, prepare, randomise
from seatrial.causal.ranking import rank
from seatrial.errors import UsageError

Table = Callable[..., pl.DataFrame]
HALF = np.array([0.5, 0.5])


def _analysis(frame: pl.DataFrame) -> effect.Analysis:
    found = effect.stratified(prepare.sample(prepare.complete(frame.rename({"outcome": "_y"}))), observational=False)
    assert found is not None
    return found


def test_darwins_pairs(golden: Path) -> None:
    """Fisher 1935: 1,726 of 32,768 sign patterns are at least as extreme."""
    case = json.loads((golden / "randomisation.json").read_text(encoding="utf-8"))["darwin_maize_pairs"]
    d = np.array(case["differences_eighths_inch"], dtype=float)
    test = randomise.sign_flips(d, HALF)
    assert test.p_values[0] == case["expect"]["p"]
    assert test.draws == case["expect"]["total"]
    assert test.observed[0] == pytest.approx(0.5 * d.mean())
    assert test.null_mean == pytest.approx([0.0, 0.0])


def test_sign_flips_are_the_within_task_permutation() -> None:
    """The general enumeration of labels inside tasks gives the same p and the same t."""
    from seatrial.stats.randomisation import row_permutation

    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (9, 2)) / 2
    q = np.array([0.3, 0.7])
    task = np.repeat(np.arange(9), 2)
    general = row_permutation(task, np.tile([0, 1], 9), table.ravel(), task, baseline=q, draws=999, seed=0)
    ours = randomise.sign_flips(table[:, 0] - table[:, 1], q)
    assert ours.p_values == pytest.approx(general.p_values)
    assert ours.observed_t == pytest.approx(general.observed_t)
    assert ours.observed == pytest.approx(general.observed)


def test_sessions_that_were_drawn_one_by_one_are_permuted_inside_strata(table: Table) -> None:
    a = _analysis(table(assigned=True))
    found = randomise.run(a, np.full(3, 1 / 3), randomised=True, draws=1999, seed=1)
    assert found.test is not None
    assert found.test.method.startswith("sessions inside blocks, CR1")
    assert found.test.observed == pytest.approx(a.moments.mean - a.moments.mean.mean())
    assert found.null_sd is not None
    assert found.test.effects.std(axis=0) == pytest.approx(found.null_sd, rel=0.06)
    assert np.abs(found.test.null_mean).max() < 4 * found.null_sd.max() / np.sqrt(1999)


def test_observed_t_uses_the_error_that_the_report_prints_as_cr1(table: Table) -> None:
    from seatrial.causal.uncertainty import contrasts, net_coefficients

    a = _analysis(table(assigned=True))
    q = np.array([0.2, 0.3, 0.5])
    found = randomise.run(a, q, randomised=True, draws=999, seed=1)
    assert found.test is not None
    assert found.test.observed_se == pytest.approx(contrasts(a.moments, net_coefficients(q)).se_cr1)


def test_one_session_per_cluster_draws_tables(table: Table) -> None:
    a = _analysis(table(assigned=True).drop("user"))
    found = randomise.run(a, np.full(3, 1 / 3), randomised=True, draws=999, seed=1)
    assert found.test is not None
    assert "hypergeometric" in found.test.method


def test_users_that_were_drawn_whole_are_permuted_whole(table: Table) -> None:
    frame = table(assigned=True)
    arms = sorted(frame["arm"].unique().to_list())
    drawn = {u: arms[i % 3] for i, u in enumerate(sorted(frame["user"].unique().to_list()))}
    frame = frame.with_columns(unit=pl.col("user"), arm=pl.col("user").replace_strict(drawn))
    found = randomise.run(_analysis(frame), np.full(3, 1 / 3), randomised=True, draws=999, seed=1)
    assert found.test is not None
    assert found.test.method.startswith("clusters inside assignment strata")


def test_labels_never_cross_different_recorded_probabilities(table: Table) -> None:
    frame = table(assigned=True)
    other = json.dumps({"model-a": 0.5, "model-b": 0.25, "model-c": 0.25})
    late = pl.col("session") > "s00450"
    frame = frame.with_columns(
        probabilities_json=pl.when(late).then(pl.lit(other)).otherwise(pl.col("probabilities_json")),
        probability=pl.when(late & (pl.col("arm") == "model-a")).then(0.5)
        .when(late).then(0.25).otherwise(pl.col("probability")),
    )  # fmt: skip
    a = _analysis(frame)
    assert "Hajek" in a.label
    found = randomise.run(a, np.full(3, 1 / 3), randomised=True, draws=999, seed=1)
    assert found.test is not None


def test_fewer_than_999_draws_are_refused(table: Table) -> None:
    with pytest.raises(UsageError, match="at least 999"):
        rank(table(), outcome="outcome", draws=998)


def test_the_null_is_printed_as_null_and_never_as_the_estimate(table: Table) -> None:
    found = rank(table(900, effect=0.25, assigned=True), outcome="outcome", draws=1999, by=())
    assert found.null is not None
    best = found.models[0]
    assert best.net_improvement is not None
    assert best.net_improvement.value > 0.15
    assert abs(found.null.mean[best.model]) < 0.005
    assert found.null.percentiles[best.model]["97.5"] < best.net_improvement.value
