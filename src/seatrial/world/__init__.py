"""Calls to states: the only room that acts. Takes an agent and a declared start, gives back what happened."""

from seatrial.world.difference import differences, mask
from seatrial.world.episode import Approve, Deny, Limits, SimulatedClock, Transcript, WallClock, run_episode
from seatrial.world.faults import FaultPlan, FaultyWorld
from seatrial.world.memory import MemoryWorld, Output, Tool
from seatrial.world.scripted import Script, ScriptedAgent

__all__ = [
    "Approve",
    "Deny",
    "FaultPlan",
    "FaultyWorld",
    "Limits",
    "MemoryWorld",
    "Output",
    "Script",
    "ScriptedAgent",
    "SimulatedClock",
    "Tool",
    "Transcript",
    "WallClock",
    "differences",
    "mask",
    "run_episode",
]
