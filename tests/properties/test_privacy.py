"""Laws of redaction, for any trace that the records allow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from seatrial.canon import canonical
from seatrial.privacy import Redactor, redact, redact_text
from seatrial.records import Step, ToolCall, Trace

PIECES = st.sampled_from(
    [
        "a@b.co", "jane.doe@example.com", "415-555-0132", "(415) 555-0132", "+44 7700 900123", "4111111111111111",
        "4111 1111 1111 1111", "/home/al/x", "C:\\Users\\bo\\y", "-Users-bo-z", "10.20.30.40", "2001:db8::1:2",
        "password=", "hunter2", "token: ", "Bearer ", "abcdef1234567890abcdef", "AK" + "IAIOSFODNN7EXAMPLE",
        "tel ", "5550132", "version ", "://", "u:p1@h", "<EMAIL_1>", "<SECRET_2>", "<", ">", "_", "\0", "\n", "\\n",
        " ", ".", "-", "@", "/", ":", "=", '"', "'", "1", "a", "é", "\ud800", "+", "(", ")", "key=", "8f3a9c2e71b64d05",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=10).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_idempotent(text: str) -> None:
    once, _ = redact_text(text)
    twice, counts = redact_text(once)
    assert twice == once
    assert counts == {}


@settings(max_examples=120, deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_together_as_alone(texts: list[str]) -> None:
    """What is replaced in a text does not depend on the texts that are searched with it."""
    together = Redactor()
    out = together.all(dict.fromkeys(texts, 1))
    alone = [redact_text(t) for t in dict.fromkeys(texts)]

    def shape(text: str) -> str:
        for digit in "0123456789":
            text = text.replace(digit, "")
        return text

    assert [shape(out.get(t, t)) for t in dict.fromkeys(texts)] == [shape(t) for t, _ in alone]
    total: dict[str, int] = {}
    for _, counts in alone:
        for kind, n in counts.items():
            total[kind] = total.get(kind, 0) + n
    assert together.counts == total


@settings(max_examples=120, deadline=None)
@given(TEXTS, TEXTS)
def test_placeholders_are_stable_within_a_trace(first: str, second: str) -> None:
    assume("_" not in first + second)
    redactor = Redactor()
    a, b, again = redactor.text(first), redactor.text(second), redactor.text(first)
    assert a == again
    assert redactor.text(second) == b


def _structure(value: Any) -> Any:
    """A trace without its texts."""
    if isinstance(value, Trace):
        bare = msgspec.structs.replace(
            value,
            steps=tuple(_structure(s) for s in value.steps),
            extra={},
            agent=msgspec.structs.replace(value.agent, tools=None, extra={}),
            provenance=msgspec.structs.replace(value.provenance, extra={}),
            totals=msgspec.structs.replace(
                value.totals, extra={}, usage=msgspec.structs.replace(value.totals.usage, extra={})
            ),
        )
        outcome = value.outcome
        return msgspec.structs.replace(
            bare, outcome=None if outcome is None else msgspec.structs.replace(outcome, extra={})
        )
    if isinstance(value, Step):
        return msgspec.structs.replace(
            value,
            text="",
            reasoning=None,
            extra={},
            usage=None if value.usage is None else msgspec.structs.replace(value.usage, extra={}),
            tool_calls=tuple(ToolCall(id=c.id, name=c.name, validity=c.validity) for c in value.tool_calls),
            results=tuple(msgspec.structs.replace(r, text="", extra={}) for r in value.results),
        )
    return value


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_structural_fields_are_untouched_and_traces_idempotent(strategies: ModuleType, data: st.DataObject) -> None:
    trace: Trace = data.draw(strategies.traces())
    text = data.draw(TEXTS.filter(lambda t: "\ud800" not in t))
    if trace.steps:
        first = msgspec.structs.replace(
            trace.steps[0], text=text, extra={"password": text, text: [text]}, results=trace.steps[0].results
        )
        trace = msgspec.structs.replace(trace, steps=(first, *trace.steps[1:]))
    once, _ = redact(trace)
    assert _structure(once) == _structure(trace)
    twice, counts = redact(once)
    assert canonical(twice) == canonical(once)
    assert counts == {}
