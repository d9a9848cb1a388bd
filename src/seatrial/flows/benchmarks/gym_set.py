"""A set of Gymnasium environments as a benchmark: one task per variant, success by the environment's own reward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from seatrial.errors import InputError, MissingExtra
from seatrial.flows.benchmarks import own
from seatrial.records import RecordedOutcome, Status, Task, Trace, World, WorldStart
from seatrial.suites import Limits
from seatrial.world.gym import GymWorld

State = dict[str, Any]


class GymSet:
    """Implements `records.Benchmark` over ``gymnasium.make(id, **variant)``; needs the extra [gym].

    `variants` maps the id of a task to what ``make`` is given for it; ``seed`` in it fixes the start state, which else
    differs between attempts. `says` is what the agent is told; ``{task}`` in it becomes the task's id. `success`
    judges the world's final state (see `world.gym.GymWorld`); None: the episode ended by itself with a positive total
    reward. The number of steps so far is volatile: two ways to the same place end in the same state.

    Departure: an environment draws its luck in sequence, not by the number of the call, so in one that draws (a
    slippery lake) what follows an action that is left out is another story, and ablation replay calls too much
    relevant. Replay integrity is not touched by this.
    """

    version = "1"

    def __init__(
        self,
        name: str,
        id: str,
        variants: Mapping[str, Mapping[str, Any]],
        *,
        says: str = "Reach the goal of {task}.",
        success: Callable[[State], bool] | None = None,
        turns: int = 100,
    ) -> None:
        if not variants:
            raise InputError(f"the benchmark {name} has no variant", hint='{"task": {what gymnasium.make is given}}')
        self.name = name
        self.id = id
        self._variants = {task: dict(given) for task, given in variants.items()}
        self._says = says
        self._success = success or _rewarded
        self._turns = turns

    def tasks(self) -> Sequence[Task]:
        """One task per variant."""
        return [Task(id=task, input=self._says.format(task=task), type="game") for task in self._variants]

    def reset(self, task: Task, seed: int) -> World:
        """A fresh environment.

        Raises:
            MissingExtra: Gymnasium is not installed.
            InputError: there is no such environment, or no such task.
        """
        try:
            import gymnasium
        except ImportError as error:
            raise MissingExtra("gym", "a Gymnasium environment") from error
        if task.id not in self._variants:
            raise InputError(f"the benchmark {self.name} has no task {task.id!r}")
        given = dict(self._variants[task.id])
        fixed = given.pop("seed", None)
        world = GymWorld(self.id, make=lambda: gymnasium.make(self.id, **given), volatile=(("steps",),))
        world.reset(WorldStart(state={}, seed=(seed if fixed is None else int(fixed)) % 2**31))
        return world

    def attempts(self, task: Task, agent: object, *, k: int, seed: int) -> Iterator[Trace]:
        """`k` attempts by our runner.

        Raises:
            UsageError: the agent cannot act in a world.
        """
        limits = Limits(turns=self._turns + 1, calls=self._turns)
        return own.attempts(self.name, task, agent, self.reset, k=k, seed=seed, limits=limits)

    def success(self, task: Task, trace: Trace) -> RecordedOutcome:
        """By the reward at the end of the episode."""
        settled = own.settled(trace)
        if settled is not None and settled.status != "timeout":
            return settled
        final = trace.extra.get("final") or {}
        won = self._success(final)
        said = f"total reward {final.get('total', 0.0):g} after {final.get('steps', 0)} steps"
        status: Status = "passed" if won else "timeout" if settled is not None else "failed"
        return RecordedOutcome(status=status, by=self.name, extra={"reason": said})


def _rewarded(final: State) -> bool:
    return bool(final.get("terminated")) and float(final.get("total", 0.0)) > 0.0
