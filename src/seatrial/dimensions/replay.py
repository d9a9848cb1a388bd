"""D5, replay integrity: do the logged actions lead to the same again, from the recorded start? (METHODS 5)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.dimensions.actions import actions_of
from seatrial.dimensions.agent_again import Decisions, decide_again
from seatrial.dimensions.aggregate import mean_over_tasks as over_tasks
from seatrial.dimensions.aggregate import middle_level, result, scored, task_means, value_of
from seatrial.dimensions.fresh import FreshProcess
from seatrial.dimensions.observation import patterns_of
from seatrial.dimensions.reexecute import Reexecution, StepAgain, reexecute
from seatrial.errors import InputError, SeatrialError
from seatrial.records import DimensionResult, DimensionValue, Estimate, Evidence, Finding, Trace

Fresh = Callable[[Trace, dict[str, Any], tuple[str, ...]], Reexecution]
NO_WORLD = "there is no world to re-execute the actions in; reading the log back is not a replay"


class ReplayIntegrity:
    """D5. A step counts when its observation and its state hash come out the same in every process that tried.

    `fresh` carries a run out in another process (None: one is started when it is first needed).
    """

    name = "D5"
    title = "replay integrity"
    version = "1"

    def __init__(self, fresh: Fresh | None = None) -> None:
        self._fresh: Fresh | None = fresh

    def measure(self, run: Evidence) -> DimensionValue:
        """Re-execute the run in this process and in a fresh one, and its agent where its responses are recorded."""
        trace = run.trace
        if trace is None:
            return self._none(run, "there is no log of this run")
        if not any(a.reached and a.result is not None for a in actions_of(trace)):
            return self._none(run, "the run has no action to re-execute")
        if run.world is None:
            return self._none(run, NO_WORLD)
        patterns = patterns_of(run)
        try:
            here = reexecute(trace, run.world(), patterns)
        except InputError as error:
            return self._none(run, error.message)
        except Exception as error:
            told = error.message if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
            return self._none(run, f"the world could not be made: {told}")
        if here.refusal is not None:
            return self._none(run, here.refusal)
        there = self._elsewhere(run, trace, patterns)
        agent = decide_again(trace, run.agent()) if run.agent is not None else None
        return self._value(run, here, there, agent)

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """Mean over tasks of the runs' shares of steps that came out the same."""
        rubric, why = middle_level(scored(values))
        beside = {
            name: _beside(values, key, level)
            for name, key in (("in process", "in_process"), ("fresh process", "fresh_process"), ("agent", "agent"))
        }
        return result(
            self.name, self.title, self.version, values, level, method="mean of task means of the share of steps",
            level=rubric, level_why=why, notes=_notes(values), nothing=NO_WORLD,
            beside={k: v for k, v in beside.items() if v is not None},
        )  # fmt: skip

    def _none(self, run: Evidence, why: str) -> DimensionValue:
        return value_of(self.name, self.version, run, None, why)

    def _elsewhere(self, run: Evidence, trace: Trace, patterns: tuple[str, ...]) -> Reexecution:
        if run.origin is None:
            return Reexecution(refusal="nothing says how another process makes this world")
        if self._fresh is None:
            self._fresh = FreshProcess()
        try:
            return self._fresh(trace, run.origin, patterns)
        except SeatrialError as error:
            return Reexecution(refusal=error.message)

    def _value(
        self, run: Evidence, here: Reexecution, there: Reexecution, agent: Decisions | None
    ) -> DimensionValue:  # fmt: skip
        n = len(here.steps)
        tried = [here] if there.refusal is not None else [here, there]
        same = [all(t.steps[i].same for t in tried) for i in range(n)]
        value = sum(same) / n
        parts: dict[str, Any] = {
            "steps": n,
            "in_process": sum(s.same for s in here.steps) / n,
            "fresh_process": None if there.refusal else sum(s.same for s in there.steps) / n,
            "state_hashes": here.hashed,
            "final_state": here.final if there.refusal else _both(here.final, there.final),
        }
        if there.refusal:
            parts["no_fresh_process"] = there.refusal
        if agent is not None:
            parts["agent"] = agent.same / agent.n if agent.n else None
            if agent.refusal:
                parts["no_agent"] = agent.refusal
        level, level_why = _level(value, here, parts["final_state"])
        by = "observation and state" if here.hashed else "observation alone: the log holds no state hash"
        where = "in this process alone" if there.refusal else "in this process and in a fresh one"
        why = f"{sum(same)} of {n} steps came out the same {where}, by {by}"
        return value_of(
            self.name, self.version, run, value, why, numerator=float(sum(same)), denominator=float(n), level=level,
            level_why=level_why, findings=_findings(here, there, agent), parts=parts,
        )  # fmt: skip


def _both(a: bool | None, b: bool | None) -> bool | None:
    return None if a is None or b is None else a and b


def _level(value: float, here: Reexecution, final: bool | None) -> tuple[float, str]:
    """Source C's level by a stated rule."""
    if value == 1.0:
        return 1.0, "every step came out the same"
    if all(s.state is not False for s in here.steps) and final is not False and value >= 0.5:
        return 0.75, "only observations differ: every state came out the same"
    if value >= 0.5:
        return 0.5, "at least half of the steps came out the same"
    return 0.25, "fewer than half of the steps came out the same"


def _findings(here: Reexecution, there: Reexecution, agent: Decisions | None) -> tuple[Finding, ...]:
    out = []
    for where, one in (("in this process", here), ("in a fresh process", there)):
        if one.broke is not None:
            out.append(Finding(what=f"{where}: {one.broke}", weight=1.0))
        if one.first is not None and (where == "in this process" or one.first != here.first):
            out.append(_divergence(where, one.first, one))
    if agent is not None and agent.first is not None:
        what = f"with the recorded responses the agent first decides otherwise at step {agent.first}: {agent.said}"
        out.append(Finding(what=what, weight=1.0 - agent.same / agent.n, step=agent.first))
    return tuple(out)


def _divergence(where: str, first: StepAgain, one: Reexecution) -> Finding:
    which = "observation" if not first.observation else "state"
    if not first.observation and first.state is False:
        which = "observation and state"
    lost = sum(not s.same for s in one.steps)
    return Finding(
        what=f"{where} the {which} of {first.tool} is the first that differs ({lost} of {len(one.steps)} in all)",
        weight=lost / len(one.steps),
        step=first.step,
        call_id=first.call_id,
        detail={"logged": first.logged, "again": first.again, "state": first.state},
    )


def _beside(values: Sequence[DimensionValue], key: str, level: float) -> Estimate | None:
    known = [replace(v, value=v.parts[key]) for v in scored(values) if v.parts.get(key) is not None]
    return over_tasks(task_means(known), level, "mean of task means of the share of steps")[0] if known else None


def _notes(values: Sequence[DimensionValue]) -> tuple[str, ...]:
    counted = [v for v in scored(values) if v.value is not None]
    out = []
    blind = sum(not v.parts.get("state_hashes") for v in counted)
    if blind:
        out.append(f"{blind} of {len(counted)} runs are compared by observation alone: their logs hold no state hash")
    alone = [v for v in counted if v.parts.get("fresh_process") is None]
    if alone:
        why = alone[0].parts.get("no_fresh_process", "")
        out.append(f"{len(alone)} of {len(counted)} runs were re-executed in this process alone: {why}")
    return tuple(out)
