"""Signals on real sessions: nothing crashes, evidence is where it says, and known events are found."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from seatrial import ingest, scoring, signals
from seatrial.records import Trace
from seatrial.signals import accuracy, columns, matching, turns

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def sessions(data: Path) -> list[Trace]:
    folder = data / "sessions" / "claude-code"
    if not folder.is_dir():
        pytest.skip("no sessions at data/sessions/claude-code")
    return list(ingest.read(folder))


def test_every_signal_of_real_sessions_is_where_it_says(sessions: list[Trace]) -> None:
    kinds = set()
    for trace in sessions:
        steps = {step.index: step for step in trace.steps}
        extraction = signals.extract(trace)
        for signal in extraction.signals:
            kinds.add(signal.kind)
            if signal.span is not None:
                step = steps[signal.step]
                field = signal.span.field
                text = step.text if field == "text" else step.results[int(field.split(".")[1])].text
                assert signal.quote == text[signal.span.start : signal.span.end]
        scoring.score(trace, extraction.signals, extraction.episodes, scoring.UNIT, calls=extraction.calls)
    assert {"confirmation", "accept_implicit", "praise", "correction", "execution_error"} <= kinds


def test_every_flagged_tool_error_gets_a_cause(sessions: list[Trace]) -> None:
    causes: dict[str, int] = {}
    for trace in sessions:
        for call in signals.extract(trace).calls:
            if call.outcome in ("error", "rejected", "interrupted"):
                assert call.cause is not None
                causes[call.cause] = causes.get(call.cause, 0) + 1
    assert causes["model"] > causes.get("unknown", 0)
    assert causes["rejected"] >= 10


def test_the_matcher_agrees_with_re_on_real_turns(sessions: list[Trace]) -> None:
    texts = {s.text for t in sessions for s in t.steps if s.event_class == "human" and s.text}
    matcher = matching.matcher()
    for text in sorted(texts):
        normal = matching.normalise(text)
        said = matching.mask(normal)
        assert matcher.match(normal, said) == matcher.oracle(normal, said)


def test_compiled_and_plain_columns_agree_on_real_turns(sessions: list[Trace], data: Path) -> None:
    pytest.importorskip("numba", reason="the fast extra is not installed")
    heard = [
        (turn.step.text, turn.before, turn.interrupted, turn.refused) for t in sessions for turn in turns.read(t).turns
    ]
    labels = data / "labels" / "turns.jsonl"
    if labels.is_file():
        heard += [(r.turn, r.before, r.interrupted, False) for r in accuracy.read_labels(labels)]
    texts, befores, stopped, refused = zip(*heard, strict=True)
    asked = columns.Spoken(texts, befores, np.array(stopped), np.array(refused))
    compiled, plain = (columns.judge(asked, engine=engine) for engine in ("compiled", "plain"))
    assert compiled.turn.size > 0
    for one, other in zip(compiled, plain, strict=True):
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def test_transfers_to_a_person_are_escalations(data: Path) -> None:
    path = data / "tau-bench" / "gpt-4o-airline.json"
    if not path.is_file():
        pytest.skip("no runs at data/tau-bench")
    found = expected = 0
    for trace in ingest.read(path):
        calls = [c.name for s in trace.steps for c in s.tool_calls]
        expected += any(name == "transfer_to_human_agents" for name in calls)
        found += any(s.kind == "escalation" and s.tool is not None for s in signals.extract(trace).kept)
    assert found == expected > 0


def test_a_thousand_steps_take_milliseconds(sessions: list[Trace]) -> None:
    longest = max(sessions, key=lambda t: len(t.steps))
    signals.extract(longest)
    started = time.process_time()
    signals.extract(longest)
    assert (time.process_time() - started) / len(longest.steps) < 0.001
