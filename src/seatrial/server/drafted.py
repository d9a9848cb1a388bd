"""A suite file to its drafts, the tasks that sessions became, and the lines that nobody can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from seatrial.errors import SeatrialError
from seatrial.records import Task
from seatrial.report.chapters import growth
from seatrial.report.text import clean
from seatrial.server.based import stamp
from seatrial.store import Permission

CHECKS = ("expected_tools", "forbidden_tools", "order", "reference", "max_turns", "max_tool_calls", "check_final")
"""Fields of a draft that the page lets people change; the command refuses any other."""

_MOST_NAMED = 12


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the suite file: a draft, or a task that was approved (`approved`, by whom: "" where nobody says).

    `task` holds a draft; `wrong` says why it cannot be shown, and `task` is None then. `session` is what it was made
    from.
    """

    id: str
    line: int
    session: str | None = None
    task: Task | None = None
    wrong: str = ""
    approved: str | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite file holds, in its order; `problems` says what of it cannot be read."""

    lines: list[Draft] = []
    problems: list[str] = []

    @property
    def drafts(self) -> list[Draft]:
        """Those that wait for approval."""
        return [d for d in self.lines if d.approved is None]

    def find(self, ident: str) -> Draft | None:
        """A line by the id of its task; a draft before an approved one."""
        return next((d for d in [*self.drafts, *self.lines] if d.id == ident), None)

    def of(self, session: str) -> Draft | None:
        """What a session became."""
        return next((d for d in self.lines if d.session == session), None)


def read(path: Path, may: Permission, here: Callable[[str], bool]) -> Written:
    """Read a suite file. What was made from sessions that may not be shown, or are not `here` any more, is left out: a
    task quotes its session, which may have been erased."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Written()
    except OSError as error:
        return Written(problems=[f"the suite {clean(str(path))} cannot be read: {error.strerror}"])
    found, torn, gone = [], [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line.decode())
        except (ValueError, RecursionError):
            raw = None
        if not isinstance(raw, dict):
            torn.append(number)
            continue
        kept = _line(raw, number, may)
        if kept is not None and kept.session is not None and not here(kept.session):
            gone.append(number)
        elif kept is not None:
            found.append(kept)
    return Written(
        lines=found, problems=[*([_torn(path, torn)] if torn else []), *([_gone(path, gone)] if gone else [])]
    )


def _named(lines: list[int]) -> str:
    return ", ".join(str(n) for n in lines[:_MOST_NAMED]) + (", …" if lines[_MOST_NAMED:] else "")


def _gone(path: Path, gone: list[int]) -> str:
    what = "a task is" if len(gone) == 1 else f"{len(gone)} tasks are"
    lines = f"{'line' if len(gone) == 1 else 'lines'} {_named(gone)} of {clean(str(path))}"
    return f"{what} not shown ({lines}): made from sessions that are not in this store, or were erased"


def _torn(path: Path, torn: list[int]) -> str:
    named = _named(torn)
    what = f"line {named} of {clean(str(path))} cannot be read" if len(torn) == 1 else (
        f"{len(torn)} lines of {clean(str(path))} cannot be read ({named})"
    )  # fmt: skip
    return what + ": no task in JSON, so drafts may be missing here"


def _line(raw: dict[str, Any], number: int, may: Permission) -> Draft | None:
    extra = raw.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    session = extra.get("from_session")
    if not may.allows(str(session)):
        return None
    if extra.get("draft"):
        return _read(raw, number, session if isinstance(session, str) else None)
    by = extra.get("approved_by")
    return Draft(
        id=str(raw.get("id")),
        line=number,
        session=session if isinstance(session, str) else None,
        approved=by if isinstance(by, str) else "",
    )


def _read(raw: dict[str, Any], line: int, session: str | None) -> Draft:
    """A draft of plain values; people write into the file too, and what they wrote may not fit."""
    ident = str(raw.get("id"))
    task, wrong = None, ""
    try:
        json.dumps(raw, ensure_ascii=False).encode()
        held = {k: v for k, v in raw.items() if k in Task.__struct_fields__}
        msgspec.convert(held, _WRITTEN)
        made = Task(**held)
        state(made)
        growth.draft(made)
        task = made
    except SeatrialError as error:
        wrong = error.message
    except UnicodeEncodeError:
        wrong = "it holds characters that no text may hold"
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError, RecursionError) as error:
        wrong = str(error)
    return Draft(id=ident, line=line, session=session, task=task, wrong=wrong)


def checks(task: Task) -> dict[str, Any]:
    """The fields that the page lets people change as one text."""
    return {field: getattr(task, field) for field in CHECKS}


def state(task: Task) -> str:
    """A stamp of everything that the form of a draft holds."""
    return stamp([checks(task), task.rubric])


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
