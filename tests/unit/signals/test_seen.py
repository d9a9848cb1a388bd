"""Extraction from the part of a trace that it reads is extraction from the whole trace."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from polars.testing import assert_frame_equal

from seatrial import plugins, scoring, signals
from seatrial.canon import canonical
from seatrial.flows.extract import extract_traces
from seatrial.records import Agent, Assignment, Provenance, Step, TaskRef, ToolCall, ToolResult, Totals, Trace, Usage
from seatrial.records.run import RecordedOutcome
from seatrial.signals import seen

HOUR = 3600.0
FORMS = ((seen.SeenTrace, Trace), (seen.SeenStep, Step), (seen.SeenCall, ToolCall), (seen.SeenResult, ToolResult))


def _whole() -> list[Trace]:
    """Traces that show every kind of signal and leave hardly a field empty."""
    said = (
        "please fix the failing test in src/a.py and keep the rest as it is", "no, that is wrong, undo it",
        "please fix the failing test in src/a.py and keep the rest as it is", "perfect, thank you", "ok", "commit this",
        "this is garbage, it never works", "get me a human please",
    )  # fmt: skip
    came: tuple[tuple[str, dict[str, Any]], ...] = (
        ("ok", {"exit_code": 0, "text": "fine"}), ("error", {"text": "Exit code 1\nfatal: no such branch"}),
        ("ok", {"exit_code": 2, "text": "ls: cannot access 'x': No such file or directory"}),
        ("rejected", {"text": "The user doesn't want to proceed. the user said: use rg instead"}),
        ("error", {"text": "permission denied"}), ("ok", {"text": "Traceback (most recent call last):\nKeyError: 1"}),
        ("unknown", {"text": "?"}), ("error", {"text": "No such tool: Frobnicate"}),
    )  # fmt: skip
    steps: list[Step] = []
    for i, (words, (outcome, rest)) in enumerate(zip(said, came, strict=True)):
        at = 100.0 * i
        call = ToolCall(id=f"c{i}", name="Bash", arguments={"command": f"git log | grep {i}"}, extra={"n": i})
        if i == 6:
            call = ToolCall(id="c6", name="transfer_to_human", validity="unknown_tool")
        if i == 5:
            call = ToolCall(id="c5", name="shell", raw_arguments="python a.py", validity="invalid")
        loose = (ToolResult(outcome="error", text="fatal: not a git repository"),) if i == 2 else ()
        steps += [
            Step(index=2 * i, event_class="human", text=words, time=at, extra={"rating": 4} if i == 3 else {}),
            Step(
                index=2 * i + 1, event_class="agent", text="Done. Shall I commit?" if i % 3 else "", time=at + 50,
                model="claude-opus-4" if i > 1 else "claude-haiku-4", reasoning="hm", kind="meta", tool_calls=(call,),
                results=(ToolResult(call_id=call.id, outcome=cast(Any, outcome), time=at + 51, **rest), *loose),
                usage=Usage(input_tokens=9, output_tokens=3), source_ids=(f"r{i}",), copied=i == 7,
            ),
        ]  # fmt: skip
    made = Provenance(format="f", reader="r", reader_version="1")
    drawn = Assignment(arm="a", probability=0.5, probabilities={"a": 0.5, "b": 0.5}, stratum="coding/low", unit="u")
    whole = Trace(
        id="whole", agent=Agent(name="x", version="1", tools=({"name": "Bash"},)), provenance=made, model="m",
        task=TaskRef(id="t", type="coding"), attempt=2, user="u", steps=tuple(steps), consent=None,
        totals=Totals(usage=Usage(cost_usd=0.5), wall=9.0, extra={"tokens": 77}),
        outcome=RecordedOutcome(status="passed", score=0.75, by="user"), extra={"simulator": "s", "thumbs": "up"},
    )  # fmt: skip
    drawn_one = msgspec.structs.replace(whole, id="drawn", assignment=drawn, outcome=None, task=TaskRef())
    child = msgspec.structs.replace(whole, id="child", parent="whole", parent_call="c1", continues="drawn")
    return [whole, drawn_one, child, msgspec.structs.replace(drawn_one, id="cut", steps=tuple(steps[:3]))]


def test_what_is_seen_is_what_the_whole_shows() -> None:
    whole = _whole()
    part = [cast(Trace, msgspec.json.decode(canonical(t), type=seen.SeenTrace)) for t in whole]
    settings = signals.SignalSettings(observed_until=500 * HOUR)
    tables, again = (
        extract_traces(traces, scoring.UNIT, "-", blobs={}, settings=settings, silent=()) for traces in (whole, part)
    )
    assert tables["outcomes"].height == len(whole)
    assert tables["signals"]["kind"].n_unique() >= 9
    for name, frame in tables.items():
        assert_frame_equal(frame, again[name], check_exact=True)


@pytest.mark.parametrize(("part", "whole"), FORMS)
def test_forms_have_fields_of_the_records(part: type[msgspec.Struct], whole: type[msgspec.Struct]) -> None:
    known = {f.name: f for f in msgspec.structs.fields(whole)}
    for field in msgspec.structs.fields(part):
        assert field.required == known[field.name].required
        assert field.default == known[field.name].default


def test_detectors_from_elsewhere_are_given_whole_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert signals.seen_form() is cast(Any, seen.SeenTrace)
    found = plugins.Plugins(found=(cast(Any, object()),), broken=())
    monkeypatch.setattr(plugins, "plugins", lambda group: found)
    assert signals.seen_form() is Trace
