"""Whole traces to extractions: who spoke, what counts, episodes, corrections, behaviour."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from seatrial import signals
from seatrial.records import Agent, Provenance, RecordedOutcome, Step, TaskRef, ToolCall, ToolResult, Trace
from seatrial.records.tables import CALLS, CORRECTIONS, SIGNALS
from seatrial.signals import SignalSettings, behaviour, difficulty, task_type


def build(*parts: Any, timed: bool = True, gap: float = 60.0, **rest: Any) -> Trace:
    """A trace from (event class, text) pairs and ready-made steps."""
    steps = []
    for i, part in enumerate(parts):
        if isinstance(part, Step):
            step = part
        else:
            step = Step(index=i, event_class=part[0], text=part[1], time=i * gap if timed else None)
        steps.append(step)
    return Trace(
        id="t",
        agent=Agent(name="a"),
        model="m",
        provenance=Provenance(format="f", reader="f", reader_version="1"),
        steps=tuple(steps),
        **rest,
    )


def call(index: int, name: str = "Bash", *, time: float | None = None, command: str = "make", **result: Any) -> Step:
    return Step(
        index=index,
        event_class="agent",
        time=time,
        tool_calls=(ToolCall(id=f"c{index}", name=name, arguments={"command": command}),),
        results=(ToolResult(call_id=f"c{index}", **result),),
    )


def kept(extraction: signals.Extraction) -> list[tuple[str, int]]:
    return [(s.kind, s.step) for s in extraction.kept]


WORK = ("agent", "I fixed the parser and all tests pass.")


def test_a_verdict_needs_agent_work_before_it() -> None:
    assert kept(signals.extract(build(("human", "this is wrong, it still fails"), WORK))) == []
    greeting = ("agent", "Hi! How can I help you today?")
    assert kept(signals.extract(build(greeting, ("human", "thanks, perfect"), WORK))) == []
    assert kept(signals.extract(build(("human", "fix it"), WORK, ("human", "lgtm")))) == [("confirmation", 2)]


@pytest.mark.parametrize("who", ["harness", "agent", "interrupted"])
def test_only_humans_carry_human_signals(who: str) -> None:
    extraction = signals.extract(build(("human", "fix it"), WORK, (who, "perfect, thanks, commit this")))
    assert not [s for s in extraction.signals if s.detector == "language"]


def test_simulated_users_speak_and_sub_agents_prompts_do_not() -> None:
    parts = (("simulated_user", "fix it"), WORK, ("simulated_user", "perfect, thank you"))
    assert {k for k, _ in kept(signals.extract(build(*parts)))} == {"confirmation", "praise"}
    assert kept(signals.extract(build(*parts, parent="p"))) == []


def test_copied_steps_are_context_and_never_signals() -> None:
    copied = Step(index=1, event_class="agent", text=WORK[1], copied=True)
    old = Step(index=2, event_class="human", text="wrong, revert it", copied=True)
    extraction = signals.extract(build(("human", "go"), copied, old, ("human", "lgtm")))
    assert kept(extraction) == [("confirmation", 3)]
    assert extraction.signals[0].judges_step == 1


def test_a_signal_judges_the_last_agent_step_and_its_model() -> None:
    other = Step(index=1, event_class="agent", text="done", model="special")
    (signal,) = signals.extract(build(("human", "fix"), other, ("human", "lgtm"))).kept
    assert (signal.judges_step, signal.model, signal.time) == (1, "special", 120.0)


def test_quotes_are_the_text_at_the_span() -> None:
    text = "OK… İt works now, thanks"
    extraction = signals.extract(build(("human", "fix"), WORK, ("human", text)))
    for signal in extraction.signals:
        assert signal.span is not None
        assert signal.quote == text[signal.span.start : signal.span.end]


def test_same_kind_signals_within_30_s_of_the_first_merge() -> None:
    turns = [Step(index=2 + i, event_class="human", text="lgtm", time=100.0 + t) for i, t in enumerate((0, 20, 29, 31))]
    extraction = signals.extract(build(("human", "fix"), WORK, *turns))
    assert [(s.step, s.dropped_by) for s in extraction.signals] == [
        (2, None),
        (3, "merged_into: 2"),
        (4, "merged_into: 2"),
        (5, None),
    ]


def test_without_timestamps_a_run_ends_at_the_next_agent_turn() -> None:
    parts = (("human", "fix"), WORK, ("human", "lgtm"), ("human", "works now"), WORK, ("human", "lgtm"))
    extraction = signals.extract(build(*parts, timed=False))
    assert [(s.step, s.dropped_by) for s in extraction.signals if s.kind == "confirmation"] == [
        (2, None),
        (3, "merged_into: 2"),
        (5, None),
    ]
    assert "no timestamps" in (extraction.signals[1].why or "")


def test_negative_constructs_under_the_threshold_are_dropped_with_the_number() -> None:
    parts = (("human", "fix"), WORK, ("human", "this should be in the other file"))
    found = signals.extract(build(*parts), SignalSettings(correction_threshold=0.99)).signals
    (signal,) = [s for s in found if s.kind == "correction"]
    assert signal.dropped_by is not None
    assert signal.dropped_by.startswith("below_threshold: ")


def test_environment_faults_benign_exits_and_refusals_do_not_count_and_say_so() -> None:
    trace = build(
        ("human", "go"),
        call(1, outcome="error", exit_code=1, text="Permission denied"),
        call(2, command="grep a b", outcome="error", exit_code=1),
        call(3, outcome="rejected", text="no"),
        call(4, outcome="interrupted"),
        call(5, outcome="error", exit_code=2, text="error: boom"),
    )
    extraction = signals.extract(trace)
    errors = [(s.step, s.cause, s.dropped_by) for s in extraction.signals if s.kind == "execution_error"]
    assert errors == [
        (1, "environment", "environment_fault"),
        (2, "benign", "benign_exit"),
        (3, "rejected", "rejected: the user refused the call"),
        (4, "interrupted", "interrupted"),
        (5, "model", None),
    ]
    assert [c.cause for c in extraction.calls] == ["environment", "benign", "rejected", "interrupted", "model"]


def test_a_new_request_starts_an_episode_and_corrections_or_answers_do_not() -> None:
    extraction = signals.extract(
        build(
            ("human", "fix the parser"),
            WORK,
            ("human", "no, it still fails"),
            ("agent", "Now it is fixed. Which name do you want?"),
            ("human", "please add the short one to the file"),
            WORK,
            ("human", "Works now. Can you add a dark mode to the page?"),
            WORK,
            ("human", "commit this"),
        )
    )
    assert [(e.start, e.end) for e in extraction.episodes] == [(0, 6), (6, 9)]


def test_episodes_cover_the_trace_without_gaps() -> None:
    extraction = signals.extract(build(("human", "a"), WORK, ("human", "Great. Now add a login page please"), WORK))
    assert extraction.episodes[0].start == 0
    assert extraction.episodes[-1].end == 4
    assert all(a.end == b.start for a, b in zip(extraction.episodes, extraction.episodes[1:], strict=False))


def test_a_correction_episode_runs_to_the_acceptance() -> None:
    extraction = signals.extract(
        build(
            ("human", "fix the parser"),
            WORK,
            ("human", "no, it still fails"),
            WORK,
            ("human", "still broken, same error"),
            WORK,
            ("human", "works now"),
        )
    )
    (fact,) = extraction.corrections
    assert (fact.step, fact.turns, fact.ended, fact.follow_up) == (2, 2, "accepted", 2)


def test_an_unaccepted_correction_is_ended_and_only_a_cut_log_is_censored() -> None:
    base = (("human", "fix it"), WORK, ("human", "no, it still fails"), WORK)
    (ended,) = signals.extract(build(*base)).corrections
    assert (ended.turns, ended.ended, ended.follow_up) == (None, "ended", 1)
    (cut,) = signals.extract(build(*base, ("human", "hm, what now?"))).corrections
    assert cut.ended == "censored"


def test_a_turn_that_accepts_and_corrects_does_not_accept() -> None:
    parts = (
        ("human", "fix"),
        WORK,
        ("human", "no, it still fails"),
        WORK,
        ("human", "works now but it still shows an error"),
        WORK,
    )
    (fact,) = signals.extract(build(*parts)).corrections
    assert fact.turns is None


def test_the_same_request_again_is_a_retry_and_short_orders_are_not() -> None:
    ask = "list all open invoices of the last quarter"
    extraction = signals.extract(
        build(("human", ask), WORK, ("human", ask + "!"), WORK, ("human", "go on"), WORK, ("human", "go on"))
    )
    assert [s.step for s in extraction.kept if s.kind == "retry_request"] == [2]


@pytest.mark.parametrize("name", ["transfer_to_human_agents", "escalate_ticket", "handoff_to_human"])
def test_handing_over_to_a_person_is_an_escalation(name: str) -> None:
    extraction = signals.extract(build(("simulated_user", "help me"), call(1, name, outcome="ok", text="ok")))
    assert ("escalation", 1) in kept(extraction)


def test_a_higher_tier_after_a_correction_is_an_escalation() -> None:
    low = Step(index=1, event_class="agent", text=WORK[1], model="claude-haiku-4-5")
    high = Step(index=3, event_class="agent", text=WORK[1], model="claude-opus-4-5")
    turns = (("human", "fix"), low, ("human", "no, it still fails"), high)
    assert ("escalation", 2) in kept(signals.extract(build(*turns)))
    assert behaviour.tier("claude-sonnet-4-5") == ("claude", 2)
    assert behaviour.tier("gpt-4o-mini") == ("gpt", 1)
    assert behaviour.tier("my-model") is None


def test_abandonment_needs_an_open_request_and_a_window_that_could_show_it() -> None:
    trace = build(("human", "fix"), ("agent", "Which file do you mean?"))
    unknown = [s for s in signals.extract(trace).signals if s.kind == "abandonment"]
    assert [s.dropped_by for s in unknown] == ["censored: the end of the observed window is not known"]
    later = SignalSettings(observed_until=60.0 + 25 * 3600)
    assert ("abandonment", 1) in kept(signals.extract(trace, later))
    soon = SignalSettings(observed_until=60.0 + 3600)
    assert ("abandonment", 1) not in kept(signals.extract(trace, soon))
    answered = build(("human", "fix"), WORK)
    assert not [s for s in signals.extract(answered, later).signals if s.kind == "abandonment"]
    closed = build(("human", "fix"), WORK, ("human", "works now, thanks"))
    assert not [s for s in signals.extract(closed, later).signals if s.kind == "abandonment"]


@pytest.mark.parametrize(
    ("item", "value"),
    [
        (True, 1.0),
        ("thumbs_down", 0.0),
        (4, 0.75),
        (-1, 0.0),
        (0.3, 0.3),
        ({"score": 7, "min": 0, "max": 10}, 0.7),
        ({"value": "up"}, 1.0),
        ("purple", None),
        (17, None),
        (None, None),
        ({"score": 1, "min": 5, "max": 5}, None),
    ],
)
def test_ratings_are_read_by_their_scale(item: Any, value: float | None) -> None:
    found = behaviour.rating(item)
    assert (None if found is None else found[0]) == (None if value is None else pytest.approx(value))


def test_recorded_feedback_becomes_a_signal() -> None:
    trace = build(("human", "fix"), WORK, extra={"feedback": "thumbs_up"})
    (signal,) = [s for s in signals.extract(trace).kept if s.kind == "explicit_feedback"]
    assert (signal.value, signal.judges_step) == (1.0, 1)
    rated = build(("human", "fix"), WORK, outcome=RecordedOutcome(status="failed", score=0.25, by="user"))
    assert [s.value for s in signals.extract(rated).kept if s.kind == "explicit_feedback"] == [0.25]


def test_recorded_task_facts_win_over_the_classifiers() -> None:
    plain = signals.extract(build(("human", "fix the crash in parser.py"), WORK))
    assert (plain.task_type, plain.task_type_by) == ("debugging", task_type.VERSION)
    assert plain.difficulty_by == difficulty.VERSION
    known = signals.extract(build(("human", "fix"), WORK, task=TaskRef(type="ops", difficulty="high")))
    assert (known.task_type, known.task_type_by) == ("ops", "recorded")
    assert (known.difficulty, known.difficulty_by) == ("high", "recorded")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Implement a REST endpoint for users in api.py", "coding"),
        ("I get TypeError: x is undefined when the page loads, fix it", "debugging"),
        ("commit and push, then open a pull request", "workflow"),
        ("load sales.csv into a dataframe and plot the rows", "data"),
        ("write a short poem about the sea", "writing"),
        ("I want to cancel my reservation and get a refund", "service"),
        ("what is the difference between a list and a tuple?", "conversation"),
        ("xyzzy", "unknown"),
        ("", "unknown"),
    ],
)
def test_task_types(text: str, expected: str) -> None:
    assert task_type.classify(text) == expected


def test_difficulty_reads_nothing_after_the_first_agent_step() -> None:
    long = "word " * 300 + " must only never a.py b.py error " + "\n- a\n- b\n- c"
    easy = build(("human", "rename x"), WORK, ("human", long))
    assert difficulty.classify(easy.steps) == "low"
    assert difficulty.classify(build(("human", long), WORK).steps) == "high"
    assert difficulty.classify(build(WORK).steps) == "unknown"


def test_frames_have_the_stored_schemas_even_when_empty() -> None:
    for extractions in (
        [],
        [signals.extract(build(("human", "go"), call(1, outcome="error", exit_code=1, text="error: x")))],
    ):
        frames = signals.frames(extractions)
        for table in (SIGNALS, CALLS, CORRECTIONS):
            assert frames[table.name].schema == table.schema()


def test_explanations_say_what_became_of_every_signal() -> None:
    trace = build(
        ("human", "fix"), WORK, ("human", "lgtm, thanks"), call(3, command="grep a b", outcome="error", exit_code=1)
    )
    extraction = signals.extract(trace)
    rows = signals.explain(extraction, trace)
    assert len(rows) == len(extraction.signals)
    assert {r.fate for r in rows} == {"kept", "dropped"}
    assert all(r.reason and r.why for r in rows)
    first = rows[0]
    assert first.left + first.quote + first.right == "lgtm, thanks"


def test_door_names_do_not_depend_on_what_was_imported_first() -> None:
    code = (
        "import seatrial.signals.extraction, seatrial.signals.explanation, seatrial.scoring.outcomes\n"
        "from seatrial import scoring, signals\n"
        "assert all(callable(getattr(signals, n)) for n in signals.__all__)\n"
        "assert callable(scoring.score) and callable(scoring.headline)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_room_loads_no_heavy_library() -> None:
    code = "import sys, seatrial.signals, seatrial.scoring; assert not {'numpy', 'polars', 're2'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\nValueError: no"])
@pytest.mark.parametrize("ids", [("a", "b", "c"), ("a", "a", "a"), (None, None, None), ("a", "a", "x")])
def test_every_row_has_a_key_of_its_own(text: str, ids: tuple[str | None, ...]) -> None:
    """Failing results of one step stay apart by what they are the results of, whatever their calls are named."""
    step = Step(
        index=1,
        event_class="agent",
        tool_calls=tuple(ToolCall(id=i or "", name="Bash", arguments={"command": "make"}) for i in ids[:2]),
        results=tuple(ToolResult(call_id=i, outcome="error", exit_code=2, text=text) for i in ids),
    )
    refused = Step(
        index=2,
        event_class="agent",
        tool_calls=(ToolCall(id="a", name="Bash"), ToolCall(id="a", name="Bash")),
        results=(ToolResult(call_id="a", outcome="rejected"), ToolResult(call_id="a", outcome="rejected")),
    )
    tables = signals.frames([signals.extract(build(("human", "build it"), step, refused, ("human", "no, wrong!")))])
    assert tables["signals"].filter(tables["signals"]["kind"] == "execution_error").height == 5
    for table in (SIGNALS, CALLS, CORRECTIONS):
        keys = tables[table.name].select(table.key)
        assert keys.is_duplicated().sum() == 0, keys.to_dicts()
