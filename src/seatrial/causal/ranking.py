"""Outcomes to a `Ranking`: the story of METHODS 3 from the verdict to the last caveat."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from seatrial.causal import beside, bootstrap, corrected, coverage, design, effect, power, ppi, prepare, randomise
from seatrial.causal import calls as counting
from seatrial.causal import strata as ladders
from seatrial.causal import subdimensions as dims
from seatrial.causal.effect import Analysis, Estimator, Overlap
from seatrial.causal.options import Baseline, Interval, Options, policy
from seatrial.causal.prepare import Floats, Sample
from seatrial.causal.rows import Core, listed_row, model_rows
from seatrial.causal.uncertainty import RANK_FROM, REFUSE_BELOW, contrasts, net_coefficients, refusal, warnings
from seatrial.errors import UsageError
from seatrial.records import Check, Ranking
from seatrial.stats import holm


@dataclasses.dataclass(frozen=True, slots=True)
class _Inputs:
    """The table with the outcome as `_y`, and the side tables."""

    table: pl.DataFrame
    calls: pl.DataFrame | pl.LazyFrame | None
    corrections: pl.DataFrame | None
    labels: pl.DataFrame | None
    conditions: pl.DataFrame | None


def rank(
    outcomes: pl.DataFrame,
    *,
    outcome: str | None = None,
    value: pl.Series | str | None = None,
    calls: pl.DataFrame | pl.LazyFrame | None = None,
    corrections: pl.DataFrame | None = None,
    labels: pl.DataFrame | None = None,
    conditions: pl.DataFrame | None = None,
    arm: str = "arm",
    roster: Sequence[str] | None = None,
    baseline: Baseline = "uniform",
    estimator: Estimator = "auto",
    overlap: Overlap = "auto",
    interval: Interval = "jackknife",
    covariates: Sequence[str] = ("prompt_chars",),
    strata: Sequence[str] = ("task_type", "difficulty", "epoch"),
    by: Sequence[str] = ("task_type",),
    level: float = 0.95,
    seed: int = 0,
    draws: int = 9999,
    weights: str = "unit",
    basis: Mapping[str, Any] | None = None,
    progress: Callable[[int, int | None, str], None] = lambda done, total, what: None,
) -> Ranking:
    """Net improvement of every model over the baseline policy, and what the number is worth (METHODS 3).

    Args:
        outcomes: one row per session, the columns of `records.tables.OUTCOMES_TABLE`; `session` and `arm` are needed.
        outcome: name of the outcome; the column of that name is taken unless `value` is given.
        value: the outcome as a series aligned with `outcomes`, or a column name. Null: no outcome, counted.
        calls, corrections: the side tables of the sub-dimensions (METHODS 3.8); calls may be lazy, for they are many,
            or counted already (`causal.calls.count` by arm and every field of `by`).
        labels: true outcomes of a random subset: columns `session`, `label` and, unless all are equal, the labelling
            probability `probability`. The prediction-powered estimate is then the headline (METHODS 3.4d).
        conditions: what else ran each session: `session` and text columns such as `agent`, `agent_version`,
            `simulator`; columns that differ between models are named (METHODS 3.6).
        arm: the column to compare; any field can be the arm (model, harness, prompt).
        roster: the participating models; None takes all with at least ten effective clusters (five, or all, where
            fewer than two have ten). The others are listed, unranked.
        baseline: `uniform`, `traffic`, or shares by model.
        estimator: `auto` is post-stratified (Hajek inside strata where recorded probabilities vary there), paired by
            task in a crossed design, AIPW for observational data with covariates and thirty effective clusters.
        overlap: `auto`, `common` (strata where every model appears), `overlap_weights` or `additive`.
        interval: `jackknife` (CR3 t) or `bootstrap-t` (symmetric, on the CR1 error).
        covariates: numeric columns known before the session began.
        strata: which of task_type, difficulty and epoch stratify.
        by: fields that each get a ranking of their own (METHODS 3.9).
        level, seed, draws: confidence level, seed of all randomness, draws of the randomisation test (at least 999).
        weights: fitted | unit | emphasis, for the report. basis: what the caller adds to the printed basis.
        progress: told after each ranking, of the whole and of its parts: how many are done, of how many, of what.

    Raises:
        UsageError: options that cannot mean anything. SchemaError: columns missing or of the wrong type.
        EvidenceError: no session has both a model and an outcome.
    """
    prepare.refuse_all_excluded(outcomes)
    table, name = prepare.with_value(prepare.complete(outcomes, arm), outcome, value)
    options = Options(
        outcome=name, baseline=baseline, estimator=estimator, overlap=overlap, interval=interval,
        covariates=tuple(covariates), strata=tuple(strata), roster=None if roster is None else tuple(roster),
        level=level, seed=seed, draws=draws, weights=weights, basis=dict(basis or {}),
    )  # fmt: skip
    inputs = _Inputs(table, calls, corrections, labels, conditions)
    values = {field: _values(inputs, field) for field in by}
    total = 1 + sum(len(some) for some in values.values())
    done = itertools.count(1)
    progress(0, total, "rankings")

    def one(inputs: _Inputs, options: Options) -> Ranking:
        made = _one(inputs, options, None)
        progress(next(done), total, "rankings")
        return made

    whole = one(inputs, options)
    parts = {field: _by(inputs, options, field, values[field], one) for field in by}
    return _with_parts(whole, {field: part for field, part in parts.items() if part})


def _roster(sample: Sample, options: Options) -> tuple[tuple[str, ...], str | None]:
    """Participating arms and, where thin arms are left out of the baseline, a sentence."""
    if options.roster is not None:
        strangers = sorted(set(options.roster) - set(sample.arms))
        if strangers:
            raise UsageError(f"roster names {strangers[0]!r}, which has no scored session")
        return tuple(sorted(set(options.roster))), None
    key = sample.cluster * len(sample.arms) + sample.arm
    pairs, sizes = np.unique(key, return_counts=True)
    arm_of = pairs % len(sample.arms)
    total = np.bincount(arm_of, weights=sizes)
    effective = total**2 / np.bincount(arm_of, weights=sizes.astype(np.float64) ** 2)
    for least in (RANK_FROM, REFUSE_BELOW):
        chosen = tuple(a for a, g in zip(sample.arms, effective, strict=True) if g >= least)
        if len(chosen) >= 2:
            out = len(sample.arms) - len(chosen)
            noun = "model" if out == 1 else "models"
            said = f"listed outside the baseline, with fewer than {least:.0f} effective clusters: {out} {noun}"
            return chosen, said if out else None
    return sample.arms, None


def _identified(sample: Sample, roster: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """The largest set of roster arms linked by shared strata; a single arm means that nothing is identified."""
    inside = sample.take(np.isin(sample.arm, [sample.arms.index(a) for a in roster]), roster)
    _, base = ladders.base_strata(inside, options.strata)
    if options.estimator == "hajek":
        return roster
    return tuple(roster[k] for k in sorted(ladders.components(base, inside.arm, len(roster))[0]))


def _analyse(sample: Sample, roster: tuple[str, ...], verdict: design.Verdict, options: Options) -> Analysis | None:
    if len(roster) < 2:
        return None
    if verdict.kind == "crossed":
        return effect.crossed(sample.take(np.ones(sample.n, dtype=bool), roster), verdict.tasks)
    return effect.stratified(
        sample.take(np.ones(sample.n, dtype=bool), roster),
        estimator=options.estimator, overlap=options.overlap, observational=verdict.kind == "observational",
        covariates=options.covariates, by=options.strata, seed=options.seed,
    )  # fmt: skip


def _one(inputs: _Inputs, options: Options, parent: design.Verdict | None) -> Ranking:
    """One ranking, without parts by task type."""
    counted, lost, dropped = prepare.split(inputs.table)
    sample = prepare.sample(counted)
    roster, thin_note = _roster(sample, options)
    with_arm = inputs.table.filter(pl.col("arm").is_not_null())
    verdict = design.decide(with_arm, roster, seed=options.seed)
    if verdict.kind != "crossed":
        roster = _identified(sample, roster, options)
    analysis = _analyse(sample, roster, verdict, options)
    core = None if analysis is None else _core(analysis, verdict, inputs, options)
    kind = verdict if core is not None else dataclasses.replace(verdict, kind="not_identified")
    found = design.differing(inputs.conditions, with_arm, roster)
    record = design.describe(
        kind, (_overlap_check(analysis, roster),), found, one_user=sample.one_user, cluster=sample.cluster_kind
    )
    by_task = verdict.kind == "crossed" or (analysis is not None and analysis.sample.cluster_kind == "task")
    everyone = _everyone(with_arm, sample if lost.is_empty() else None, by_task)
    notes = [thin_note] if thin_note else []
    rows, extra = _rows(core, sample, everyone, roster, verdict, inputs, options)
    if core is not None and analysis is not None:
        notes += [*analysis.warnings, *warnings(analysis.moments, roster), *core.notes]
        dropped = [*dropped, *analysis.dropped]
        extra |= beside.report(core, lost, seed=options.seed)
    return Ranking(
        design=record,
        basis=beside.basis(sample, analysis, with_arm, roster, verdict, options),
        outcome=options.outcome,
        baseline={} if core is None else dict(zip(roster, core.q.tolist(), strict=True)),
        estimator="none" if analysis is None else analysis.label,
        weights=options.weights,
        g_effective=_overall(sample)[0] if analysis is None else analysis.moments.g_star,
        largest_cluster_share=_overall(sample)[1] if analysis is None else analysis.moments.largest,
        coverage_table=coverage.table(everyone, options.outcome, everyone.frame["_y"]),
        models=rows,
        null=None if core is None else randomise.null(core.test, roster),
        power=None if core is None else core.power,
        dropped=tuple(dropped),
        warnings=tuple(notes),
        robustness=extra,
    )


def _core(analysis: Analysis, verdict: design.Verdict, inputs: _Inputs, options: Options) -> Core:
    sample = analysis.sample
    q = policy(options.baseline, sample.arms, np.bincount(sample.arm, minlength=len(sample.arms)).tolist())
    each = contrasts(analysis.moments, net_coefficients(q))
    test = randomise.run(analysis, q, randomised=verdict.kind == "randomised", draws=options.draws, seed=options.seed)
    refused = analysis.refused or refusal(analysis.moments, sample.arms, tested=test.test is not None)
    notes: list[str] = []
    half = None
    if options.interval == "bootstrap-t" and refused is None:
        half, note = bootstrap.half_widths(analysis, each, level=options.level, seed=options.seed)
        notes += [note] if note else []
    powered, mended = None, None
    if inputs.labels is not None:
        powered = ppi.estimate(analysis, inputs.labels, level=options.level)
        mended = corrected.estimate(analysis, inputs.labels)
        notes += [*powered.notes, *mended.notes]
    return Core(
        analysis=analysis, q=q, each=each, refused=refused, test=test, half=half, ppi=powered, corrected=mended,
        causal=verdict.kind != "observational", notes=tuple(notes),
        power=power.observed(
            analysis.moments, each, sample.arms, level=options.level, bounded=sample.bounded, refused=refused
        ),
    )  # fmt: skip


def _everyone(with_arm: pl.DataFrame, scored: Sample | None, by_task: bool) -> Sample:
    """All sessions with an arm, scored or not, clustered as the estimate is: coverage and sub-dimensions use it.

    `scored` is that sample already, where every session has an outcome.
    """
    if scored is not None:
        everyone, restored = scored, scored.frame
    else:
        frame = with_arm.with_columns(pl.col("_y").alias("_true")).with_columns(pl.col("_y").fill_null(0.0))
        everyone = prepare.sample(frame)
        restored = everyone.frame.with_columns(pl.col("_true").alias("_y")).drop("_true")
    if not by_task or everyone.cluster_kind == "task":
        return dataclasses.replace(everyone, frame=restored)
    task, n_tasks = prepare.by_task(restored)
    return dataclasses.replace(
        everyone, frame=restored, cluster=task, n_clusters=n_tasks, cluster_kind="task", one_user=False
    )


def _rows(
    core: Core | None, sample: Sample, everyone: Sample, roster: tuple[str, ...], verdict: design.Verdict,
    inputs: _Inputs, options: Options,
) -> tuple[tuple[Any, ...], dict[str, Any]]:  # fmt: skip
    level, seed = options.level, options.seed
    parts = [
        dims.reliability(everyone, inputs.calls, level),
        dims.responsiveness(everyone, inputs.corrections, level),
        dims.positivity(everyone, level),
    ]
    by_arm = dict(zip(everyone.arms, dims.dimensions(parts, everyone, level=level, seed=seed), strict=True))
    signals = coverage.rates(everyone, level)
    mixed = _mixed(everyone)
    rows = {} if core is None else model_rows(core, level=level, seed=seed)
    for name in everyone.arms:
        if name not in rows:
            contrast = None if core is None else _beside(core, sample, name, roster, verdict, options)
            rows[name] = listed_row(name, sample, contrast, core is not None, level=level)
    full = [
        _complete(rows[name], by_arm[name], signals[name], mixed.get(name), core is not None) for name in everyone.arms
    ]
    full.sort(key=lambda r: (r.rank is None, -(r.net_improvement.value if r.net_improvement else -np.inf), r.model))
    return tuple(full), {}


def _complete(row: Any, dimensions: dict[str, Any], signals: dict[str, Any], mixed: float | None, ranked: bool) -> Any:
    import msgspec

    composite = dims.composite(dimensions, row.net_improvement) if ranked else None
    return msgspec.structs.replace(row, dimensions=dimensions, signals=signals, mixed_share=mixed, composite=composite)


def _beside(
    core: Core, sample: Sample, name: str, roster: tuple[str, ...], verdict: design.Verdict, options: Options
) -> tuple[Analysis, Floats] | None:
    """A listed arm against the baseline of the ranked ones, on the strata that it shares with them."""
    if name not in sample.arms:
        return None
    wider = dataclasses.replace(options, estimator="post-stratified") if options.estimator == "auto" else options
    try:
        analysis = _analyse(sample, (*roster, name), verdict, wider)
    except UsageError:
        return None
    if analysis is None:
        return None
    coefficients = np.append(-core.q, 1.0)[None, :]
    return analysis, coefficients


def _mixed(everyone: Sample) -> dict[str, float]:
    mixed = everyone.frame["mixed"]
    if mixed.null_count() == everyone.n:
        return {}
    flags = mixed.fill_null(False).to_numpy()
    return {a: float(flags[everyone.arm == k].mean()) for k, a in enumerate(everyone.arms)}


def _overall(sample: Sample) -> tuple[float, float]:
    share = np.bincount(sample.cluster) / sample.n
    return float(1.0 / (share**2).sum()), float(share.max())


def _overlap_check(analysis: Analysis | None, roster: tuple[str, ...]) -> Check:
    if len(roster) < 2:
        return Check(name="overlap", ok=False, value=None, why="no two models share a stratum")
    if analysis is None:
        return Check(name="overlap", ok=False, value=0.0, why="no estimator links the models")
    where = "tasks that every model ran" if analysis.paired else "strata where every model appears"
    why = f"{where} hold {analysis.retained:.1%} of the sessions"
    if "additive" in analysis.label:
        return Check(name="overlap", ok=False, value=0.0, why="no stratum holds every model: extrapolation")
    return Check(name="overlap", ok=analysis.retained >= 0.5, value=analysis.retained, why=why)


def _values(inputs: _Inputs, field: str) -> list[str]:
    """Every value of `field` that has a scored session; none where there is only one."""
    if field not in inputs.table.columns:
        raise UsageError(f"no column {field!r} to rank by")
    scored = prepare.split(inputs.table)[0]
    values = sorted(scored[field].cast(pl.String).drop_nulls().unique().to_list())
    return values if len(values) > 1 else []


def _by(
    inputs: _Inputs, options: Options, field: str, values: Sequence[str], one: Callable[[_Inputs, Options], Ranking]
) -> dict[str, Ranking]:
    """A ranking for each of some values of `field`."""
    out = {}
    for value in values:
        rows = inputs.table.filter(pl.col(field).cast(pl.String) == value)
        narrow = options
        if options.roster is not None or not isinstance(options.baseline, str):
            present = set(prepare.split(rows)[0]["arm"].to_list())
            kept = tuple(a for a in options.roster or () if a in present)
            baseline = options.baseline
            if not isinstance(baseline, str) and not set(baseline) <= present:
                baseline = "uniform"
            narrow = dataclasses.replace(options, roster=kept or None, baseline=baseline)
        calls = inputs.calls
        if isinstance(calls, pl.DataFrame) and counting.is_counted(calls):
            calls = counting.part(calls, field, value)
        out[value] = one(dataclasses.replace(inputs, table=rows, calls=calls), narrow)
    return out


def _with_parts(whole: Ranking, parts: dict[str, dict[str, Ranking]]) -> Ranking:
    """State the multiplicity over types x models, with Holm-adjusted p-values across all of them (METHODS 3.9)."""
    import msgspec

    if not parts:
        return whole
    extra, notes = dict(whole.robustness), list(whole.warnings)
    for field, rankings in parts.items():
        tests = [(v, m.model, m.p_value) for v, r in rankings.items() for m in r.models if m.p_value is not None]
        n = sum(1 for r in rankings.values() for m in r.models if m.net_improvement is not None)
        notes.append(
            f"by {field}: {n} contrasts over {len(rankings)} values x models; simultaneous intervals and ranks hold "
            f"inside one value, and p-values adjusted over all of them (Holm) stand in robustness"
        )
        if tests:
            adjusted = holm([p for _, _, p in tests])
            table: dict[str, dict[str, float]] = {}
            for (v, model, _), p in zip(tests, adjusted.tolist(), strict=True):
                table.setdefault(v, {})[model] = p
            extra[f"p_holm_by_{field}"] = table
    return msgspec.structs.replace(whole, by=parts, robustness=extra, warnings=tuple(notes))
