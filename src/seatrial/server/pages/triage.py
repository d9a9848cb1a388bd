"""Triage: failing sessions and incidents become drafts of tasks, or are set aside with a reason."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import polars as pl
from starlette.responses import Response

from seatrial.canon import content_hash
from seatrial.errors import InfrastructureError, InputError, UsageError
from seatrial.records import Task
from seatrial.records.tables import OUTCOMES_TABLE, TRIAGE
from seatrial.report.chapters import growth
from seatrial.server import movers, waiting
from seatrial.server.site import Asked, Page
from seatrial.server.waiting import BAD
from seatrial.server.words import KINDS

STATES = ("new", "task", "dismissed")
PER_PAGE = 50
_WAIT_S = 40.0


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One session or incident with what speaks against it."""

    session: str
    state: str
    why: dict[str, int]
    reason: str | None
    task: str | None
    by: str | None
    model: str | None
    time: float | None
    incident: bool


def board(asked: Asked) -> pl.DataFrame:
    """What there is to decide on, and what was decided, worst first."""
    index, store = asked.site.index, asked.store
    return index.derived("triage", waiting.TABLES, lambda snapshot: waiting.board(store, snapshot))


def _item(row: dict[str, Any]) -> Item:
    why = {KINDS.get(kind, kind): row[kind] for kind in sorted(BAD) if row[kind]}
    if row["status"] is not None:
        why[row["status"].replace("_", " ")] = 1
    if row["incident"]:
        why["incident"] = 1
    return Item(
        session=row["session"],
        state=row["state"],
        why=why,
        reason=row["reason"],
        task=row["task"],
        by=row["by"],
        model=row["arm"],
        time=row["start"],
        incident=row["incident"],
    )


def triage(asked: Asked) -> Response:
    """The list."""
    every = board(asked)
    looked = asked.store.table(OUTCOMES_TABLE.name, ordered=False).select("session").head(1).collect().height > 0
    state = asked.text("state", "new")
    state = state if state in STATES else "new"
    page = asked.number("page", 1, least=1)
    there = dict(every["state"].value_counts().iter_rows())
    counts = {s: there.get(s, 0) for s in STATES}
    chosen = every.filter(pl.col("state") == state).slice((page - 1) * PER_PAGE, PER_PAGE)
    part = [_item(row) for row in chosen.iter_rows(named=True)]
    named = [i.session for i in part if not i.incident]
    said = movers.sentences_of(asked.store, named, BAD, len(named))
    quotes = {s.session: s for s in movers.in_context(asked.store, said)}
    for session in quotes:
        asked.site.saw(asked, session)
    return asked.page(
        "triage.html",
        {
            "items": part,
            "quotes": quotes,
            "total": counts[state],
            "page": page,
            "pages": max(1, -(-counts[state] // PER_PAGE)),
            "state": state,
            "counts": counts,
            "looked": looked,
            "drafts": drafts(asked.site.suite),
            "suite": str(asked.site.suite),
        },
    )


def drafts(path: Path) -> list[Task]:
    """The drafts in a suite file; none where it cannot be read."""
    out = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        try:
            raw = json.loads(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(raw, dict) and isinstance(raw.get("id"), str) and isinstance(raw.get("input"), str):
            extra = raw.get("extra")
            if isinstance(extra, dict) and extra.get("draft"):
                out.append(Task(**{k: v for k, v in raw.items() if k in Task.__struct_fields__}))
    return out


def draft(asked: Asked) -> Response:
    """Make a draft from a session: a child process does."""
    session = _posted(asked)
    if "\0" in session:
        raise UsageError("this session's id holds a NUL, which no command can be given",
                         hint="dismiss it, or give the session another id and ingest it again")  # fmt: skip
    asked.site.index.shown(session)
    arguments = [
        "task", "from-session", f"--suite={asked.site.suite}", f"--by={asked.who.name}", "--", session,
    ]  # fmt: skip
    made = _run(asked, f"Draft a task from {session[:12]}", arguments)
    asked.did("drafted", session=session)
    found = made.get("drafts") or [{}]
    return asked.back("/triage/draft", {"task": str(found[0].get("id", ""))})


def _posted(asked: Asked) -> str:
    """The session id of a form, percent-encoded there: browsers change NULs and line ends of plain values."""
    return unquote(asked.form.get("session", ""))


def show_draft(asked: Asked) -> Response:
    """A draft: what it asks, what is open, and the way to approve it."""
    wanted = asked.text("task")
    task = next((t for t in drafts(asked.site.suite) if t.id == wanted), None)
    if task is None:
        raise InputError("there is no such draft", hint=f"drafts are kept in {asked.site.suite}")
    session = task.extra.get("from_session")
    return asked.page(
        "draft.html",
        {
            "task": task,
            "parts": (growth.draft(task),),
            "session": session if isinstance(session, str) else None,
            "judged": task.check_final is not None or task.rubric is not None,
            "suite": str(asked.site.suite),
        },
    )


def approve(asked: Asked) -> Response:
    """Approve a draft, with the rubric that a person wrote."""
    task = asked.form.get("task", "")
    rubric = asked.form.get("rubric", "").strip()
    arguments = ["task", "approve", f"--by={asked.who.name}", *([f"--rubric={rubric}"] if rubric else [])]
    _run(asked, f"Approve {task[:40]}", [*arguments, "--", str(asked.site.suite), task])
    asked.did("approved", about=task[:80])
    return asked.back("/triage", {"state": "task"})


def _run(asked: Asked, title: str, arguments: list[str]) -> dict[str, Any]:
    """Run a quick command to its end, and give what it answered.

    Raises:
        UsageError: the command refused; its words are handed on.
        InfrastructureError: it did not come to its end.
    """
    job = asked.site.jobs.start(title, arguments, asked.who.name, "quick")
    ended = asked.site.jobs.wait(job.id, _WAIT_S)
    if ended is None or ended.ended is None:
        raise InfrastructureError(f"{title}: it takes longer than expected", hint="look at the page of jobs")
    if ended.state != "done":
        raise _refusal(ended.said, title)
    try:
        held = json.loads(ended.printed).get("result")
    except ValueError:
        held = None
    return held if isinstance(held, dict) else {}


def _refusal(said: list[str], title: str) -> UsageError:
    for line in reversed(said):
        try:
            error = json.loads(line)["error"]
            return UsageError(str(error["message"]), hint=error.get("hint"))
        except (ValueError, KeyError, TypeError):
            continue
    return UsageError(f"{title}: it failed", hint="the page of jobs shows what it said")


def dismiss(asked: Asked) -> Response:
    """Set a session or an incident aside, with the reason."""
    session, reason = _posted(asked), asked.form.get("reason", "").strip()
    if not reason:
        raise UsageError("a dismissal needs a reason")
    found = board(asked).filter(pl.col("session") == session)
    if not found.height:
        raise InputError("there is no such session or incident")
    _decide(asked, session, "dismissed", reason[:2000], incident=found["incident"][0])
    asked.did("dismissed", session=session)
    return asked.back("/triage")


def incident(asked: Asked) -> Response:
    """Write down something that went wrong outside any stored session."""
    text = asked.form.get("text", "").strip()
    if not text:
        raise UsageError("an incident needs a description")
    _decide(asked, f"incident-{content_hash([text, time.time()])[:10]}", "new", text[:2000], incident=True)
    asked.did("noted an incident")
    return asked.back("/triage")


def _decide(asked: Asked, session: str, state: str, reason: str, *, incident: bool) -> None:
    row = {
        "session": session,
        "state": state,
        "reason": reason,
        "task": None,
        "kind": "incident" if incident else "session",
        "by": asked.who.name,
        "time": time.time(),
    }
    asked.store.commit({TRIAGE.name: pl.DataFrame([row], schema=TRIAGE.schema())}, replace_sessions=[session])


PAGES = (
    Page("/triage", triage),
    Page("/triage/draft", show_draft),
    Page("/triage/draft", draft, "labeller", ("POST",)),
    Page("/triage/approve", approve, "labeller", ("POST",)),
    Page("/triage/dismiss", dismiss, "labeller", ("POST",)),
    Page("/triage/incident", incident, "labeller", ("POST",)),
)
