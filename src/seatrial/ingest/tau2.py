"""tau2-bench result files to traces: the simulations of one agent against one user simulator on a list of tasks.

Format of sierra-research/tau2-bench: ``{"timestamp", "info", "tasks", "simulations"}``. Which model played the
user is part of the measurement, so every trace names it in ``extra["simulator"]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.ingest import tau2_tasks
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import BadJSON, Item, fields, items, kind, line_of, loads, malformed
from seatrial.ingest.messages import Conversation, amount, total, whole
from seatrial.ingest.tau_bench import passed, said_error, without_control
from seatrial.ingest.times import moment
from seatrial.records import Agent, ReadLog, RecordedOutcome, Status, TaskRef, Totals, Trace

ENDINGS: dict[str, Status] = {
    "max_steps": "timeout",
    "timeout": "timeout",
    "too_many_errors": "error_agent",
    "agent_error": "error_agent",
    "user_error": "error_infra",
    "infrastructure_error": "error_infra",
    "unexpected_error": "error_infra",
}
"""Termination reason to status (METHODS 0.1), for attempts that were not rewarded; others ended on their own.

The simulator's own errors are not the agent's: such an attempt is excluded and counted, while the benchmark's
own figures count it as failed.
"""

_SHAPE = "a tau2 results object with info, tasks and simulations"


class Tau2:
    """Reads tau2 results: one trace per simulation."""

    name = "tau2"
    version = "2"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the file is an object that begins with a run's description."""
        if not head.lstrip().startswith(b"{"):
            return 0.0
        marks = [b'"simulations"', b'"agent_info"', b'"user_info"', b'"environment_info"', b'"num_trials"']
        found = sum(mark in head for mark in marks)
        return 0.97 if found >= 2 else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per simulation, in file order.

        Raises:
            FormatError: not JSON, or without simulations.
        """
        data = path.read_bytes()
        try:
            top, repairs = fields(data)
            for repair in repairs:
                log.note(None, repair)
            if "simulations" not in top:
                raise BadJSON("the object has no simulations", 0)
            run = _Run({name: loads(raw)[0] for name, raw in top.items() if name != "simulations"})
            start = max(data.find(top["simulations"]), 0)
            repaired = data[start : start + len(top["simulations"])] != top["simulations"]
            body, offset = (top["simulations"], 0) if repaired else (data, start)
            counted = 0
            ids = Ids()
            for item in items(body, offset, None if repaired else start + len(top["simulations"])):
                here = item._replace(start=0, end=0) if repaired else item
                counted += here.end - here.start
                yield from self._simulation(path, data, here, run, log, ids)
        except BadJSON as error:
            raise malformed(path, data, error, _SHAPE) from None
        log.kept(len(data) - counted, "run")

    def _simulation(self, path: Path, data: bytes, item: Item, run: _Run, log: ReadLog, ids: Ids) -> Iterator[Trace]:
        line, size = line_of(data, item.start), item.end - item.start
        why = item.broken or _not_a_simulation(item.value)
        if why is not None:
            log.skip(line, why, size)
            return
        for repair in item.repairs:
            log.note(line, repair)
        log.kept(size, "simulation")
        raw: dict[str, Any] = item.value
        conversation = Conversation(user="simulated_user", outcome=said_error, control=without_control)
        lost = []
        for message in raw["messages"]:
            why = conversation.add(message)
            if why is not None:
                lost.append(message)
                log.note(line, f"a message of this simulation is kept in extra only: {why}")
        steps = conversation.steps
        totals = total(steps)
        cost = amount(raw.get("agent_cost"))
        given = raw.get("id")
        recorded = str(raw.get("task_id"))
        task_id = tau2_tasks.evaluated(run.tasks, recorded, _object(raw.get("reward_info")))
        if task_id != recorded:
            log.note(
                line, f"numbered task {recorded}, but judged by the criteria of task {task_id}: taken for that one"
            )
        trial = whole(raw.get("trial"))
        wanted = f"{given}" if isinstance(given, str) and given else f"tau2~{task_id}~{trial}~{item.hash(data)[:12]}"
        yield Trace(
            id=ids(wanted),
            agent=run.agent,
            model=run.model,
            task=TaskRef(id=task_id, type=run.domain, suite=run.suite),
            attempt=trial,
            steps=steps,
            totals=Totals(
                usage=msgspec.structs.replace(totals, cost_usd=cost if cost is not None else totals.cost_usd),
                wall=amount(raw.get("duration")),
                extra={"user_cost": raw["user_cost"]} if raw.get("user_cost") is not None else {},
            ),
            outcome=_outcome(raw),
            provenance=item.provenance(self, path, data),
            extra=run.extra(task_id)
            | _rest(raw)
            | ({"messages": lost} if lost else {})
            | ({"recorded_task_id": recorded} if task_id != recorded else {}),
        )


class _Run:
    """What the file says about all its simulations."""

    def __init__(self, top: Mapping[str, Any]) -> None:
        info = _object(top.get("info"))
        agent, user, world = (_object(info.get(f"{part}_info")) for part in ("agent", "user", "environment"))
        self.model = _text(agent.get("llm"))
        self.simulator = _text(user.get("llm"))
        self.domain = _text(world.get("domain_name"))
        self.suite = f"tau2/{self.domain}" if self.domain else "tau2"
        tools = world.get("tool_defs")
        self.agent = Agent(
            name=_text(agent.get("implementation")) or "tau2",
            version=_text(info.get("git_commit")),
            tools=tuple(t for t in tools if isinstance(t, dict)) if isinstance(tools, list) else None,
            extra=_without(agent, "implementation", "llm"),
        )
        self.tasks = {str(task.get("id")): task for task in _array(top.get("tasks")) if isinstance(task, dict)}
        self._extra: dict[str, Any] = {
            "simulator": self.simulator,
            "user_info": user,
            "environment": world,
            "run": _without(info, "agent_info", "user_info", "environment_info", "git_commit"),
            "run_timestamp": top.get("timestamp"),
            **_without(top, "info", "tasks", "timestamp"),
        }

    def extra(self, task_id: str) -> dict[str, Any]:
        """The run's own description and the task's, as they go into a trace."""
        extra = {name: value for name, value in self._extra.items() if value is not None}
        if task_id in self.tasks:
            extra["task"] = self.tasks[task_id]
        return extra


def _outcome(raw: Mapping[str, Any]) -> RecordedOutcome:
    info = _object(raw.get("reward_info"))
    reward = amount(info.get("reward"))
    reason = _text(raw.get("termination_reason"))
    extra: dict[str, Any] = {"reward_info": info} if info else {}
    if reason:
        extra["termination_reason"] = reason
    ending = ENDINGS.get(reason or "")
    status: Status
    if reward is not None and passed(reward):
        status = "passed"
    elif ending is not None:
        status = ending
    else:
        status = "unscored" if reward is None else "failed"
    score = None if status in ("unscored", "error_infra") else reward
    return RecordedOutcome(
        status=status,
        score=score,
        bounded=reward is None or 0.0 <= reward <= 1.0,
        by="tau2",
        extra=extra,
    )


def _rest(raw: Mapping[str, Any]) -> dict[str, Any]:
    known = ("id", "task_id", "trial", "messages", "reward_info", "termination_reason", "agent_cost", "user_cost")
    rest = _without(raw, *known, "duration")
    for name in ("start_time", "end_time"):
        if moment(raw.get(name)) is not None:
            rest[name] = moment(raw[name])
    return rest


def _not_a_simulation(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"expected a simulation object, found {kind(value)}"
    if not isinstance(value.get("messages"), list):
        return "expected a simulation; it has no list of messages"
    return None


def _without(source: Mapping[str, Any], *known: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in known and value is not None}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


READER = Tau2()
