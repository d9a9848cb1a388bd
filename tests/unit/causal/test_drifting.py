"""A model's change between windows, the family of p-values, and results that do not depend on users' names."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from seatrial import causal
from seatrial.causal import drifting, prepare
from seatrial.causal.options import Interval
from seatrial.records import Estimate
from seatrial.records.drift import Drift

Table = Callable[..., pl.DataFrame]
DAY = 86_400.0


def _estimate(x: np.ndarray, *, low: bool = True, why: str | None = None) -> Estimate:
    """The mean of independent values with its t interval, by SciPy."""
    se = float(x.std(ddof=1) / np.sqrt(x.size))
    limits = stats.t.interval(0.95, x.size - 1, loc=x.mean(), scale=se)
    return Estimate(
        value=float(x.mean()), low=float(limits[0]) if low else None, high=float(limits[1]) if low else None,
        level=0.95, n=x.size, n_clusters=x.size, method="t", se=se, why=why,
    )  # fmt: skip


def _drift(before: pl.DataFrame, now: pl.DataFrame, draws: int = 199) -> Drift:
    """Windows of a day each."""
    return causal.drift(
        prepare.complete(before), prepare.complete(now), windows=((0.0, DAY), (DAY, 2 * DAY)), outcome="outcome",
        values=(before["outcome"], now["outcome"]), draws=draws,
    )  # fmt: skip


def _later(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(session=pl.concat_str(pl.lit("later-"), "session"))


def test_a_change_has_the_interval_of_welch() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(1.0, 2.0, 9), rng.normal(1.5, 0.5, 31)
    found = drifting._model_change("m", _estimate(x), _estimate(y), 0.95).change
    truth = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((truth.low, truth.high), rel=1e-9)


def test_a_change_by_hand() -> None:
    """se 3 on 12 df and se 4 on 8: df = 25^2 / (81/12 + 256/8) = 16.13, t between 2.110 (17) and 2.120 (16)."""
    before = Estimate(
        value=1.0, low=1 - 3 * 2.178813, high=1 + 3 * 2.178813, level=0.95, n=50, n_clusters=13, method="t", se=3.0
    )
    now = Estimate(
        value=4.0, low=4 - 4 * 2.306004, high=4 + 4 * 2.306004, level=0.95, n=50, n_clusters=9, method="t", se=4.0
    )
    found = drifting._model_change("m", before, now, 0.95).change
    assert found is not None
    assert found.se == pytest.approx(5.0)
    assert found.value == pytest.approx(3.0)
    assert found.high is not None
    assert 2.1098 < (found.high - found.value) / 5 < 2.1199
    assert (found.high - found.value) / 5 == pytest.approx(2.1199 - 0.129 * (2.1199 - 2.1098), abs=2e-4)


@pytest.mark.parametrize(
    ("then", "after", "said"),
    [
        ("too few", None, "then: too few"),
        (None, "too few", "now: too few"),
        ("too few", "too few", "then and now: too few"),
        ("too few", "one cluster", "then: too few; now: one cluster"),
    ],
)
def test_no_change_where_a_window_was_refused_an_interval(then: str | None, after: str | None, said: str) -> None:
    x = np.arange(9.0)
    before, now = _estimate(x, low=then is None, why=then), _estimate(x + 1, low=after is None, why=after)
    assert before.se
    assert now.se
    found = drifting._model_change("m", before, now, 0.95)
    assert (found.change, found.why) == (None, said)


def test_four_users_in_a_window_leave_no_model_a_change(table: Table) -> None:
    few, many = table(200, users=4, seed=1), _later(table(600, seed=2))
    for found, when in ((_drift(few, many), "then"), (_drift(many, few), "now")):
        assert len(found.models) == 3
        for model in found.models:
            assert model.change is None
            assert model.why is not None
            assert model.why.startswith(when)
            assert "effective clusters" in model.why
            assert "p-value" not in model.why
            assert model.before is not None
            assert model.now is not None


def test_a_change_is_refused_where_other_models_make_the_baseline(table: Table) -> None:
    """Model c has seven users now: too few for the baseline, which is then another one than before."""
    before, now = table(900, seed=1), _later(table(900, seed=2))
    now = now.filter((pl.col("arm") != "model-c") | (pl.col("user") < "u007"))
    assert all(m.why is not None and "baselines differ" in m.why for m in _drift(before, now).models)
    both = _drift(before, _later(table(900, seed=2)))
    assert all(m.change is not None for m in both.models)


def test_all_p_values_are_one_family(table: Table) -> None:
    """Holm's adjusted p by brute force: the largest Bonferroni p of all sets of measures that hold this one."""
    now = _later(table(300, users=25, seed=2)).with_columns(pl.col("prompt_chars") + 1500)
    found = _drift(table(300, users=25, seed=1), now.with_columns(outcome=pl.lit(1.0)))
    said = [(c.p_value, c.p_holm) for c in found.changes if c.p_value is not None]
    known = [*said, (found.separable_p, found.separable_p_holm)]
    p = [raw for raw, _ in known if raw is not None]
    assert len(p) == len(known) > 3
    for i, (_, adjusted) in enumerate(known):
        others = [j for j in range(len(p)) if j != i]
        sets = [(i, *s) for n in range(len(p)) for s in itertools.combinations(others, n)]
        assert adjusted == pytest.approx(max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets))
    assert found.separable_p is not None
    assert found.separable_p_holm is not None
    assert found.separable_p < 0.05


def test_a_quiet_week_stays_quiet(table: Table) -> None:
    """Of 150 pairs of weeks without any change at most 7.5 are expected to say that something changed, classifier
    included; 16 or more have a chance of .004 at exactly 5% (binomial)."""
    loud = raw = 0
    for seed in range(150):
        week = table(160, arms=1, users=40, seed=seed)
        later = pl.col("user") >= "u020"
        found = _drift(week.filter(~later), week.filter(later))
        assert found.separable_p is not None
        assert found.separable_p_holm is not None
        measured = any(c.changed for c in found.changes)
        loud += measured or found.separable_p_holm <= 0.05
        raw += measured or found.separable_p <= 0.05
    assert loud < 16
    assert raw > loud, "the classifier's own p adds its 5% to the others'"


def _named(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The same sessions under pseudonyms of another key."""
    users = sorted(table["user"].unique())
    new = np.random.default_rng(seed).permutation(len(users))
    names = {u: f"p{i:04d}" for u, i in zip(users, new, strict=True)}
    out = table.with_columns(pl.col("user").replace_strict(names))
    return out.with_columns(unit=pl.col("user")) if "unit" in out.columns else out


@pytest.mark.parametrize(("interval", "assigned"), [("bootstrap-t", False), ("jackknife", True)])
def test_a_ranking_does_not_depend_on_the_names_of_users(table: Table, interval: Interval, assigned: bool) -> None:
    rows = table(400, users=45, assigned=assigned, seed=5)
    if assigned:
        arms = {str(digit): f"model-{'abc'[digit % 3]}" for digit in range(10)}
        rows = rows.with_columns(arm=pl.col("user").str.slice(-1).replace_strict(arms), unit=pl.col("user"))
    found = set()
    for key in range(3):
        shuffled = _named(rows, key).sample(fraction=1.0, shuffle=True, seed=key)
        found.add(msgspec.json.encode(causal.rank(shuffled, outcome="outcome", interval=interval, draws=999)))
    assert len(found) == 1


def test_drift_does_not_depend_on_the_names_of_users(table: Table) -> None:
    before, now = table(400, users=45, seed=1), _later(table(400, users=45, seed=2))
    both = pl.concat([before, now])
    found = set()
    for k in range(3):
        named = _named(both, k)
        later = named["session"].str.starts_with("later-")
        found.add(msgspec.json.encode(_drift(named.filter(~later), named.filter(later))))
    assert len(found) == 1
    assert json.loads(found.pop())["models"]
