"""A failed attempt to its cause, by rules in a fixed order, each with the evidence that it went by (METHODS 5, D6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seatrial.dimensions.actions import Action, actions_of, gates_of
from seatrial.dimensions.damage import allows
from seatrial.records import SCORED, Evidence, FailureCause, FailureKind, Trace, Verdict

VERSION = "1"
_BUDGET = {
    "turn_limit": "the limit on turns",
    "call_limit": "the limit on calls",
    "time_limit": "the time limit",
    "cost_limit": "the limit on cost",
    "agent_timeout": "the time limit of one answer",
    "max_steps": "the limit on steps",
    "context": "the context window",
    "message": "the limit on messages",
    "token": "the limit on tokens",
    "time": "the time limit",
}
_OUTSIDE = ("permission denied", "no space left", "timed out", "timeout", "could not resolve", "connection", "503",
            "rate limit", "quota", "unavailable")  # fmt: skip

Found = tuple[str, int | None, dict[str, Any]]
"""The reason in words, the step that shows it, further evidence."""


def cause_of(run: Evidence) -> FailureCause | None:
    """Why a scored attempt failed; None where it passed or is not scored.

    The first rule that finds something decides: *budget* (stopped by a limit); *execution* (crashed); *gate* (an
    approval was refused or nobody answered, and a needed action is missing); *intent* (it did what the task forbids
    or does not allow, or nothing at all where something is required); *environment* (an unrepaired fault of the
    surroundings); *execution* (an unrepaired error of its own, a wrong value or a missing action); *unknown*.
    """
    a = run.attempt
    if a.status not in SCORED or a.status == "passed":
        return None
    for kind, rule in _RULES:
        found = rule(run)
        if found is not None:
            why, step, evidence = found
            return FailureCause(task=a.task, trial=a.trial, cause=kind, why=why, step=step, evidence=evidence,
                                trace=a.trace)  # fmt: skip
    why = "the log does not tell" if run.trace is not None and run.trace.steps else "no log is stored"
    return FailureCause(task=a.task, trial=a.trial, cause="unknown", why=why, trace=a.trace)


def _budget(run: Evidence) -> Found | None:
    stopped = run.attempt.extra.get("stopped") or (run.trace.extra.get("stopped") if run.trace is not None else None)
    outcome = run.trace.outcome if run.trace is not None else None
    ended = outcome.extra.get("termination_reason") or outcome.extra.get("limit") if outcome is not None else None
    for said in (stopped, ended):
        word = said.get("type") if isinstance(said, dict) else said
        if isinstance(word, str) and word in _BUDGET:
            return f"stopped by {_BUDGET[word]}", _last(run.trace), {"stopped": word}
    if run.attempt.status == "timeout":
        return run.attempt.reason or "it ran out of time", _last(run.trace), {}
    over = _failed(run, "within_budget")
    wrong = [v for v in run.verdicts if v.layer == "final" and v.passed is False]
    if over is not None and not wrong:
        return over.reason, None, {"verdict": over.metric}
    return None


def _crashed(run: Evidence) -> Found | None:
    if run.attempt.status != "error_agent":
        return None
    return f"the agent crashed: {run.attempt.reason or 'no reason recorded'}", _last(run.trace), {}


def _gate(run: Evidence) -> Found | None:
    """An approval that did not come, after which the action that needed it never ran."""
    if run.trace is None:
        return None
    for event in gates_of(run.trace):
        decision = event.get("decision")
        if decision in ("deny", "absent") and not event.get("executed") and not _ran(run.trace, event):
            said = "was denied" if decision == "deny" else "found nobody"
            why = f"the approval of {event.get('tool')} {said}, and it did not run"
            return why, _whole(event.get("step")), {"gate": (event.get("gate") or {}).get("name")}
    for action in actions_of(run.trace):
        if action.result is not None and action.result.outcome == "rejected" and action == actions_of(run.trace)[-1]:
            return f"a person refused {action.call.name}, its last action", action.step, {"tool": action.call.name}
    return None


def _ran(trace: Trace, event: Mapping[str, Any]) -> bool:
    return any(a.executed and a.call.name == event.get("tool") and a.call.arguments == event.get("arguments")
               for a in actions_of(trace))  # fmt: skip


def _intent(run: Evidence) -> Found | None:
    forbidden = _failed(run, "forbidden_absent")
    if forbidden is not None:
        return forbidden.reason, forbidden.steps[0] if forbidden.steps else None, {"verdict": forbidden.metric}
    task, trace = run.task, run.trace
    if task is None or not task.intent or trace is None:
        return None
    allowed, banned = task.intent.get("allowed", []), task.intent.get("prohibited", [])
    acted = [a for a in actions_of(trace) if _effective(a)]
    for action in acted:
        if any(allows(e, action.call) for e in banned):
            return f"{action.call.name} is forbidden here", action.step, {"arguments": action.call.arguments}
    tools = {e.get("tool") for e in allowed}
    for action in acted:
        if action.call.name not in tools:
            why = f"{action.call.name} changes what was not asked for"
            return why, action.step, {"arguments": action.call.arguments}
    if not acted and task.intent.get("required") and not any(a.failed for a in actions_of(trace)):
        return "nothing was changed, and nothing had failed: the request was not taken up", _last(trace), {}
    return None


def _effective(action: Action) -> bool:
    """A call that changed something, or is declared to: a successful one of a writing tool."""
    return (
        action.executed and not action.request and action.effect != "read"
        and action.result is not None and action.result.outcome == "ok"
    )  # fmt: skip


def _environment(run: Evidence) -> Found | None:
    for action in _unrepaired(run.trace):
        if _of_surroundings(action):
            return (
                f"{action.call.name} failed for its surroundings and was not repaired: {_short(action)}",
                action.step,
                {},
            )
    return None


def _execution(run: Evidence) -> Found | None:
    for action in _unrepaired(run.trace):
        return f"{action.call.name} failed and was not repaired: {_short(action)}", action.step, {}
    if run.trace is None:
        return None
    wrong = [v for v in run.verdicts if v.layer == "final" and v.passed is False]
    if run.task is not None and run.task.intent and wrong:
        for action in (a for a in actions_of(run.trace) if _effective(a)):
            if not any(allows(e, action.call) for e in run.task.intent.get("allowed", [])):
                why = f"{action.call.name} with wrong arguments"
                return why, action.step, {"arguments": action.call.arguments}
        return f"what was asked for is not there: {wrong[0].reason}", _last(run.trace), {"verdict": wrong[0].metric}
    missing = _failed(run, "required_present")
    if missing is not None:
        return missing.reason, None, {"verdict": missing.metric}
    return _of_tau(run)


def _of_tau(run: Evidence) -> Found | None:
    """What tau-bench and tau2 record of a failure: an end state or an answer that is not the one expected."""
    outcome = run.trace.outcome if run.trace is not None else None
    info = _object(outcome.extra.get("reward_info")) if outcome is not None else {}
    inner = _object(info.get("info")) or info
    database = inner.get("r_actions", _object(info.get("db_check")).get("db_match"))
    by = {"by": "the benchmark's own check"}
    if database in (0, 0.0, False):
        return "the data at the end are not those of the reference actions", None, by
    if inner.get("r_outputs") in (0, 0.0, False):
        return "the answer lacks what the reference says", None, by
    return None


def _unrepaired(trace: Trace | None) -> Sequence[Action]:
    """Failed calls of a tool that never worked afterwards."""
    if trace is None:
        return []
    done = actions_of(trace)
    out = []
    for i, action in enumerate(done):
        if not action.failed or (action.result is not None and action.result.outcome == "rejected"):
            continue
        if not any(b.call.name == action.call.name and not b.failed and b.executed for b in done[i + 1 :]):
            out.append(action)
    return out


def _of_surroundings(action: Action) -> bool:
    cause = action.result.extra.get("cause") if action.result is not None else None
    return cause == "environment" or (cause is None and any(word in action.text.lower() for word in _OUTSIDE))


def _short(action: Action) -> str:
    lines = action.text.strip().splitlines() or [""]
    return lines[0] if len(lines[0]) <= 120 else lines[0][:117] + "..."


def _failed(run: Evidence, metric: str) -> Verdict | None:
    return next((v for v in run.verdicts if v.metric == metric and v.passed is False), None)


def _last(trace: Trace | None) -> int | None:
    return trace.steps[-1].index if trace is not None and trace.steps else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


_RULES: tuple[tuple[FailureKind, Callable[[Evidence], Found | None]], ...] = (
    ("budget", _budget),
    ("execution", _crashed),
    ("gate", _gate),
    ("intent", _intent),
    ("environment", _environment),
    ("execution", _execution),
)


def attempts_before_success(runs: Sequence[tuple[str, int, str]]) -> dict[str, int]:
    """From (task, trial, status) of all runs: how many tasks had so many scored failures before their first success.
    Key ``never``: none of the task's scored attempts passed."""
    tasks: dict[str, list[tuple[int, str]]] = {}
    for task, trial, status in runs:
        if status in SCORED:
            tasks.setdefault(task, []).append((trial, status))
    out: dict[str, int] = {}
    for rows in tasks.values():
        order = [status for _, status in sorted(rows)]
        key = str(order.index("passed")) if "passed" in order else "never"
        out[key] = out.get(key, 0) + 1
    return dict(sorted(out.items(), key=lambda item: (item[0] == "never", int(item[0]) if item[0].isdigit() else 0)))
