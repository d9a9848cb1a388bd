"""A run on the bench: its calls carried out with some left out, from snapshots, each execution counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from seatrial.dimensions.actions import Action
from seatrial.dimensions.flow import occurs, text_of
from seatrial.dimensions.intended import Distance, Intended
from seatrial.dimensions.observation import Mask
from seatrial.records import Snapshot, StateChange, ToolCall, ToolResult
from seatrial.records.protocols import World

LEFT_OUT = "seatrial_left_out"
"""A tool that no world has: called in the place of an action that is left out, it changes nothing, and the calls
after it keep their number and so their luck."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What it took. `actions` of the run, `trials` made, `calls` executed in them (the first run-through and, where a
    world restores by replay, replayed calls included), `restores` of snapshots."""

    actions: int = 0
    trials: int = 0
    calls: int = 0
    restores: int = 0


class OverBudget(Exception):
    """The number of calls that the bench may execute is used up."""


class Trial(NamedTuple):
    """One run-through with some actions left out. `failed`: position of an action that no longer works."""

    distance: Distance | None
    failed: int | None
    rest: _Rest | None


class _Rest(NamedTuple):
    """What is true of the base from the first action left out on, if the trial is accepted."""

    hashes: dict[int, str]
    snaps: dict[int, Snapshot]
    texts: dict[int, str]


class Bench:
    """Holds the *base*: the run without what has been left out so far. Positions are those of `actions`.

    A base write is an action after which the world's state hash is another. The world must be in the run's start.
    """

    def __init__(
        self, world: World, actions: Sequence[Action], intended: Intended, budget: int, mask: Mask
    ) -> None:  # fmt: skip
        self._world = world
        self._actions = [a for a in actions if a.reached]
        self._intended = intended
        self._budget = budget
        self._mask = mask
        self._replays = bool(getattr(world, "restores_by_replay", False))
        self._calls = 0
        self._restores = 0
        self._trials = 0
        self.left_out: set[int] = set()
        self.hashes: dict[int, str] = {}
        self.ok: dict[int, bool] = {}
        self.texts: dict[int, str] = {}
        self.changes: dict[int, tuple[StateChange, ...]] = {}
        self._snaps: dict[int, Snapshot] = {}
        self._begin = world.state_hash()
        self._run_through()
        self.distance = intended.distance(world.state())
        self._whole = (dict(self.hashes), dict(self.texts), dict(self._snaps), self.distance)

    @property
    def cost(self) -> Cost:
        """What it took so far."""
        return Cost(actions=len(self._actions), trials=self._trials, calls=self._calls, restores=self._restores)

    def again(self) -> None:
        """Make the whole run the base once more."""
        hashes, texts, snaps, self.distance = self._whole
        self.hashes, self.texts, self._snaps = dict(hashes), dict(texts), dict(snaps)
        self.left_out.clear()

    def writes(self) -> list[int]:
        """Positions of the base's writes, in order."""
        out, before = [], self._begin
        for a in self._actions:
            after = self.hashes[a.position]
            if after != before and a.position not in self.left_out:
                out.append(a.position)
            before = after
        return out

    def final_hash(self) -> str:
        """The state hash at the base's end."""
        return self.hashes[self._actions[-1].position] if self._actions else self._begin

    def _run_through(self) -> None:
        before, state = self._begin, self._world.state()
        for a in self._actions:
            if a.effect != "read" or not self._snaps:
                self._snaps[a.position] = self._world.snapshot()
            result = self._call(a.call)
            after = self._world.state_hash()
            self.hashes[a.position] = after
            self.ok[a.position] = _worked(result)
            self.texts[a.position] = result.text
            if after != before:
                now = self._world.state()
                self.changes[a.position] = self._world.difference(state, now)
                state = now
            before = after

    def without(self, group: Collection[int], guarded: Mapping[int, Collection[str]], writes: Collection[int]) -> Trial:
        """Carry the base out without `group`.

        Only `writes` and `guarded` actions are executed again: other reads change nothing. A later one of these that
        worked must work still, and a guarded one must return one of its values still; else the trial ends there.

        Raises:
            OverBudget: no more calls may be executed.
        """
        self._trials += 1
        first, last = min(group), max(group)
        later = [a for a in self._actions if a.position >= first]
        run = {p for p in (*writes, *guarded) if p not in group and p not in self.left_out}
        self._restore(first, run)
        hash_now = self._world.state_hash()
        rest = _Rest({}, {}, {})
        for a in later:
            p = a.position
            if p in run:
                if p in writes:
                    rest.snaps[p] = self._world.snapshot()
                result = self._call(a.call)
                rest.texts[p] = result.text
                if (self.ok[p] and not _worked(result)) or _lost(guarded.get(p, ()), self.texts[p], result.text):
                    return Trial(None, p, None)
                hash_now = self._world.state_hash()
            else:
                self._skip(a)
            rest.hashes[p] = hash_now
            if p >= last and hash_now == self.hashes[p]:
                return Trial(self.distance, None, rest)
        return Trial(self._intended.distance(self._world.state()), None, rest)

    def shown_by(self, write: int, reads: Sequence[Action]) -> set[int]:
        """Positions of the `reads` that return something else right before and right after the base's `write`.

        Raises:
            OverBudget: no more calls may be executed.
        """
        call = next(a.call for a in self._actions if a.position == write)
        run = {*self.writes()}
        self._restore(write, run)
        before = self._look(reads)
        self._call(call)
        after = self._look(reads)
        other = [r for r in reads if before[r.position] != after[r.position]]
        if not other:
            return set()
        # A read that never says the same twice says nothing about the write.
        self._restore(write, run)
        once, twice = self._look(other), self._look(other)
        return {r.position for r in other if once[r.position] == twice[r.position]}

    def _look(self, reads: Sequence[Action]) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for read in reads:
            result = self._call(read.call)
            found[read.position] = result.outcome, self._mask.text(result.text)
        return found

    def accept(self, group: Collection[int], trial: Trial) -> None:
        """Make the trial the base."""
        assert trial.distance is not None
        assert trial.rest is not None
        self.left_out |= set(group)
        first = min(group)
        # States before later actions are others now, up to where the trial came back to the base.
        self._snaps = {p: s for p, s in self._snaps.items() if p <= first or p not in trial.rest.hashes}
        self.distance = trial.distance
        self.hashes.update(trial.rest.hashes)
        self.texts.update(trial.rest.texts)
        self._snaps.update(trial.rest.snaps)

    def _restore(self, position: int, run: Collection[int]) -> None:
        """The base's state before `position`: the nearest snapshot before it, and the calls since."""
        near = max((p for p in self._snaps if p <= position), default=None)
        assert near is not None
        self._world.restore(self._snaps[near])
        self._restores += 1
        if self._replays:
            self._count(sum(a.position < near and a.position not in self.left_out for a in self._actions))
        for a in self._actions:
            if near <= a.position < position:
                if a.position in run:
                    self._call(a.call)
                else:
                    self._skip(a)

    def _call(self, call: ToolCall) -> ToolResult:
        self._count(1)
        return self._world.call(call)

    def _skip(self, action: Action) -> None:
        self._world.call(ToolCall(id=action.call.id, name=LEFT_OUT))

    def _count(self, n: int) -> None:
        self._calls += n
        if self._calls > self._budget:
            raise OverBudget


def _worked(result: ToolResult) -> bool:
    return result.outcome not in ("error", "rejected", "interrupted")


def _lost(values: Collection[str], before: str, now: str) -> bool:
    """Whether a result held one of these values and holds none of them any more."""
    if not values or before == now:
        return False
    was, is_now = text_of(before), text_of(now)
    return any(occurs(v, was) for v in values) and not any(occurs(v, is_now) for v in values)
