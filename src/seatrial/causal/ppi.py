"""Prediction-powered means where a random subset of sessions has true labels (METHODS 3.4d; arXiv 2311.01453)."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from seatrial.causal import cells, effect
from seatrial.causal.cells import Cells, Floats, Moments, tally
from seatrial.causal.effect import Analysis
from seatrial.causal.prepare import Codes
from seatrial.causal.uncertainty import contrasts, interval, net_coefficients, refusal
from seatrial.errors import SchemaError, UsageError
from seatrial.records import Estimate

FEWEST_LABELS = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Powered:
    """Prediction-powered moments (None when some arm has fewer than 30 labels), lambda and label counts by arm."""

    moments: Moments | None
    arms: tuple[str, ...]
    lam: Floats
    n_labels: Codes
    notes: tuple[str, ...]

    def net(self, q: Floats, level: float, refused: str | None) -> list[Estimate] | None:
        """tau_m of every arm; None when it cannot be estimated."""
        if self.moments is None:
            return None
        each = contrasts(self.moments, net_coefficients(q))
        refused = refused or refusal(self.moments, self.arms, tested=False)
        out = []
        for m in range(q.size):
            method = f"PPI++ (lambda {self.lam[m]:.2f}, {int(self.n_labels[m])} labels), CR3 t"
            out.append(
                interval(
                    float(each.value[m]), float(each.se[m]), float(each.df[m]), level=level, n=self.moments.n,
                    n_clusters=self.moments.n_clusters, refused=refused, method=method,
                )
            )  # fmt: skip
        return out


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """Labelled sessions: cluster, stratum, arm codes, label Y, prediction f and inverse labelling probability."""

    cluster: Codes
    stratum: Codes
    arm: Codes
    y: Floats
    f: Floats
    w: Floats


def joined(analysis: Analysis, labels: pl.DataFrame) -> tuple[Labelled, int]:
    """The labelled sessions of an estimate, and how many labels belong to no session of it.

    Raises:
        SchemaError, UsageError: as `estimate`.
    """
    for name in ("session", "label"):
        if name not in labels.columns:
            raise SchemaError(f"labels: no column {name!r}", hint="session, label and optionally probability")
    labels = labels.filter(pl.col("label").is_not_null()).with_columns(pl.col("session").cast(pl.String))
    if labels["session"].n_unique() != labels.height:
        raise SchemaError("labels: a session is labelled more than once", hint="resolve annotators first")
    p = pl.col("probability").cast(pl.Float64) if "probability" in labels.columns else pl.lit(1.0)
    labels = labels.select("session", pl.col("label").cast(pl.Float64).alias("_label"), p.alias("_pi"))
    bad = labels.filter(pl.col("_pi").is_null() | (pl.col("_pi") <= 0) | (pl.col("_pi") > 1))
    if bad.height:
        raise UsageError(f"labels: {bad.height} labelling probabilities are missing or outside (0, 1]")
    place = pl.DataFrame({"session": analysis.sample.frame["session"], "_row": np.arange(analysis.sample.n)})
    found = labels.join(place, on="session", how="inner").sort("_row")
    row = found["_row"].to_numpy()
    sample = analysis.sample
    kept = Labelled(
        cluster=sample.cluster[row], stratum=analysis.code[row], arm=sample.arm[row], y=found["_label"].to_numpy(),
        f=sample.y[row], w=1.0 / found["_pi"].to_numpy(),
    )  # fmt: skip
    return kept, labels.height - found.height


def estimate(analysis: Analysis, labels: pl.DataFrame, *, level: float) -> Powered:
    """``mu_m = lambda sum_s W_s fbar_sm + sum_L v (Y - lambda f)/sum_L v``, ``v = W_s/(n_sm pi)``.

    lambda in [0, 1] minimises each arm's cluster-robust variance. CR3 leaves clusters out of both terms, with cell
    counts and weights recomputed. Degrees of freedom use the effective clusters of the labels where they are fewer.

    Raises:
        SchemaError, UsageError: labels without the columns, twice for a session, or with impossible probabilities.
    """
    arms = analysis.sample.arms
    k_count = len(arms)
    nothing = np.zeros(k_count)
    if analysis.paired or analysis.weighting == "overlap":
        note = "labels are not used: prediction-powered estimates are defined for post-stratified designs"
        return Powered(None, arms, nothing, nothing.astype(np.int64), (note,))
    found, outside = joined(analysis, labels)
    counts = np.bincount(found.arm, minlength=k_count)
    notes = [f"{outside} labels belong to sessions outside the estimate"] if outside else []
    if counts.min() < FEWEST_LABELS:
        few = ", ".join(f"{a} {n}" for a, n in zip(arms, counts.tolist(), strict=True) if n < FEWEST_LABELS)
        notes.append(f"fewer than {FEWEST_LABELS} labels ({few}): no prediction-powered estimate")
        return Powered(None, arms, nothing, counts, tuple(notes))
    built = cells.build(
        analysis.sample.cluster, analysis.code, analysis.sample.arm, analysis.sample.y,
        weight=None if np.array_equal(analysis.cells.a, analysis.cells.n) else effect.inverse_p(analysis.sample),
        n_strata=len(analysis.stratum_labels), n_arms=k_count,
    )  # fmt: skip
    base = cells.moments(built, keep=True)
    moments, lam = _combine(base, built, found, k_count)
    if moments is None:
        notes.append("one cluster holds all labels of some model: no prediction-powered estimate")
    return Powered(moments, arms, lam, counts, tuple(notes))


def _sums(found: Labelled, n_strata: int, k_count: int) -> tuple[Floats, Floats, Floats]:
    key = found.stratum * k_count + found.arm
    size = n_strata * k_count
    parts = (tally(key, w, size) for w in (found.w, found.w * found.y, found.w * found.f))
    a, y, f = (p.reshape(n_strata, k_count) for p in parts)
    return a, y, f


def _combine(base: Moments, built: Cells, found: Labelled, k_count: int) -> tuple[Moments | None, Floats]:
    n_sk = built.total(built.n)
    h_s = n_sk.sum(axis=1)
    scale = np.divide(h_s[:, None], n_sk, out=np.zeros_like(n_sk), where=n_sk > 0)
    sums = _sums(found, built.n_strata, k_count)
    weight, top_y, top_f = ((scale * part).sum(axis=0) for part in sums)
    mean_y, mean_f = top_y / weight, top_f / weight
    assert base.influence is not None
    assert base.jackknife is not None
    v = scale[found.stratum, found.arm] * found.w / weight[found.arm]
    home, size = found.cluster * k_count + found.arm, built.n_distinct * k_count
    shape = (built.n_distinct, k_count)
    own = np.bincount(home, weights=v * (found.y - mean_y[found.arm]), minlength=size).reshape(shape)
    swap = base.influence - np.bincount(home, weights=v * (found.f - mean_f[found.arm]), minlength=size).reshape(shape)
    spread = (swap**2).sum(axis=0)
    lam = np.divide(-(own * swap).sum(axis=0), spread, out=np.zeros(k_count), where=spread > 0).clip(0.0, 1.0)
    left = [_without(part, built, found, values, n_sk, h_s) for part, values in
            zip(sums, (found.w, found.w * found.y, found.w * found.f), strict=True)]  # fmt: skip
    if (left[0] <= 0).any():
        return None, lam
    jack = lam * base.jackknife + (left[1] - lam * left[2]) / left[0]
    shift = jack - jack.mean(axis=0)
    psi = own + lam * swap
    g = built.n_distinct
    held = np.bincount(home, weights=v, minlength=size).reshape(shape)
    return dataclasses.replace(
        base,
        name="PPI++",
        mean=lam * base.mean + mean_y - lam * mean_f,
        cr1=g / (g - 1) * psi.T @ psi,
        cr3=(g - 1) / g * shift.T @ shift,
        part=(psi**2).sum(axis=0),
        g_star_k=np.minimum(base.g_star_k, 1.0 / (held**2).sum(axis=0)),
        influence=None,
        jackknife=None,
    ), lam


def _without(part: Floats, built: Cells, found: Labelled, values: Floats, n_sk: Floats, h_s: Floats) -> Floats:
    """``sum_s h_s/n_sk part_sk`` with each cluster left out of h, n and the labels, (G, K)."""
    s_count = built.n_strata
    keys, pair = np.unique(built.cluster * s_count + built.stratum, return_inverse=True)
    owner, s = keys // s_count, keys % s_count
    n_left, label_left = n_sk[s].copy(), part[s].copy()
    np.subtract.at(n_left, (pair, built.arm), built.n)
    label_pair = np.searchsorted(keys, found.cluster * s_count + found.stratum)
    np.subtract.at(label_left, (label_pair, found.arm), values)
    h_left = h_s[s] - np.bincount(pair, weights=built.n)

    def term(h: Floats, n: Floats, label: Floats) -> Floats:
        return h[:, None] * np.divide(label, n, out=np.zeros_like(n), where=n > 0.5)

    change = term(h_left, n_left, label_left) - term(h_s[s], n_sk[s], part[s])
    out = np.repeat(term(h_s, n_sk, part).sum(axis=0)[None, :], built.n_distinct, axis=0)
    np.add.at(out, owner, change)
    # Rounding may leave 1e-16 where a cluster held every label.
    return np.where(np.abs(out) < 1e-12 * np.abs(part).max(initial=1.0), 0.0, out)
