"""Gates and approvers: what runs, what does not, and what the record says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from seatrial.errors import InputError
from seatrial.examples.ticketdesk import DOMAIN
from seatrial.records import AgentTurn, ToolCall, ToolSpec, UserMessage
from seatrial.records.protocols import Approver
from seatrial.world import (
    APPROVAL_TOOL,
    Absent,
    Amend,
    Approve,
    ByGate,
    Delay,
    Deny,
    FixedText,
    GateRule,
    Script,
    ScriptedAgent,
    SimulatedClock,
    Transcript,
    offered,
    risk_rules,
    rules,
    run_episode,
)

REFUND = {"id": "T-104", "amount": 240}
ENFORCED = rules(
    [{"name": "big", "severity": "high", "tool": "refund", "when": [{"path": "amount", "op": "gt", "value": 100}]}]
)
ADVISORY = (GateRule(name="big", severity="high", tool="refund", mode="advisory"),)


def acts(*proposed: tuple[str, dict[str, Any]]) -> ScriptedAgent:
    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        for number, (name, arguments) in enumerate(proposed):
            yield AgentTurn(calls=(ToolCall(id=f"c{number}", name=name, arguments=arguments),))
        yield AgentTurn(text="done")

    return ScriptedAgent("acts", "1", script)


def run(agent: ScriptedAgent, gates: tuple[GateRule, ...], approver: Approver | None = None) -> Transcript:
    world = DOMAIN.world(1)
    tools = offered(world.tools, gates)
    clock = SimulatedClock(0.0)
    return run_episode(world, agent.begin(tools, 1), FixedText("go"), gates=gates, approver=approver, clock=clock)


def amounts(transcript: Transcript) -> list[int]:
    return [r["amount"] for r in transcript.final["refunds"].values()]


@pytest.mark.parametrize(
    ("approver", "paid", "decision", "outcome"),
    [
        (None, [], "deny", "rejected"),
        (Approve(), [240], "approve", "ok"),
        (Deny("too much"), [], "deny", "rejected"),
        (Amend({"amount": 120}), [120], "amend", "ok"),
        (Absent(60.0), [], "absent", "rejected"),
        (Delay(900.0, Approve()), [240], "approve", "ok"),
        (ByGate({"big": Deny()}, Approve()), [], "deny", "rejected"),
        (ByGate({"other": Deny()}, Approve()), [240], "approve", "ok"),
    ],
)
def test_an_enforced_gate(approver: Approver | None, paid: list[int], decision: str, outcome: str) -> None:
    transcript = run(acts(("refund", REFUND)), ENFORCED, approver)
    assert amounts(transcript) == paid
    [event] = transcript.gates
    assert (event.decision, event.executed, event.respected, event.needed) == (decision, bool(paid), True, True)
    assert transcript.steps[1].results[0].outcome == outcome


def test_time_passes_while_somebody_decides() -> None:
    late = run(acts(("refund", REFUND)), ENFORCED, Delay(900.0, Approve()))
    assert late.seconds is not None
    assert late.seconds >= 900.0
    denied = run(acts(("refund", REFUND)), ENFORCED, Deny("too much"))
    assert "too much" in denied.steps[1].results[0].text
    assert "Nobody answered" in run(acts(("refund", REFUND)), ENFORCED, Absent()).steps[1].results[0].text


def test_an_untriggered_gate_leaves_no_event() -> None:
    transcript = run(acts(("refund", {"id": "T-103", "amount": 40})), ENFORCED)
    assert (transcript.gates, amounts(transcript)) == ((), [40])


def request(tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return APPROVAL_TOOL.name, {"tool": tool, "arguments": arguments}


@pytest.mark.parametrize(
    ("proposed", "approver", "events"),
    [
        ([("refund", REFUND)], Approve(), [(True, None, False)]),
        (
            [request("refund", REFUND), ("refund", REFUND)],
            Approve(),
            [(True, "approve", None), (True, "approve", True)],
        ),
        (
            [request("refund", REFUND), ("refund", {**REFUND, "amount": 200})],
            Approve(),
            [(True, "approve", None), (True, None, False)],
        ),
        ([request("refund", REFUND), ("refund", REFUND)], Deny(), [(True, "deny", None), (True, None, False)]),
        ([request("add_note", {"id": "T-101", "text": "x"})], Approve(), [(False, "approve", None)]),
        (
            [request("refund", REFUND), ("refund", {**REFUND, "amount": 9})],
            Amend({"amount": 9}),
            [(True, "amend", None), (True, "approve", True)],
        ),
    ],
)
def test_an_advisory_gate_lets_through_and_remembers(
    proposed: list[tuple[str, dict[str, Any]]], approver: Approver, events: list[tuple[bool, str | None, bool | None]]
) -> None:
    transcript = run(acts(*proposed), ADVISORY, approver)
    assert [(e.needed, e.decision, e.respected) for e in transcript.gates] == events
    assert len(amounts(transcript)) == sum(name == "refund" for name, _ in proposed)


def test_an_approval_that_was_asked_for_opens_an_enforced_gate() -> None:
    mixed = (*ENFORCED, GateRule(name="mail", tool="send_mail", mode="advisory"))
    transcript = run(acts(request("refund", REFUND), ("refund", REFUND)), mixed, Approve())
    assert amounts(transcript) == [240]
    assert [e.executed for e in transcript.gates] == [False, True]


def test_without_advisory_gates_nobody_can_be_asked() -> None:
    transcript = run(acts(request("refund", REFUND)), ENFORCED, Approve())
    assert transcript.steps[1].results[0].extra["refused"] == "unknown_tool"
    bad = run(acts((APPROVAL_TOOL.name, {"tool": 1})), ADVISORY, Approve())
    assert bad.steps[1].results[0].extra["refused"] == "schema"


def test_rules_from_risk_profiles() -> None:
    found = {r.tool: r.severity for r in risk_rules(DOMAIN.build().tools)}
    assert found == {"read_ticket": "low", "refund": "high", "send_mail": "high"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"severity": "high"}, "gate 1: .*name"),
        ({"name": "x", "colour": "red"}, "gate 1: .*colour"),
        ({"name": "x", "when": [{"path": "a", "op": "like"}]}, "unknown op 'like'"),
    ],
)
def test_rules_that_cannot_be_read(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        rules([raw])


@pytest.mark.parametrize("value", ["text", None, [1]])
def test_arguments_of_another_kind_trigger_nothing(value: object) -> None:
    assert not ENFORCED[0].fits(ToolCall(id="c", name="refund", arguments={"amount": value}))
    assert not ENFORCED[0].fits(ToolCall(id="c", name="refund", arguments={}))
