"""Drafts of tasks: made from a session, their checks completed as text, and approved; child processes do the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin
from urllib.parse import unquote

import msgspec
from starlette.responses import Response

from seatrial.canon import content_hash
from seatrial.errors import InfrastructureError, InputError, SeatrialError, UsageError
from seatrial.records import Task
from seatrial.report.chapters import growth
from seatrial.server.site import Asked, Page

CHECKS = ("expected_tools", "forbidden_tools", "order", "reference", "max_turns", "max_tool_calls", "check_final")
"""Fields of a draft that the page lets people change; the command refuses any other."""

_MOST_CHECKS = 60_000
_WAIT_S = 40.0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A draft in the suite file; `wrong` says why it cannot be shown, and `task` is None then."""

    id: str
    line: int
    task: Task | None = None
    wrong: str = ""


def drafts(asked: Asked) -> list[Draft]:
    """The drafts in the suite file whose sessions may be shown: a draft quotes its session."""
    may = asked.site.index.current().may
    return [draft for session, draft in _all(asked.site.suite) if may.allows(session)]


def _all(path: Path) -> list[tuple[str, Draft]]:
    """Every draft in a suite file, with its session; none where the file cannot be read."""
    out = []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(raw, dict):
            continue
        extra = raw.get("extra")
        if isinstance(extra, dict) and extra.get("draft"):
            out.append((str(extra.get("from_session")), _read(raw, number)))
    return out


def _read(raw: dict[str, Any], line: int) -> Draft:
    """A draft of plain values; people write into the file too, and what they wrote may not fit."""
    ident = str(raw.get("id"))
    try:
        json.dumps(raw, ensure_ascii=False).encode()
        held = {k: v for k, v in raw.items() if k in Task.__struct_fields__}
        msgspec.convert(held, _WRITTEN)
        task = Task(**held)
        content_hash(_checks(task))
        growth.draft(task)
    except SeatrialError as error:
        return Draft(id=ident, line=line, wrong=error.message)
    except UnicodeEncodeError:
        return Draft(id=ident, line=line, wrong="it holds characters that no text may hold")
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Draft(id=ident, line=line, wrong=str(error))
    return Draft(id=ident, line=line, task=task)


def _plain(kind: Any) -> Any:
    """A field's type without functions: a file names them."""
    some = tuple(a for a in get_args(kind) if get_origin(a) is not Callable)
    return Union[some] if get_origin(kind) is UnionType else kind  # noqa: UP007


_WRITTEN = msgspec.defstruct(
    "Written",
    [
        (f.name, _plain(f.type)) if f.required else (f.name, _plain(f.type), msgspec.field(default=None))
        for f in msgspec.structs.fields(Task)
    ],
    kw_only=True,
)
"""A task as a file holds it, to see whether values are of the right kinds."""


def _named(asked: Asked, wanted: str) -> Task:
    found = next((d for d in drafts(asked) if d.id == wanted), None)
    if found is None:
        raise InputError("there is no such draft", hint=f"drafts are kept in {asked.site.suite}")
    if found.task is None:
        raise UsageError(f"this draft cannot be shown: {found.wrong}",
                         hint=f"correct line {found.line} of {asked.site.suite}")  # fmt: skip
    return found.task


def posted(asked: Asked) -> str:
    """The session id of a form, percent-encoded there: browsers change NULs and line ends of plain values."""
    return unquote(asked.form.get("session", ""))


def draft(asked: Asked) -> Response:
    """Make a draft from a session."""
    session = posted(asked)
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


def show(asked: Asked) -> Response:
    """A draft: what it asks, what is open, its checks as text, and the way to approve it."""
    task = _named(asked, asked.text("task"))
    return asked.page("draft.html", _context(asked, task) | {"saved": asked.text("saved") == "yes"})


def _checks(task: Task) -> dict[str, Any]:
    return {field: getattr(task, field) for field in CHECKS}


def _context(asked: Asked, task: Task) -> dict[str, Any]:
    session = task.extra.get("from_session")
    checks = _checks(task)
    return {
        "task": task,
        "parts": (growth.draft(task),),
        "session": session if isinstance(session, str) else None,
        "judged": task.check_final is not None or task.rubric is not None,
        "suite": str(asked.site.suite),
        "checks": json.dumps(checks, ensure_ascii=False, indent=2),
        "rubric": task.rubric if isinstance(task.rubric, str) else "",
        "was": content_hash(checks),
        "problem": None,
        "saved": False,
    }


def approve(asked: Asked) -> Response:
    """Save what a person wrote of the checks and the rubric; unless they only want it saved, approve the draft.

    What they wrote comes back with the reason where it is refused.
    """
    task = _named(asked, asked.form.get("task", ""))
    only_save = asked.form.get("do") == "save"
    try:
        _save(asked, task, only_save)
        if not only_save:
            _approve(asked, task)
    except UsageError as refused:
        typed = {"problem": refused, "checks": asked.form.get("checks", ""), "rubric": asked.form.get("rubric", "")}
        return asked.site.page(asked, "draft.html", 400, _context(asked, task) | typed)
    if only_save:
        return asked.back("/triage/draft", {"task": task.id, "saved": "yes"})
    return asked.back("/triage", {"state": "task"})


def _save(asked: Asked, task: Task, rubric_too: bool) -> None:
    text, rubric = asked.form.get("checks", "").strip(), asked.form.get("rubric", "").strip()
    changed = bool(text) and not _same(text, task)
    if changed and asked.form.get("was") != content_hash(_checks(task)):
        raise UsageError("this draft was changed by somebody else meanwhile",
                         hint="open it in another tab, and bring over what you wrote")  # fmt: skip
    if len(text) > _MOST_CHECKS or "\0" in text + rubric:
        raise UsageError("the checks are too long, or hold a NUL", hint="write them into the suite file itself")
    if not changed and not rubric_too:
        return
    arguments = ["task", "edit", f"--checks={text if changed else '{}'}"]
    arguments += [f"--rubric={rubric}"] if rubric_too and rubric else []
    _run(asked, f"Edit {task.id[:40]}", [*arguments, "--", str(asked.site.suite), task.id], stored=False)
    asked.did("edited", about=task.id[:80])


def _same(text: str, task: Task) -> bool:
    try:
        return bool(json.loads(text) == _checks(task))
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


PAGES = (
    Page("/triage/draft", show),
    Page("/triage/draft", draft, "labeller", ("POST",)),
    Page("/triage/approve", approve, "labeller", ("POST",)),
)
