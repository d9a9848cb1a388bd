"""Readers, detectors and the like from other packages, by entry points: loaded when asked for, never at import.

A package offers one in its ``pyproject.toml``::

    [project.entry-points."seatrial.readers"]
    my-format = "my_package.reader:READER"

What it names is an object of that group's Protocol (`records.protocols`). A plugin that breaks is left out
and listed, so that it can never take seatrial down with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import UsageError
from seatrial.records.protocols import Detector, Dimension, Reader

GROUPS: dict[str, type | None] = {
    "seatrial.readers": Reader,
    "seatrial.detectors": Detector,
    "seatrial.checks": None,
    "seatrial.dimensions": Dimension,
}
"""Entry-point groups, with the Protocol that is checked when one is loaded (None: the room that uses it checks). Worlds
and agents are named by reference (`named`), judges by their specification: they need no group."""


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


def named(reference: str, folder: Path | None = None) -> Any:
    """The object that ``module:name`` or ``file.py:name`` names; a file is looked for in `folder`.

    Importing runs the module: a reference is code that its reader trusts, as a test file is.

    Raises:
        UsageError: it is no reference, the module cannot be imported, or has no such name.
    """
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{reference!r} names nothing", hint="module:name or file.py:name")
    try:
        module = _file(Path(folder or ".") / place) if place.endswith(".py") else import_module(place)
        value: Any = module
        for part in name.split("."):
            value = getattr(value, part)
    except AttributeError:
        raise UsageError(f"{place} has no {name!r}") from None
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything
        raise UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    return value


def _file(path: Path) -> Any:
    """Import a file under a name of its own, once, its folder on the path so that its neighbours are found."""
    path = path.resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {path.name}", hint=f"looked in {path.parent.name or path.parent}")
    name = f"seatrial_file_{blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path.name} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
