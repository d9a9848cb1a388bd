"""A sample and a verdict to arm means with moments: which estimator, on which sessions (METHODS 3.3, 3.4b, 3.4e)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.causal import additive, aipw, cells, lin
from seatrial.causal.cells import Cells, Floats, Moments, Weighting, tally
from seatrial.causal.prepare import Codes, Sample, by_task, codes, tasks_repeat
from seatrial.causal.strata import MIN_CLUSTERS, Strata, ladder
from seatrial.causal.uncertainty import REFUSE_BELOW
from seatrial.errors import UsageError
from seatrial.records import Dropped

Estimator = Literal["auto", "post-stratified", "hajek", "lin", "aipw"]
Overlap = Literal["auto", "common", "overlap_weights", "additive"]
AIPW_FROM = 30.0
"""Effective clusters of every arm from which the observational default is AIPW rather than post-stratification."""
AIPW_SIZE = 1_000
"""Propensity coefficients beyond which strata carry the adjustment alone, unless AIPW is asked for."""


@dataclasses.dataclass(frozen=True, slots=True)
class Analysis:
    """What was estimated on what: `sample` holds the sessions that count, `code` (n,) their stratum.

    `cells` are their sufficient statistics; `label` names the estimator; `paired` marks a crossed design, whose rows
    are task means. `whole` is the sample before strata were dropped. `beside` holds other estimators' arm means.
    `refused` says why no interval is defensible, where the number of effective clusters alone does not show it.
    """

    sample: Sample
    code: Codes
    stratum_labels: tuple[str, ...]
    moments: Moments
    cells: Cells
    label: str
    paired: bool
    retained: float
    weighting: Weighting = "share"
    strata: Strata | None = None
    whole: Sample | None = None
    warnings: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    beside: dict[str, Floats] = dataclasses.field(default_factory=dict)
    refused: str | None = None


def inverse_p(sample: Sample) -> Floats | None:
    """Weights 1/p; None where a probability is not recorded."""
    return None if np.isnan(sample.probability).any() else 1.0 / sample.probability


def crossed(sample: Sample, tasks: frozenset[str]) -> Analysis:
    """Every arm on the same tasks: repeats averaged, stratum = cluster = task, equal weight per task (METHODS 3.4e)."""
    k_count = len(sample.arms)
    frame = sample.frame.with_columns(pl.Series("_arm", sample.arm))
    full = frame.group_by("task").agg(pl.col("_arm").n_unique().alias("arms")).filter(pl.col("arms") == k_count)
    keep = frame["task"].is_in((set(full["task"].to_list()) & tasks) or [""]).to_numpy()
    dropped: tuple[Dropped, ...] = ()
    if not keep.all():
        why = "tasks that some model did not run, or has no outcome on: a pair needs both sides"
        dropped = (Dropped(what="sessions in the estimate", n=int((~keep).sum()), why=why),)
    retained = float(keep.mean())
    inside = sample.take(keep)
    if inside.n == 0:
        raise UsageError("no task has an outcome from every model")
    task, labels = codes(inside.frame["task"])
    cell = task * k_count + inside.arm
    n = tally(cell, None, len(labels) * k_count)
    mean = tally(cell, inside.y, n.size) / n
    rows = np.arange(n.size)
    built = cells.build(rows // k_count, rows // k_count, rows % k_count, mean, n_strata=len(labels), n_arms=k_count)
    moments = cells.moments(built, name="paired by task")
    sessions = np.bincount(inside.arm, minlength=k_count)
    paired = dataclasses.replace(
        inside, cluster=task, n_clusters=len(labels), cluster_kind="task", one_user=False
    )  # fmt: skip
    return Analysis(
        sample=paired,
        code=task,
        stratum_labels=labels,
        moments=dataclasses.replace(moments, n=inside.n, n_k=sessions),
        cells=built,
        label="paired by task, CR3",
        paired=True,
        retained=retained,
        dropped=dropped,
    )


def _strata_warnings(strata: Strata) -> list[str]:
    said = []
    if strata.merges:
        some = "; ".join(strata.merges[:5]) + (f"; and {len(strata.merges) - 5} more" if len(strata.merges) > 5 else "")
        said.append(f"strata merged so that every model has ten sessions in each: {some}")
    if strata.thin:
        said.append(f"{strata.thin} strata hold a model with fewer than ten sessions")
    if strata.retained < 1.0:
        kept = f"strata where every model appears hold {strata.retained:.1%} of the sessions"
        said.append(f"{kept}; the rest is left out")
    return said


def stratified(
    sample: Sample,
    *,
    estimator: Estimator = "auto",
    overlap: Overlap = "auto",
    observational: bool,
    covariates: tuple[str, ...] = ("prompt_chars",),
    by: tuple[str, ...] = ("task_type", "difficulty", "epoch"),
    seed: int = 0,
) -> Analysis | None:
    """Arm means over strata. None: rung (c) is impossible too, since the arms are not linked by shared strata."""
    strata = ladder(sample, by)
    weight = inverse_p(sample)
    if estimator == "hajek":
        return _hajek(sample, strata, weight)
    too_few = None
    if strata.retained == 0.0 and overlap != "additive":
        strata, too_few = _described(sample, strata, by)
    if overlap == "additive" or (overlap == "auto" and strata.retained == 0.0):
        moments = additive.moments(sample, strata.base)
        if moments is None:
            return None
        note = "no stratum holds every model: an additive stratum model fills the gaps, which is extrapolation"
        if overlap == "additive":
            note = "an additive stratum model was asked for: it extrapolates where a model is absent"
        built = cells.build(sample.cluster, strata.base, sample.arm, sample.y, n_strata=len(strata.base_labels))
        return Analysis(
            sample=sample, code=strata.base, stratum_labels=strata.base_labels, moments=moments, cells=built,
            label="additive stratum model, CR3", paired=False, retained=1.0, strata=strata, whole=sample,
            warnings=(note,),
        )  # fmt: skip
    if strata.retained == 0.0:
        return None
    keep = strata.code >= 0
    inside, code = sample.take(keep), strata.code[keep]
    weight = inverse_p(inside) if strata.weight_by_p else None
    built = cells.build(
        inside.cluster, code, inside.arm, inside.y, weight=weight,
        n_strata=len(strata.labels), n_arms=len(sample.arms),
    )  # fmt: skip
    weighting: Weighting = "overlap" if overlap == "overlap_weights" else "share"
    label = "post-stratified" if weight is None else "Hajek inside strata"
    if weighting == "overlap":
        label += ", overlap weights"
    moments = cells.moments(built, weighting=weighting, name=label)
    if too_few is not None:
        too_few = emptied(built) or too_few
    analysis = Analysis(
        sample=inside, code=code, stratum_labels=strata.labels, moments=moments, cells=built, label=f"{label}, CR3",
        refused=too_few, paired=False, retained=strata.retained, weighting=weighting, strata=strata, whole=sample,
        warnings=tuple(_strata_warnings(strata)), dropped=strata.dropped,
    )  # fmt: skip
    if too_few is not None:
        return analysis
    return _regression(_larger_error(analysis), estimator, observational, covariates, seed)


def _described(sample: Sample, strata: Strata, by: tuple[str, ...]) -> tuple[Strata, str | None]:
    """Strata that every arm is in, though by one cluster only: there a difference can be described, not inferred."""
    looser = ladder(sample, by, least=1)
    if looser.retained == 0.0:
        return strata, None
    return looser, "no stratum holds two clusters of every model: no interval is defensible"


def _larger_error(analysis: Analysis) -> Analysis:
    """The analysis clustered by task, where tasks repeat across clusters and that error is the larger (METHODS 0.4).

    Errors are compared by the total variance of all contrasts; few tasks are not compared but refused: with fewer
    than five effective ones, or where leaving one out would empty part of a stratum, no error can be estimated.
    """
    sample = analysis.sample
    if sample.cluster_kind == "task" or not tasks_repeat(sample.frame):
        return analysis
    task, n_tasks = by_task(sample.frame)
    if sample.n_clusters < n_tasks and _nested(task, sample.cluster):
        return analysis
    built = cells.build(
        task,
        analysis.code,
        sample.arm,
        sample.y,
        weight=inverse_p(sample) if analysis.strata is not None and analysis.strata.weight_by_p else None,
        n_strata=analysis.cells.n_strata,
        n_arms=analysis.cells.n_arms,
    )
    moments = cells.moments(built, weighting=analysis.weighting, name=analysis.moments.name)
    refused = emptied(built)
    few = refused is not None or moments.g_star_k.min() < REFUSE_BELOW
    centre = np.eye(built.n_arms) - 1.0 / built.n_arms
    wider = np.trace(centre @ moments.cr3 @ centre) > np.trace(centre @ analysis.moments.cr3 @ centre)
    if not wider and not few:
        return analysis
    why = "of which there are too few for an error" if few else "which gives the larger error"
    note = f"tasks repeat across {sample.cluster_kind}s: clustered by task, {why}"
    wider_sample = dataclasses.replace(sample, cluster=task, n_clusters=n_tasks, cluster_kind="task")
    return dataclasses.replace(
        analysis,
        sample=wider_sample,
        cells=built,
        moments=moments,
        warnings=(*analysis.warnings, note),
        refused=refused,
    )


def _nested(inner: Codes, outer: Codes) -> bool:
    """Whether every `inner` group lies inside one `outer` group."""
    return bool(np.unique(inner * np.int64(outer.max() + 1) + outer).size == np.unique(inner).size)


def emptied(built: Cells) -> str | None:
    """Why no jackknife is possible: leaving some cluster out would empty only part of a stratum; None where it is."""
    held = built.total(np.ones(built.n.size))
    alone = np.bincount(cells.distinct(built.stratum * np.int64(built.n_distinct) + built.cluster) // built.n_distinct)
    if built.n_distinct < MIN_CLUSTERS:
        return "one cluster holds every session: no interval is defensible"
    if ((held < MIN_CLUSTERS) & (alone[:, None] > 1)).any():
        return "one cluster holds all that some model did in a stratum: no interval is defensible"
    return None


def _hajek(sample: Sample, strata: Strata, weight: Floats | None) -> Analysis:
    if weight is None:
        raise UsageError(
            "the Hajek estimator needs the recorded probability of every session", hint="estimator='post-stratified'"
        )
    one = np.zeros(sample.n, dtype=np.int64)
    built = cells.build(sample.cluster, one, sample.arm, sample.y, weight=weight, n_strata=1, n_arms=len(sample.arms))
    return Analysis(
        sample=sample, code=one, stratum_labels=("all sessions",), moments=cells.moments(built, name="Hajek"),
        cells=built, label="Hajek, CR3", paired=False, retained=1.0, strata=strata, whole=sample,
    )  # fmt: skip


def covariate_matrix(sample: Sample, names: tuple[str, ...]) -> tuple[Floats, list[str]]:
    """Numeric pre-treatment columns that vary, (n, p): log1p of counts, mean where missing plus an indicator."""
    columns: list[NDArray[np.float64]] = []
    used: list[str] = []
    for name in names:
        if name not in sample.frame.columns:
            raise UsageError(f"no covariate column {name!r}", hint="a covariate must be known before the session began")
        x = sample.frame[name].cast(pl.Float64)
        if x.null_count() == x.len():
            continue
        missing = x.is_null().to_numpy().astype(np.float64)
        filled = x.fill_null(x.median()).to_numpy().astype(np.float64)
        if filled.min() >= 0 and filled.max() > 50:
            filled = np.log1p(filled)
        for column, label in ((filled, name), (missing, f"{name} missing")):
            if column.std() > 1e-9:
                columns.append((column - column.mean()) / column.std())
                used.append(label)
    return (np.column_stack(columns) if columns else np.zeros((sample.n, 0))), used


def _regression(
    analysis: Analysis, estimator: Estimator, observational: bool, names: tuple[str, ...], seed: int
) -> Analysis:
    """Replace post-stratified means by Lin's or AIPW's where asked for, or where the design calls for it."""
    if estimator not in ("auto", "post-stratified", "hajek", "lin", "aipw"):
        raise UsageError(f"unknown estimator {estimator!r}", hint="auto, post-stratified, hajek, lin or aipw")
    if estimator == "auto" and not (observational and analysis.moments.g_star_k.min() >= AIPW_FROM):
        return analysis
    if estimator == "post-stratified" or analysis.weighting == "overlap":
        return analysis
    x, used = covariate_matrix(analysis.sample, names)
    size = (len(analysis.stratum_labels) + x.shape[1]) * len(analysis.sample.arms)
    if estimator == "auto" and (not used or size > AIPW_SIZE):
        return analysis
    beside = {"post-stratified": analysis.moments.mean}
    given = f" on strata and {', '.join(used)}" if used else " on strata"
    if estimator == "lin":
        moments = lin.moments(analysis.sample, analysis.code, x)
        label = f"regression-adjusted (Lin){given}, CR3"
        return dataclasses.replace(analysis, moments=moments, label=label, beside=beside)
    moments, notes = aipw.moments(analysis.sample, analysis.code, x, seed=seed)
    return dataclasses.replace(
        analysis, moments=moments, label=f"AIPW, cross-fitted by cluster{given}, CR3", beside=beside,
        warnings=analysis.warnings + tuple(notes),
    )  # fmt: skip
