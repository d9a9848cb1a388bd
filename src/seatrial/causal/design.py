"""How were models given their sessions? The verdict that decides what the numbers may be called (METHODS 3.6)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl

from seatrial.causal import balance
from seatrial.causal.prepare import place, probabilities
from seatrial.records import Check, Design
from seatrial.records.decision import DesignVerdict

COMMON_SHARE = 0.5
"""A comparison is crossed when every arm has at least this share of its sessions on tasks that all arms ran."""

TITLES: dict[DesignVerdict, str] = {
    "randomised": "Net improvement by model: randomised assignment, causal",
    "crossed": "Net improvement by model on the same tasks: causal as far as nothing but the model differed",
    "observational": "Associations, not a ranking",
    "not_identified": "Not identified: no two models share a stratum",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict, its checks, and (crossed only) the tasks that every arm ran.

    `pairing` says which tasks were left out of the pairing, or why pairing was lost; None where nothing was lost.
    """

    kind: DesignVerdict
    checks: tuple[Check, ...]
    tasks: frozenset[str] = frozenset()
    pairing: str | None = None


def common_tasks(table: pl.DataFrame, arms: tuple[str, ...]) -> tuple[frozenset[str], float]:
    """Tasks that every arm ran, and the smallest share of an arm's sessions that lie on them (0 without tasks)."""
    inside = table.filter(pl.col("arm").is_in(arms))
    if len(arms) < 2 or inside.height == 0 or inside["task"].null_count():
        return frozenset(), 0.0
    pairs = inside.select("task", "arm").unique()
    tasks = pairs.group_by("task").len().filter(pl.col("len") == len(arms))["task"]
    held = inside.group_by("arm").agg(pl.col("task").is_in(tasks.implode()).mean().alias("share"))
    return frozenset(tasks.to_list()), float(held["share"].min() or 0.0)  # type: ignore[arg-type]


def _record(table: pl.DataFrame, arms: tuple[str, ...]) -> Check:
    p = probabilities(table, arms)
    if p is None:
        why = "no assignment record: nobody wrote down how models were given their sessions"
        return Check(name="assignment record", ok=False, value=None, why=why)
    whole = ~np.isnan(p).any(axis=1)
    drawn = place(table["arm"], arms)
    own = p[np.arange(p.shape[0]), drawn]
    recorded = table["probability"].fill_null(float("nan")).to_numpy()
    with np.errstate(invalid="ignore"):
        good = whole & (own > 0) & (p.sum(axis=1) <= 1 + 1e-6) & ~(np.abs(recorded - own) > 1e-6)
        overlap = (p > 0).all(axis=1)
    share = float((good & overlap).mean())
    if share == 1.0:
        why = "every session has its recorded draw and every arm's probability"
        return Check(name="assignment record", ok=True, value=share, why=why)
    if float(good.mean()) == 1.0:
        why = f"{1 - float(overlap.mean()):.1%} of sessions could not have been given every model"
        return Check(name="assignment record", ok=False, value=share, why=why)
    lacking = f"{1 - float(good.mean()):.1%} of sessions lack a usable draw"
    why = f"{lacking} (every arm's probability, above 0 for the arm served)"
    return Check(name="assignment record", ok=False, value=share, why=why)


def decide(table: pl.DataFrame, arms: tuple[str, ...], *, seed: int = 0) -> Verdict:
    """Verdict over all sessions with an arm, scored or not, for the participating `arms`; overlap is decided later."""
    inside = table.filter(pl.col("arm").is_in(arms))
    record = _record(inside, arms)
    checks: tuple[Check, ...] = (record,)
    if record.ok:
        checks += balance.checks(inside, arms, seed)
        if all(c.ok is not False for c in checks):
            return Verdict(kind="randomised", checks=checks)
    tasks, share = common_tasks(inside, arms)
    crossed = len(tasks) >= 2 and share >= COMMON_SHARE
    note = f"{len(tasks)} tasks were run by every model"
    if tasks:
        note += f" ({share:.0%} of the sessions of each, or more)"
    if inside["task"].null_count():
        note = "sessions without a task id: nobody can say that models ran the same tasks"
    checks += (Check(name="same tasks", ok=crossed, value=float(len(tasks)), why=note),)
    pairing = _pairing(inside, arms, tasks, crossed)
    if crossed:
        return Verdict(kind="crossed", checks=checks, tasks=tasks, pairing=pairing)
    return Verdict(kind="observational", checks=checks, pairing=pairing)


def _pairing(inside: pl.DataFrame, arms: tuple[str, ...], tasks: frozenset[str], crossed: bool) -> str | None:
    if len(arms) < 2 or inside["task"].null_count() == inside.height:
        return None
    known = inside.filter(pl.col("task").is_not_null())
    all_tasks = set(known["task"].to_list())
    if not crossed and len(all_tasks) == known.height:
        return None
    left = len(all_tasks - tasks)
    if not left and crossed:
        return None
    lacking = {
        arm: len(all_tasks - set(known.filter(pl.col("arm") == arm)["task"].to_list())) for arm in arms
    }  # fmt: skip
    worst = sorted(((n, a) for a, n in lacking.items() if n), reverse=True)[:3]
    who = ", ".join(f"{a} lacks {n}" for n, a in worst)
    if crossed:
        return f"models are compared on the {len(tasks)} of {len(all_tasks)} tasks that every model ran ({who})"
    if inside["task"].null_count():
        return "pairing by task was lost: some sessions have no task id"
    return (
        f"pairing by task was lost: only {len(tasks)} of {len(all_tasks)} tasks were run by every model ({who}), "
        f"and pairing needs two such tasks that hold {COMMON_SHARE:.0%} of every model's sessions"
    )


def differing(
    conditions: pl.DataFrame | None, table: pl.DataFrame, arms: tuple[str, ...]
) -> dict[str, dict[str, list[str]]]:
    """Conditions (agent, simulator, ...) whose values are not the same for every arm: {column: {arm: values}}.

    `conditions` has one row per session and any number of text columns beside ``session``.
    """
    if conditions is None:
        return {}
    joined = table.select("session", "arm").join(conditions, on="session", how="left")
    out: dict[str, dict[str, list[str]]] = {}
    for column in conditions.columns:
        if column in ("session", "arm"):
            continue
        by_arm: dict[str, list[str]] = {}
        for arm in arms:
            values = joined.filter(pl.col("arm") == arm)[column].cast(pl.String).fill_null("unknown")
            by_arm[arm] = sorted(values.unique().to_list())
        if len({tuple(v) for v in by_arm.values()}) > 1:
            out[column] = by_arm
    return out


def _differences(found: dict[str, dict[str, list[str]]]) -> list[str]:
    said = []
    for column, by_arm in found.items():
        groups: dict[str, list[str]] = {}
        for arm, values in by_arm.items():
            groups.setdefault(", ".join(values[:3]) + (" and others" if len(values) > 3 else ""), []).append(arm)
        said.append(f"{column} differed: " + "; ".join(f"{v} for {', '.join(a)}" for v, a in sorted(groups.items())))
    return said


def describe(
    verdict: Verdict,
    extra: tuple[Check, ...],
    found: dict[str, dict[str, list[str]]],
    *,
    one_user: bool,
    cluster: str = "session",
) -> Design:
    """The verdict as the record that is printed before any table."""
    caveats: list[str] = []
    checks = verdict.checks + extra
    if verdict.kind == "observational":
        caveats.append(
            "models were not assigned by a recorded draw: differences may come from who used which model for what"
        )
    if verdict.pairing is not None:
        caveats.append(verdict.pairing)
    if found:
        caveats += _differences(found)
        why = "more than the model differed: " + ", ".join(sorted(found))
        checks += (Check(name="only the model differed", ok=False, value=None, why=why),)
    if one_user:
        caveats.append(f"one known user: {cluster}s are the clusters and every number is for this user")
    return Design(verdict=verdict.kind, checks=checks, title=TITLES[verdict.kind], caveats=tuple(caveats))


def basis_window(table: pl.DataFrame) -> dict[str, Any]:
    """First and last session start, seconds since the epoch, UTC; None where no time is recorded."""
    start = table["start"].drop_nulls()
    return {"from": None, "to": None} if start.is_empty() else {"from": start.min(), "to": start.max()}
