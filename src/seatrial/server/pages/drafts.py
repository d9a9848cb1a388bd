"""Drafts of tasks: made from a session, their checks completed as text, and approved; child processes do the work."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from seatrial.errors import InfrastructureError, InputError, UsageError
from seatrial.records import Task
from seatrial.records.tables import ATTEMPTS
from seatrial.report.chapters import growth
from seatrial.server import decisions, drafted
from seatrial.server.based import Overtaken
from seatrial.server.drafted import Draft, Written
from seatrial.server.site import Asked, Page
from seatrial.store import Store

_MOST_CHECKS = 60_000
_WAIT_S = 40.0
_ONE_BY_ONE = threading.Lock()
"""Whoever changes the suite file looks at it first, and nobody else changes it in between."""


def written(asked: Asked) -> Written:
    """What the suite file holds of sessions, and attempts, that are here and may be shown."""
    index, store = asked.site.index, asked.store
    snapshot = index.current()

    def here(session: str) -> bool:
        return snapshot.row(session) is not None or session in index.derived(
            "attempts", (ATTEMPTS.name,), lambda _: frozenset(_ids(store))
        )

    return drafted.read(asked.site.suite, snapshot.may, here)


def _ids(store: Store) -> list[str]:
    return store.table(ATTEMPTS.name, ordered=False).select("session").collect()["session"].to_list()


def _found(asked: Asked, wanted: str) -> Draft:
    suite = written(asked)
    found = suite.find(wanted)
    if found is None:
        raise InputError(
            "there is no such draft", hint="; ".join(suite.problems) or f"drafts are kept in {asked.site.suite}"
        )
    return found


def _named(asked: Asked, wanted: str) -> Task:
    found = _found(asked, wanted)
    if found.approved is not None:
        raise Overtaken(
            f"this draft was approved{_by(found)} meanwhile", hint="nothing of what you wrote was changed in it"
        )
    if found.task is None:
        raise UsageError(f"this draft cannot be shown: {found.wrong}",
                         hint=f"correct line {found.line} of {asked.site.suite}")  # fmt: skip
    return found.task


def _by(found: Draft) -> str:
    return f" by {found.approved}" if found.approved else ""


def posted(asked: Asked) -> str:
    """The session id of a form, percent-encoded there: browsers change NULs and line ends of plain values."""
    return unquote(asked.form.get("session", ""))


def draft(asked: Asked) -> Response:
    """Make a draft from a session, or open what it became already."""
    session = posted(asked)
    asked.site.index.shown(session)
    if "\0" in session:
        raise UsageError("this session's id holds a NUL, which no command can be given",
                         hint="dismiss it, or give the session another id and ingest it again")  # fmt: skip
    with _ONE_BY_ONE:
        there = written(asked).of(session)
        if there is not None:
            return asked.back("/triage/draft", {"task": there.id})
        decisions.unchanged(asked.store, session, asked.form.get("was", "new"))
        arguments = [
            "task", "from-session", f"--suite={asked.site.suite}", f"--by={asked.who.name}", "--", session,
        ]  # fmt: skip
        made = _run(asked, f"Draft a task from {session[:12]}", arguments)
    asked.did("drafted", session=session)
    found = made.get("drafts") or [{}]
    return asked.back("/triage/draft", {"task": str(found[0].get("id", ""))})


def show(asked: Asked) -> Response:
    """A draft: what it asks, what is open, its checks as text, and the way to approve it."""
    found = _found(asked, asked.text("task"))
    if found.approved is not None:
        return _gone(asked, found)
    task = _named(asked, found.id)
    return asked.page("draft.html", _context(asked, task) | {"saved": asked.text("saved") == "yes"})


def _context(asked: Asked, task: Task) -> dict[str, Any]:
    session = task.extra.get("from_session")
    if isinstance(session, str):
        asked.site.saw(asked, session)
    return {
        "task": task,
        "parts": (growth.draft(task),),
        "session": session if isinstance(session, str) else None,
        "judged": task.check_final is not None or task.rubric is not None,
        "suite": str(asked.site.suite),
        "checks": json.dumps(drafted.checks(task), ensure_ascii=False, indent=2),
        "rubric": task.rubric if isinstance(task.rubric, str) else "",
        "was": drafted.state(task),
        "now": None,
        "saved": False,
    }


def again(asked: Asked) -> Response:
    """The form as it was typed, with the reason why it is refused, and what the draft holds now where that changed."""
    form = asked.form
    found = written(asked).find(form.get("task", ""))
    if found is None or found.task is None:
        return _gone(asked, found)
    context = _context(asked, found.task)
    overtaken = isinstance(asked.refused, Overtaken)
    now = {"checks": context["checks"], "rubric": context["rubric"]} if overtaken else None
    typed = {"checks": form.get("checks", ""), "rubric": form.get("rubric", ""), "now": now}
    return asked.page("draft.html", context | typed)


def _gone(asked: Asked, found: Draft | None) -> Response:
    return asked.page("draft_gone.html", {"found": found, "suite": str(asked.site.suite)})


def approve(asked: Asked) -> Response:
    """Save what a person wrote of the checks and the rubric; unless they only want it saved, approve the draft."""
    only_save = asked.form.get("do") == "save"
    with _ONE_BY_ONE:
        task = _named(asked, asked.form.get("task", ""))
        if asked.form.get("was") != drafted.state(task):
            raise Overtaken("this draft was changed by somebody else meanwhile",
                            hint="what it holds now stands below: bring that over, then send it again")  # fmt: skip
        _save(asked, task, only_save)
        if not only_save:
            _approve(asked, task)
    if only_save:
        return asked.back("/triage/draft", {"task": task.id, "saved": "yes"})
    return asked.back("/triage", {"state": "task"})


def _save(asked: Asked, task: Task, rubric_too: bool) -> None:
    text, rubric = asked.form.get("checks", "").strip(), asked.form.get("rubric", "").strip()
    changed = bool(text) and not _same(text, task)
    if len(text) > _MOST_CHECKS or "\0" in text + rubric:
        raise UsageError("the checks are too long, or hold a NUL", hint="write them into the suite file itself")
    if isinstance(task.rubric, str) and not rubric:
        raise UsageError("a rubric is not taken away here", hint=f"write another, or edit {asked.site.suite} itself")
    if not changed and not rubric_too:
        return
    arguments = ["task", "edit", f"--checks={text if changed else '{}'}"]
    arguments += [f"--rubric={rubric}"] if rubric_too and rubric else []
    _run(asked, f"Edit {task.id[:40]}", [*arguments, "--", str(asked.site.suite), task.id], stored=False)
    asked.did("edited", about=task.id[:80])


def _same(text: str, task: Task) -> bool:
    try:
        return bool(json.loads(text) == drafted.checks(task))
    except (ValueError, RecursionError):
        return False


def _approve(asked: Asked, task: Task) -> None:
    rubric = asked.form.get("rubric", "").strip()
    arguments = ["task", "approve", f"--by={asked.who.name}", *([f"--rubric={rubric}"] if rubric else [])]
    _run(asked, f"Approve {task.id[:40]}", [*arguments, "--", str(asked.site.suite), task.id])
    asked.did("approved", about=task.id[:80])


def _run(asked: Asked, title: str, arguments: list[str], *, stored: bool = True) -> dict[str, Any]:
    """Run a quick command to its end, and give what it answered.

    Raises:
        UsageError: the command refused; its words are handed on.
        InfrastructureError: it did not come to its end.
    """
    job = asked.site.jobs.start(title, arguments, asked.who.name, "quick", stored=stored)
    ended = asked.site.jobs.wait(job.id, _WAIT_S)
    if ended is None or ended.ended is None:
        raise InfrastructureError(f"{title}: it takes longer than expected", hint="look at the page of jobs")
    if ended.state != "done":
        raise _refusal(ended.said, title)
    try:
        held = json.loads(ended.printed).get("result")
    except (ValueError, AttributeError, RecursionError):
        held = None
    return held if isinstance(held, dict) else {}


def _refusal(said: list[str], title: str) -> UsageError:
    for line in reversed(said):
        try:
            error = json.loads(line)["error"]
            return UsageError(str(error["message"]), hint=error.get("hint"))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return UsageError(f"{title}: it failed", hint="the page of jobs shows what it said")


PAGES = (
    Page("/triage/draft", show),
    Page("/triage/approve", approve, "labeller", ("POST",), form=again),
)
