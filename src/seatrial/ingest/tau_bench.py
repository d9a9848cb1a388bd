"""tau-bench result files to traces: a JSON array of attempts, each with its task, reward and conversation.

Format of sierra-research/tau-bench: ``[{"task_id", "reward", "info", "traj", "trial"}, ...]``. The user of the
conversation is a simulator. The file does not name the agent's model; its name does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import BadJSON, Item, items, kind, line_of, malformed
from seatrial.ingest.messages import Conversation, amount, total, whole
from seatrial.records import (
    Agent,
    ReadLog,
    RecordedOutcome,
    ResultOutcome,
    Status,
    Step,
    TaskRef,
    Totals,
    Trace,
)

CONTROL = re.compile(r"###[A-Z][A-Z-]*###")
"""Words by which a simulated user ends a conversation; they are no part of what it says."""

_NAMED_RUN = re.compile(
    r"^(?:tool-calling|act|react|few-shot)-(?P<model>.+?)-\d+(?:\.\d+)?_range_.*?_user-(?P<user>.+?)-(?:llm|react|verify|reflection|human)"
)
_DOMAIN = re.compile(r"^#\s*(\w+) agent policy", re.IGNORECASE | re.MULTILINE)
_OUTSIDE = re.compile(
    r"rate.?limit|timed? ?out|timeout|connection|overloaded|unavailable|quota|api.?key|authenticat|\b5\d\d\b",
    re.IGNORECASE,
)
_SHAPE = "a JSON array of tau-bench attempts with task_id, reward, info, traj and trial"


class TauBench:
    """Reads tau-bench results. A reward of 1 is passed; an attempt that crashed is an error, not a failure."""

    name = "tau-bench"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the file is an array whose first object has a task, a reward and a trajectory."""
        if not head.lstrip().startswith(b"["):
            return 0.0
        marks = [b'"task_id"', b'"reward"', b'"info"', b'"traj"', b'"trial"']
        found = sum(mark in head for mark in marks)
        return 0.97 if b'"traj"' in head and found >= 3 else 0.9 if found >= 3 else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per attempt, in file order.

        Raises:
            FormatError: not JSON, or not an array.
        """
        data = path.read_bytes()
        counted = 0
        ids = Ids()
        try:
            for item in items(data):
                size = item.end - item.start
                counted += size
                why = item.broken or _not_an_attempt(item.value)
                if why is not None:
                    log.skip(line_of(data, item.start), why, size)
                    continue
                for repair in item.repairs:
                    log.note(line_of(data, item.start), repair)
                log.kept(size, "attempt")
                yield self._trace(path, data, item, log, ids)
        except BadJSON as error:
            raise malformed(path, data, error, _SHAPE) from None
        log.kept(len(data) - counted, "framing")

    def _trace(self, path: Path, data: bytes, item: Item, log: ReadLog, ids: Ids) -> Trace:
        raw: dict[str, Any] = item.value
        conversation = Conversation(user="simulated_user", outcome=said_error, control=without_control)
        messages = raw.get("traj")
        lost: list[Any] = []
        for message in messages if isinstance(messages, list) else ():
            why = conversation.add(message)
            if why is not None:
                lost.append(message)
                log.note(line_of(data, item.start), f"a message of this attempt is kept in extra only: {why}")
        steps = tuple(_unknown_tools(step) for step in conversation.steps)
        info = raw["info"] if isinstance(raw.get("info"), dict) else {}
        model, simulator = _from_name(path.stem)
        domain = _domain(steps)
        source_hash = item.hash(data)
        extra: dict[str, Any] = {k: v for k, v in raw.items() if k not in ("task_id", "reward", "traj", "trial")}
        if lost:
            extra["traj"] = lost
        if simulator:
            extra["simulator"] = simulator
        if model:
            extra["model_by"] = "file name"
        return Trace(
            id=ids(f"tau-bench~{_task_id(raw)}~{raw.get('trial', '')}~{source_hash[:12]}"),
            agent=Agent(name="tau-bench"),
            model=model,
            task=TaskRef(
                id=_task_id(raw),
                type=domain,
                suite=f"tau-bench/{domain}" if domain else "tau-bench",
            ),
            attempt=whole(raw.get("trial")),
            steps=steps,
            totals=Totals(usage=total(steps), extra=_only(user_cost=info.get("user_cost"))),
            outcome=_outcome(raw, info),
            provenance=item.provenance(self, path, data),
            extra=extra,
        )


def without_control(text: str) -> tuple[str, tuple[str, ...]]:
    """A simulated user's words without its control words, and those."""
    words = tuple(CONTROL.findall(text))
    return (CONTROL.sub("", text).strip(), words) if words else (text, ())


def said_error(message: Mapping[str, Any], text: str) -> ResultOutcome:
    """The benchmark's tools say ``Error: ...``, and its environment ``Unknown action ...``; all else succeeded."""
    flag = message.get("error")
    if isinstance(flag, bool):
        return "error" if flag else "ok"
    return "error" if text.startswith(("Error", "Unknown action")) else "ok"


def passed(reward: Any) -> bool:
    """Whether the benchmark counts this reward as a success."""
    value = amount(reward)
    return value is not None and abs(value - 1.0) <= 1e-6


def _outcome(raw: Mapping[str, Any], info: Mapping[str, Any]) -> RecordedOutcome:
    reward = amount(raw.get("reward"))
    extra = _only(reward_info=info.get("reward_info"))
    error = info.get("error")
    if error is not None and not passed(reward):
        status: Status = "error_infra" if _OUTSIDE.search(str(error)) else "error_agent"
        return RecordedOutcome(status=status, score=None, by="tau-bench", extra={"error": error} | extra)
    if reward is None:
        return RecordedOutcome(status="unscored", by="tau-bench", extra=extra)
    return RecordedOutcome(
        status="passed" if passed(reward) else "failed",
        score=reward,
        bounded=0.0 <= reward <= 1.0,
        by="tau-bench",
        extra=extra,
    )


def _unknown_tools(step: Step) -> Step:
    unknown = {result.call_id for result in step.results if result.text.startswith("Unknown action")}
    if not unknown:
        return step
    calls = tuple(
        msgspec.structs.replace(call, validity="unknown_tool") if call.id in unknown else call
        for call in step.tool_calls
    )
    return msgspec.structs.replace(step, tool_calls=calls)


def _domain(steps: tuple[Step, ...]) -> str | None:
    if not steps or steps[0].event_class != "harness":
        return None
    found = _DOMAIN.search(steps[0].text)
    return found.group(1).lower() if found else None


def _from_name(stem: str) -> tuple[str | None, str | None]:
    """Agent model and user model, as far as the file name tells them."""
    run = _NAMED_RUN.match(stem)
    if run:
        return run.group("model"), run.group("user")
    model = re.sub(r"[-_](airline|retail|telecom)$", "", stem)
    return (model or None), None


def _task_id(raw: Mapping[str, Any]) -> str:
    return str(raw.get("task_id"))


def _not_an_attempt(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"expected a tau-bench attempt object, found {kind(value)}"
    absent = [name for name in ("task_id", "reward", "traj") if name not in value]
    return f"expected a tau-bench attempt; it has no {', '.join(absent)}" if absent else None


def _only(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


READER = TauBench()
