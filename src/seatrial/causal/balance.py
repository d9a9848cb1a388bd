"""Did the draw go as recorded? Sample-ratio mismatch and covariate balance (METHODS 3.6)."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from seatrial.causal.cells import tally
from seatrial.causal.prepare import Codes, Floats, codes, place, probabilities
from seatrial.records import Check

ALARM = 1e-3
"""Both checks fail below this p-value: they look on every run, so they must rarely cry wolf."""
DRAWS = 9_999
ENOUGH, FEWEST = 20, 199
"""The balance test stops once 20 draws reach the observed statistic, but never before 199 draws."""
MONTE_CARLO_UNITS = 20_000
LEVELS = 12
"""Levels of task type and of difficulty whose shares are compared."""


def chi2_p(value: float, df: int) -> float:
    """P(chi2_df >= value)."""
    return float(special.chdtrc(df, value)) if df > 0 else 1.0


def units(table: pl.DataFrame, arms: tuple[str, ...]) -> pl.DataFrame:
    """One row per assignment unit, stratum and epoch: arm, probabilities and mean covariates.

    A unit that was drawn once and served many sessions counts once; a unit without a name is its session. Where some
    unit was served by two arms (a task, attempted repeatedly), sessions were drawn, and each is its own unit. Units are
    in the order of their first sessions: names may be pseudonyms, whose order depends on a store's key.
    """
    p = probabilities(table, arms)
    assert p is not None
    unit = pl.when(pl.col("unit").is_null()).then(pl.concat_str(pl.lit("session:"), "session")).otherwise("unit")
    numbers = [
        pl.col("prompt_chars").cast(pl.Float64).log1p().alias("x_prompt"),
        pl.col("start").alias("x_start"),
    ]
    keys = ["_unit", "arm", "assigned_stratum", "epoch", "probabilities_json"]
    grown = table.sort("session").with_columns(unit.alias("_unit"), *numbers)
    place = ["_unit", "assigned_stratum", "epoch", "probabilities_json"]
    if grown.group_by(place).agg(pl.col("arm").n_unique())["arm"].max() != 1:
        grown = grown.with_columns(pl.col("session").alias("_unit"))
    if grown["_unit"].n_unique() == grown.height:
        plain = [pl.col("task_type").fill_null(""), pl.col("difficulty").fill_null("")]
        return grown.select(*keys, "x_prompt", "x_start", *plain)
    return grown.group_by(keys, maintain_order=True).agg(
        pl.col("x_prompt").mean(),
        pl.col("x_start").mean(),
        pl.col("task_type").fill_null("").first(),
        pl.col("difficulty").fill_null("").first(),
    )


def design_strata(unit_table: pl.DataFrame) -> Codes:
    """Units that are exchangeable under the recorded design: one stratum, epoch and probability vector."""
    fill = [pl.col(c).fill_null("") for c in ("assigned_stratum", "epoch", "probabilities_json")]
    return codes(unit_table.select(pl.concat_str(*fill, separator="\x1f").alias("key"))["key"])[0]


def ratio_mismatch(arm: Codes, stratum: Codes, p: Floats, seed: int = 0) -> tuple[float, int, float, str]:
    """Chi-square of observed against expected units by stratum and arm: statistic, df, p-value, method.

    `p` (n, K) are the recorded probabilities of every unit. Summed over strata; where an expected count is below
    5 the null distribution is drawn (9,999 multinomial draws, +1 in numerator and denominator).
    """
    s_count, k_count = int(stratum.max()) + 1, p.shape[1]
    seen = np.bincount(stratum * k_count + arm, minlength=s_count * k_count).reshape(s_count, k_count)
    expected = np.column_stack([np.bincount(stratum, weights=p[:, k], minlength=s_count) for k in range(k_count)])
    live = expected > 0
    if (seen[~live] > 0).any():
        return float("inf"), 0, 0.0, "an arm of probability 0 was served"
    value = float((((seen - expected) ** 2)[live] / expected[live]).sum())
    df = int((live.sum(axis=1) - 1).sum())
    if expected[live].min() >= 5.0:
        return value, df, chi2_p(value, df), "chi-square"
    rng = np.random.default_rng(seed)
    n_s = seen.sum(axis=1)
    share = expected / n_s[:, None]
    draws = np.zeros(DRAWS)
    for s in range(s_count):
        counts = rng.multinomial(n_s[s], share[s] / share[s].sum(), size=DRAWS)[:, live[s]]
        draws += ((counts - expected[s][live[s]]) ** 2 / expected[s][live[s]]).sum(axis=1)
    extreme = int((draws >= value - 1e-9 * max(value, 1.0)).sum())
    return value, df, (1 + extreme) / (1 + DRAWS), "chi-square, Monte Carlo"


def covariates(unit_table: pl.DataFrame) -> tuple[Floats, list[str]]:
    """Pre-treatment columns of the units, (n, p), and their names: prompt length, start time, task type, difficulty."""
    columns: list[Floats] = []
    names: list[str] = []
    for name in ("x_prompt", "x_start"):
        x = unit_table[name]
        if x.null_count() < x.len():
            columns.append(x.fill_null(x.mean()).to_numpy().astype(np.float64))
            names.append({"x_prompt": "prompt length", "x_start": "start time"}[name])
            if x.null_count():
                columns.append(x.is_null().to_numpy().astype(np.float64))
                names.append(names[-1] + " missing")
    for name in ("task_type", "difficulty"):
        code, labels = codes(unit_table[name])
        # The commonest levels are enough to see a bad draw; every further one costs a pass over all units.
        for level in np.sort(np.argsort(-np.bincount(code), kind="stable")[1:LEVELS]).tolist():
            columns.append((code == level).astype(np.float64))
            names.append(f"{name} {labels[level]}")
    if not columns:
        return np.zeros((unit_table.height, 0)), []
    return np.column_stack(columns), names


def _within(x: Floats, stratum: Codes) -> Floats:
    size = int(stratum.max()) + 1
    n = tally(stratum, None, size)
    means = np.column_stack([tally(stratum, column, size) for column in x.T]) / n[:, None]
    centred: Floats = x - (means if size == 1 else means[stratum])
    return centred


def omnibus_balance(x: Floats, arm: Codes, stratum: Codes, seed: int = 0) -> tuple[float, int, float, str]:
    """Hansen & Bowers' omnibus balance test permuted inside the design: statistic, rank, p-value, method.

    The statistic is the quadratic form of all arms' covariate sums, centred inside design strata, in their exact
    permutation covariance. Up to 20,000 units it is permuted until 20 of 199 draws or more reach it, or 9,999 are
    drawn (Besag & Clifford 1991: few draws suffice to see that nothing is wrong); above, its chi-square limit is used.
    """
    if x.shape[1] == 0:
        return 0.0, 0, 1.0, "no covariate varies inside the design"
    z = _within(x, stratum)
    scale = np.sqrt((z**2).mean(axis=0))
    z = z[:, scale > 1e-12 * np.abs(x).max(axis=0, initial=1.0)]
    k_count = int(arm.max()) + 1
    if z.shape[1] == 0 or k_count < 2:
        return 0.0, 0, 1.0, "no covariate varies inside the design"
    z = z / np.sqrt((z**2).mean(axis=0))
    n_sk = tally(stratum * k_count + arm, None, (int(stratum.max()) + 1) * k_count).reshape(-1, k_count)
    cov = np.zeros((z.shape[1] * (k_count - 1),) * 2)
    order = np.argsort(stratum, kind="stable")
    edges = np.searchsorted(stratum[order], np.arange(n_sk.shape[0] + 1))
    arranged = z if n_sk.shape[0] == 1 else z[order]
    for s, n in enumerate(n_sk.sum(axis=1)):
        if n > 1:
            rows = arranged[edges[s] : edges[s + 1]]
            counts = n_sk[s, 1:]
            cov += np.kron(np.diag(counts) - np.outer(counts, counts) / n, rows.T @ rows / (n - 1))
    roots, vectors = np.linalg.eigh(cov)
    live = roots > 1e-9 * max(float(roots.max()), 1e-300)
    whiten = vectors[:, live] / np.sqrt(roots[live])
    rank = int(live.sum())

    def statistic(labels: Codes) -> float:
        sums = np.column_stack([tally(labels, column, k_count)[1:] for column in z.T])
        return float(((sums.ravel() @ whiten) ** 2).sum())

    value = statistic(arm)
    if arm.size > MONTE_CARLO_UNITS:
        return value, rank, chi2_p(value, rank), "chi-square limit of the permutation distribution"
    rng = np.random.default_rng(seed)
    sorted_arm, position = arm[order], stratum[order]
    shuffled = np.empty_like(arm)
    extreme = drawn = 0
    while drawn < DRAWS and (extreme < ENOUGH or drawn < FEWEST):
        shuffled[order] = sorted_arm[np.lexsort((rng.random(arm.size), position))]
        extreme += statistic(shuffled) >= value * (1 - 1e-12)
        drawn += 1
    p = extreme / drawn if FEWEST < drawn < DRAWS else (1 + extreme) / (1 + drawn)
    return value, rank, p, f"permuted inside the design, {drawn} draws"


def checks(table: pl.DataFrame, arms: tuple[str, ...], seed: int = 0) -> tuple[Check, ...]:
    """Sample ratio and covariate balance of all assigned units, whether or not they gave an outcome."""
    unit_table = units(table, arms)
    stratum = design_strata(unit_table)
    arm = place(unit_table["arm"], arms)
    p = probabilities(unit_table, arms)
    assert p is not None
    value, df, p_ratio, how = ratio_mismatch(arm, stratum, p, seed)
    x, names = covariates(unit_table)
    balance, rank, p_balance, way = omnibus_balance(x, arm, stratum, seed)
    good, fine = p_ratio >= ALARM, p_balance >= ALARM
    return (
        Check(
            name="sample ratio",
            ok=good,
            value=p_ratio,
            why=f"{unit_table.height} assignment units against the recorded probabilities: "
            f"chi2 {value:.2f} on {df} df, p {p_ratio:.3g} ({how}); "
            + ("as drawn" if good else "units were lost or the record is wrong"),
        ),
        Check(
            name="covariate balance",
            ok=fine if rank else None,
            value=p_balance if rank else None,
            why=f"{', '.join(names[:4])}{' and others' if len(names) > 4 else ''}: quadratic form {balance:.2f} on "
            f"{rank} df, p {p_balance:.3g} ({way}); " + ("balanced" if fine else "arms differ before they began")
            if rank
            else way,
        ),
    )
