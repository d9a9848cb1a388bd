"""Ablation replay joined with data flow: which actions were needed for where the run ended? (METHODS 5, D2)

Zeller and Hildebrandt's ddmin (2002) over the writes of a run, from the last one backwards: a group is left out when
the state at the end is no further from the intended one without it and no later relevant action fails. Groups are
tried before single actions and again after them, with what touched the same part of the state, because two actions
that cancel each other are each needed for the other. Reads change nothing; they are relevant by data flow, and a
write that a relevant read depends on is relevant, so the two alternate to a fixed point.

Departures: ddmin's complements are not tested apart (leaving a group out is testing its complement), and the base
only shrinks, so the cost is bounded by the budget and usually linear in the number of writes for each write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from seatrial.dimensions.actions import Action, answer_of, asked_of
from seatrial.dimensions.bench import Bench, Cost, OverBudget, Trial
from seatrial.dimensions.flow import Reading, Use, relevant_reads
from seatrial.dimensions.intended import Distance, intended
from seatrial.dimensions.intent import Intent
from seatrial.dimensions.observation import Mask, patterns_of
from seatrial.dimensions.reexecute import begin
from seatrial.records import Evidence, StateChange
from seatrial.records.protocols import World

CALLS_PER_ACTION = 40
"""The budget: executed calls per action of the run, beside a first run-through."""
_ROUNDS = 5
SPENT = "the budget of executed calls was used up before this was known"
OTHER_VALUES = "the intent allows this tool, but not with these arguments: its effect lies outside the intent"


class Said(NamedTuple):
    """Whether one action is relevant (None: the budget was used up before that was known), by which source and why."""

    relevant: bool | None
    source: str
    why: str


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, by position of the executed actions. `refusal`: why nothing could be found. `changes` are what
    each write changed in the run itself, `around` maps reads to the relevant write that changes what they show; None
    where nothing was carried out again."""

    said: dict[int, Said] = {}
    by: str = ""
    cost: Cost = Cost()
    refusal: str | None = None
    changes: dict[int, tuple[StateChange, ...]] | None = None
    around: dict[int, int] | None = None


def ablate(
    run: Evidence, actions: Sequence[Action], intent: Intent | None, *, calls_per_action: int = CALLS_PER_ACTION
) -> Ablation:
    """Leave actions out and see what is lost.

    Raises:
        SeatrialError, Exception: whatever a world raises.
    """
    trace = run.trace
    if trace is None or run.world is None:
        return Ablation(refusal="there is no world to carry the actions out in")
    world: World = run.world()
    refusal = begin(trace, world)
    if refusal is not None:
        return Ablation(refusal=refusal)
    start = world.state()
    wanted = intended(run, intent, world, start)
    if isinstance(wanted, str):
        return Ablation(refusal=wanted)
    reached = [a for a in actions if a.reached]
    budget = len(reached) * (calls_per_action + 1)
    bench = Bench(world, reached, wanted, budget, Mask(world.volatile, patterns_of(run)))
    final = trace.extra.get("final_hash")
    if isinstance(final, str) and final != bench.final_hash():
        return Ablation(refusal="the run does not replay to its recorded end (see D5): nothing can be left out of it")
    words = intent.words() if intent is not None else ""
    expected = tuple(run.task.expected_tools) if run.task is not None else ()
    reading = Reading(actions, (), asked_of(trace), answer_of(trace), words, expected=expected)
    search = _Search(bench, actions, reading, intent)
    search.work()
    return Ablation(said=search.said(), by=wanted.by, cost=bench.cost, changes=bench.changes,
                    around=search.around)  # fmt: skip


class _Search:
    """One run's search. `why` keeps, for each write, what the last trial without it showed."""

    def __init__(self, bench: Bench, actions: Sequence[Action], reading: Reading, intent: Intent | None) -> None:
        self._bench = bench
        self._actions = actions
        self._reading = reading
        self._intent = intent
        self._why: dict[int, str] = {}
        self._uses: dict[int, Use] = {}
        self._outside: set[int] = set()
        self._spent = False
        self._wrote = frozenset(bench.writes())
        self.around: dict[int, int] = {}

    def work(self) -> None:
        """Alternate between leaving out and the relevance of reads until nothing changes."""
        for _ in range(_ROUNDS):
            found: dict[int, Use] = {}
            try:
                self._minimise()
                self._values()
                found = self._reads()
            except OverBudget:
                self._spent = True
            if self._spent or found.keys() <= self._uses.keys():
                return
            self._uses = {**found, **self._uses}
            if not self._may_need():
                return
            self._bench.again()
            self._why.clear()

    def _may_need(self) -> bool:
        """Whether a write that was left out comes before a read that turned out to be relevant."""
        return any(p < read for p in self._bench.left_out for read in self._uses)

    def _values(self) -> None:
        """Writes that the intent allows with other arguments only: their effect lies outside it, however near."""
        if self._intent is not None:
            called = {a.position: a.call for a in self._actions}
            self._outside = {p for p in self._bench.writes() if self._intent.other_values(called[p])}

    def _reads(self) -> dict[int, Use]:
        reads = [a for a in self._actions if a.executed and a.position not in self._wrote and not a.request]
        relevant = [p for p in self._bench.writes() if p not in self._outside]
        around: dict[int, int] = {}
        for write in relevant:
            asked = {a.key: a for a in reversed(reads)}
            shown = self._bench.shown_by(write, list(asked.values()))
            keys = {asked[k].key for k in asked if asked[k].position in shown}
            for a in reads:
                if a.key in keys:
                    around.setdefault(a.position, write)
        self.around = around
        reading = self._reading._replace(candidates=frozenset(a.position for a in reads), around=around)
        return relevant_reads(reading, relevant)

    def _minimise(self) -> None:
        """Single writes first, so that a write which only hides another's worth is not taken with it; then what
        touched the same place, then neighbours, from many to few."""
        while True:
            before = len(self._bench.left_out)
            self._pass([[p] for p in reversed(self._bench.writes())])
            self._pass(self._together())
            size = len(self._bench.writes())
            while size > 1:
                self._pass(self._neighbours(size))
                size = (size + 1) // 2 if size > 2 else 1
            if len(self._bench.left_out) == before:
                return

    def _neighbours(self, size: int) -> list[list[int]]:
        """Groups of `size` writes that follow each other, half overlapping, the last ones first."""
        writes = self._bench.writes()
        ends = range(len(writes), size - 1, -max(1, size // 2))
        return [writes[end - size : end] for end in ends]

    def _together(self) -> list[list[int]]:
        """Groups of writes that touched the same part of the state, smaller groups first."""
        writes = self._bench.writes()
        groups: dict[tuple[str, ...], set[int]] = {}
        for p in writes:
            for change in self._bench.changes.get(p, ()):
                for depth in range(len(change.path), 0, -1):
                    groups.setdefault(change.path[:depth], set()).add(p)
        listed = {tuple(sorted(g)) for g in groups.values() if 1 < len(g) < len(writes)}
        return [list(g) for g in sorted(listed, key=lambda g: (len(g), [-p for p in reversed(g)]))]

    def _pass(self, groups: Sequence[Sequence[int]]) -> None:
        guarded = {p: (use.value,) if use.how == "used" else () for p, use in self._uses.items()}
        for group in groups:
            present = [p for p in group if p not in self._bench.left_out]
            if len(present) < len(group):
                continue
            trial = self._bench.without(present, guarded, self._bench.writes())
            kept = _lost(trial, self._bench.distance, self._actions)
            if kept is None:
                self._note_extraneous(present, trial)
                self._bench.accept(present, trial)
            elif len(present) == 1:
                self._why[present[0]] = kept

    def _note_extraneous(self, group: Sequence[int], trial: Trial) -> None:
        assert trial.distance is not None
        gain = self._bench.distance.outside - trial.distance.outside
        others = f" (together with {len(group) - 1} more)" if len(group) > 1 else ""
        less = f", and {gain} fewer leaves lie outside the intent" if gain > 0 else ""
        for p in group:
            self._why[p] = f"left out{others}, nothing that was wanted is lost{less}"

    def said(self) -> dict[int, Said]:
        """The verdict on every executed action that is no request."""
        kept = set(self._bench.writes())
        out: dict[int, Said] = {}
        for a in self._actions:
            p = a.position
            if not a.executed or a.request:
                continue
            if p in self._uses:
                out[p] = Said(True, "data_flow", reason(self._uses[p], self._actions))
            elif p in self._outside:
                out[p] = Said(False, "ablation", OTHER_VALUES)
            elif p in kept:
                known = p in self._why and not self._spent
                out[p] = Said(True if known else None, "ablation", self._why[p] if known else SPENT)
            elif p in self._wrote:
                out[p] = Said(False, "ablation", self._why.get(p, "without it the state is the same"))
            elif self._spent:
                out[p] = Said(None, "data_flow", SPENT)
            else:
                out[p] = Said(False, "data_flow", _unused(a))
        return out


def _lost(trial: Trial, now: Distance, actions: Sequence[Action]) -> str | None:
    """What a trial lost against the base, in words; None where nothing."""
    if trial.failed is not None:
        a = actions[trial.failed]
        return f"left out, {a.call.name} at step {a.step} no longer works"
    assert trial.distance is not None
    if trial.distance <= now:
        return None
    if trial.distance.unmet > now.unmet:
        n = trial.distance.unmet - now.unmet
        return f"left out, the final state is further from the intended one: {n} more of it is missing"
    n = trial.distance.outside - now.outside
    return f"left out, {n} more leaves lie outside the intent"


def reason(use: Use, actions: Sequence[Action]) -> str:
    """Why a read is relevant, in words."""
    shown = repr(use.value if len(use.value) <= 60 else use.value[:57] + "...")
    if use.how == "expected":
        return f"the task expects a call of {use.value}"
    if use.how == "asked":
        return f"it looks at what the request names: {shown}"
    where = "the final answer" if use.by is None else f"{actions[use.by].call.name} at step {actions[use.by].step}"
    if use.how == "change":
        return f"it shows what {where} changes"
    return f"{where} uses what it returned: {shown}"


def _unused(action: Action) -> str:
    if action.failed:
        return "it failed, changed nothing, and nothing that it returned is used later"
    return "it changed nothing, and nothing that it alone returned is used later"
