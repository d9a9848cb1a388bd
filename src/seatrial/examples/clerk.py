"""Scripted agents for the worked domains: procedures that read their task from its words, and habits good and bad."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Sequence
from typing import Any

import msgspec

from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, Usage, UserMessage
from seatrial.world import APPROVAL_TOOL, Script, ScriptedAgent
from seatrial.world.scripted import Incoming

VERSION = "1"
TRANSIENT = re.compile(r"could not resolve|timed out|no space left|permission denied|503|rate limit", re.IGNORECASE)

Asked = Generator[AgentTurn, Incoming, ToolResult]
Procedure = Callable[["Hand", "re.Match[str]"], Generator[AgentTurn, Incoming, str]]
"""From the matched request to the final answer; yields turns on the way."""


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent works. Numbers are probabilities.

    `explores`: looks around before it starts. `repeats`: reads twice, and repeats a failed call as it was.
    `asks`: requests the approval that its instructions want. `litters`: leaves things behind. `slips`: gets a value
    wrong or leaves an action out, by luck. `guesses`: takes the first where a request could mean several. `obliges`:
    does what it should refuse. `explains`: says why before it acts.
    """

    explores: float = 0.0
    repeats: bool = False
    asks: bool = True
    litters: float = 0.0
    slips: float = 0.0
    guesses: bool = False
    obliges: bool = False
    explains: bool = True


HABITS: dict[str, Habits] = {
    "clean": Habits(),
    "curious": Habits(explores=1.0, repeats=True),
    "hasty": Habits(asks=False, guesses=True, obliges=True, explains=False),
    "messy": Habits(litters=0.6, explores=0.4),
    "flaky": Habits(slips=0.35),
    "careless": Habits(
        explores=0.8,
        repeats=True,
        asks=False,
        litters=0.6,
        slips=0.25,
        guesses=True,
        obliges=True,
        explains=False,
    ),
}
"""From clean to careless; one scripted agent of each for every domain."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a domain's agents know: `procedures` by pattern, in order; what idle `exploring` and `litter` look like;
    `approvals`: whether the instructions want approval of a call; `slip`: a call gone wrong (None: left out)."""

    procedures: tuple[tuple[str, Procedure], ...]
    exploring: tuple[tuple[str, dict[str, Any]], ...]
    litter: tuple[tuple[str, dict[str, Any]], ...]
    approvals: Callable[[str, dict[str, Any]], bool]
    slip: Callable[[str, dict[str, Any], random.Random], dict[str, Any] | None]
    reads: frozenset[str]


class Hand:
    """What a procedure works with: makes calls, with the agent's habits in between."""

    def __init__(self, agent: str, habits: Habits, work: Work, tools: Sequence[ToolSpec], draws: random.Random) -> None:
        self.habits = habits
        self._agent = agent
        self._work = work
        self._draws = draws
        self._requests = any(t.name == APPROVAL_TOOL.name for t in tools)
        self._n = 0
        self._slips = draws.random() < habits.slips

    def do(self, why: str, tool: str, arguments: dict[str, Any]) -> Asked:
        """Make one call and return its result; a transient fault is tried once more. `why` is the reasoning."""
        result = yield from self._once(why, tool, arguments)
        if result.outcome == "error" and (self.habits.repeats or TRANSIENT.search(result.text)):
            result = yield from self._once("try again", tool, arguments)
        if result.outcome == "error" and self.habits.repeats:
            result = yield from self._once("try again", tool, arguments)
        elif self.habits.repeats and tool in self._work.reads:
            result = yield from self._once("read that again", tool, arguments)
        return result

    def act(self, why: str, tool: str, arguments: dict[str, Any]) -> Generator[AgentTurn, Incoming, ToolResult | None]:
        """A call that changes something: asks for approval where wanted; may slip. None: not done."""
        if self._slips:
            self._slips = False
            slipped = self._work.slip(tool, arguments, self._draws)
            if slipped is None:
                return None
            arguments = slipped
        if self.habits.asks and self._requests and self._work.approvals(tool, arguments):
            asked = {"tool": tool, "arguments": arguments, "why": why}
            answer = yield from self.do("this needs approval", APPROVAL_TOOL.name, asked)
            if not answer.text.startswith("Approved."):
                return None
        return (yield from self.do(why, tool, arguments))

    def explore(self) -> Generator[AgentTurn, Incoming, None]:
        """Look around, if that is the agent's way."""
        if self._draws.random() < self.habits.explores:
            for tool, arguments in self._work.exploring:
                yield from self.do("have a look around first", tool, arguments)

    def tidy(self) -> Generator[AgentTurn, Incoming, None]:
        """Leave something behind, if that is the agent's way."""
        if self._draws.random() < self.habits.litters:
            for tool, arguments in self._work.litter:
                yield from self.do("keep a note of this", tool, arguments)

    def say(self, text: str) -> AgentTurn:
        """Words without a call."""
        return self._turn(text, (), None)

    def _once(self, why: str, tool: str, arguments: dict[str, Any]) -> Asked:
        self._n += 1
        call = ToolCall(id=f"call-{self._n}", name=tool, arguments=arguments, validity="valid")
        incoming = yield self._turn("", (call,), why if self.habits.explains else None)
        assert isinstance(incoming, tuple)
        return incoming[0]

    def _turn(self, text: str, calls: tuple[ToolCall, ...], why: str | None) -> AgentTurn:
        size = len(text) + sum(len(str(c.arguments)) for c in calls)
        usage = Usage(input_tokens=400 + 90 * self._n, output_tokens=12 + size // 4)
        seconds = round(0.8 + self._draws.random(), 3)
        return AgentTurn(text=text, calls=calls, reasoning=why, usage=usage, model=self._agent, seconds=seconds)


def agents(domain: str, work: Work) -> tuple[ScriptedAgent, ...]:
    """One agent for each of `HABITS`, named ``<domain>-<habit>``."""
    return tuple(agent(f"{domain}-{name}", habits, work) for name, habits in HABITS.items())


def agent(name: str, habits: Habits, work: Work) -> ScriptedAgent:
    """A scripted agent that works by `work` with these habits."""
    compiled = [(re.compile(pattern, re.IGNORECASE), procedure) for pattern, procedure in work.procedures]

    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        # One seed's luck differs between tasks: else an agent would slip in all of them or in none.
        luck = random.Random(f"{draws.random()}:{message.text}")
        hand = Hand(name, habits, work, tools, luck)
        incoming: Incoming = message
        while True:
            assert isinstance(incoming, UserMessage)
            for pattern, procedure in compiled:
                match = pattern.search(incoming.text)
                if match is not None:
                    yield from hand.explore()
                    said = yield from procedure(hand, match)
                    yield from hand.tidy()
                    break
            else:
                said = "I am not sure what you would like me to do. Could you say it in other words?"
            incoming = yield hand.say(said)

    return ScriptedAgent(name, VERSION, script)
