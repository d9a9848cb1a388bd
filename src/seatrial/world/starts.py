"""From a task to the world's start state and to the one who asks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.errors import InputError
from seatrial.records import Task, UserMessage, WorldStart


def start_of(task: Task, seed: int, usual: Callable[[int], WorldStart] | None = None) -> WorldStart:
    """The start that `task.setup` asks for: None: the world's `usual` one (an empty state where there is none); an
    object: that state; a function, or ``module:function``: what it returns for `seed`.

    Raises:
        InputError: the function cannot be found or gives no start.
    """
    setup = task.setup
    if setup is None:
        return usual(seed) if usual is not None else WorldStart(state={}, seed=seed)
    if isinstance(setup, dict):
        return WorldStart(state=setup, seed=seed)
    start = (load(setup) if isinstance(setup, str) else setup)(seed)
    if isinstance(start, dict):
        return WorldStart(state=start, seed=seed)
    if not isinstance(start, WorldStart):
        raise InputError(f"task {task.id}: setup gave {type(start).__name__}", hint="return a WorldStart or its state")
    return start


def load(name: str, *, callable_only: bool = True) -> Any:
    """What ``module:name`` names: a callable, unless `callable_only` is False.

    Raises:
        InputError: there is no such module or function.
    """
    module, _, attribute = name.partition(":")
    hint = "write module:function, importable from where seatrial runs"
    if not module or not attribute:
        raise InputError(f"{name!r} is not module:function", hint=hint)
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{name!r} cannot be loaded: {error}", hint=hint) from error
    if callable_only and not callable(found):
        raise InputError(f"{name!r} is not callable", hint=hint)
    return found


class FixedText:
    """A counterpart that says one thing, then answers what the agent says with `replies`, in order, and leaves."""

    def __init__(self, text: str, replies: Sequence[str] = (), meaning: dict[str, Any] | None = None) -> None:
        self._text = text
        self._replies = list(replies)
        self._meaning = meaning or {}

    def open(self, state: dict[str, Any]) -> UserMessage:
        """The text."""
        return UserMessage(text=self._text, meaning=self._meaning)

    def reply(self, said: str, state: dict[str, Any]) -> UserMessage | None:
        """The next reply; None when there is none left."""
        return UserMessage(text=self._replies.pop(0)) if self._replies else None
