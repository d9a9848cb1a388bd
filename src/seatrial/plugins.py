"""Readers, detectors and the like from other packages, by entry points: loaded when asked for, never at import.

A package offers one in its ``pyproject.toml``::

    [project.entry-points."seatrial.readers"]
    my-format = "my_package.reader:READER"

What it names is an object of that group's Protocol (`records.protocols`). A plugin that breaks is left out
and listed, so that it can never take seatrial down with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from seatrial.errors import UsageError
from seatrial.records.protocols import Detector, Reader

GROUPS: dict[str, type | None] = {
    "seatrial.readers": Reader,
    "seatrial.detectors": Detector,
    "seatrial.checks": None,
    "seatrial.dimensions": None,
    "seatrial.worlds": None,
    "seatrial.agents": None,
    "seatrial.judges": None,
}
"""Entry-point groups, with the Protocol that is checked when one is loaded (None: the room that uses it checks)."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded plugin: its entry-point name, the distribution that brings it, and the object."""

    name: str
    distribution: str
    value: Any


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that could not be loaded, and why."""

    name: str
    distribution: str
    why: str

    def __str__(self) -> str:
        return f"plugin {self.name} of {self.distribution} is left out: {self.why}"


class Plugins(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins of a group in name order, and those left out."""

    found: tuple[Plugin, ...]
    broken: tuple[Broken, ...]


@cache
def plugins(group: str) -> Plugins:
    """Load the plugins of an entry-point group (once in a process).

    Raises:
        UsageError: no such group.
    """
    if group not in GROUPS:
        raise UsageError(f"there is no plugin group {group!r}", hint=f"one of: {', '.join(GROUPS)}")
    return load(entry_points(group=group), GROUPS[group])


def load(points: Iterable[EntryPoint], protocol: type | None) -> Plugins:
    """Load entry points; of two with one name the second is left out."""
    found: dict[str, Plugin] = {}
    broken: list[Broken] = []
    for point in sorted(points, key=lambda p: (p.name, p.value)):
        distribution = point.dist.name if point.dist is not None else "an unknown package"
        why = None
        value = None
        try:
            value = point.load()
            if isinstance(value, type):
                value = value()  # an entry point may name a class
        except (Exception, SystemExit) as error:  # a stranger's module may raise anything
            why = f"{type(error).__name__}: {error}"
        if why is None and protocol is not None and not _fits(value, protocol):
            why = f"{point.value} is not a {protocol.__name__}: it lacks {', '.join(_missing(value, protocol))}"
        if why is None and point.name in found:
            why = f"{found[point.name].distribution} brings one of the same name"
        if why is not None:
            broken.append(Broken(name=point.name, distribution=distribution, why=why))
        else:
            found[point.name] = Plugin(name=point.name, distribution=distribution, value=value)
    return Plugins(found=tuple(found.values()), broken=tuple(broken))


def _fits(value: Any, protocol: type) -> bool:
    return not _missing(value, protocol)


def _missing(value: Any, protocol: type) -> list[str]:
    wanted = [n for n in vars(protocol) if not n.startswith("_")]
    missing = []
    for name in wanted:
        try:
            getattr(value, name)
        except Exception:
            missing.append(name)
    return missing
