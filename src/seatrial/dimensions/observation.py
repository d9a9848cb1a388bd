"""What a call returned, made comparable: declared volatile parts masked, so that a clock is no divergence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import re2

from seatrial.canon import canonical
from seatrial.errors import InputError
from seatrial.records import Evidence, ToolResult

Path = tuple[str, ...]
MASKED = "<volatile>"


class Mask:
    """Masks observations.

    `volatile` are the world's volatile state paths: in an observation that is JSON, whole or line by line, a field is
    left out that bears the name by which such a path ends (a path that ends in ``*`` names the field above).
    `patterns` are regular expressions (RE2) whose matches become a placeholder, for observations that are prose.

    Raises:
        InputError: a pattern is no regular expression.
    """

    def __init__(self, volatile: Sequence[Path] = (), patterns: Sequence[str] = ()) -> None:
        self._fields = frozenset(name for name in map(_last, volatile) if name is not None)
        try:
            self._patterns = [re2.compile(p) for p in patterns]
        except re2.error as error:
            raise InputError(f"a volatile pattern is no regular expression: {error}") from error

    def text(self, text: str) -> str:
        """The text without what may differ."""
        if self._fields:
            text = self._structured(text)
        for pattern in self._patterns:
            text = pattern.sub(MASKED, text)
        return text

    def same(self, logged: ToolResult, again: ToolResult) -> bool:
        """Outcome, exit code and masked text are equal; an outcome that the log does not know is not compared."""
        if logged.outcome != "unknown" and logged.outcome != again.outcome:
            return False
        if logged.exit_code is not None and logged.exit_code != again.exit_code:
            return False
        mine, theirs = self.text(logged.text), self.text(again.text)
        return theirs.startswith(mine) if logged.truncated else mine == theirs

    def _structured(self, text: str) -> str:
        whole = parsed(text)
        if whole is not None:
            return canonical(self._without(whole)).decode()
        lines = []
        for line in text.split("\n"):
            value = parsed(line)
            lines.append(line if value is None else canonical(self._without(value)).decode())
        return "\n".join(lines)

    def _without(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {k: self._without(v) for k, v in value.items() if k not in self._fields}
        if isinstance(value, list):
            return [self._without(v) for v in value]
        return value


def patterns_of(run: Evidence) -> tuple[str, ...]:
    """What the task declares as volatile in observations: ``extra["volatile_text"]``, a list of patterns."""
    given = run.task.extra.get("volatile_text") if run.task is not None else None
    return tuple(str(p) for p in given) if isinstance(given, list | tuple) else ()


def _last(path: Path) -> str | None:
    named = [part for part in path if part != "*"]
    return named[-1] if named else None


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that `text` is; None where it is none."""
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
