"""Calls to states: the only room that acts. Takes an agent and a declared start, gives back what happened."""

from seatrial.world.approvers import Absent, Amend, Approve, ByGate, Delay, Deny, approver_of
from seatrial.world.difference import differences, mask
from seatrial.world.episode import Limits, SimulatedClock, Transcript, WallClock, run_episode
from seatrial.world.faults import FaultPlan, FaultyWorld
from seatrial.world.gates import APPROVAL_TOOL, GateRule, offered, risk_rules, rules
from seatrial.world.memory import MemoryWorld, Output, Tool
from seatrial.world.scripted import Script, ScriptedAgent
from seatrial.world.starts import FixedText, start_of
from seatrial.world.tracing import trace_of

__all__ = [
    "APPROVAL_TOOL",
    "Absent",
    "Amend",
    "Approve",
    "ByGate",
    "Delay",
    "Deny",
    "FaultPlan",
    "FaultyWorld",
    "FixedText",
    "GateRule",
    "Limits",
    "MemoryWorld",
    "Output",
    "Script",
    "ScriptedAgent",
    "SimulatedClock",
    "Tool",
    "Transcript",
    "WallClock",
    "approver_of",
    "differences",
    "mask",
    "offered",
    "risk_rules",
    "rules",
    "run_episode",
    "start_of",
    "trace_of",
]
