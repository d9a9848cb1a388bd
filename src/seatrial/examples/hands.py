"""What a scripted agent's hands do: calls with fumbles, retries and giving up, as parts of a script."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

from seatrial.errors import UsageError
from seatrial.examples.habits import Habits
from seatrial.records import AgentTurn, ToolCall, ToolResult, Usage, UserMessage
from seatrial.world.scripted import Incoming

Doing = Generator[AgentTurn, Incoming, ToolResult]
INVENTED = ("TicketAPI", "CodeSearch", "ApplyPatch", "ServiceControl", "RunTests")
RETRIES = 2


class GaveUp(Exception):
    """The agent has stopped working on the job."""


class Hands:
    """Makes turns and calls. All draws come from the generator handed in."""

    def __init__(self, model: str, habits: Habits, draws: random.Random) -> None:
        self.model = model
        self.habits = habits
        self.draws = draws
        self._n = 0
        self._purpose = 0
        self._context = draws.randint(9_000, 14_000)

    def chance(self, probability: float) -> bool:
        """True with this probability; always takes exactly one draw."""
        return self.draws.random() < probability

    def turn(self, text: str = "", call: tuple[str, dict[str, Any]] | None = None) -> AgentTurn:
        """One response, with its time and token use. A call's `extra` names its purpose, which no log holds."""
        calls: tuple[ToolCall, ...] = ()
        if call is not None:
            self._n += 1
            # A second run of the tests serves the purpose of the first; everything else is used for one purpose.
            tests = str(call[1].get("command", "")).startswith("pytest")
            purpose = {"purpose": "tests" if tests else str(self._purpose)}
            calls = (ToolCall(id=f"c{self._n}", name=call[0], arguments=call[1], extra=purpose),)
        written = 12 + len(text) // 4 + sum(len(str(c.arguments)) // 3 for c in calls)
        self._context += written
        usage = Usage(input_tokens=self._context, output_tokens=written, cached_tokens=self._context - written)
        seconds = self.habits.seconds * (0.5 + self.draws.random())
        return AgentTurn(text=text, calls=calls, usage=usage, model=self.model, seconds=round(seconds, 3))

    def call(self, tool: str, arguments: dict[str, Any], text: str = "") -> Doing:
        """One call as it is; its result."""
        incoming = yield self.turn(text, (tool, arguments))
        if isinstance(incoming, UserMessage):
            raise UsageError("a call was answered with words instead of a result")
        self._context += len(incoming[0].text) // 4
        return incoming[0]

    def use(self, tool: str, arguments: dict[str, Any], text: str = "", *, no_is_fine: bool = False) -> Doing:
        """One call as this agent would make it: perhaps wrong at first, retried after a failure or given up.

        `no_is_fine`: exit code 1 is an answer, not a failure (grep, diff, a failing test).

        Raises:
            GaveUp: the call failed and the agent stopped, or it failed too often.
        """
        self._purpose += 1
        if self.chance(self.habits.fumbles):
            result = yield from self.call(*_fumbled(tool, arguments), text)
            if result.outcome != "ok" and self.chance(self.habits.gives_up):
                raise GaveUp(result.text)
        for _ in range(RETRIES + 1):
            result = yield from self.call(tool, arguments, text)
            told_no = no_is_fine and result.exit_code == 1 and result.extra.get("cause") != "environment"
            if result.outcome == "ok" or told_no:
                return result
            if result.outcome == "rejected" or self.chance(self.habits.gives_up):
                raise GaveUp(result.text)
        raise GaveUp(result.text)

    def bash(self, command: str, text: str = "", *, no_is_fine: bool = False) -> Doing:
        """A shell command through `use`."""
        return (yield from self.use("Bash", {"command": command}, text, no_is_fine=no_is_fine))

    def invent(self, subject: str) -> Doing:
        """Perhaps call a tool that does not exist; giving up afterwards is possible.

        Raises:
            GaveUp: the agent stopped after the refusal.
        """
        result = ToolResult()
        self._purpose += 1
        if self.chance(self.habits.invents):
            result = yield from self.call(self.draws.choice(INVENTED), {"query": subject})
            if self.chance(self.habits.gives_up):
                raise GaveUp(result.text)
            self._purpose -= 1  # the next call does what this one was for
        return result


def _fumbled(tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A plausible wrong form of the call, which the world refuses without changing anything."""
    if tool != "Bash":
        path = str(arguments.get("file_path", ""))
        return tool, {**arguments, "file_path": path.replace("/", "s/", 1)}
    words = str(arguments["command"]).split(" ")
    if words[0] in ("desk", "svc", "git") and len(words) > 1:
        return tool, {"command": " ".join([words[0], f"{words[1]}-all", *words[2:]])}
    if words[0] == "grep":
        return tool, {"command": " ".join(words[:2])}
    return tool, {"command": " ".join([f"{words[0]}3", *words[1:]])}
