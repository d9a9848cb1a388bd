"""How far a state is from the one that a task intends: what ablation replay compares (METHODS 5, D2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from seatrial.dimensions.actions import tools_of
from seatrial.dimensions.intent import Intent, parts, under
from seatrial.records import Evidence
from seatrial.records.protocols import World

Path = tuple[str, ...]
State = dict[str, Any]


class Distance(NamedTuple):
    """Compared first by what is unmet, then by what lies outside the intent: an action that does what is required is
    not made extraneous by what else it does, but one that only does something else is."""

    unmet: int
    outside: int


class Intended(NamedTuple):
    """The intended state. `by` says in words what it is taken from."""

    distance: Callable[[State], Distance]
    by: str


def intended(run: Evidence, intent: Intent | None, world: World, start: State) -> Intended | str:
    """The intended state of a run, or in words why there is none.

    From the intent: required effects that do not hold, and changed leaves outside every allowed path. Without one,
    only a run that passed has an intended state: its own final one, and the distance is the number of leaves that
    differ.
    """
    if intent is not None and (not intent.required or run.required is not None):
        return _by_intent(run, intent, world, start)
    if run.attempt.status != "passed":
        return "the task has no intended state, and the run did not pass: nothing says which end was wanted"
    final = run.trace.extra.get("final") if run.trace is not None else None
    if not isinstance(final, dict):
        return "the task has no intended state, and the log holds no final one"
    reference: State = final

    def away(state: State) -> Distance:
        return Distance(len(world.difference(reference, state)), 0)

    return Intended(away, "the final state of this run, which passed")


def _by_intent(run: Evidence, intent: Intent, world: World, start: State) -> Intended:
    assert run.trace is not None
    declared = tools_of(run.trace) or world.tools
    reads = frozenset(t.name for t in declared if t.effect == "read")
    places = intent.paths(reads)
    required = run.required

    def away(state: State) -> Distance:
        unmet = 0 if required is None else _unmet(intent, required(state), places or ())
        if places is None:
            return Distance(unmet, 0)
        changes = world.difference(start, state)
        return Distance(unmet, sum(not under(c.path, places) for c in changes))

    return Intended(away, "the effects that the task's intent requires and allows")


def _unmet(intent: Intent, held: Sequence[bool], places: Sequence[Path]) -> int:
    """How many objects are not as required. The fields of one object count once: an appointment at the right hour of a
    wrong day is no nearer to what was asked for than none."""
    if len(held) != len(intent.required):
        return sum(not ok for ok in held)
    return len({_object(r, places) for r, ok in zip(intent.required, held, strict=True) if not ok})


def _object(required: dict[str, Any], places: Sequence[Path]) -> Path:
    """What an assertion is about: the object above its field where the intent lets that object change, the collection
    above a ``*``, else the place itself."""
    path = parts(str(required.get("path", "")))
    if "*" in path:
        return path[: path.index("*")]
    return path[:-1] if len(path) > 1 and under(path[:-1], places) else path
