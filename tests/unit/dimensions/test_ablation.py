"""Ablation replay joined with data flow, in a world whose truth is known by hand (METHODS 5, D2)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.ablation import SPENT, ablate
from seatrial.dimensions.actions import actions_of
from seatrial.dimensions.intent import intent_of
from seatrial.records import Evidence

_spec = importlib.util.spec_from_file_location("shelf", Path(__file__).resolve().parents[2] / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)


def put(key: str, value: str) -> Any:
    return ("put", {"key": key, "value": value})


def add(key: str, value: str) -> Any:
    return ("add", {"key": key, "value": value})


def remove(key: str) -> Any:
    return ("remove", {"key": key})


def read(key: str) -> Any:
    return ("read", {"key": key})


NAMES: Any = ("names", {})


def relevant(run: Evidence, **options: Any) -> list[bool | None]:
    found = ablate(run, actions_of(run.trace), intent_of(run.task), **options)  # type: ignore[arg-type]
    assert found.refusal is None
    return [found.said[p].relevant for p in sorted(found.said)]


def asked_for(calls: list[Any], *, status: Any = "passed", answer: str = "done", **items: str) -> Evidence:
    found: Evidence = shelf.run(
        calls, answer=answer, intent=shelf.wants(**items), required=shelf.holding(**items), status=status
    )
    return found


def test_what_was_asked_is_relevant_and_what_was_not_is_extraneous() -> None:
    run = asked_for([put("lamp", "on"), put("litter", "left behind")], lamp="on")
    assert relevant(run) == [True, False]


def test_of_a_redundant_pair_the_later_one_is_extraneous() -> None:
    assert relevant(asked_for([put("lamp", "on"), put("lamp", "on")], lamp="on")) == [True, False]


def test_a_value_that_was_overwritten_is_extraneous() -> None:
    assert relevant(asked_for([put("lamp", "off"), put("lamp", "on")], lamp="on")) == [False, True]


def test_of_two_that_would_each_do_the_earlier_one_stays() -> None:
    calls = [put("lamp", "on"), put("lamp", "off"), put("lamp", "on")]
    assert relevant(asked_for(calls, lamp="on")) == [True, False, False]


def test_two_that_balance_each_other_in_different_places() -> None:
    """Without either the number of things is odd, without both it is not: only a group shows it."""

    def required(state: Any) -> tuple[bool, ...]:
        return state["items"].get("lamp") == "on", len(state["items"]) % 2 == 1

    intent = shelf.wants(lamp="on", parity="", a="", b="")
    intent["required"] = intent["required"][:2]
    run = shelf.run([put("a", "1"), put("b", "2"), put("lamp", "on")], intent=intent, required=required)
    assert relevant(run) == [False, False, True]


def test_a_read_that_never_says_the_same_twice_says_nothing_about_a_write() -> None:
    class Moody(type(shelf.world())):  # type: ignore[misc]
        def call(self, call: Any) -> Any:
            result = super().call(call)
            return msgspec.structs.replace(result, text=f"mood {self._calls}") if call.name == "names" else result

    run = shelf.run([NAMES, put("lamp", "on")], intent=shelf.wants(lamp="on"), required=shelf.holding(lamp="on"),
                    recorded=shelf.world(kind=Moody), made=lambda: shelf.world(kind=Moody))  # fmt: skip
    assert relevant(run) == [False, True]


def test_two_writes_that_cancel_each_other_are_both_extraneous_though_each_needs_the_other() -> None:
    calls = [put("lamp", "on"), put("scratch", "x"), put("desk", "tidy"), remove("scratch")]
    assert relevant(asked_for(calls, lamp="on", desk="tidy")) == [True, False, True, False]


def test_three_writes_that_cancel_one_another_around_a_relevant_one() -> None:
    calls = [put("scratch", "x"), put("lamp", "on"), add("scratch", "y"), remove("scratch")]
    assert relevant(asked_for(calls, lamp="on")) == [False, True, False, False]


def test_a_write_that_a_later_relevant_one_cannot_do_without() -> None:
    run = asked_for([put("lamp", "o"), add("lamp", "n")], lamp="on")
    found = ablate(run, actions_of(run.trace), intent_of(run.task))  # type: ignore[arg-type]
    assert found.said[0].relevant is True
    assert "add at step 2 no longer works" in found.said[0].why
    assert "further from the intended" in found.said[1].why


def test_a_read_that_feeds_a_write_is_relevant_and_one_that_feeds_nothing_is_not() -> None:
    calls = [NAMES, read("old"), read("source"), put("lamp", "amber-17")]
    # `names` shows what the write changes (the list grows by the lamp): a look before the change.
    assert relevant(asked_for(calls, lamp="amber-17")) == [True, False, True, True]
    assert relevant(asked_for([read("old"), put("lamp", "on")], lamp="on")) == [False, True]


def test_the_same_read_again_is_extraneous() -> None:
    calls = [read("source"), read("source"), put("lamp", "amber-17")]
    assert relevant(asked_for(calls, lamp="amber-17")) == [True, False, True]


def test_a_read_that_feeds_the_answer_or_a_relevant_read() -> None:
    state = {"items": {"where": "look in box-9", "box-9": "it is 48000"}, "clock": 0}
    run = shelf.run([read("where"), read("box-9")], answer="It is 48000.", state=state)
    assert relevant(run) == [True, True]
    run = shelf.run([read("where"), read("box-9")], answer="I do not know.", state=state)
    assert relevant(run) == [False, False]


def test_a_value_that_the_request_named_or_the_agent_itself_said_was_not_learned() -> None:
    state = {"items": {"a-note": "ship to Utrecht-9"}, "clock": 0}
    calls = [put("b-note", "Utrecht-9"), read("a-note")]
    run = shelf.run(calls, asked="do it", answer="Shipped to Utrecht-9", state=state)
    assert relevant(run)[1] is False


def test_a_look_around_that_a_directed_look_repeats_before_the_use_is_not_needed() -> None:
    state = {"items": {"list": "amber-17 and more", "source": "amber-17"}, "clock": 0}
    calls = [read("list"), read("source"), put("lamp", "amber-17")]
    run = shelf.run(calls, state=state, asked="put the source there")
    assert relevant(run) == [False, True, True]
    run = shelf.run([read("list"), put("lamp", "amber-17")], state=state, asked="put the source there")
    assert relevant(run) == [True, True]


def test_a_single_word_must_be_repeated_as_it_was_written() -> None:
    state = {"items": {"subject": "Newsletter"}, "clock": 0}
    assert relevant(shelf.run([read("subject")], state=state, answer="It is a newsletter.")) == [False]
    assert relevant(shelf.run([read("subject")], state=state, answer="It says Newsletter.")) == [True]


def test_a_look_before_a_change_and_a_check_after_it() -> None:
    calls = [read("lamp"), put("lamp", "on"), read("lamp"), read("lamp")]
    state = {"items": {"lamp": "off"}, "clock": 0}
    run = shelf.run(
        calls, state=state, intent=shelf.wants(lamp="on"), required=shelf.holding(lamp="on"), asked="switch it on"
    )
    assert relevant(run) == [True, True, True, False]


def test_a_look_that_the_task_expects_and_nothing_else_makes_relevant_is_the_last_of_its_tool() -> None:
    run = shelf.run([read("old"), NAMES, read("source"), NAMES], answer="No.", intent=shelf.wants(lamp="on"),
                    required=shelf.holding(lamp="on"), status="failed")  # fmt: skip
    assert relevant(run) == [False] * 4
    task = msgspec.structs.replace(run.task, expected_tools=["read", "names", "put"])
    assert relevant(msgspec.structs.replace(run, task=task)) == [False, True, True, False]


def test_a_write_that_a_relevant_read_depends_on() -> None:
    """The write is outside the intent, and the answer rests on what is read of it."""
    calls = [put("tmp", "sum is 4711"), read("tmp")]
    run = shelf.run(calls, answer="4711", intent=shelf.wants(lamp="on"), required=lambda s: (), asked="the sum?")
    # The agent wrote that value itself: reading it back teaches nothing.
    assert relevant(run) == [False, False]
    drawn = [("lucky", {"key": "tmp"}), read("tmp")]
    value = shelf.run(drawn).trace.steps[2].results[0].text
    run = shelf.run(drawn, answer=value, intent=shelf.wants(lamp="on"), required=lambda s: (), asked="draw")
    assert relevant(run) == [True, True]


def test_a_write_without_which_a_relevant_read_says_something_else() -> None:
    """Reading works without it, and no longer holds what the answer says."""
    calls = [("lucky", {"key": "old"}), read("old")]
    value = shelf.run(calls).trace.steps[2].results[0].text
    run = shelf.run(calls, answer=value, intent=shelf.wants(lamp="on"), required=lambda s: (), asked="draw")
    assert relevant(run) == [True, True]


def test_why_litter_is_extraneous_is_told() -> None:
    run = asked_for([put("lamp", "on"), put("litter", "left")], lamp="on")
    found = ablate(run, actions_of(run.trace), intent_of(run.task))  # type: ignore[arg-type]
    assert "1 fewer leaves lie outside the intent" in found.said[1].why


def test_luck_does_not_move_when_an_earlier_draw_is_left_out() -> None:
    """Draws are keyed by the number of the call: the second draw stays what it was without the first."""
    drawn = [("lucky", {"key": "first"}), ("lucky", {"key": "lamp"})]
    value = shelf.run(drawn).trace.extra["final"]["items"]["lamp"]
    assert relevant(asked_for(drawn, lamp=value)) == [False, True]


def test_a_wrong_value_and_a_wrong_object_are_outside_the_intent() -> None:
    intent = shelf.wants(lamp="on")
    intent["allowed"][0]["arguments"] = [{"path": "value", "op": "eq", "value": "on"}]
    run = shelf.run([put("lamp", "half")], intent=intent, required=shelf.holding(lamp="on"), status="failed")
    assert relevant(run) == [False]
    run = shelf.run([put("desk", "on")], intent=intent, required=shelf.holding(lamp="on"), status="failed")
    assert relevant(run) == [False]


def test_an_allowed_tool_with_other_arguments_is_outside_the_intent_however_near_it_comes() -> None:
    intent = shelf.wants(lamp="on")
    intent["allowed"][0]["arguments"] = [{"path": "value", "op": "eq", "value": "on"}]

    def there(state: Any) -> tuple[bool, ...]:
        return ("lamp" in state["items"],)

    assert relevant(shelf.run([put("lamp", "half")], intent=intent, required=there)) == [False]
    assert relevant(shelf.run([put("lamp", "on")], intent=intent, required=there)) == [True]


def test_the_fields_of_one_object_count_once() -> None:
    """A thing was added, but not the one that was wanted: it is no nearer than none, though their number is right."""
    intent = {
        "allowed": [{"tool": "put", "arguments": [], "paths": ["items"]}],
        "required": [{"path": "items", "op": "length", "value": 3}, {"path": "items.*", "op": "eq", "value": "40"}],
    }

    def required(state: Any) -> tuple[bool, ...]:
        return len(state["items"]) == 3, "40" in state["items"].values()

    assert relevant(shelf.run([put("refund", "20")], intent=intent, required=required, status="failed")) == [False]
    assert relevant(shelf.run([put("refund", "40")], intent=intent, required=required)) == [True]


def test_a_failed_run_that_left_litter_keeps_what_was_right() -> None:
    run = asked_for([put("lamp", "on"), put("a", "1"), put("b", "2")], lamp="on", desk="tidy", status="failed")
    assert relevant(run) == [True, False, False]


def test_without_an_intended_state_only_a_passed_run_is_its_own_reference() -> None:
    calls = [put("lamp", "on"), put("lamp", "on"), put("x", "1"), remove("x")]
    assert relevant(shelf.run(calls)) == [True, False, False, False]
    run = shelf.run(calls, status="failed")
    found = ablate(run, actions_of(run.trace), None)  # type: ignore[arg-type]
    assert found.refusal is not None
    assert "did not pass" in found.refusal


def test_free_text_is_no_intended_state() -> None:
    run = shelf.run([put("lamp", "on")], intent={"text": "switch it on"}, status="failed")
    found = ablate(run, actions_of(run.trace), intent_of(run.task))  # type: ignore[arg-type]
    assert found.refusal is not None


def test_a_run_that_does_not_replay_is_not_ablated() -> None:
    run = shelf.run([("lucky", {"key": "lamp"})], made=lambda: shelf.world(seed=8))
    found = ablate(run, actions_of(run.trace), None)  # type: ignore[arg-type]
    assert found.refusal is not None
    assert "does not replay" in found.refusal


def test_the_cost_is_what_the_world_carried_out_and_far_below_full_replays() -> None:
    n = 30
    calls = [put(f"k{i}", "1") if i % 3 == 0 else read("old") for i in range(n)]
    run = asked_for(calls, **{f"k{i}": "1" for i in range(0, n, 6)})
    shelf.CountingWorld.executed = 0
    counted = Evidence(
        attempt=run.attempt, task=run.task, trace=run.trace, required=run.required,
        world=lambda: shelf.world(kind=shelf.CountingWorld),
    )  # fmt: skip
    found = ablate(counted, actions_of(run.trace), intent_of(run.task))  # type: ignore[arg-type]
    assert found.cost.calls == shelf.CountingWorld.executed
    assert found.cost.actions == n
    # One full replay for each action would be 30 x 29 calls.
    assert found.cost.calls < n * (n - 1) / 3
    assert [p for p, s in found.said.items() if s.relevant] == list(range(0, n, 6))


def test_reads_alone_cost_one_run_through() -> None:
    run = asked_for([read("old")] * 20, lamp="on", status="failed")
    found = ablate(run, actions_of(run.trace), intent_of(run.task))  # type: ignore[arg-type]
    assert found.cost.calls == 20
    assert found.cost.trials == 0


def test_a_budget_that_is_used_up_leaves_verdicts_open_and_never_guesses() -> None:
    calls = [put(f"k{i}", "1") for i in range(12)]
    run = asked_for(calls, **{f"k{i}": "1" for i in range(12)})
    found = ablate(run, actions_of(run.trace), intent_of(run.task), calls_per_action=1)  # type: ignore[arg-type]
    assert None in {s.relevant for s in found.said.values()}
    assert all(s.relevant is not False for s in found.said.values())
    assert SPENT in {s.why for s in found.said.values()}
    assert found.cost.calls <= 12 * 2 + 1


def test_volatile_fields_are_no_change() -> None:
    run = asked_for([("clock", {}), put("lamp", "on"), ("clock", {})], lamp="on")
    assert relevant(run) == [False, True, False]


@pytest.mark.parametrize("status", ["passed", "failed"])
def test_no_world_is_said(status: Any) -> None:
    run = asked_for([put("lamp", "on")], lamp="on", status=status)
    bare = Evidence(attempt=run.attempt, task=run.task, trace=run.trace)
    assert ablate(bare, actions_of(run.trace), None).refusal is not None  # type: ignore[arg-type]
