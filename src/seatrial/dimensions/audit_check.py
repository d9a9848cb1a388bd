"""An audit record to its verdict: which components are there, and which of them hold together (METHODS 5, D7).

The record may come from anywhere: nothing in it is trusted to have a type.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from seatrial.canon import chain, content_hash
from seatrial.dimensions.audit_record import COMPONENTS, FORMAT, links, state_hash
from seatrial.errors import SeatrialError

_BAD = (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError, SeatrialError)
_TOP = {"seatrial_audit", "run", *COMPONENTS}


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One component: is it there, does it hold together, and what is wrong. `consistent` is False where absent."""

    name: str
    present: bool
    consistent: bool
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Present and consistent."""
        return self.present and self.consistent


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """All six components; `value` is the share that is present and consistent; `head` the last hash of its chain."""

    components: tuple[Component, ...]
    value: float
    head: str | None

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, component by component."""
        return tuple(f"{c.name}: {p}" for c in self.components for p in c.problems)


def examine(audit: Mapping[str, Any], head: str | None = None) -> Examined:
    """Check every component; `head` is the chain's last hash as it was kept elsewhere (None: it was not)."""
    found = tuple(_component(audit, name, check, head) for name, check in _CHECKS.items())
    about = audit.get("provenance_chain")
    last = about.get("head") if isinstance(about, dict) else None
    return Examined(
        components=found, value=sum(c.ok for c in found) / len(COMPONENTS), head=last if isinstance(last, str) else None
    )


def _component(audit: Mapping[str, Any], name: str, check: Callable[..., list[str]], head: str | None) -> Component:
    part = audit.get(name)
    empty = part is None or (name != "error_log" and not part)
    if empty:
        return Component(name=name, present=False, consistent=False, problems=("was not recorded",))
    try:
        problems = check(audit, part, head) if name == "provenance_chain" else check(audit, part)
    except _BAD as error:
        problems = [f"is not of the form that an audit record has ({type(error).__name__})"]
    return Component(name=name, present=True, consistent=not problems, problems=tuple(problems[:20]))


def _task(audit: Mapping[str, Any], spec: Any) -> list[str]:
    out = []
    if spec["hash"] != content_hash(spec["content"]):
        out.append("its content does not have the hash that is recorded")
    run = audit.get("run")
    if isinstance(run, dict) and run.get("task") != spec["id"]:
        out.append(f"is of task {spec['id']!r}, the run of {run.get('task')!r}")
    own = spec["content"].get("id")
    if own is not None and str(own) != str(spec["id"]):
        out.append(f"calls itself {own!r}, not {spec['id']!r}")
    return out


def _actions(audit: Mapping[str, Any], log: Any) -> list[str]:
    out = _monotone([(e["step"], e["time"]) for e in log], "action")
    seen: set[Any] = set()
    for e in log:
        if e["kind"] == "message":
            continue
        if e["call_id"] in seen:
            out.append(f"two actions have the id {e['call_id']!r}")
        seen.add(e["call_id"])
        if e["observation"] is None:
            out.append(f"action {e['call_id']!r} has neither an observation nor an error")
        began, ended = e["time"], e.get("observed")
        if began is not None and ended is not None and ended < began:
            out.append(f"action {e['call_id']!r} was observed before it was taken")
    return out


def _decisions(audit: Mapping[str, Any], log: Any) -> list[str]:
    out = _monotone([(e["step"], e["time"]) for e in log if e["kind"] != "approval"], "decision")
    actions = {e["call_id"] for e in audit.get("action_log") or [] if e["kind"] == "call"}
    decided = {c for e in log if e["kind"] == "decided" for c in e["calls"]}
    out += [
        f"decision refers to action {c!r}, which is not in the action log" for c in sorted(map(str, decided - actions))
    ]
    out += [f"nobody decided on action {c!r}" for c in sorted(map(str, actions - decided))]
    for e in log:
        if e["kind"] == "approval" and e["call_id"] not in actions:
            out.append(f"approval of action {e['call_id']!r}, which is not in the action log")
    if not any(e["kind"] == "decided" for e in log):
        out.append("holds no decision of the agent")
    return out


def _snapshots(audit: Mapping[str, Any], shots: Any) -> list[str]:
    out = []
    first, last = shots[0], shots[-1]
    if first["at"] != "start":
        out.append("the start state is not recorded")
    if last["at"] != "final":
        out.append("the final state is not recorded")
    volatile = tuple(tuple(p) for p in first.get("volatile", []))
    for shot in (first, last):
        if "state" in shot and state_hash(shot["state"], volatile) != shot["hash"]:
            out.append(f"the {shot['at']} state does not have the hash that is recorded")
    inner = {s["at"]: s["hash"] for s in shots if "state" not in s}
    for e in audit.get("action_log") or []:
        if e["kind"] != "call" or e["observation"] is None:
            continue
        if e["call_id"] not in inner:
            out.append(f"no snapshot after action {e['call_id']!r}")
        elif inner[e["call_id"]] != e.get("state_hash"):
            out.append(f"the snapshot after action {e['call_id']!r} differs from its action's")
    before = [s["hash"] for s in shots if s["at"] != "final"]
    if last["at"] == "final" and before and before[-1] != last["hash"] and len(inner):
        out.append("the final state is not the one after the last action")
    if last["at"] == "final" and not inner and first["at"] == "start" and first["hash"] != last["hash"]:
        out.append("nothing was done, and yet the final state is not the start")
    return out


def _errors(audit: Mapping[str, Any], log: Any) -> list[str]:
    out = []
    actions = {e["call_id"]: e for e in audit.get("action_log") or [] if e["kind"] == "call"}
    told = set()
    for e in log:
        if e["call_id"] is None:
            continue
        told.add(e["call_id"])
        if e["call_id"] not in actions:
            out.append(f"an error of action {e['call_id']!r}, which is not in the action log")
        elif actions[e["call_id"]]["outcome"] != e["outcome"]:
            out.append(f"action {e['call_id']!r} did not end in {e['outcome']!r}")
    for key, e in actions.items():
        if e["outcome"] in ("error", "interrupted") and key not in told:
            out.append(f"action {key!r} failed, and the error log does not hold it")
    return out


def _chain(audit: Mapping[str, Any], about: Any, kept: str | None) -> list[str]:
    if audit.get("seatrial_audit") != FORMAT:
        return [f"the record's format is {audit.get('seatrial_audit')!r}, not {FORMAT!r}"]
    strange = sorted(str(k) for k in set(audit) - _TOP)
    if strange:
        return [f"the record holds {strange[0]!r}, which no chain covers"]
    recorded, head = about["links"], about["head"]
    covered = links(audit)
    hashes = chain(covered)
    if kept is not None and head != kept:
        return ["its head is not the one that was kept"]
    if not recorded or head is None:
        return ["it has no links"]
    if hashes != recorded:
        at = next(
            (i for i, (a, b) in enumerate(zip(hashes, recorded, strict=False)) if a != b),
            min(len(hashes), len(recorded)),
        )
        return [f"it breaks at link {at}: {_named(covered, at)} is not what was recorded"]
    if hashes[-1] != head:
        return ["its head is not its last link"]
    return []


def _named(covered: list[Any], at: int) -> str:
    if at >= len(covered):
        return "its end"
    link = covered[at]
    if isinstance(link[-1], dict) and len(link) == 3:
        return f"{link[0]}[{link[1]}]" if link[0] in COMPONENTS else str(link[0])
    return str(link[0])


def _monotone(times: list[tuple[Any, Any]], what: str) -> list[str]:
    known = [(step, t) for step, t in times if t is not None]
    for (_, a), (step, b) in itertools.pairwise(known):
        if b < a:
            return [f"times run backwards at the {what} of step {step}"]
    steps = [step for step, _ in times]
    if any(b < a for a, b in itertools.pairwise(steps)):
        return [f"{what}s are not in order"]
    return []


_CHECKS: dict[str, Callable[..., list[str]]] = {
    "task_spec": _task,
    "action_log": _actions,
    "decision_log": _decisions,
    "state_snapshots": _snapshots,
    "error_log": _errors,
    "provenance_chain": _chain,
}
