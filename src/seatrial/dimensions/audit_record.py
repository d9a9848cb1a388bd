"""A trace to its audit record: six components, and a hash chain over all that they hold (METHODS 5, D7).

The runner computes the chain when it records an attempt, and keeps its head in the trace (`sealed`). An audit file
holds every link, so that a broken one can be named; the head is what can be kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.canon import canonical, chain, content_hash
from seatrial.dimensions.actions import actions_of, gates_of
from seatrial.records import Attempt, Step, Task, Trace
from seatrial.world.difference import mask

FORMAT = "1"
COMPONENTS = (
    "task_spec",
    "action_log",
    "decision_log",
    "state_snapshots",
    "error_log",
    "provenance_chain",
)
OWN = "seatrial-attempt"
"""Provenance format of what our runner records."""


def task_spec(task: Task) -> dict[str, Any]:
    """The task as plain JSON; a function is named by module and name."""
    plain: dict[str, Any] = msgspec.to_builtins(task, enc_hook=_named)
    return plain


def _named(value: Any) -> str:
    return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__name__)}"


def sealed(trace: Trace, outcome: Mapping[str, Any]) -> Trace:
    """The trace with the head of its chain in ``extra["audit"]``; `outcome` is the attempt's status, score and reason.

    Call it last: whatever is changed afterwards breaks the chain.
    """
    held = {**trace.extra, "audit": {"format": FORMAT, "outcome": dict(outcome)}}
    parts = audit_of(replace(trace, extra=held))
    hashes = chain(links(parts))
    held["audit"] = {**held["audit"], "links": len(hashes), "head": hashes[-1]}
    return replace(trace, extra=held)


def audit_of(trace: Trace, task: Task | None = None, attempt: Attempt | None = None) -> dict[str, Any]:
    """The trace's audit record as a plain JSON value; a component that was not recorded is None.

    `task` and `attempt` serve where the trace does not hold its own task and outcome.
    """
    seal = trace.extra.get("audit")
    seal = seal if isinstance(seal, dict) else {}
    outcome = seal.get("outcome")
    if outcome is None and attempt is not None:
        outcome = {"status": attempt.status, "score": attempt.score, "reason": attempt.reason}
    audit: dict[str, Any] = {
        "seatrial_audit": FORMAT,
        "run": {"trace": trace.id, "task": trace.task.id, "trial": trace.attempt, "outcome": outcome},
        "task_spec": _task(trace, task),
        "action_log": _actions(trace),
        "decision_log": _decisions(trace),
        "state_snapshots": _snapshots(trace),
        "error_log": _errors(trace),
        "provenance_chain": None,
    }
    plain: dict[str, Any] = msgspec.json.decode(canonical(audit))
    if is_own(trace):
        about = {**_about(trace), "links": [], "head": seal.get("head")}
        plain["provenance_chain"] = msgspec.json.decode(canonical(about))
        if seal.get("head") is not None:
            plain["provenance_chain"]["links"] = chain(links(plain))
        elif "outcome" not in seal:
            plain["provenance_chain"] = None
    return plain


def is_own(trace: Trace) -> bool:
    """Whether our runner recorded it."""
    return trace.provenance.format == OWN


def links(audit: Mapping[str, Any]) -> list[Any]:
    """What the chain covers, in order: the head of the record, what is said of its origin, and every entry of every
    component with its place, so that nothing can be moved between them."""
    about = audit.get("provenance_chain") or {}
    told = {k: v for k, v in about.items() if k not in ("links", "head")}
    out: list[Any] = [["head", audit.get("seatrial_audit"), audit.get("run")], ["provenance", told]]
    for name in COMPONENTS[:-1]:
        part = audit.get(name)
        if isinstance(part, list):
            out.append([name, len(part)])
            out += [[name, i, entry] for i, entry in enumerate(part)]
        else:
            out.append([name, part])
    return out


def _about(trace: Trace) -> dict[str, Any]:
    world = trace.extra.get("world")
    return {
        "algorithm": "sha256 of the previous hash and the canonical JSON of the entry",
        "agent": {"name": trace.agent.name, "version": trace.agent.version},
        "model": trace.model,
        "world": {k: world.get(k) for k in ("name", "version")} if isinstance(world, dict) else None,
        "recorder": {"name": trace.provenance.reader, "version": trace.provenance.reader_version},
        "fingerprint": trace.extra.get("fingerprint"),
        "seed": trace.extra.get("seed"),
    }


def _task(trace: Trace, task: Task | None) -> Any:
    spec = _held_task(trace)
    if spec is None and task is not None:
        spec = task_spec(task)
    return None if spec is None else {"id": trace.task.id, "hash": content_hash(spec), "content": spec}


def _held_task(trace: Trace) -> dict[str, Any] | None:
    """The task as the log holds it: our own specification, a benchmark's record of it, or the prompt that states it."""
    info = trace.extra.get("info")
    inner = info.get("task") if isinstance(info, dict) else None
    for held in (trace.extra.get("task_spec"), trace.extra.get("task"), inner, trace.extra.get("sample")):
        if isinstance(held, dict) and held:
            return held
    told = {k: trace.extra[k] for k in ("instruction", "issue") if trace.extra.get(k)}
    prompt = next((s.text for s in trace.steps if s.kind == "task_prompt" and s.text), None)
    return told or (None if prompt is None else {"prompt": prompt})


def _actions(trace: Trace) -> list[dict[str, Any]]:
    out = []
    for a in actions_of(trace):
        step = trace.steps[a.step] if a.step < len(trace.steps) else None
        entry: dict[str, Any] = {
            "kind": "call", "step": a.step, "time": step.time if step else None, "call_id": a.call.id,
            "tool": a.call.name, "arguments": a.call.arguments, "outcome": None, "observation": None,
        }  # fmt: skip
        if a.call.raw_arguments is not None:
            entry["raw_arguments"] = a.call.raw_arguments
        if a.result is not None:
            entry |= {"outcome": a.result.outcome, "observation": a.result.text, "observed": a.result.time}
            entry |= {k: v for k, v in (("exit_code", a.result.exit_code),
                                        ("state_hash", a.result.extra.get("state_hash"))) if v is not None}  # fmt: skip
        out.append(entry)
    said = [
        {"kind": "message", "step": s.index, "time": s.time, "text": s.text}
        for s in _agent(trace) if not s.tool_calls and s.text
    ]  # fmt: skip
    return sorted([*out, *said], key=lambda e: e["step"])


def _decisions(trace: Trace) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for s in trace.steps:
        if s.copied:
            continue
        entry: dict[str, Any] = {"step": s.index, "time": s.time, "text": s.text}
        if s.event_class == "agent":
            calls = [c.id for c in s.tool_calls]
            out.append({"kind": "decided", **entry, "reasoning": s.reasoning, "calls": calls, "model": s.model})
        else:
            out.append({"kind": "received", **entry, "from": s.event_class})
    out += [{"kind": "approval", **gate} for gate in gates_of(trace)]
    return out


def _snapshots(trace: Trace) -> list[dict[str, Any]] | None:
    start, final = trace.extra.get("start"), trace.extra.get("final")
    steps = [
        {"at": a.call.id, "step": a.step, "hash": a.result.extra["state_hash"]}
        for a in actions_of(trace) if a.result is not None and "state_hash" in a.result.extra
    ]  # fmt: skip
    if not isinstance(start, dict) and not steps:
        return None
    volatile = volatile_of(trace.extra.get("world"))
    out: list[dict[str, Any]] = []
    if isinstance(start, dict):
        out.append({"at": "start", "volatile": [list(p) for p in volatile], "state": start,
                    "hash": state_hash(start, volatile)})  # fmt: skip
    out += steps
    if isinstance(final, dict):
        out.append({"at": "final", "state": final, "hash": trace.extra.get("final_hash")})
    return out


def _errors(trace: Trace) -> list[dict[str, Any]] | None:
    """Failed actions, in order; empty where the log records outcomes and none failed; None where it records none."""
    done = [a for a in actions_of(trace) if a.result is not None]
    if not is_own(trace) and not any(a.result.outcome != "unknown" for a in done if a.result is not None):
        return None
    out: list[dict[str, Any]] = [
        {"step": a.step, "call_id": a.call.id, "outcome": a.result.outcome, "text": a.result.text}
        for a in done if a.result is not None and a.result.outcome in ("error", "interrupted")
    ]  # fmt: skip
    if trace.extra.get("failure"):
        out.append(
            {"step": None, "call_id": None, "outcome": trace.extra.get("stopped"), "text": trace.extra["failure"]}
        )
    return out


def _agent(trace: Trace) -> Sequence[Step]:
    return [s for s in trace.steps if s.event_class == "agent" and not s.copied]


def volatile_of(world: Any) -> tuple[tuple[str, ...], ...]:
    """The volatile paths that a trace's ``extra["world"]`` declares."""
    raw = world.get("volatile") if isinstance(world, dict) else None
    paths = [tuple(str(part) for part in path) for path in raw or [] if isinstance(path, list) and path]
    return tuple(paths)


def state_hash(state: Mapping[str, Any], volatile: Sequence[tuple[str, ...]]) -> str:
    """The hash that worlds give a state: of its canonical JSON without volatile fields."""
    return content_hash(mask(dict(state), volatile))
