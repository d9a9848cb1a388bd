"""Redaction of traces: what is covered, what is never touched, and how placeholders are named."""

from __future__ import annotations

import time

import pytest

from seatrial.errors import UsageError
from seatrial.privacy import Pseudonyms, Redactor, mask_home, redact, redact_text
from seatrial.privacy.checks import luhn
from seatrial.records import (
    Agent,
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

MAIL = "jane@example.com"


def trace(*steps: Step, extra: dict[str, object] | None = None) -> Trace:
    return Trace(
        id=f"s-{MAIL}",
        agent=Agent(name="a", tools=({"name": MAIL, "description": f"ask {MAIL}"},), extra={"by": MAIL}),
        provenance=Provenance(format="f", reader="r", reader_version="1", extra={"cwd": "/home/jane/x"}),
        model=MAIL,
        task=TaskRef(id=MAIL, type=MAIL),
        user=MAIL,
        steps=steps,
        totals=Totals(usage=Usage(extra={"who": MAIL}), extra={"who": MAIL}),
        outcome=RecordedOutcome(status="passed", by=MAIL, extra={"who": MAIL}),
        parent=MAIL,
        extra=extra or {},
    )


FULL = Step(
    index=0,
    event_class="agent",
    text=f"wrote to {MAIL}",
    reasoning=f"ask {MAIL}",
    model=MAIL,
    kind=MAIL,
    source_ids=(MAIL,),
    tool_calls=(
        ToolCall(id=MAIL, name=MAIL, arguments={MAIL: [{"to": MAIL, "n": 3}]}, raw_arguments=MAIL, extra={"x": MAIL}),
    ),
    results=(ToolResult(call_id=MAIL, text=MAIL, subagents=(MAIL,), extra={"x": [MAIL]}),),
    usage=Usage(input_tokens=1, extra={"x": MAIL}),
    extra={"x": {MAIL: MAIL}},
)


def test_every_text_is_covered() -> None:
    out, counts = redact(trace(FULL, extra={"deep": [[{"k": MAIL}]]}))
    step = out.steps[0]
    mark = "<EMAIL_1>"
    assert step.text == f"wrote to {mark}"
    assert step.reasoning == f"ask {mark}"
    assert step.tool_calls[0].arguments == {mark: [{"to": mark, "n": 3}]}
    assert step.tool_calls[0].raw_arguments == mark
    assert step.results[0].text == mark
    for extra in (step.extra, step.tool_calls[0].extra, step.results[0].extra, step.usage.extra if step.usage else {}):
        assert MAIL not in str(extra)
        assert mark in str(extra)
    assert out.extra == {"deep": [[{"k": mark}]]}
    assert out.agent.extra == {"by": mark}
    assert out.agent.tools == ({"name": MAIL, "description": f"ask {mark}"},)
    assert out.provenance.extra == {"cwd": "<HOME_1>/x"}
    assert out.totals.extra == {"who": mark}
    assert out.totals.usage.extra == {"who": mark}
    assert out.outcome is not None
    assert out.outcome.extra == {"who": mark}
    # text, reasoning, argument key and value, raw, result, and one each in eight extras (two in the step's)
    assert counts == {"EMAIL": 18, "HOME": 1}


def test_structural_fields_stay() -> None:
    before = trace(FULL)
    after, _ = redact(before)
    assert (after.id, after.model, after.task, after.parent, after.user) == (
        before.id,
        before.model,
        before.task,
        before.parent,
        before.user,
    )
    a, b = after.steps[0], FULL
    assert (a.model, a.kind, a.source_ids) == (b.model, b.kind, b.source_ids)
    assert (a.tool_calls[0].id, a.tool_calls[0].name) == (MAIL, MAIL)
    assert (a.results[0].call_id, a.results[0].subagents) == (MAIL, (MAIL,))
    assert after.outcome is not None
    assert after.outcome.by == MAIL


def test_a_clean_trace_is_handed_back_as_it_is() -> None:
    clean = Trace(id="s", agent=Agent(name="a"), provenance=Provenance(format="f", reader="r", reader_version="1"))
    assert redact(clean) == (clean, {})
    assert redact(clean)[0] is clean


def test_equal_values_share_a_placeholder_and_different_ones_do_not() -> None:
    text, counts = redact_text("a@x.com b@x.com a@x.com")
    assert text == "<EMAIL_1> <EMAIL_2> <EMAIL_1>"
    assert counts == {"EMAIL": 3}


def test_a_literal_placeholder_in_the_source_keeps_its_name_to_itself() -> None:
    steps = (
        Step(index=0, event_class="human", text="mail a@x.com"),
        Step(index=1, event_class="human", text="the docs say <EMAIL_1>, <EMAIL_7>"),
    )
    out, _ = redact(trace(*steps))
    texts = {s.text for s in out.steps}
    assert "the docs say <EMAIL_1>, <EMAIL_7>" in texts
    assert "mail <EMAIL_8>" in texts or "mail <EMAIL_9>" in texts


def test_a_key_can_give_its_value_away() -> None:
    redactor = Redactor()
    out = redactor.value(
        {
            "password": "correct",
            "apiKey": "plainwords",
            "db_password": "${DB_PASSWORD}",
            "phone": "5550132",
            "token_count": "123456",
            "secret": "required",
        }
    )
    assert out == {
        "password": "<SECRET_1>",
        "apiKey": "<SECRET_2>",
        "db_password": "${DB_PASSWORD}",
        "phone": "<PHONE_1>",
        "token_count": "123456",
        "secret": "required",
    }
    assert redactor.counts == {"SECRET": 2, "PHONE": 1}
    assert Redactor({"SECRET": 2, "PHONE": 1}).value(out) == out


def test_texts_do_not_leak_into_each_other() -> None:
    """Short texts are searched together: a match must not span two of them, nor see the other's words."""
    out = Redactor().value(["version", "10.20.30.40", "user", "@example.com", "\0", "415-555-0132"])
    assert out == ["version", "<IP_1>", "user", "@example.com", "\0", "<PHONE_1>"]


def test_escaped_line_breaks_are_boundaries() -> None:
    assert redact_text(r"a\n415-555-0132\nC:\\Users\\carol\\x")[0] == r"a\n<PHONE_1>\n<HOME_1>\\x"


def test_lone_surrogates_survive() -> None:
    assert redact_text("\ud800 a@x.com")[0] == "\ud800 <EMAIL_1>"


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIV" + "ATE KEY-----\n",
        "a@",
        "a@b.",
        "tel 1234567......",
        "password: ",
        "/home/a/",
        "4111 ",
        "1.1.1.",
        "2001:",
        "eyJaaaaaa.",
        "x://:",
        "+1 2",
        "token = ",
    ],
)
def test_hostile_text_takes_time_in_proportion_to_its_length(hostile: str) -> None:
    def took(n: int) -> float:
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            Redactor().text(hostile * n)
            best = min(best, time.process_time() - start)
        return best

    n = 24_000 // len(hostile)
    # Quadratic work would take 16 times as long for four times the text.
    assert took(4 * n) < 9 * took(n) + 0.02


def test_luhn_by_its_published_example() -> None:
    assert luhn(b"79927398713")  # ISO/IEC 7812-1, annex
    assert not any(luhn(b"7992739871%d" % d) for d in range(10) if d != 3)


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ("/home/alice/.claude/s.jsonl", "<HOME>/.claude/s.jsonl"),
        ("/Users/bob/x/-Users-bob-code/s.jsonl", "<HOME>/x/<HOME>-code/s.jsonl"),
        (r"C:\Users\carol\s.jsonl", r"<HOME>\s.jsonl"),
        ("sessions/s.jsonl", "sessions/s.jsonl"),
        ("/srv/data/s.jsonl", "/srv/data/s.jsonl"),
    ],
)
def test_paths_lose_their_home(given: str, masked: str) -> None:
    assert mask_home(given) == masked


def test_ones_own_home_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/erin")
    assert mask_home("/srv/people/erin/s.jsonl") == "~/s.jsonl"
    assert mask_home("/srv/people/erin2/s.jsonl") == "/srv/people/erin2/s.jsonl"


def test_pseudonyms_need_the_key() -> None:
    one, two = Pseudonyms(b"k" * 32), Pseudonyms(b"l" * 32)
    assert one.of("alice") == one.of("alice")
    assert one.of("alice") != two.of("alice")
    assert one.of("alice") != one.of("alice", "unit")
    assert one.of("alice").startswith("user-")
    assert len(one.of("alice")) == len("user-") + 16
    with pytest.raises(UsageError):
        Pseudonyms(b"short")
