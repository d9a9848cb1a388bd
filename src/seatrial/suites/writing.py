"""Tasks to lines of a suite file, and a draft to an approved task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.records import Task


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
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the suite cannot be read: {error}", file=str(path)) from error
    for number, line in enumerate(lines, 1):
        try:
            raw = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", file=str(path), line=number) from error
        if not isinstance(raw, dict) or raw.get("id") != task_id:
            continue
        extra = raw.get("extra") or {}
        if not extra.get("draft"):
            raise InputError(f"task {task_id} is no draft", file=str(path), line=number)
        if rubric is not None and rubric.strip():
            raw["rubric"] = rubric.strip()
        if raw.get("check_final") is None and raw.get("rubric") is None:
            raise InputError(
                f"draft {task_id} has neither check_final nor rubric, so nothing would judge its end",
                file=str(path), line=number, hint="add assertions, a function or a rubric, then approve it",
            )  # fmt: skip
        kept = {k: v for k, v in extra.items() if k not in ("draft", "open", "context")}
        raw["extra"] = {**kept, "approved_by": by, "added": extra.get("added", on)}
        lines[number - 1] = json.dumps(raw, ensure_ascii=False)
        _replace(path, "\n".join(lines))
        return Task(**raw)
    raise InputError(f"there is no task {task_id!r}", file=str(path))


def _replace(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, "utf-8")
    scratch.replace(path)
