"""Hypothesis strategies for the vocabulary: any trace that the records allow, odd ones included."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from seatrial.records import (
    STATUSES,
    Agent,
    Assignment,
    Consent,
    Provenance,
    RecordedOutcome,
    Step,
    TaskRef,
    ToolCall,
    ToolResult,
    Totals,
    Trace,
    Usage,
)

texts = st.text(max_size=20)
words = st.text(min_size=1, max_size=8)
some_text = st.none() | texts
finite = st.floats(allow_nan=False, allow_infinity=False)
amounts = st.floats(min_value=0, max_value=1e12, allow_nan=False)
counts = st.integers(min_value=0, max_value=2**53 - 1)
some_count = st.none() | counts
times = st.none() | st.integers(0, 4 * 10**15).map(lambda us: us / 1e6) | finite

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
keys = texts | st.sampled_from(["atif", "seatrial", "extra", "message", "content", "subagent_trajectory_ref"])
objects = st.dictionaries(keys, values, max_size=3)
natives = st.fixed_dictionaries(
    {},
    optional={
        "message": values,
        "content": st.lists(
            st.fixed_dictionaries({"type": st.just("text"), "text": texts})
            | st.just({"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}),
            max_size=2,
        ),
        "reasoning_effort": st.sampled_from(["high", 0.5, 3, True, None]),
        "llm_call_count": st.sampled_from([0, 1, 2, -1, "x"]),
        "source": st.sampled_from(["user", "system", "agent", 3]),
        "is_copied_context": st.sampled_from([False, True, "x"]),
        "subagent_trajectory_ref": st.lists(objects | st.just({"trajectory_path": "t.json"}), max_size=2),
        "session_id": texts | st.integers(),
        "notes": texts,
        "prompt_token_ids": st.lists(st.integers(0, 9), max_size=3),
        "logprobs": values,
        "total_steps": st.integers(0, 9),
        "tool_calls": st.just([]),
        "observation": objects,
        "extra": values,
    },
)
extras = objects | st.builds(lambda own, native: own | {"atif": native}, objects, natives)

usages = st.builds(
    Usage,
    input_tokens=some_count,
    output_tokens=some_count,
    cached_tokens=some_count,
    cost_usd=st.none() | amounts,
    extra=extras,
)
calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments=st.dictionaries(texts, values, max_size=3),
    raw_arguments=some_text,
    validity=st.sampled_from(["valid", "invalid", "unknown_tool", "unknown"]),
    extra=extras,
)
results = st.builds(
    ToolResult,
    call_id=some_text,
    outcome=st.sampled_from(["ok", "error", "rejected", "interrupted", "unknown"]),
    exit_code=st.none() | st.integers(-255, 255),
    text=texts,
    truncated=st.booleans(),
    time=times,
    subagents=st.lists(words, max_size=2).map(tuple),
    extra=extras,
)
user_texts = texts | st.sampled_from(
    [
        "[Request interrupted by user]",
        "<system-reminder>x</system-reminder>",
        "<system-reminder>x</system-reminder> thanks",
        "<command-name>/clear</command-name>",
        "This session is being continued from a previous conversation",
    ]
)


@st.composite
def steps(draw: st.DrawFn, index: int) -> Step:
    """A step; most of its results answer its calls."""
    made = tuple(draw(st.lists(calls, max_size=2)))
    answered = draw(st.lists(results, max_size=3))
    if made and draw(st.booleans()):
        answered = [
            ToolResult(call_id=made[n % len(made)].id, outcome=r.outcome, text=r.text) for n, r in enumerate(answered)
        ]
    return Step(
        index=index,
        event_class=draw(st.sampled_from(["human", "simulated_user", "agent", "agent", "harness", "interrupted"])),
        text=draw(user_texts),
        time=draw(times),
        reasoning=draw(some_text),
        tool_calls=made,
        results=tuple(answered),
        model=draw(some_text),
        usage=draw(st.none() | usages),
        kind=draw(some_text),
        copied=draw(st.booleans()),
        source_ids=tuple(draw(st.lists(texts, max_size=2))),
        extra=draw(extras),
    )


@st.composite
def traces(draw: st.DrawFn, id: str | None = None, parent: str | None = None) -> Trace:
    """A trace with up to three steps and every optional field now and then."""
    n = draw(st.integers(0, 3))
    return Trace(
        id=draw(words) if id is None else id,
        agent=Agent(
            name=draw(words),
            version=draw(some_text),
            tools=draw(st.none() | st.lists(st.dictionaries(texts, values, max_size=2), max_size=2).map(tuple)),
            extra=draw(extras),
        ),
        provenance=Provenance(format="x", reader="x", reader_version="1", file=draw(some_text), extra=draw(objects)),
        model=draw(some_text),
        task=draw(st.builds(TaskRef, id=some_text, type=some_text, difficulty=some_text, suite=some_text)),
        attempt=draw(some_count),
        assignment=draw(
            st.none()
            | st.builds(
                Assignment,
                arm=texts,
                probability=st.floats(0, 1),
                probabilities=st.dictionaries(texts, st.floats(0, 1), max_size=2),
                stratum=some_text,
                unit=some_text,
            )
        ),
        user=draw(some_text),
        steps=tuple(draw(steps(index)) for index in range(n)),
        totals=Totals(usage=draw(usages), wall=draw(st.none() | amounts), extra=draw(extras)),
        outcome=draw(
            st.none()
            | st.builds(
                RecordedOutcome,
                status=st.sampled_from(STATUSES),
                score=st.none() | finite,
                bounded=st.booleans(),
                by=some_text,
                extra=objects,
            )
        ),
        consent=draw(st.none() | st.builds(Consent, subject=texts, purposes=st.lists(texts, max_size=2).map(tuple))),
        parent=parent if parent is not None else draw(some_text),
        parent_call=draw(some_text),
        continues=draw(some_text),
        extra=draw(extras),
    )


@st.composite
def families(draw: st.DrawFn) -> list[Trace]:
    """A trace, its sub-agents, and theirs; ids are distinct."""
    ids = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    made = [draw(traces(id=ids[0]))]
    for id in ids[1:]:
        made.append(draw(traces(id=id, parent=draw(st.sampled_from(ids[: len(made)])))))
    return made


def spoil(value: Any) -> Any:
    """What JSON cannot hold, in place of a string or number."""
    return "\ud800" if isinstance(value, str) else math.nan
