"""Per-signal rates by model, and how often each signal exists at all: the post-treatment trap (METHODS 3.7)."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from seatrial.causal import cells
from seatrial.causal.cells import tally
from seatrial.causal.prepare import Codes, Floats, Sample
from seatrial.causal.uncertainty import contrasts, net_coefficients
from seatrial.records import OUTCOMES, CoverageRow, SignalRate
from seatrial.stats import clustered_mean, clustered_proportion

COUNTS = ("n_confirmation", "n_accept_implicit", "n_praise", "n_complaint", "n_correction", "n_execution_error")


def _rate(values: Floats, present: np.ndarray, cluster: Codes, level: float) -> SignalRate:
    share = float(present.mean()) if present.size else 0.0
    if not present.any():
        return SignalRate(estimate=None, coverage=share, why="no session of this model has a value")
    y, group = values[present], cluster[present]
    if np.isin(y, (0.0, 1.0)).all():
        estimate = clustered_proportion(y, group, level)
    else:
        estimate = clustered_mean(y, group, level, bounded=bool(y.min() >= 0 and y.max() <= 1))
    return SignalRate(estimate=estimate, coverage=share)


def rates(everyone: Sample, level: float) -> dict[str, dict[str, SignalRate]]:
    """{arm: {signal: rate}} over all sessions with an arm: the five outcomes, and for each kind of signal the share
    of *all* sessions that show it (named ``any_...``), which conditions on nothing that the model caused."""
    out: dict[str, dict[str, SignalRate]] = {a: {} for a in everyone.arms}
    columns = [(name, name) for name in OUTCOMES] + [(name, "any_" + name[2:]) for name in COUNTS]
    for column, label in columns:
        if column not in everyone.frame.columns:
            continue
        x = everyone.frame[column].cast(pl.Float64)
        if x.null_count() == x.len():
            continue
        present = x.is_not_null().to_numpy()
        values = x.fill_null(0.0).to_numpy()
        if label != column:
            values = (values > 0).astype(np.float64)
        for k, arm in enumerate(everyone.arms):
            mine = everyone.arm == k
            out[arm][label] = _rate(values[mine], present[mine], everyone.cluster[mine], level)
    return out


def equality_p(values: Floats, sample: Sample) -> float | None:
    """p-value that all arms have one mean, by a cluster-robust Wald F test (CR1); None when it cannot be tested.

    Where arms differ without spread the plain chi-square is given: no cluster-robust error exists there.
    """
    k_count = len(sample.arms)
    if k_count < 2 or sample.n_clusters <= k_count or np.bincount(sample.arm, minlength=k_count).min() == 0:
        return None
    if values.min() == values.max():
        return 1.0
    one = np.zeros(sample.n, dtype=np.int64)
    m = cells.moments(cells.build(sample.cluster, one, sample.arm, values, n_strata=1, n_arms=k_count))
    each = contrasts(m, net_coefficients(np.full(k_count, 1.0 / k_count))[:-1])
    cov = each.coefficients @ m.cr1 @ each.coefficients.T
    roots, vectors = np.linalg.eigh(cov)
    live = roots > 1e-12 * max(float(roots.max()), 1e-300)
    along, beyond = vectors[:, live].T @ each.value, vectors[:, ~live].T @ each.value
    if np.abs(beyond).max(initial=0.0) > 1e-9:
        # Arms that differ without any spread (all here, none there): a Wald test divides by 0.
        return _plain_p(values, sample)
    rank = int(live.sum())
    wald = float((along**2 / roots[live]).sum()) / rank
    return float(special.fdtrc(rank, sample.n_clusters - 1, wald))


def _plain_p(values: Floats, sample: Sample) -> float:
    """Chi-square that arms share one mean, clusters ignored: sum_k n_k (mean_k - mean)^2 / variance."""
    k_count = len(sample.arms)
    n, total = tally(sample.arm, None, k_count), tally(sample.arm, values, k_count)
    value = float((n * (total / n - values.mean()) ** 2).sum() / values.var())
    return float(special.chdtrc(k_count - 1, value))


def table(everyone: Sample, outcome: str, y: pl.Series) -> tuple[CoverageRow, ...]:
    """Share of each arm's sessions in which the headline outcome and each signal outcome exist, with a test."""
    rows = []
    series = {outcome: y} | {c: everyone.frame[c] for c in OUTCOMES if c in everyone.frame.columns}
    for name, column in series.items():
        present = column.is_not_null().to_numpy().astype(np.float64)
        k_count = len(everyone.arms)
        means = tally(everyone.arm, present, k_count) / tally(everyone.arm, None, k_count)
        by = dict(zip(everyone.arms, means.tolist(), strict=True))
        rows.append(CoverageRow(signal=name, by_model=by, p_value=equality_p(present, everyone)))
    return tuple(rows)
