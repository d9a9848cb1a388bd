"""A suite to its health: is it large enough, fed from production, and still able to tell agents apart?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from seatrial.records import Attempt, Check
from seatrial.suites.results import saturated
from seatrial.suites.suite import Suite

FIRST_RELEASE, QUARTER = 30, 100
STALE_DAYS = 30
SOURCES = ("production_failure", "representative", "adversarial", "synthetic")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a suite stands. `share` by source (None: no source named); `days_since_production` since the last task from
    a production failure was added (None: none, or undated); `untriaged` failing sessions nobody has looked at."""

    tasks: int
    drafts: int
    holdout: int
    share: dict[str, float]
    unsourced: int
    days_since_production: int | None
    untriaged: int | None
    saturated: tuple[str, ...]
    never_passed: tuple[str, ...]
    without_final_check: tuple[str, ...]
    checks: tuple[Check, ...]


def health(
    suite: Suite,
    *,
    today: date,
    attempts: Mapping[str, Sequence[Attempt]] | None = None,
    untriaged: int | None = None,
) -> Health:
    """How a suite stands on `today`. `attempts` by task are those of stored runs; None: there is no store."""
    tasks = suite.tasks
    n = len(tasks)
    share = {s: sum(t.source == s for t in tasks) / n for s in SOURCES} if n else {}
    dates = [d for t in tasks if t.source == "production_failure" and (d := _date(t.extra.get("added"))) is not None]
    days = (today - max(dates)).days if dates else None
    by_task = {t.id: list((attempts or {}).get(t.id, ())) for t in tasks}
    full = tuple(saturated(by_task))
    never = tuple(
        sorted(
            task
            for task, group in by_task.items()
            if len(scored := [a for a in group if a.status in ("passed", "failed")]) >= 5
            and not any(a.status == "passed" for a in scored)
        )
    )
    blind = tuple(t.id for t in tasks if t.check_final is None and t.rubric is None)
    checks = (
        Check(name="first_release", ok=n >= FIRST_RELEASE, value=n, why=f"{FIRST_RELEASE} before a first release"),
        Check(name="first_quarter", ok=n >= QUARTER, value=n, why=f"{QUARTER} within a quarter"),
        Check(
            name="all_four_sources", ok=all(share.values()) if share else False,
            value=sum(v > 0 for v in share.values()), why="failures, successes, adversarial cases and variations",
        ),
        Check(
            name="fed_from_production", ok=None if days is None else days <= STALE_DAYS, value=days,
            why="days since the last task from a production failure"
            + ("" if days is not None else ": no such task has a date (extra.added)"),
        ),
        Check(
            name="triage_is_empty", ok=None if untriaged is None else untriaged == 0, value=untriaged,
            why="failing sessions nobody has looked at" + ("" if untriaged is not None else ": no store was given"),
        ),
        Check(
            name="tells_agents_apart", ok=None if not any(by_task.values()) else len(full) <= n // 2, value=len(full),
            why="tasks that every attempt passes" + ("" if any(by_task.values()) else ": no attempt is stored"),
        ),
        Check(name="every_end_is_judged", ok=not blind, value=len(blind), why="tasks without check_final or rubric"),
    )  # fmt: skip
    return Health(
        tasks=n,
        drafts=len(suite.drafts),
        holdout=sum(suite.part(t) == "holdout" for t in tasks),
        share=share,
        unsourced=sum(t.source is None for t in tasks),
        days_since_production=days,
        untriaged=untriaged,
        saturated=full,
        never_passed=never,
        without_final_check=blind,
        checks=checks,
    )


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None
