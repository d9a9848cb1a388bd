"""Tasks to lines of a suite file, and a draft to an approved task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.records import Task
from seatrial.suites.load import check_task

EDITABLE = ("expected_tools", "forbidden_tools", "order", "reference", "max_turns", "max_tool_calls", "check_final")
"""Fields of a draft that a program can check, and `complete` can change."""


def as_json(task: Task) -> dict[str, Any]:
    """The task as a plain object, fields at their default left out.

    Raises:
        UsageError: it holds a function, which a file names by ``module:function``.
    """
    for name in ("setup", "check_final"):
        if callable(getattr(task, name)):
            raise UsageError(f"{name} of task {task.id} is a function; a file names it as module:function")
    plain: dict[str, Any] = msgspec.to_builtins(task)
    return plain


def append(path: Path, task: Task) -> None:
    """Add a task to a suite file of JSON lines, or begin one.

    Raises:
        InputError: the file cannot be written, or is of another kind.
        UsageError: it has a task of this id.
    """
    if path.suffix != ".jsonl":
        raise InputError("tasks are added to files of JSON lines", file=str(path), hint="name a .jsonl file")
    line = json.dumps(as_json(task), ensure_ascii=False)
    try:
        before = path.read_bytes() if path.exists() else b""
        taken = _line_of(before, task.id)
        if taken is not None:
            raise UsageError(f"{path} has a task {task.id!r} already, in line {taken}",
                             hint="take that line out first, or name another file")  # fmt: skip
        with path.open("ab") as out:
            out.write((b"" if not before or before.endswith(b"\n") else b"\n") + line.encode() + b"\n")
    except OSError as error:
        raise InputError(f"the suite cannot be written: {error.strerror}", file=str(path)) from error


def _line_of(text: bytes, task_id: str) -> int | None:
    """Where a file of JSON lines has a task (1-based); lines that are none are for whoever reads it."""
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(raw, dict) and raw.get("id") == task_id:
            return number
    return None


def approve(path: Path, task_id: str, *, by: str, on: str, rubric: str | None = None) -> Task:
    """Mark a draft in a file of JSON lines as approved: from now on it runs. `rubric` is added to it first.

    Raises:
        InputError: there is no such draft, or it lacks a way to judge its end.
    """
    lines, number, raw = _draft(path, task_id)
    extra = raw.get("extra") or {}
    if rubric is not None and rubric.strip():
        raw["rubric"] = rubric.strip()
    if raw.get("check_final") is None and raw.get("rubric") is None:
        raise InputError(
            f"draft {task_id} has neither check_final nor rubric, so nothing would judge its end",
            file=str(path), line=number, hint="add assertions, a function or a rubric, then approve it",
        )  # fmt: skip
    kept = {k: v for k, v in extra.items() if k not in ("draft", "open", "context")}
    raw["extra"] = {**kept, "approved_by": by, "added": extra.get("added", on)}
    return _put(path, lines, number, raw)


def complete(
    path: Path,
    task_id: str,
    checks: Mapping[str, Any],
    *,
    rubric: str | None = None,
    valid: Callable[[Task], None] = lambda task: None,
) -> Task:
    """Change the checks of a draft in a file of JSON lines; it stays a draft. Fields that `checks` leaves out stay.

    A function is not among what can be set: whoever may write the file itself names one there. Nothing is imported
    or run. `valid` refuses what the schema cannot.

    Raises:
        InputError: there is no such draft, or a field does not fit.
        UsageError: `checks` has a field that cannot be changed, or names a function.
    """
    lines, number, raw = _draft(path, task_id)
    unknown = sorted(set(checks) - set(EDITABLE))
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not among the checks of a draft", hint=f"fields: {', '.join(EDITABLE)}")
    given = checks.get("check_final")
    if isinstance(given, str) and given != raw.get("check_final"):
        raise UsageError(
            "check_final is a list of assertions here",
            hint='such as {"path": "answer", "op": "contains", "value": "42"}; functions are named in the file itself',
        )
    made = {**raw, **checks}
    if rubric is not None and rubric.strip():
        made["rubric"] = rubric.strip()
    made = {k: v for k, v in made.items() if k not in EDITABLE or v not in (None, [])}
    check_task(made, str(path), number)
    valid(Task(**made))
    return _put(path, lines, number, made)


def _draft(path: Path, task_id: str) -> tuple[list[str], int, dict[str, Any]]:
    """The lines of a file, and where in it a draft stands (1-based)."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the suite cannot be read: {error}", file=str(path)) from error
    for number, raw in _objects(path, lines):
        if raw.get("id") != task_id:
            continue
        if not (raw.get("extra") or {}).get("draft"):
            raise InputError(f"task {task_id} is no draft", file=str(path), line=number)
        return lines, number, raw
    raise InputError(f"there is no task {task_id!r}", file=str(path))


def _objects(path: Path, lines: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", file=str(path), line=number) from error
        if isinstance(raw, dict):
            yield number, raw


def _put(path: Path, lines: list[str], number: int, raw: dict[str, Any]) -> Task:
    lines[number - 1] = json.dumps(raw, ensure_ascii=False)
    _replace(path, "\n".join(lines))
    return Task(**raw)


def _replace(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, "utf-8")
    scratch.replace(path)
