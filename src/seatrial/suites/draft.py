"""A real session to a draft task: what was asked, which tools belong to it, and checks proposed from what went wrong.

A draft is a proposal. It is marked `draft` and never run before a person has looked at it, completed what only a
person can know, above all the start state and the right end, and approved it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seatrial.errors import EvidenceError
from seatrial.records import Signal, Step, Task, Trace

MARGIN = 1.5
"""Budget proposed for a good session: so many times its own turns."""

BAD = ("correction", "complaint", "escalation", "abandonment", "retry_request")


def draft(trace: Trace, signals: Sequence[Signal] = (), *, success: bool = False, added: str | None = None) -> Task:
    """A draft task from one session.

    The input is the first thing that the person asked. A session that went well proposes its own tools, in order, and
    its own budget; one that did not proposes the tools that worked after the last objection, forbids those that an
    objection followed and that no later acceptance redeemed, and lists under `extra["why"]` what went wrong, with
    the steps. `signals` are those that count. `added` is a date.

    Raises:
        EvidenceError: nobody asked anything in this session.
    """
    own = [s for s in trace.steps if not s.copied]
    asked = next((s for s in own if s.event_class in ("human", "simulated_user") and s.text.strip()), None)
    if asked is None:
        raise EvidenceError(f"session {trace.id} holds no request of a person, so there is no task in it")
    wrong = [s for s in signals if s.dropped_by is None and s.kind in BAD]
    calls = _calls(own)
    if success or not wrong:
        expected, forbidden = _once(name for _, name, ok in calls if ok), []
    else:
        last = max(s.step for s in wrong)
        expected = _once(name for step, name, ok in calls if ok and step > last)
        blamed = {s.judges_step for s in wrong if s.judges_step is not None}
        forbidden = [n for n in _once(name for step, name, _ in calls if step in blamed) if n not in expected]
    turns = sum(s.event_class == "agent" for s in own)
    return Task(
        id=_id(trace),
        input=asked.text,
        setup=None,
        expected_tools=expected,
        forbidden_tools=forbidden,
        max_turns=max(3, round(turns * (MARGIN if success else 1.0))),
        order="subsequence" if success and len(expected) > 1 else None,
        source="representative" if success else "production_failure",
        type=trace.task.type,
        difficulty=trace.task.difficulty,
        extra={
            "draft": True,
            "from_session": trace.id,
            **({"added": added} if added else {}),
            "why": [_why(s, own) for s in wrong] + _failures(own),
            "open": _open_questions(wrong, expected, success=success),
            "context": [s.text for s in own if s.event_class in ("human", "simulated_user")][1:4],
        },
    )


def _calls(steps: Sequence[Step]) -> list[tuple[int, str, bool]]:
    out = []
    for step in steps:
        outcomes = {r.call_id: r.outcome for r in step.results}
        out += [(step.index, c.name, outcomes.get(c.id, "unknown") in ("ok", "unknown")) for c in step.tool_calls]
    return out


def _once(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _id(trace: Trace) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in trace.id)
    return f"from-{plain[:40].strip('-')}"


def _why(signal: Signal, steps: Sequence[Step]) -> dict[str, Any]:
    """What a person objected to, as a proposal for a check."""
    return {
        "step": signal.step,
        "kind": signal.kind,
        "said": signal.quote[:300],
        "judges_step": signal.judges_step,
        "propose": {
            "correction": "assert in check_final what the correction asks for",
            "complaint": "assert in check_final what was missing",
            "escalation": "assert that the task is done without handing it over",
            "abandonment": "assert that the answer settles the request",
            "retry_request": "assert that the first answer settles the request",
        }.get(signal.kind, ""),
    }


def _failures(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Tools that failed, how often; the checks of the trajectory see them without being asked."""
    failed: Counter[str] = Counter()
    for step in steps:
        names = {c.id: c.name for c in step.tool_calls}
        failed.update(names.get(r.call_id or "", "?") for r in step.results if r.outcome == "error")
    return [{"kind": "failed_calls", "tool": tool, "n": n} for tool, n in failed.most_common(5)]


def _open_questions(wrong: Sequence[Signal], expected: Sequence[str], *, success: bool) -> list[str]:
    out = [
        "setup: the state of the world before the session (a state, or a function)",
        "check_final: how the world must be at the end, and what the answer must say",
    ]
    if not expected:
        out.append("expected_tools: none could be proposed")
    if not success and not wrong:
        out.append("what went wrong: no objection of a person was found")
    return out
