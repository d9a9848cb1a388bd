"""Two windows of outcomes to what changed between them, and whether it could be chance (METHODS 3.10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from seatrial.causal import prepare
from seatrial.causal.ranking import rank
from seatrial.causal.uncertainty import ONLY_TESTED
from seatrial.errors import EvidenceError, SeatrialError
from seatrial.records import Dropped, Estimate, Ranking
from seatrial.records.drift import Change, DeployMark, Drift, ModelChange, Said, Window
from seatrial.stats import holm
from seatrial.stats.quantiles import two_sided_df, two_sided_t
from seatrial.stats.shift import classifier_test, stability_test, window_difference

MIXES: tuple[tuple[str, tuple[str, ...]], ...] = (("task mix", ("task_type", "difficulty")), ("route", ("arm",)))
RATES: tuple[tuple[str, str], ...] = (
    ("confirmed success", "confirmed_success"),
    ("praise over complaint", "praise_over_complaint"),
    ("steerability", "steerability"),
    ("command recovery", "command_recovery"),
    ("no tool hallucination", "no_tool_hallucination"),
    ("corrections per session", "n_correction"),
    ("complaints per session", "n_complaint"),
    ("execution errors per session", "n_execution_error"),
    ("escalations per session", "n_escalation"),
    ("cost per session (USD)", "cost_usd"),
    ("latency per session (s)", "latency_s"),
    ("tokens per session", "tokens"),
)
STALE_PSI = 0.2
MOST_SESSIONS = 4_000
"""Sessions that the classifier test looks at: more are sampled by whole clusters."""


def drift(
    before: pl.DataFrame,
    now: pl.DataFrame,
    *,
    windows: tuple[tuple[float, float], tuple[float, float]],
    outcome: str,
    values: tuple[pl.Series, pl.Series],
    marks: Sequence[DeployMark] = (),
    max_age_days: float = 30.0,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 999,
    progress: Callable[[int, int | None, str], None] = lambda done, total, what: None,
) -> Drift:
    """What changed from one window's outcome rows to another's.

    Args:
        before, now: rows of `records.tables.OUTCOMES_TABLE` (with `n_escalation` beside them) of sessions that began
            in each window. windows: where the windows begin and end (s, UTC).
        outcome, values: the outcome's name and its value for the rows of each window.
        marks: deploys; those between the start of the first window and the end of the second are named.
        progress: told after each group of comparisons: how many are done, of how many, of what.

    Raises:
        EvidenceError: a window holds no session.
    """
    for rows, what in ((before, "baseline window"), (now, "window to compare")):
        if rows.is_empty():
            start, end = (_day(t) for t in windows[what.startswith("window")])
            raise EvidenceError(
                f"the {what} ({start} to {end}) holds no session", hint="choose other dates, or ingest newer sessions"
            )
    both = pl.concat([before.with_columns(later=pl.lit(False)), now.with_columns(later=pl.lit(True))])
    both = both.with_columns(value=pl.concat([values[0].cast(pl.Float64), values[1].cast(pl.Float64)])).sort("session")
    clusters, kind, one_user = prepare.clusters(both)
    later = both["later"].to_numpy()
    progress(0, 4, "comparisons")
    found = _mixes(both, later, clusters, draws, seed)
    progress(1, 4, "comparisons")
    found += _rates(both, outcome, later, clusters, level)
    progress(2, 4, "comparisons")
    between = [m for m in marks if windows[0][0] <= m.time < windows[1][1]]
    separable, separable_p = _separable(both, later, clusters, draws, seed)
    middle = _middle(windows, before)
    changes, separable_holm = _said(found, separable_p, [m for m in between if m.time >= middle], level)
    progress(3, 4, "comparisons")
    age = (windows[1][1] - windows[0][1]) / 86_400
    stale = [
        f"{c.measure}: PSI {c.psi:.2f} is above {STALE_PSI}"
        + ("" if c.changed else ", though chance alone can do that with so few")
        for c in changes
        if c.psi is not None and c.psi > STALE_PSI
    ]
    if age > max_age_days:
        stale.append(f"the baseline ended {age:.0f} days ago (limit {max_age_days:.0f})")
    models, dropped = _models(before, now, outcome, values, level, seed)
    progress(4, 4, "comparisons")
    warnings = []
    if one_user:
        warnings.append("all sessions are of one user: what is said holds for this user")
    elif kind == "session":
        warnings.append("users are not known: every session counts as its own cluster, which may be too sure")
    return Drift(
        before=_window(windows[0], clusters[~later]), now=_window(windows[1], clusters[later]), changes=changes,
        models=models, outcome=outcome, separable=separable, separable_p=separable_p, separable_p_holm=separable_holm,
        stale=tuple(stale), marks=tuple(between), dropped=dropped, level=level, warnings=tuple(warnings),
    )  # fmt: skip


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "a time outside the years 1 to 9999"


def _middle(windows: tuple[tuple[float, float], tuple[float, float]], before: pl.DataFrame) -> float:
    """A deploy explains a change if it came after the baseline's first session: from then on it was not one agent."""
    first = before["start"].min()
    return max(windows[0][0], float(first)) if isinstance(first, int | float) else windows[0][0]


def _window(limits: tuple[float, float], clusters: np.ndarray) -> Window:
    return Window(
        start=limits[0], end=limits[1], n_sessions=int(clusters.size), n_clusters=int(np.unique(clusters).size)
    )


def _mixes(both: pl.DataFrame, later: np.ndarray, clusters: np.ndarray, draws: int, seed: int) -> list[Change]:
    out = []
    for measure, columns in MIXES:
        bins = both.select(
            pl.concat_str([pl.col(c).fill_null("unknown") for c in columns], separator=" / ").alias("bin")
        )["bin"]
        shift = stability_test(bins.to_list(), later, clusters, draws=draws, seed=seed)
        counted = pl.DataFrame({"bin": bins, "later": later}).group_by("bin").agg(
            a=(~pl.col("later")).sum(), b=pl.col("later").sum()
        ).sort("bin")  # fmt: skip
        n_a, n_b = int((~later).sum()), int(later.sum())
        shares = {str(name): (a / n_a, b / n_b) for name, a, b in counted.iter_rows()}
        out.append(Change(measure=measure, kind="mix", psi=shift.value, shares=shares, p_value=shift.p_value))
    return out


def _rates(both: pl.DataFrame, outcome: str, later: np.ndarray, clusters: np.ndarray, level: float) -> list[Change]:
    out = []
    for measure, column in (("outcome", "value"), *RATES):
        name = f"{measure} ({outcome})" if column == "value" else measure
        if column not in both.columns:
            continue
        there = both[column].is_not_null().to_numpy()
        if not there.any():
            continue
        if not (there & later).any() or not (there & ~later).any():
            out.append(Change(measure=name, kind="rate", why="known in one window only"))
            continue
        values = both[column].cast(pl.Float64).to_numpy()
        found = window_difference(values[there], later[there], clusters[there], level=level)
        mean = [float(values[there & w].mean()) for w in (~later, later)]
        out.append(
            Change(
                measure=name, kind="rate", before=mean[0], now=mean[1], difference=found.estimate,
                p_value=found.p_value, why=found.estimate.why,
            )
        )  # fmt: skip
    return out


def _said(
    found: Sequence[Change], separable_p: float | None, marks: Sequence[DeployMark], level: float
) -> tuple[tuple[Change, ...], float | None]:
    """The changes, each with its reading, and the classifier's p. All p are adjusted as one family: in a quiet week the
    chance that anything at all is said to have changed is then at most 1 - level."""
    known = [p for p in (*(c.p_value for c in found), separable_p) if p is not None]
    adjusted = iter(holm(known).tolist() if known else [])
    out = []
    for change in found:
        if change.p_value is None:
            out.append(change)
            continue
        p_holm = next(adjusted)
        moved = p_holm <= 1 - level
        said: Said = "could be chance"
        if moved:
            said = "after a deploy" if marks else "without a deploy: the inputs changed"
        named = tuple(m.text for m in marks) if moved else ()
        fields: dict[str, Any] = {f: getattr(change, f) for f in Change.__struct_fields__}
        out.append(Change(**(fields | {"p_holm": p_holm, "changed": moved, "said": said, "marks": named})))
    return tuple(out), next(adjusted, None)


def _separable(
    both: pl.DataFrame, later: np.ndarray, clusters: np.ndarray, draws: int, seed: int
) -> tuple[float | None, float | None]:
    """The classifier two-sample test on what was known before a session and how it went."""
    mixes = both.select(pl.col(c).fill_null("unknown") for c in ("task_type", "difficulty", "arm")).to_dummies()
    numbers = [
        pl.col(c).cast(pl.Float64).fill_null(strategy="mean").fill_null(0.0).clip(0).log1p()
        for c in ("prompt_chars", "n_correction", "n_complaint", "n_execution_error", "cost_usd", "latency_s", "tokens")
        if c in both.columns
    ]
    features = pl.concat([mixes, both.select(numbers)], how="horizontal").to_numpy().astype(float)
    keep = _by_cluster(clusters, np.random.default_rng(seed))
    if np.unique(clusters[keep]).size < 5 or later[keep].all() or not later[keep].any():
        return None, None
    shift = classifier_test(features[keep], later[keep], clusters[keep], draws=draws, seed=seed)
    return shift.value, shift.p_value


def _by_cluster(clusters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if clusters.size <= MOST_SESSIONS:
        return np.arange(clusters.size)
    names, sizes = np.unique(clusters, return_counts=True)
    order = rng.permutation(names.size)
    kept = names[order][np.cumsum(sizes[order]) <= MOST_SESSIONS]
    out: np.ndarray = np.flatnonzero(np.isin(clusters, kept))
    return out


def _models(
    before: pl.DataFrame, now: pl.DataFrame, outcome: str, values: tuple[pl.Series, pl.Series], level: float, seed: int
) -> tuple[tuple[ModelChange, ...], tuple[Dropped, ...]]:
    """Net improvements in both windows over the models that are in both: adding a model would move every one."""
    arms = sorted(set(before["arm"].drop_nulls()) & set(now["arm"].drop_nulls()))
    dropped = []
    for rows, what in ((before, "the baseline"), (now, "the window now")):
        only = rows.filter(~pl.col("arm").is_in(arms))
        if only.height:
            dropped.append(Dropped(what=f"sessions in {what}", n=only.height, why="their model is in one window only"))
    if len(arms) < 2:
        return (), tuple(dropped)
    ranked = [
        _ranked(rows.filter(pl.col("arm").is_in(arms)), outcome, value.filter(rows["arm"].is_in(arms)), level, seed)
        for rows, value in ((before, values[0]), (now, values[1]))
    ]
    if isinstance(ranked[0], str) or isinstance(ranked[1], str):
        why = next(r for r in ranked if isinstance(r, str))
        return tuple(ModelChange(model=a, before=None, now=None, change=None, why=why) for a in arms), tuple(dropped)
    both = [r for r in ranked if isinstance(r, Ranking)]
    then, after = ({m.model: m.net_improvement for m in r.models} for r in both)
    apart = None
    if set(both[0].baseline) != set(both[1].baseline):
        apart = "other models are ranked in one window than in the other, so the baselines differ"
    return tuple(_model_change(a, then.get(a), after.get(a), level, apart) for a in arms), tuple(dropped)


def _ranked(rows: pl.DataFrame, outcome: str, value: pl.Series, level: float, seed: int) -> Ranking | str:
    try:
        return rank(rows, outcome=outcome, value=value, by=(), level=level, seed=seed, draws=999)
    except SeatrialError as error:
        return error.message


def _model_change(
    model: str, before: Estimate | None, now: Estimate | None, level: float, apart: str | None = None
) -> ModelChange:
    """Now minus before, where both windows have an interval (METHODS 3.4) over the same models (`apart` None).

    ``t_df sqrt(se_before^2 + se_now^2)``, df by Welch and Satterthwaite from the windows' own. The windows are taken as
    independent; users who are in both and stay as they were make the truth narrower.
    """
    why = _refused(before, now) or apart
    if why is not None or before is None or now is None or before.se is None or now.se is None:
        return ModelChange(model=model, before=before, now=now, change=None, why=why)
    square = before.se**2 + now.se**2
    df = square**2 / sum(e.se**4 / _df(e) for e in (before, now) if e.se)
    reach = two_sided_t(level, df) * math.sqrt(square)
    value = now.value - before.value
    change = Estimate(
        value=value, low=value - reach, high=value + reach, level=level, n=before.n + now.n,
        n_clusters=before.n_clusters + now.n_clusters, method="difference of windows taken as independent, Welch t",
        se=math.sqrt(square),
    )  # fmt: skip
    return ModelChange(model=model, before=before, now=now, change=change)


def _refused(before: Estimate | None, now: Estimate | None) -> str | None:
    """Why a window has no interval, so that the change can have none either; None where both have one."""
    said: dict[str, list[str]] = {}
    for found, when in ((before, "then"), (now, "now")):
        if found is None:
            said.setdefault("no estimate", []).append(when)
        elif found.low is None or found.high is None or not found.se:
            # No p-value is shown beside a change.
            said.setdefault((found.why or "no interval").removesuffix(ONLY_TESTED), []).append(when)
    return "; ".join(f"{' and '.join(when)}: {why}" for why, when in said.items()) or None


def _df(estimate: Estimate) -> float:
    """The degrees of freedom of an interval ``value +- t_df se``, read from its width."""
    if estimate.high is None or not estimate.se:
        raise ValueError("an estimate without an interval has no degrees of freedom")
    return two_sided_df(estimate.level, (estimate.high - estimate.value) / estimate.se)


def new_versions(sessions: pl.DataFrame) -> list[DeployMark]:
    """Deploys that the traces tell: an agent's version that was not seen before, at its first session. The first
    version of an agent is where the record begins, not a deploy."""
    known = sessions.filter(pl.col("agent_version").is_not_null() & pl.col("start").is_not_null())
    first = known.group_by("agent", "agent_version").agg(pl.col("start").min()).sort("start", "agent_version")
    seen: set[str] = set()
    out = []
    for agent, version, start in first.iter_rows():
        if agent in seen:
            out.append(DeployMark(text=f"{agent} {version}", time=float(start), by="traces"))
        seen.add(agent)
    return out


def shares_of(change: Change) -> Mapping[str, tuple[float, float]]:
    """The bins of a mix that moved most, largest move first."""
    return dict(sorted(change.shares.items(), key=lambda item: -abs(item[1][1] - item[1][0])))


__all__ = ["MIXES", "RATES", "drift", "new_versions", "shares_of"]
