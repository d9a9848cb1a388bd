"""A task to the hash of its content: attempts compare only where it is equal (METHODS 6.1)."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.errors import InputError
from seatrial.records import Task

NOT_CONTENT = ("id", "tags", "source", "suite", "type", "difficulty", "must_pass")
"""What says where a task belongs and not what is asked or how it is judged."""

BOOKKEEPING = ("added", "draft", "from_session", "approved_by", "template", "part", "why")
"""Keys of `extra` that record a task's history."""


def task_hash(task: Task) -> str:
    """sha256 of what is asked, from where, and how it is judged. A function counts by its source text, so that a
    changed check is a changed task.

    Raises:
        InputError: the task holds a value that is neither plain JSON nor a function.
    """
    body: dict[str, Any] = {
        name: _plain(getattr(task, name)) for name in task.__struct_fields__ if name not in NOT_CONTENT
    }
    body["extra"] = {k: v for k, v in task.extra.items() if k not in BOOKKEEPING}
    try:
        return content_hash({k: v for k, v in body.items() if v not in (None, [], {})})
    except TypeError as error:
        raise InputError(f"task {task.id}: not plain JSON: {error}") from error


def source_of(function: Any) -> str:
    """The text of a function (of a callable object: of its class); its name where the text is out of reach."""
    target: Any = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    while hasattr(target, "func"):
        target = target.func
    return _text(target)


@cache
def _text(target: Any) -> str:
    """Reading a source file costs more than a whole attempt, and a process does not see it change."""
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return f"{getattr(target, '__module__', '')}:{getattr(target, '__qualname__', repr(target))}"


def _plain(value: Any) -> Any:
    if callable(value):
        keywords = getattr(value, "args", ()), getattr(value, "keywords", {})
        closure = [repr(c.cell_contents) for c in getattr(value, "__closure__", None) or ()]
        return {"source": source_of(value), "bound": repr(keywords), "closure": closure}
    return msgspec.to_builtins(value)
