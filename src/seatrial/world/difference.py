"""What changed between two plain JSON states, leaf by leaf, volatile fields left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.canon import canonical
from seatrial.errors import UsageError
from seatrial.records import StateChange

Path = tuple[str, ...]


def mask(value: Any, volatile: Sequence[Path]) -> Any:
    """A copy of `value` without the parts at or below any of the `volatile` paths.

    A volatile element of a list is left out.

    Raises:
        UsageError: a path is empty.
    """
    if () in volatile:
        raise UsageError("a volatile path cannot be the whole state")
    return _mask(value, tuple(volatile)) if volatile else value


def _mask(value: Any, patterns: tuple[Path, ...]) -> Any:
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            below = _below(patterns, key)
            if () not in below:
                out[key] = _mask(item, below) if below else item
        return out
    if isinstance(value, list):
        items = []
        for i, item in enumerate(value):
            below = _below(patterns, str(i))
            if () not in below:
                items.append(_mask(item, below) if below else item)
        return items
    return value


def differences(before: Any, after: Any, volatile: Sequence[Path] = ()) -> tuple[StateChange, ...]:
    """The leaves that differ, in path order; an empty container that came or went counts as a leaf.

    Leaves compare as canonical JSON does (1, 1.0 and True are three), so that two states have equal hashes
    exactly when they have no difference.

    Raises:
        UsageError: a volatile path is empty.
    """
    if () in volatile:
        raise UsageError("a volatile path cannot be the whole state")
    found: list[StateChange] = []
    if canonical(before) != canonical(after):
        _walk(before, after, (), tuple(volatile), found)
    return tuple(sorted(found, key=lambda change: change.path))


def _walk(before: Any, after: Any, path: Path, volatile: tuple[Path, ...], found: list[StateChange]) -> None:
    """Called where the two differ. Comparing canonical bytes first skips equal subtrees at the encoder's speed."""
    old, new = _children(before), _children(after)
    if old is not None and new is not None and type(before) is type(after):
        for key in old.keys() | new.keys():
            below = _below(volatile, key)
            if () in below:
                continue
            here = (*path, key)
            if key not in old:
                _leaves(new[key], here, below, found, "added")
            elif key not in new:
                _leaves(old[key], here, below, found, "removed")
            elif canonical(old[key]) != canonical(new[key]):
                _walk(old[key], new[key], here, below, found)
    else:
        found.append(StateChange(path=path, kind="changed", before=before, after=after))


def _leaves(value: Any, path: Path, volatile: tuple[Path, ...], found: list[StateChange], kind: str) -> None:
    n_before = len(found)
    children = _children(value)
    for key, item in (children or {}).items():
        below = _below(volatile, key)
        if () not in below:
            _leaves(item, (*path, key), below, found, kind)
    if len(found) > n_before:
        return
    leaf = value if children is None else type(value)()
    if kind == "added":
        found.append(StateChange(path=path, kind="added", after=leaf))
    else:
        found.append(StateChange(path=path, kind="removed", before=leaf))


def _below(patterns: tuple[Path, ...], key: str) -> tuple[Path, ...]:
    """What is left of the patterns that match `key`; the empty path when one of them ends here."""
    return tuple(p[1:] for p in patterns if p[0] in ("*", key)) if patterns else patterns


def _children(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(i): item for i, item in enumerate(value)}
    return None
