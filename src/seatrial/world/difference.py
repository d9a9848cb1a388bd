"""What changed between two plain JSON states, leaf by leaf, volatile fields left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.records import StateChange

Path = tuple[str, ...]


def matches(path: Path, pattern: Path) -> bool:
    """True if `path` lies at or below `pattern`, where ``*`` stands for any one part."""
    return len(path) >= len(pattern) and all(q in ("*", p) for p, q in zip(path, pattern, strict=False))


def mask(value: Any, volatile: Sequence[Path]) -> Any:
    """A copy of `value` without the parts at or below any of the `volatile` paths.

    A volatile element of a list is left out.
    """
    return _mask(value, tuple(volatile)) if volatile else value


def _mask(value: Any, patterns: tuple[Path, ...]) -> Any:
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            below = tuple(p[1:] for p in patterns if p[0] in ("*", key))
            if () not in below:
                out[key] = _mask(item, below) if below else item
        return out
    if isinstance(value, list):
        items = []
        for i, item in enumerate(value):
            below = tuple(p[1:] for p in patterns if p[0] in ("*", str(i)))
            if () not in below:
                items.append(_mask(item, below) if below else item)
        return items
    return value


def differences(before: Any, after: Any, volatile: Sequence[Path] = ()) -> tuple[StateChange, ...]:
    """The leaves that differ, in path order; an empty container that came or went counts as a leaf.

    Leaves compare as canonical JSON does (1, 1.0 and True are three), so that two states have equal hashes
    exactly when they have no difference.
    """
    found: list[StateChange] = []
    _walk(before, after, (), tuple(volatile), found)
    return tuple(sorted(found, key=lambda change: change.path))


def _walk(before: Any, after: Any, path: Path, volatile: tuple[Path, ...], found: list[StateChange]) -> None:
    if any(matches(path, pattern) for pattern in volatile):
        return
    old, new = _children(before), _children(after)
    if old is not None and new is not None and type(before) is type(after):
        for key in old.keys() | new.keys():
            here = (*path, key)
            if key not in old:
                _leaves(new[key], here, volatile, found, "added")
            elif key not in new:
                _leaves(old[key], here, volatile, found, "removed")
            elif old[key] is not new[key]:
                _walk(old[key], new[key], here, volatile, found)
    elif type(before) is not type(after) or (repr(before) != repr(after)):
        found.append(StateChange(path=path, kind="changed", before=before, after=after))


def _leaves(value: Any, path: Path, volatile: tuple[Path, ...], found: list[StateChange], kind: str) -> None:
    if any(matches(path, pattern) for pattern in volatile):
        return
    n_before = len(found)
    children = _children(value)
    for key, item in (children or {}).items():
        _leaves(item, (*path, key), volatile, found, kind)
    if len(found) > n_before:
        return
    leaf = value if children is None else type(value)()
    if kind == "added":
        found.append(StateChange(path=path, kind="added", after=leaf))
    else:
        found.append(StateChange(path=path, kind="removed", before=leaf))


def _children(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(i): item for i, item in enumerate(value)}
    return None
