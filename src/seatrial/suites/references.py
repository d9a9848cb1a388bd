"""Functions that a suite file names to the functions themselves: the user's own code, and nobody else's.

A suite file is code that its reader trusts, as a test file is; a trace is not, and nothing in one is ever executed.
So that a line of data cannot reach for any function there is (``os:system``), a reference leads to a file in the
suite's own folder, or into a package that the suite itself names in ``packages``; and what it leads to must take what
it will be given.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial import plugins
from seatrial.errors import InputError

OWN = "seatrial"
"""The package whose examples any suite may use."""

TAKES: dict[str, tuple[int, int, str]] = {
    "setup": (0, 1, "nothing, the seed, or the world"),
    "check_final": (2, 2, "final_answer and world_state"),
    "world": (1, 1, "the seed"),
    "counterpart": (1, 1, "the task"),
    "approver": (1, 1, "the task"),
}
"""By field: the fewest and the most values that its function is given, and what they are."""


def resolve(field: str, reference: str, folder: Path, packages: Sequence[str] = ()) -> Any:
    """The function that ``module:name`` or ``file.py:name`` names.

    Raises:
        InputError: it lies neither in the suite's folder nor in a named package, is no function, or takes other values
            than it will be given.
        UsageError: it names nothing.
    """
    place = reference.rpartition(":")[0]
    if place and not place.endswith(".py") and not _ours(place, folder, packages):
        top = place.partition(".")[0]
        raise InputError(
            f"{field}: {reference!r} is neither in the suite's folder nor in a package that the suite names",
            hint=f'if it is meant, say so in the suite: packages = ["{top}"]',
        )
    if place.endswith(".py") and not (folder / place).resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"{field}: {reference!r} leads out of the suite's folder", hint="put the file beside the suite"
        )
    value = plugins.named(reference, folder)
    _fitting(field, reference, value)
    return value


def _ours(module: str, folder: Path, packages: Sequence[str]) -> bool:
    """Whether a module may be imported. Looking where its top package lies runs none of it."""
    top = module.partition(".")[0]
    if top == OWN or any(module == p or module.startswith(p + ".") for p in packages):
        return True
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return True  # not there at all: told when it is imported
    places = [spec.origin] if spec.origin else []
    places += list(spec.submodule_search_locations or ())
    return any(Path(p).resolve().is_relative_to(folder.resolve()) for p in places if p not in ("built-in", "frozen"))


def _fitting(field: str, reference: str, value: Any) -> None:
    if not callable(value):
        raise InputError(f"{field}: {reference!r} is {type(value).__name__}, not a function")
    least, most, given = TAKES[field]
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # some compiled functions do not tell
    for n in range(least, most + 1):
        try:
            signature.bind(*[None] * n)
        except TypeError:
            continue
        return
    raise InputError(f"{field}: {reference!r} does not take {given}", hint=f"{field}{signature} is given {given}")
