"""One analysis to the rows of a ranking."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np

from seatrial.causal import cells, sensitivity
from seatrial.causal.corrected import Corrected
from seatrial.causal.effect import Analysis, emptied
from seatrial.causal.ppi import Powered
from seatrial.causal.prepare import Codes, Floats, Sample, by_task
from seatrial.causal.randomise import Outcome
from seatrial.causal.strata import manski
from seatrial.causal.uncertainty import (
    RANK_FROM,
    REFUSE_BELOW,
    Contrasts,
    contrasts,
    interval,
    mean_interval,
    ranks,
    refusal,
    simultaneous,
)
from seatrial.records import Estimate, ModelRow, Power, RankInterval
from seatrial.stats import clustered_mean, clustered_proportion


@dataclasses.dataclass(frozen=True, slots=True)
class Core:
    """One analysed contrast against the baseline `q`, and everything that the rows need.

    `refused` says why no interval is defensible. `half` are bootstrap-t half widths (K,), NaN where there is none.
    `causal` False makes sensitivity mandatory.
    """

    analysis: Analysis
    q: Floats
    each: Contrasts
    refused: str | None
    test: Outcome
    half: Floats | None
    ppi: Powered | None
    corrected: Corrected | None
    causal: bool
    notes: tuple[str, ...]
    power: Power

    @property
    def manski(self) -> dict[str, list[float]]:
        """Bounds on every net improvement over all strata, whatever the absent models would have done there."""
        analysis = self.analysis
        if analysis.strata is None or analysis.whole is None:
            return {}
        sample = analysis.whole
        bounds = manski(analysis.strata.base, sample, self.each.coefficients)
        return {a: [float(x) for x in row] for a, row in zip(sample.arms, bounds, strict=True)}


def _scaled(estimate: Estimate, factor: float, method: str) -> Estimate:
    low, high = estimate.low, estimate.high
    return Estimate(
        value=estimate.value * factor, low=None if low is None else low * factor,
        high=None if high is None else high * factor, level=estimate.level, n=estimate.n,
        n_clusters=estimate.n_clusters, method=f"{estimate.method}, {method}",
        se=None if estimate.se is None else estimate.se * factor, why=estimate.why,
    )  # fmt: skip


def net_estimates(core: Core, level: float) -> list[Estimate]:
    """tau_m of every arm from the unlabelled outcome, with its interval or the refusal."""
    moments, each = core.analysis.moments, core.each
    out = []
    for m in range(each.value.size):
        half = None
        method = core.analysis.label + " t"
        if core.half is not None:
            half, method = float(core.half[m]), core.analysis.label.replace("CR3", "CR1") + ", symmetric bootstrap-t"
        refused = core.refused
        if half is not None and not np.isfinite(half):
            half, refused = None, "bootstrap-t: too many replicates emptied a cell, the interval is unbounded"
        out.append(
            interval(
                float(each.value[m]),
                float(each.se[m]),
                float(each.df[m]),
                level=level,
                n=moments.n,
                n_clusters=moments.n_clusters,
                method=method,
                refused=refused,
                half=half,
            )
        )
    return out


def _covering(wide: tuple[float, float] | None, pointwise: Estimate) -> tuple[float, float] | None:
    """The joint interval, at least as wide as the pointwise one (which bootstrap-t may widen)."""
    if wide is None or pointwise.low is None or pointwise.high is None:
        return wide
    return min(wide[0], pointwise.low), max(wide[1], pointwise.high)


def unadjusted(analysis: Analysis, coefficients: Floats, *, level: float) -> list[Estimate]:
    """Plain means of all sessions, no strata, weights or labels, against the same baseline; CR3 by cluster."""
    sample, kind = analysis.whole or analysis.sample, "difference of plain means, CR3 t"
    if analysis.whole is not None and analysis.sample.cluster_kind != sample.cluster_kind:
        task, n_tasks = by_task(sample.frame)
        sample = dataclasses.replace(sample, cluster=task, n_clusters=n_tasks)
    one = np.zeros(sample.n, dtype=np.int64)
    built = cells.build(sample.cluster, one, sample.arm, sample.y, n_strata=1, n_arms=len(sample.arms))
    moments = cells.moments(built, name="plain")
    each = contrasts(moments, coefficients)
    refused = emptied(built) or refusal(moments, sample.arms, tested=False)
    return [
        interval(
            float(v), float(se), float(df), level=level, n=moments.n, n_clusters=moments.n_clusters, method=kind,
            refused=refused,
        )
        for v, se, df in zip(each.value, each.se, each.df, strict=True)
    ]  # fmt: skip


def _rank_table(core: Core, level: float, seed: int) -> dict[int, RankInterval]:
    moments = core.analysis.moments
    if core.refused is not None:
        return {}
    rows = np.flatnonzero(moments.g_star_k >= RANK_FROM)
    if core.ppi is not None and core.ppi.moments is not None:
        moments = core.ppi.moments
    if rows.size < 2:
        return {}
    found = ranks(moments, rows, level=level, seed=seed)
    return dict(zip(rows.tolist(), found, strict=True))


def model_rows(core: Core, *, level: float, seed: int) -> dict[str, ModelRow]:
    """Rows of the participating arms; sub-dimensions and signals are added by the caller."""
    analysis, moments, q = core.analysis, core.analysis.moments, core.q
    sample = analysis.sample
    signals = net_estimates(core, level)
    plain = unadjusted(analysis, core.each.coefficients, level=level)
    powered = None if core.ppi is None else core.ppi.net(q, level, core.refused)
    mended = None if core.corrected is None else core.corrected.net(q, level, core.refused)
    head = signals if powered is None else powered
    wide: list[tuple[float, float] | None] = [None] * len(sample.arms)
    if core.refused is None:
        basis = core.each
        if powered is not None and core.ppi is not None and core.ppi.moments is not None:
            basis = contrasts(core.ppi.moments, core.each.coefficients)
        wide = [_covering(w, e) for w, e in zip(simultaneous(basis, level=level, seed=seed), head, strict=True)]
    rank_of = _rank_table(core, level, seed)
    benefit: list[Estimate | None] = [None] * len(sample.arms)
    if not sample.binary:
        benefit = sensitivity.net_benefit(analysis, q, level=level, refused=core.refused, df=core.each.df)
    test = core.test.test
    rows = {}
    for m, name in enumerate(sample.arms):
        thin = moments.g_star_k[m] < RANK_FROM
        why = core.refused
        if why is None and thin:
            why = f"fewer than {RANK_FROM:.0f} effective clusters: listed, unranked"
        rows[name] = ModelRow(
            model=name,
            n_sessions=int(moments.n_k[m]),
            n_clusters=int(moments.clusters_k[m]),
            g_effective=float(moments.g_star_k[m]),
            mean=mean_interval(
                moments, m, level=level, bounded=sample.bounded, binary=sample.binary,
                refused=bool(moments.g_star_k[m] < REFUSE_BELOW),
            ),
            net_improvement=head[m],
            versus_others=None if q[m] >= 1 else _scaled(head[m], 1.0 / (1.0 - float(q[m])), "against the others"),
            simultaneous=wide[m],
            p_value=None if test is None else float(test.p_values[m]),
            rank=rank_of.get(m),
            raw=plain[m],
            ppi=None if powered is None else powered[m],
            rogan_gladen=None if mended is None else mended[m],
            signals_only=None if powered is None else signals[m],
            net_benefit=benefit[m],
            sensitivity=None if core.causal else _sensitivity(core, m, signals[m]),
            why=why,
        )  # fmt: skip
    return rows


def _sensitivity(core: Core, m: int, net: Estimate) -> dict[str, Any]:
    return sensitivity.report(core.analysis, m, core.q, net)


def listed_row(
    name: str, sample: Sample, contrast: tuple[Analysis, Floats] | None, identified: bool, *, level: float
) -> ModelRow:
    """A model outside the baseline: its sessions, and its contrast with the ranked models where they share strata."""
    mine = np.flatnonzero(sample.arm == sample.arms.index(name)) if name in sample.arms else np.zeros(0, dtype=np.int64)
    if mine.size == 0:
        why = "no session with an outcome"
        return ModelRow(
            model=name, n_sessions=0, n_clusters=0, g_effective=0.0, mean=None, net_improvement=None, why=why
        )
    share = np.bincount(sample.cluster[mine]) / mine.size
    effective, clusters = float(1.0 / (share**2).sum()), int((share > 0).sum())
    mean = _own_mean(sample, mine, effective, level)
    thin = f"{effective:.1f} effective clusters, fewer than {RANK_FROM:.0f}"
    net = raw = None
    if contrast is None:
        why = f"{thin}: listed, unranked"
        if effective >= RANK_FROM:
            why = (
                "shares no stratum with the ranked models: listed, unranked"
                if identified
                else "no comparison is identified"
            )
        elif identified:
            why = f"{thin}, and no stratum shared with the ranked models: listed, unranked"
    else:
        net, why = _outside(name, *contrast, level=level)
        if net is not None:
            raw = unadjusted(*contrast, level=level)[0]
        if effective < RANK_FROM:
            why = f"{thin}; {why}"
    return ModelRow(
        model=name, n_sessions=int(mine.size), n_clusters=clusters, g_effective=effective, mean=mean,
        net_improvement=net, raw=raw, why=why,
    )  # fmt: skip


def _outside(name: str, analysis: Analysis, coefficients: Floats, *, level: float) -> tuple[Estimate | None, str]:
    """The contrast of an arm outside the baseline and what it rests on; None below five effective clusters."""
    moments, arms = analysis.moments, analysis.sample.arms
    own, n_strata = arms.index(name), int(analysis.code.max()) + 1
    unit = ("task" if analysis.paired else "stratum", "tasks" if analysis.paired else "strata")[n_strata != 1]
    basis = f"{int(moments.n_k[own])} of its sessions in {n_strata} {unit} shared with every ranked model"
    refused = analysis.refused or refusal(moments, arms, tested=False)
    if moments.g_star_k[own] < REFUSE_BELOW:
        return None, f"no value from {basis}, {moments.g_star_k[own]:.1f} effective clusters: listed, unranked"
    each = contrasts(moments, coefficients)
    net = interval(
        float(each.value[0]), float(each.se[0]), float(each.df[0]), level=level, n=moments.n,
        n_clusters=moments.n_clusters, method=f"{analysis.label} t, outside the baseline", refused=refused,
    )  # fmt: skip
    return net, f"its value rests on {basis}: listed, unranked"


def _own_mean(sample: Sample, mine: Codes, effective: float, level: float) -> Estimate:
    """Mean of an arm's own sessions, not stratified, with a clustered interval from five effective clusters on."""
    y, cluster, method = sample.y[mine], sample.cluster[mine], "mean of its own sessions, not stratified"
    found = None
    if effective >= REFUSE_BELOW:
        found = clustered_proportion(y, cluster, level) if sample.binary else None
        found = found or clustered_mean(y, cluster, level, bounded=sample.bounded)
    if found is not None:
        return msgspec.structs.replace(found, method=f"{method}; {found.method}")
    return Estimate(
        value=float(y.mean()), low=None, high=None, level=level, n=int(mine.size), n_clusters=np.unique(cluster).size,
        method=method, why=f"fewer than {REFUSE_BELOW:.0f} effective clusters",
    )  # fmt: skip
