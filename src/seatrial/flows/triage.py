"""Failing sessions and incidents to tasks: what is new, what became a task, what was dismissed and why."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from seatrial import scoring, signals
from seatrial.canon import content_hash
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows import attempts as rows
from seatrial.flows.extract import extract_store
from seatrial.flows.suite import open_suite
from seatrial.grading.valid import validate
from seatrial.records import Attempt, Task
from seatrial.records.tables import TRIAGE
from seatrial.store import Store
from seatrial.suites import health as _health
from seatrial.suites.draft import BAD, draft
from seatrial.suites.writing import append, approve, complete

State = Literal["new", "task", "dismissed"]
FAILED = ("failed", "error_agent", "timeout")
INCIDENT = "incident-"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One failing session or incident. `why` names what speaks against it, with counts; `reason` is what a person
    wrote down; `task` is the task that it became."""

    session: str
    kind: Literal["session", "incident"]
    state: State
    why: dict[str, int]
    reason: str | None = None
    task: str | None = None
    model: str | None = None
    task_type: str | None = None
    time: float | None = None


class Triage(msgspec.Struct, frozen=True, kw_only=True):
    """The list, worst first, and how many there are in each state."""

    items: tuple[Item, ...]
    counts: dict[str, int]
    data_version: str


def listing(
    store: Store,
    *,
    state: State | None = None,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> Triage:
    """Sessions that a person objected to or that a program called failed, and incidents; none of our own attempts."""
    extract_store(store, scoring.UNIT, progress=progress)
    found = _items(store)
    chosen = [i for i in found if state is None or i.state == state]
    chosen.sort(key=lambda i: (i.state != "new", -sum(i.why.values()), -(i.time or 0.0), i.session))
    counts = {s: sum(i.state == s for i in found) for s in ("new", "task", "dismissed")}
    return Triage(items=tuple(chosen), counts=counts, data_version=store.data_version)


def _items(store: Store) -> list[Item]:
    decided = {r["session"]: r for r in store.table(TRIAGE.name, ordered=False).collect().iter_rows(named=True)}
    said = (
        store.table("signals", ordered=False)
        .filter(pl.col("dropped_by").is_null() & pl.col("kind").is_in(BAD))
        .group_by("session", "kind")
        .len()
        .collect()
    )
    why: dict[str, dict[str, int]] = {}
    for session, kind, n in said.iter_rows():
        why.setdefault(session, {})[kind] = n
    about = store.table("sessions", ordered=False).filter(pl.col("parent").is_null())
    facts = about.select("session", "arm", "task_type", "start", "outcome_status").collect()
    out = []
    for session, model, task_type, start, status in facts.iter_rows():
        against = dict(sorted(why.get(session, {}).items()))
        if status in FAILED:
            against[status] = 1
        row = decided.pop(session, None)
        if not against and row is None:
            continue
        out.append(_item(session, "session", row, against, model, task_type, start))
    out += [_item(s, row["kind"] or "session", row, {}, None, None, row["time"]) for s, row in decided.items()]
    return out


def _item(
    session: str,
    kind: Literal["session", "incident"],
    row: dict[str, Any] | None,
    why: dict[str, int],
    model: str | None,
    task_type: str | None,
    start: float | None,
) -> Item:
    return Item(
        session=session,
        kind=kind,
        state="new" if row is None else row["state"],
        why=why or ({"incident": 1} if kind == "incident" else {}),
        reason=None if row is None else row["reason"],
        task=None if row is None else row["task"],
        model=model,
        task_type=task_type,
        time=start,
    )


def dismiss(store: Store, session: str, *, reason: str, by: str | None = None) -> str:
    """Set a session or incident aside, with the reason; the new data version.

    Raises:
        InputError: there is no such session or incident.
        UsageError: no reason is given.
    """
    if not reason.strip():
        raise UsageError("a dismissal needs a reason", hint="--reason TEXT")
    return _decide(store, _known(store, session), "dismissed", reason=reason, by=by)


def incident(store: Store, text: str, *, by: str | None = None) -> tuple[str, str]:
    """Write down something that went wrong outside any stored session; its id and the new data version.

    Raises:
        UsageError: nothing is said about it.
    """
    if not text.strip():
        raise UsageError("an incident needs a description")
    name = INCIDENT + content_hash([text, time.time()])[:10]
    return name, _decide(store, name, "new", reason=text, by=by, kind="incident")


def _decide(
    store: Store,
    session: str,
    state: State,
    *,
    reason: str | None = None,
    task: str | None = None,
    by: str | None = None,
    kind: str = "session",
) -> str:
    kept = "incident" if session.startswith(INCIDENT) else kind
    row = {
        "session": session, "state": state, "reason": reason, "task": task, "kind": kept, "by": by, "time": time.time(),
    }  # fmt: skip
    return store.commit({TRIAGE.name: pl.DataFrame([row], schema=TRIAGE.schema())}, replace_sessions=[session])


def _known(store: Store, session: str) -> str:
    listed = store.table(TRIAGE.name, ordered=False).select("session").collect()["session"].to_list()
    hits = [s for s in listed if s == session] or [s for s in listed if session and s.startswith(session)]
    return hits[0] if len(hits) == 1 else store.resolve(session)


def from_session(
    store: Store, session: str, *, success: bool = False, suite: Path | None = None, by: str | None = None
) -> Task:
    """A draft task from a stored session; with `suite` it is added there, and the session counts as a task.

    Raises:
        EvidenceError: nobody asked anything in it.
        InputError: no such session, or the suite cannot be written.
    """
    name = store.resolve(session)
    trace = store.trace(name)
    today = datetime.now(UTC).date().isoformat()
    made = draft(trace, signals.extract(trace).signals, success=success, added=today)
    if suite is not None:
        append(suite, made)
        _decide(store, name, "task", task=made.id, by=by)
    return made


def successes(store: Store, n: int, seed: int) -> list[str]:
    """Sessions that went well, drawn at random, to become tasks of the common path.

    Well: recorded as passed, or confirmed or praised, and never objected to.

    Raises:
        EvidenceError: there is none.
    """
    extract_store(store, scoring.UNIT)
    kept = store.table("signals", ordered=False).filter(pl.col("dropped_by").is_null()).select("session", "kind")
    kinds: dict[str, set[str]] = {}
    for session, kind in kept.collect().iter_rows():
        kinds.setdefault(session, set()).add(kind)
    facts = store.table("sessions").filter(pl.col("parent").is_null()).select("session", "outcome_status").collect()
    good = []
    for session, status in facts.iter_rows():
        said = kinds.get(session, set())
        if said & set(BAD) or status in FAILED:
            continue
        if status == "passed" or said & {"confirmation", "praise", "accept_implicit"}:
            good.append(session)
    if not good:
        raise EvidenceError("no session of the store is known to have gone well")
    import random

    return sorted(random.Random(seed).sample(sorted(good), min(n, len(good))))


def approved(path: Path, task: str, *, by: str, store: Store | None = None, rubric: str | None = None) -> Task:
    """Approve a draft in a suite file; `rubric` is added to it first."""
    done = approve(path, task, by=by, on=datetime.now(UTC).date().isoformat(), rubric=rubric)
    session = done.extra.get("from_session")
    if store is not None and isinstance(session, str):
        _decide(store, session, "task", task=done.id, by=by)
    return done


def completed(path: Path, task: str, checks: str, *, rubric: str | None = None) -> Task:
    """Change the checks of a draft in a suite file: `checks` is a JSON object of fields. It stays a draft.

    Raises:
        InputError: there is no such draft, or a field does not fit.
        UsageError: `checks` is no such object.
    """
    try:
        given = json.loads(checks, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the checks are not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError("the checks must be a JSON object", hint='such as {"forbidden_tools": ["delete_all"]}')
    return complete(path, task, given, rubric=rubric, valid=validate)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


def suite_health(spec: str | Path, store: Path | None) -> tuple[_health.Health, str | None]:
    """How a suite stands today, with what the store knows of its runs and of failing sessions."""
    suite = open_suite(spec)
    today = datetime.now(UTC).date()
    with _maybe(store) as opened:
        if opened is None:
            return _health.health(suite, today=today), None
        groups: dict[str, list[Attempt]] = {}
        for run in rows.runs(opened).filter(pl.col("suite") == suite.name)["run"].to_list():
            for attempt, _ in rows.stored_run(opened, run):
                if suite.hashes.get(attempt.task) == attempt.task_hash:
                    groups.setdefault(attempt.task, []).append(attempt)
        open_ones = listing(opened, state="new").counts["new"]
        found = _health.health(suite, today=today, attempts=groups, untriaged=open_ones)
        return found, opened.data_version


@contextmanager
def _maybe(store: Path | None) -> Iterator[Store | None]:
    if store is None:
        yield None
        return
    try:
        opened = Store.open(store)
    except InputError:
        yield None
        return
    yield opened
