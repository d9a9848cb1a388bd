"""Retry, abandonment and feedback on authored cases; escalation on the real transfers to a person (METHODS 1.2).

The cases were written by hand before they were scored, and hard ones were kept where the detectors fail: the floors are
what was measured.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from seatrial import ingest, signals
from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace

CASES = tomllib.loads((Path(__file__).parent / "authored_signals.toml").read_text("utf-8"))


def trace(steps: list[str], **rest: Any) -> Trace:
    """A session a minute a step, from the short form of the file."""
    made = []
    for i, line in enumerate(steps):
        who, _, text = line.partition(" ")
        calls = (ToolCall(id=str(i), name="Bash", arguments={"command": "make"}),) if who in ("A?", "A!") else ()
        failed = (ToolResult(call_id=str(i), outcome="error", exit_code=2, text="boom"),) if who == "A!" else ()
        kind = {"H": "human", "I": "interrupted"}.get(who, "agent")
        made.append(
            Step(index=i, event_class=kind, text=text, time=60.0 * i, tool_calls=calls, results=failed)  # type: ignore[arg-type]
        )
    provenance = Provenance(format="f", reader="f", reader_version="1")
    return Trace(id="t", agent=Agent(name="a"), model="m", provenance=provenance, steps=tuple(made), **rest)


def found(kind: str, case: dict[str, Any]) -> bool:
    session = trace(case["steps"])
    end = 60.0 * (len(session.steps) - 1)
    settings = signals.SignalSettings(observed_until=end + 3600.0 * case.get("hours", 48))
    return any(s.kind == kind for s in signals.extract(session, settings).kept)


@pytest.mark.parametrize(("kind", "right", "said", "there"), [("retry_request", 9, 9, 12), ("abandonment", 7, 9, 8)])
def test_authored_cases(kind: str, right: int, said: int, there: int) -> None:
    """How many are found rightly, found at all, and there: what the documentation says."""
    hits = [(found(kind, case), case["holds"]) for case in CASES[kind]]
    assert sum(f and h for f, h in hits) >= right
    assert sum(f and not h for f, h in hits) <= said - right
    assert sum(h for _, h in hits) == there


def test_authored_ratings() -> None:
    right = 0
    for case in CASES["explicit_feedback"]:
        session = trace(["H hello", "A Done."], extra=case["extra"])
        values = [s.value for s in signals.extract(session).kept if s.kind == "explicit_feedback"]
        right += values == ([pytest.approx(case["value"])] if "value" in case else [])
    assert right >= 16
    assert len(CASES["explicit_feedback"]) == 18


@pytest.mark.real
def test_every_real_transfer_to_a_person_is_an_escalation(data: Path) -> None:
    """All transfers of the tau-bench and tau2 runs, call by call, and nothing else."""
    places = [data / "tau-bench" / "gpt-4o-airline.json", *sorted((data / "tau2").rglob("*.json"))]
    places = [p for p in places if p.is_file()]
    if len(places) < 5:
        pytest.skip("no runs at data/tau-bench and data/tau2")
    transfers = escalations = 0
    for path in places:
        for session in ingest.read(path):
            calls = {
                (s.index, c.id) for s in session.steps for c in s.tool_calls if c.name == "transfer_to_human_agents"
            }
            told = {(s.step, s.call_id) for s in signals.extract(session).signals if s.kind == "escalation" and s.tool}
            assert told == calls
            transfers += len(calls)
            escalations += len(told)
    assert transfers == escalations >= 100
