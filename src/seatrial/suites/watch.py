"""The runner's own ears: an agent's session and a world, watched, so that nothing that happened is ever lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.canon import content_hash
from seatrial.errors import AgentError, InfrastructureError
from seatrial.records import AgentTurn, Conversation, Step, ToolCall, ToolResult, UserMessage, World
from seatrial.records.price import Prices

Incoming = UserMessage | tuple[ToolResult, ...]
_OVER = AgentTurn()


class Watched:
    """A session that ends in an orderly way when its agent fails or a limit is reached.

    Whatever goes wrong, the episode hears "no more calls" and so comes to its end with all its steps. `failure` is
    the agent's exception, `stopped` the limit that was reached; `over` says whether one is. `prices` price a turn
    that has tokens and a model, and says nothing of money.
    """

    def __init__(self, inner: Conversation, *, over: Callable[[], str | None], prices: Prices | None = None) -> None:
        self.inner = inner
        self.failure: Exception | None = None
        self.stopped: str | None = None
        self.ended = False
        self.heard: list[tuple[Incoming, AgentTurn | None, float]] = []
        self._over = over
        self._prices = prices or {}

    def send(self, incoming: Incoming) -> AgentTurn:
        """The agent's next turn; an empty one, which ends the episode, once it must stop."""
        if self.ended:
            return _OVER
        self.stopped = self._over()
        if self.stopped is not None:
            return self._end(incoming)
        self.heard.append((incoming, None, time.time()))
        try:
            turn = self.inner.send(incoming)
            if not isinstance(turn, AgentTurn):
                raise AgentError(f"the agent answered with {type(turn).__name__}, not with a turn")
            turn = self._priced(_kept(turn))
        except Exception as error:  # whatever an agent under test raises is a result
            self.failure = error
            self.ended = True
            return _OVER
        except SystemExit as error:
            self.failure = AgentError(f"the agent ended the process: exit {error.code}")
            self.ended = True
            return _OVER
        self.heard[-1] = (incoming, turn, time.time())
        return turn

    def _priced(self, turn: AgentTurn) -> AgentTurn:
        price = self._prices.get(turn.model or "")
        if price is None or turn.usage is None or turn.usage.cost_usd is not None:
            return turn
        return replace(turn, usage=replace(turn.usage, cost_usd=price.cost(turn.usage)))

    def _end(self, incoming: Incoming) -> AgentTurn:
        self.ended = True
        self.heard.append((incoming, None, time.time()))
        return _OVER

    def steps(self) -> tuple[Step, ...]:
        """What was heard so far, as steps: for an attempt whose episode never returned."""
        out: list[Step] = []
        for incoming, turn, when in list(self.heard):
            if isinstance(incoming, UserMessage):
                out.append(Step(index=len(out), event_class="simulated_user", text=incoming.text, time=when))
            elif out and out[-1].event_class == "agent":
                last = out.pop()
                out.append(_with_results(last, incoming))
            if turn is not None:
                out.append(
                    Step(
                        index=len(out), event_class="agent", text=turn.text, time=when, reasoning=turn.reasoning,
                        tool_calls=turn.calls, model=turn.model, usage=turn.usage,
                    )
                )  # fmt: skip
        return tuple(out)

    def kill(self) -> None:
        """End the agent's session at once, from another thread than the one that waits for its turn."""
        self.ended = True
        end = getattr(self.inner, "kill", None)
        if not callable(end):
            self.close()
            return
        try:
            end()
        except Exception as error:
            self.failure = self.failure or error

    def close(self) -> None:
        """Let the agent's session end, if it has anything to end."""
        end = getattr(self.inner, "close", None)
        if callable(end):
            try:
                end()
            except Exception as error:
                self.failure = self.failure or error


def _kept(turn: AgentTurn) -> AgentTurn:
    """The turn, if it can be kept: what holds anything but JSON is found here, and not when a whole run is written.

    Raises:
        AgentError: it cannot be encoded, or what its usage says is no amount.
    """
    try:
        content_hash(turn)
        msgspec.json.encode(turn)
    except Exception as error:  # objects of the agent's own decide what happens here
        raise AgentError(
            f"the agent's turn is not plain JSON: {error}",
            hint="arguments of calls hold text, numbers, booleans, null, lists and objects with text as keys",
        ) from error
    used = turn.usage
    amounts = {} if used is None else {name: getattr(used, name) for name in used.__struct_fields__}
    for name, value in amounts.items():
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise AgentError(
                f"the agent's usage says {name} = {value}", hint="an amount is 0 or more; leave out what is not known"
            )
    return turn


def _with_results(step: Step, results: tuple[ToolResult, ...]) -> Step:
    return replace(step, results=results)


class WatchedWorld:
    """A world whose own breakage is told apart from the agent's: it is infrastructure, and ends the attempt."""

    def __init__(self, inner: World) -> None:
        self.inner = inner
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def call(self, call: ToolCall) -> ToolResult:
        """The world's result. A world that raises breaks its protocol: the attempt does not count."""
        if self.failure is not None:
            return ToolResult(call_id=call.id, outcome="interrupted", text="the world is broken")
        try:
            return self.inner.call(call)
        except Exception as error:
            self.failure = error
            return ToolResult(call_id=call.id, outcome="interrupted", text="the world is broken")


def is_infrastructure(error: Exception) -> bool:
    """Whether an agent's exception says that it was never able to work: no network, no process, no quota."""
    return isinstance(error, InfrastructureError | ConnectionError | MemoryError)


__all__ = ["Incoming", "Watched", "WatchedWorld", "is_infrastructure"]
