"""Baseline and candidate to a decision: every metric, then the suite (METHODS 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from seatrial.errors import EvidenceError, UsageError
from seatrial.gate.needs import needs
from seatrial.gate.noninferiority import TOLERANCE, Tested, compare, exact_attempts
from seatrial.gate.population import Findings, compare_population
from seatrial.gate.runs import PASSED, RESOURCES, SCORE, Better, Kind, MetricRuns, Run
from seatrial.gate.samples import Sample, pair
from seatrial.gate.settings import GateSettings, checked
from seatrial.records import Comparison, Estimate, GateVerdict, MetricRow, RegressedTask
from seatrial.stats import holm
from seatrial.stats.quantiles import student

INTERVAL = 0.90
"""The printed two-sided interval: its lower end is the 95% one-sided bound of the plain test."""


_NOT_THE_AGENT = ("simulator", "environment", "world", "suite")
"""Parts of a fingerprint that the agent runs against."""


SLIGHT_S = 1.0
"""Watched latency is the machine's as much as the agent's: a growth of less than a second is nobody's review."""


class Look(NamedTuple):
    """What replaces alpha where a metric is looked at several times: the repeated p of a drop and whether the bound
    holds at this look's share of alpha (`gate.adaptive`)."""

    p: float
    passes: bool


Spend = Callable[[str, "Measured"], Look]


class Measured(NamedTuple):
    """One declared metric: its sample and tests; `worst` is the test with candidate exclusions counted as failed."""

    metric: str
    kind: Kind
    margin: float
    binary: bool
    sample: Sample | None
    tested: Tested | None
    worst_sample: Sample | None
    worst: Tested | None
    excluded: Mapping[str, int]
    why: str | None


def decide(
    baseline: Run, candidate: Run, settings: GateSettings | None = None, *,
    refused: Mapping[str, str] | None = None, spend: Spend | None = None, warnings: Sequence[str] = (),
    missing_evidence: Sequence[str] = (),
) -> Comparison:  # fmt: skip
    """The gate's answer for two runs.

    `refused` maps metrics to the reason why they cannot gate (an unvalidated judge); they count as missing evidence.
    `spend` replaces the tests' thresholds in adaptive trials. `missing_evidence` is what was lost before there were
    runs.

    Raises:
        EvidenceError: a side has no scored attempt at all.
        SettingsError: a setting is out of range.
        UsageError: a quality metric has a value outside its range.
    """
    settings = checked(settings or GateSettings())
    _in_range(baseline, candidate, settings)
    for run in (baseline, candidate):
        if not set(run.tasks) - set(run.unscored):
            raise EvidenceError(f"{run.label}: nothing was scored, so there is nothing to compare")
    findings = compare_population(baseline, candidate, settings)
    stop = [*missing_evidence, *findings.stop]
    measured = measure(baseline, candidate, findings, settings, refused or {})
    rows, missing = judge_metrics(measured, settings, spend)
    stop.extend(missing)
    broken, absent = _must_pass(baseline, candidate, settings)
    stop.extend(f"must-pass case {t!r} has no scored attempt in the candidate" for t in absent)
    warned = [*warnings, *findings.notes, *_said(baseline, candidate)]
    single = baseline.single or candidate.single
    if single:
        warned.append("single run: one run per task shows no flakiness, so only large changes can be decided")
    verdict, why = _suite(rows, settings, broken, stop, findings.inconclusive)
    return Comparison(
        verdict=verdict,
        single_run=single,
        changed=tuple(
            part for part in sorted({*baseline.fingerprint, *candidate.fingerprint})
            if baseline.fingerprint.get(part) != candidate.fingerprint.get(part)
        ),
        rule=settings.rule,
        margin=settings.margin,
        population=findings.population,
        metrics=tuple(rows),
        regressed_tasks=_regressed(measured, rows, broken),
        must_pass_failed=broken,
        missing_evidence=tuple(stop),
        warnings=(*warned, *findings.inconclusive),
        why=why,
    )  # fmt: skip


def _in_range(baseline: Run, candidate: Run, settings: GateSettings) -> None:
    """Outside a known range it is not known what an excluded attempt can have cost."""
    for run in (baseline, candidate):
        for name, metric in run.metrics.items():
            if metric.kind != "quality" or name not in baseline.metrics:
                continue
            least, greatest = settings.range_of(name)
            outside = [v for t in metric.tasks.values() for v in t.values if not least <= v <= greatest]
            if outside:
                raise UsageError(
                    f"{run.label}: metric {name!r} has the value {outside[0]:g}, outside its range from {least:g} to "
                    f"{greatest:g}",
                    hint=f"declare its range in the settings, [gate.metrics.{name}]: range = [0, 10], and a margin in "
                    "its unit",
                )  # fmt: skip


def exit_status(comparison: Comparison, on_inconclusive: Literal["pass", "fail"] = "pass") -> int:
    """0 to go on, 1 for a regression, 3 for missing evidence, or for INCONCLUSIVE where that is to fail."""
    if comparison.verdict == "REGRESSION":
        return 1
    if comparison.missing_evidence:
        return 3
    return 3 if comparison.verdict == "INCONCLUSIVE" and on_inconclusive == "fail" else 0


def declared(metric: str, runs: MetricRuns, settings: GateSettings) -> bool:
    """Whether a metric was declared before the run: every quality metric is, cost and latency where settings say so.

    Undeclared cost and latency are watched: they can turn PASS into REVIEW and nothing else.
    """
    return runs.kind == "quality" or metric in settings.metrics


def measure(
    baseline: Run, candidate: Run, findings: Findings, settings: GateSettings, refused: Mapping[str, str]
) -> list[Measured]:
    """Samples and tests of every metric of the baseline and of the settings."""
    names = list(dict.fromkeys([*baseline.metrics, *settings.metrics]))
    found = [_measure(n, baseline, candidate, findings, settings, refused.get(n)) for n in names]
    # The outcome first, cost and latency last; where a run came from does not change the order.
    return sorted(found, key=lambda m: (m.kind != "quality", m.metric not in (PASSED, SCORE), m.metric))


def _measure(
    metric: str, baseline: Run, candidate: Run, findings: Findings, settings: GateSettings, refused: str | None
) -> Measured:
    common = findings.common
    b, c = baseline.metrics.get(metric), candidate.metrics.get(metric)
    kind: Kind = b.kind if b else RESOURCES.get(metric, "quality")
    margin = settings.margin_of(metric, kind)
    excluded: dict[str, int] = {}
    for task in (common | findings.unscored) & set(c.tasks if c else ()):
        for status, n in c.tasks[task].excluded.items() if c else ():
            excluded[status] = excluded.get(status, 0) + n
    absent: dict[str, int] = {}
    if b is not None and c is not None and kind == "quality":
        absent = {t: n for t in sorted(common | findings.unscored) if t in c.tasks and (n := c.missing(t, b))}
    if absent:
        excluded["missing"] = excluded.get("missing", 0) + sum(absent.values())
    nothing = Measured(metric, kind, margin, False, None, None, None, None, excluded, refused)
    if b is None or c is None:
        return nothing._replace(why=refused or f"the {'baseline' if b is None else 'candidate'} has no such metric")
    if b.version != c.version:
        why = f"made by {b.version or 'an unknown version'} and {c.version or 'an unknown version'}: grade both again"
        return nothing._replace(why=refused or why)
    own = settings.metrics.get(metric)
    better: Better = (own.better if own else None) or ("higher" if kind == "quality" else "lower")
    sample = pair(b, c, common, better=better, kind=kind)
    if sample is None or refused:
        unknown = "no task has a value on both sides" if kind == "quality" else "not known, or 0 throughout, on a side"
        return nothing._replace(why=refused or unknown)
    binary = b.binary and c.binary and better == "higher"
    worst = sample
    if excluded and kind == "quality":
        least, greatest = settings.range_of(metric)
        value = least if better == "higher" else greatest
        worst = pair(b, c, common | findings.unscored, better=better, kind=kind, worst=value,
                     absent=absent) or sample  # fmt: skip
    return Measured(
        metric, kind, margin, binary, sample, tested(sample, margin, binary, settings.alpha),
        worst, tested(worst, margin, binary, settings.alpha), excluded, None,
    )  # fmt: skip


def tested(sample: Sample, margin: float, binary: bool, alpha: float) -> Tested:
    """Both tests of a sample."""
    return compare(sample.difference, sample.n_candidate, margin, binary=binary, alpha=alpha, changed=sample.changed)


def judge_metrics(
    measured: Sequence[Measured], settings: GateSettings, spend: Spend | None
) -> tuple[list[MetricRow], list[str]]:
    """Rows with verdicts, and the evidence that is missing. Holm goes over the declared metrics; the watched ones
    have a family of their own."""
    looks = {m.metric: spend(m.metric, m) for m in measured if spend is not None and m.tested is not None}
    raw = [looks[m.metric].p if m.metric in looks else 1.0 if m.tested is None else float(m.tested.p) for m in measured]
    family = [m.kind == "quality" or m.metric in settings.metrics for m in measured]
    adjusted = np.ones(len(measured))
    for members in (True, False):
        index = [i for i, f in enumerate(family) if f is members]
        if index:
            adjusted[index] = holm([raw[i] for i in index])
    rows, missing = [], []
    for m, p, p_holm, own in zip(measured, raw, adjusted, family, strict=True):
        passes = looks[m.metric].passes if m.metric in looks else None
        rows.append(_row(m, p, float(p_holm), passes, settings))
        if m.tested is None and own:
            missing.append(f"metric {m.metric!r}: {m.why}")
    return rows, missing


def _row(m: Measured, p: float, p_holm: float, passes: bool | None, settings: GateSettings) -> MetricRow:
    if m.sample is None or m.tested is None or m.worst is None:
        return MetricRow(
            metric=m.metric, baseline=None, candidate=None, difference=None, p_value=None, p_holm=p_holm,
            verdict="INCONCLUSIVE", mde=None, more_runs=None, margin=m.margin, why=m.why, kind=m.kind,
            excluded=dict(m.excluded),
        )  # fmt: skip
    t = m.tested
    regressed = bool(t.drops) and p_holm <= settings.alpha
    holds = bool(t.passes and m.worst.passes) if passes is None else passes
    verdict: GateVerdict
    if settings.rule == "point":
        verdict = "REGRESSION" if bool(t.drops) else "PASS"
    else:
        verdict = "REGRESSION" if regressed else "PASS" if holds else "INCONCLUSIVE"
    if verdict == "REGRESSION" and m.kind != "quality":
        verdict = "REVIEW"
    slight = m.kind == "latency" and m.metric not in settings.metrics
    if verdict == "REVIEW" and slight and m.sample.candidate - m.sample.baseline < SLIGHT_S:
        verdict = "PASS"
    need = needs(m.sample, m.margin, binary=m.binary, floor=float(t.floor), alpha=settings.alpha)
    undecided = verdict == "INCONCLUSIVE"
    return MetricRow(
        metric=m.metric,
        baseline=m.sample.baseline,
        candidate=m.sample.candidate,
        difference=printed(m.sample, t, m.binary, settings.alpha),
        p_value=p,
        p_holm=p_holm,
        verdict=verdict,
        mde=need.mde,
        more_runs=need.runs if undecided else None,
        margin=m.margin,
        more_tasks=need.tasks if undecided else None,
        why=_why(m, verdict, need.why),
        kind=m.kind,
        lower=float(m.worst.lower) if np.isfinite(m.worst.lower) else None,
        n_tasks=len(m.sample.tasks),
        excluded=dict(m.excluded),
    )


def _why(m: Measured, verdict: GateVerdict, need: str | None) -> str | None:
    if verdict != "INCONCLUSIVE" or m.tested is None or m.worst is None:
        return None
    if bool(m.tested.passes) and not bool(m.worst.passes):
        n = sum(m.excluded.values())
        what = "excluded attempt" if n == 1 else "excluded attempts"
        return f"it would pass, but not if its {n} {what} had failed"
    return need


def printed(sample: Sample, t: Tested, binary: bool, alpha: float) -> Estimate:
    """The difference with its two-sided 90% interval."""
    tasks = len(sample.tasks)
    mean, se = float(t.mean), float(t.se)
    low = high = None
    why = None
    method = "mean of per-task differences, t"
    if tasks < 2:
        why = "one task has no spread between tasks"
    elif se > 0:
        half = student(0.5 + INTERVAL / 2.0, tasks - 1) * se
        low, high = mean - half, mean + half
    elif int(t.discordant) == 0:
        low = -(1.0 - 0.05 ** (1.0 / sample.n_candidate))
        high = 1.0 - 0.05 ** (1.0 / sample.n_baseline)
        method = "no task differs: exact bounds on what can have been lost or won"
    else:
        why = "every task differs by the same amount"
    return Estimate(
        value=mean, low=low, high=high, level=INTERVAL, n=sample.n_baseline + sample.n_candidate, n_clusters=tasks,
        method=method, se=se or None, why=why,
    )  # fmt: skip


def _must_pass(baseline: Run, candidate: Run, settings: GateSettings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Must-pass cases that failed in any attempt, and those without evidence."""
    cases = {*settings.must_pass, *baseline.must_pass, *candidate.must_pass}
    absent = {t for t in cases if t not in candidate.tasks or t in candidate.unscored}
    return tuple(sorted(cases & set(candidate.failing))), tuple(sorted(absent))


def _fewer(run: Run) -> str | None:
    """Tasks with fewer attempts than the run's others: it was cut short, or some were erased."""
    made: dict[str, int] = {}
    for metric in run.metrics.values():
        for task, t in metric.tasks.items():
            made[task] = max(made.get(task, 0), len(t.values) + t.n_excluded)
    most = max(made.values(), default=0)
    short = sorted(task for task, n in made.items() if n < most)
    if not short:
        return None
    have = "task has" if len(short) == 1 else "tasks have"
    return f"{run.label}: {len(short)} {have} fewer than {most} attempts, such as {short[0]}"


def _said(baseline: Run, candidate: Run) -> list[str]:
    out = [said for run in (baseline, candidate) if (said := _fewer(run)) is not None]
    undeclared = sorted(m for m, r in candidate.metrics.items() if m not in baseline.metrics and r.kind == "quality")
    if undeclared:
        out.append(f"not gated, because the baseline has no such metric: {', '.join(undeclared)}")
    if not baseline.fingerprint or not candidate.fingerprint:
        out.append("no fingerprint of the agent is recorded, so it is not known what changed")
    elif baseline.fingerprint == candidate.fingerprint:
        out.append("nothing changed in the agent's fingerprint: this is an A/A check")
    beside = [p for p in _NOT_THE_AGENT if baseline.fingerprint.get(p) != candidate.fingerprint.get(p)]
    if beside:
        out.append(f"not the agent alone changed, so a difference need not be its doing: {', '.join(beside)}")
    return out


def _suite(
    rows: Sequence[MetricRow], settings: GateSettings, broken: Sequence[str], stop: Sequence[str],
    withheld: Sequence[str],
) -> tuple[GateVerdict, str]:  # fmt: skip
    """REGRESSION if any; else INCONCLUSIVE if any metric or finding; else REVIEW; else PASS."""
    regressed = [r.metric for r in rows if r.verdict == "REGRESSION"]
    if broken:
        return "REGRESSION", f"must-pass failed: {', '.join(broken)}"
    if regressed:
        return "REGRESSION", f"worse by more than the margin: {', '.join(regressed)}"
    if stop:
        return "INCONCLUSIVE", f"evidence is missing: {stop[0]}"
    if withheld:
        return "INCONCLUSIVE", withheld[0]
    open_quality = [r.metric for r in rows if r.verdict == "INCONCLUSIVE" and r.kind == "quality"]
    if open_quality:
        return "INCONCLUSIVE", f"not decided: {', '.join(open_quality)}"
    review = [r.metric for r in rows if r.verdict == "REVIEW"]
    if review:
        return "REVIEW", f"quality holds; worse beyond the margin: {', '.join(review)}"
    open_cost = [r.metric for r in rows if r.verdict == "INCONCLUSIVE" and r.metric in settings.metrics]
    if open_cost:
        return "INCONCLUSIVE", f"not decided: {', '.join(open_cost)}"
    if not any(r.kind == "quality" for r in rows):
        return "INCONCLUSIVE", "no quality metric was compared"
    return "PASS", "every quality metric holds within its margin"


def _regressed(
    measured: Sequence[Measured], rows: Sequence[MetricRow], broken: Sequence[str]
) -> tuple[RegressedTask, ...]:
    """Tasks that got worse in a quality metric that did not pass, worst first; must-pass failures before all."""
    out = []
    for m, row in zip(measured, rows, strict=True):
        if m.sample is None or m.kind != "quality":
            continue
        for task, d, (b, c) in zip(m.sample.tasks, m.sample.difference, m.sample.means, strict=True):
            if d < -TOLERANCE and (row.verdict in ("REGRESSION", "INCONCLUSIVE") or task in broken):
                out.append((task not in broken, float(d), RegressedTask(task=task, metric=m.metric, baseline=b,
                                                                        candidate=c)))  # fmt: skip
    out.sort(key=lambda item: (item[0], item[1], item[2].task, item[2].metric))
    return tuple(task for _, _, task in out)


__all__ = ["Look", "Measured", "decide", "declared", "exact_attempts", "exit_status", "measure", "tested"]
