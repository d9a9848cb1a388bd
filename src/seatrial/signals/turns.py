"""A trace to its human turns, each with what the agent had just done: the context that every judgement needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.records import Step, Trace

_GREETING = re.compile(
    r"\bhow (?:can|may) (?:i|we) (?:help|assist)|\bwhat can i do for you|welcome to\b", re.IGNORECASE
)
_BEFORE = 4_000


class Turn(NamedTuple):
    """One human turn. `agent` is the last agent step before it (None: none), `before` the agent's last words.

    `worked` is False until the agent has done something that could be judged: a greeting is not work.
    `interrupted`: the human stopped the agent; `refused`: the agent's last call was refused.
    `block` counts the blocks of agent steps seen so far, the unit of "agent turns" in METHODS 3.8.
    """

    step: Step
    agent: Step | None
    before: str
    worked: bool
    interrupted: bool
    refused: bool
    block: int


class Conversation(NamedTuple):
    """The human turns of a trace, the number of agent turns in it, and where agent steps stand."""

    turns: tuple[Turn, ...]
    blocks: int
    agent_steps: tuple[int, ...]


def read(trace: Trace) -> Conversation:
    """Human turns in order. Copied steps give context only; a sub-agent's prompts come from no human."""
    turns: list[Turn] = []
    agent: Step | None = None
    words = ""
    worked = interrupted = refused = False
    in_block = False
    blocks = 0
    agent_steps: list[int] = []
    for step in trace.steps:
        kind = step.event_class
        if kind == "agent":
            agent = step
            agent_steps.append(step.index)
            if step.text:
                words = step.text
            if not worked:
                worked = _work(step)
            if not in_block and not step.copied:
                blocks += 1
                in_block = True
            interrupted = refused = False
            for result in step.results:
                interrupted = interrupted or result.outcome == "interrupted"
                refused = refused or result.outcome == "rejected"
        elif kind == "interrupted":
            interrupted = True
        elif kind in ("human", "simulated_user"):
            in_block = False
            if not step.copied and trace.parent is None:
                turns.append(Turn(step, agent, words[-_BEFORE:], worked, interrupted, refused, blocks))
            interrupted = refused = False
    return Conversation(tuple(turns), blocks, tuple(agent_steps))


def _work(step: Step) -> bool:
    if step.tool_calls:
        return True
    text = step.text.strip()
    return bool(text) and not (len(text) < 240 and _GREETING.search(text))


def model_of(step: Step | None, trace: Trace) -> str | None:
    """The model that a judgement falls on: the step's own, else the trace's default."""
    return (step.model or trace.model) if step is not None else None


def lies_between(agent_steps: Sequence[int], after: int, upto: int) -> bool:
    """Whether an agent step has an index in (after, upto]; `agent_steps` ascending."""
    from bisect import bisect_right

    return bisect_right(agent_steps, upto) > bisect_right(agent_steps, after)
