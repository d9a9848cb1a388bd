"""What must hold for any trace: places, quotes, order, determinism, and that nothing vanishes."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial import scoring, signals
from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.signals import denoise, language, lexicon, matching, shell
from seatrial.signals.settings import SignalSettings

WORDS = st.sampled_from(
    [
        *(
            "it works now",
            "no, that's wrong",
            "thanks",
            "commit this",
            "perfect",
            "still fails",
            "wtf",
            "lgtm",
            "why did you",
        ),
        *(
            "please add a page",
            "```code```",
            '"quoted"',
            "> cited",
            "İ ß ŉ 👍",
            "不对",
            "谢谢",
            "…",
            "\u2028",
            "\x00",
            "?",
            "NO! NO!",
        ),
        *(
            "TypeError: x",
            "can you fix it",
            "revert",
            "merge it",
            "ok",
            "don’t",
            "try again",
            "but",
            "\n",
            "1.",
            "https://x.y/z",
        ),
    ]
)
SPOKEN = st.lists(WORDS | st.text(max_size=12), max_size=8).map(" ".join)
OUTPUTS = st.sampled_from(
    [
        "",
        "ok",
        "Permission denied",
        "fatal: no",
        "Traceback (most recent call last):\nx",
        "Exit code 1",
        "error: x",
        "👍 No such tool",
    ]
)
COMMANDS = st.sampled_from(
    ["grep a b", "false && rg x", "make", "cat x | jq .", "(", "'", "a && b || c; d", "! diff a b", ""]
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    steps = []
    timed = draw(st.booleans())
    for i in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["human", "agent", "agent", "human", "harness", "simulated_user", "interrupted"]))
        calls: list[Any] = []
        results: list[Any] = []
        if kind == "agent":
            for j in range(draw(st.integers(0, 2))):
                name = draw(st.sampled_from(["Bash", "Edit", "Read", "transfer_to_human_agents"]))
                calls.append(ToolCall(id=f"{i}.{j}", name=name, arguments={"command": draw(COMMANDS)}))
                if draw(st.booleans()):
                    outcome = draw(st.sampled_from(["ok", "error", "rejected", "interrupted", "unknown"]))
                    code = draw(st.sampled_from([None, 0, 1, 2, 130]))
                    results.append(ToolResult(call_id=f"{i}.{j}", outcome=outcome, exit_code=code, text=draw(OUTPUTS)))
        steps.append(
            Step(
                index=i,
                event_class=kind,
                text=draw(SPOKEN),
                time=float(draw(st.integers(0, 100))) if timed else None,
                copied=draw(st.sampled_from([False, False, False, True])),
                tool_calls=tuple(calls),
                results=tuple(results),
            )
        )
    provenance = Provenance(format="f", reader="f", reader_version="1")
    return Trace(id="t", agent=Agent(name="a"), model="m", provenance=provenance, steps=tuple(steps))


@settings(max_examples=60, deadline=None)
@given(traces())
def test_every_signal_points_at_its_evidence(trace: Trace) -> None:
    extraction = signals.extract(trace)
    own = {step.index: step for step in trace.steps if not step.copied}
    for signal in extraction.signals:
        step = own[signal.step]
        assert 0 <= signal.confidence <= 1
        if signal.detector == "language":
            assert step.event_class in ("human", "simulated_user")
        if signal.span is None:
            continue
        field = signal.span.field
        text = step.text if field == "text" else step.results[int(field.split(".")[1])].text
        assert 0 <= signal.span.start <= signal.span.end <= len(text)
        assert signal.quote == text[signal.span.start : signal.span.end]


@settings(max_examples=50, deadline=None)
@given(traces())
def test_the_same_trace_gives_the_same_answer_and_every_part_fits(trace: Trace) -> None:
    extraction = signals.extract(trace)
    assert signals.extract(trace) == extraction
    for name, frame in signals.frames([extraction]).items():
        assert frame.height == len(getattr(extraction, name))
    assert len(signals.explain(extraction, trace)) == len(extraction.signals)
    if trace.steps:
        assert extraction.episodes[0].start == 0
        assert extraction.episodes[-1].end == len(trace.steps)
        assert all(a.end == b.start for a, b in zip(extraction.episodes, extraction.episodes[1:], strict=False))
    score = scoring.score(trace, extraction.signals, extraction.episodes, scoring.UNIT, calls=extraction.calls)
    for name, value in score.signals.items():
        assert (value is None) == (name in score.why)
        assert value is None or 0 <= value <= 1
    assert score.counts == {k: sum(s.kind == k for s in extraction.kept) for k in score.counts}


@settings(max_examples=100, deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_denoising_drops_nothing_and_ignores_the_order_of_detection(trace: Trace, order: random.Random) -> None:
    found = signals.extract(trace).signals
    bare = [s for s in found if s.dropped_by is None]
    shuffled = list(bare)
    order.shuffle(shuffled)
    agent_steps = tuple(step.index for step in trace.steps if step.event_class == "agent")
    first = denoise.denoise(bare, agent_steps, SignalSettings())
    assert denoise.denoise(shuffled, agent_steps, SignalSettings()) == first
    assert len(first) == len(bare)
    assert all(s.dropped_by != "" for s in first)
    for signal in first:
        if signal.dropped_by and signal.dropped_by.startswith("merged_into: "):
            head = int(signal.dropped_by.removeprefix("merged_into: "))
            assert any(s.kind == signal.kind and s.step == head and s.dropped_by is None for s in first)


@settings(max_examples=150, deadline=None)
@given(SPOKEN)
def test_the_matcher_agrees_with_re(text: str) -> None:
    normal = matching.normalise(text)
    assert len(normal) == len(text)
    said = matching.mask(normal)
    assert len(said) == len(normal)
    assert matching.matcher().match(normal, said) == matching.matcher().oracle(normal, said)


@settings(max_examples=200, deadline=None)
@given(SPOKEN, SPOKEN)
def test_judging_one_turn_never_depends_on_another(turn: str, other: str) -> None:
    alone = language.judge(turn)
    assert language.judge_many([other, turn, other])[1] == alone
    for verdict in alone:
        assert verdict.kind in lexicon.KINDS
        assert verdict.why


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | COMMANDS)
def test_any_command_line_can_be_read(text: str) -> None:
    line = shell.parse(text)
    assert set(line.deciders) <= set(line.commands)


@settings(max_examples=25, deadline=None)
@given(st.lists(traces(), max_size=4))
def test_traces_read_together_are_those_read_alone(many: list[Trace]) -> None:
    assert signals.extract_many(many) == [signals.extract(trace) for trace in many]
