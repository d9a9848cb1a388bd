"""Results on tape: recorded once, replayed by tool and arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import FormatError, InputError
from seatrial.examples.ticketdesk import DOMAIN
from seatrial.records import ToolCall, World, WorldStart
from seatrial.world import FixedText, Transcript, run_episode
from seatrial.world.cassette import CassetteWorld, RecordingWorld, Tape, load_tape


def work(world: Any, task: int = 0) -> Transcript:
    agent = DOMAIN.agents[0]
    return run_episode(world, agent.begin(world.tools, 1), FixedText(DOMAIN.tasks[task].input))


def record(task: int = 0) -> tuple[Tape, Transcript]:
    world = RecordingWorld(DOMAIN.build())
    world.reset(DOMAIN.start(1))
    transcript = work(world, task)
    return world.tape(), transcript


def words(transcript: Transcript) -> list[Any]:
    return [(s.text, s.tool_calls, [(r.text, r.outcome) for r in s.results]) for s in transcript.steps]


@pytest.mark.parametrize("task", range(0, 14, 3))
def test_a_replay_says_and_ends_as_the_recording(tmp_path: Path, task: int) -> None:
    tape, transcript = record(task)
    tape.save(tmp_path / "one.jsonl")
    loaded = load_tape(tmp_path / "one.jsonl")
    assert loaded == tape
    world = CassetteWorld(loaded)
    assert isinstance(world, World)
    world.reset(DOMAIN.start(1))
    again = work(world, task)
    assert words(again) == words(transcript)
    assert again.final_hash == transcript.final_hash
    assert world.missed == 0


def test_equal_calls_give_their_results_in_turn_and_the_order_of_keys_is_nothing() -> None:
    world = RecordingWorld(DOMAIN.build())
    world.reset(DOMAIN.start(1))
    close = {"id": "T-101", "resolution": "x"}
    first = world.call(ToolCall(id="a", name="close_ticket", arguments=close))
    second = world.call(ToolCall(id="b", name="close_ticket", arguments=close))
    replayed = CassetteWorld(world.tape())
    turned = dict(reversed(close.items()))
    said = [replayed.call(ToolCall(id=i, name="close_ticket", arguments=turned)) for i in "xyz"]
    assert [r.text for r in said] == [first.text, second.text, second.text]
    assert [r.call_id for r in said] == ["x", "y", "z"]


def test_what_is_not_on_the_tape_is_an_error_that_counts() -> None:
    tape, _ = record()
    world = CassetteWorld(tape)
    before = world.state_hash()
    result = world.call(ToolCall(id="c", name="read_ticket", arguments={"id": "T-999"}))
    assert (result.outcome, result.extra["refused"], world.missed) == ("error", "cassette", 1)
    assert world.state_hash() == before
    saved = world.snapshot()
    world.call(ToolCall(id="c", name="read_ticket", arguments={"id": "T-101"}))
    world.restore(saved)
    assert (world.state_hash(), world.missed) == (before, 1)


def test_another_start_or_a_damaged_tape_is_refused(tmp_path: Path) -> None:
    tape, _ = record()
    with pytest.raises(InputError, match="another state"):
        CassetteWorld(tape).reset(WorldStart(state={}))
    path = tmp_path / "t.jsonl"
    tape.save(path)
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(FormatError, match=r"t\.jsonl:4: not a tape"):
        load_tape(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_tape(tmp_path / "none")


def test_recording_can_be_restored() -> None:
    world = RecordingWorld(DOMAIN.build())
    world.reset(DOMAIN.start(1))
    world.call(ToolCall(id="a", name="read_ticket", arguments={"id": "T-101"}))
    saved = world.snapshot()
    world.call(ToolCall(id="b", name="close_ticket", arguments={"id": "T-101", "resolution": "x"}))
    world.restore(saved)
    assert (len(world.tape().entries), world.state_hash()) == (1, saved.state_hash)
