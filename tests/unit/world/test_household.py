"""What an ALFWorld game says, read; and agents that act on what they read, right or wrong."""

from __future__ import annotations

import pytest

from seatrial.records import AgentTurn, AgentUnderTest, ToolResult, UserMessage
from seatrial.world.household import AGENTS, Goal, HouseholdAgent, Percept, Traits, goal_of, percepts

OPENING = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    "cabinet 2, a cabinet 1, a desk 1, a fridge 1, and a sinkbasin 1.\n\nYour task is to: put {}."
)


@pytest.mark.parametrize(
    ("task", "goal"),
    [
        ("put two soapbar in garbagecan", Goal("soapbar", "garbagecan", None, 2)),
        ("find two toiletpaper and put them in cabinet", Goal("toiletpaper", "cabinet", None, 2)),
        ("put some watch on safe", Goal("watch", "safe")),
        ("put a vase in safe", Goal("vase", "safe")),
        ("clean some spatula and put it in drawer", Goal("spatula", "drawer", "clean")),
        ("put a clean spatula in drawer", Goal("spatula", "drawer", "clean")),
        ("cool some potato and put it in microwave", Goal("potato", "microwave", "cool")),
        ("put a cool tomato in microwave", Goal("tomato", "microwave", "cool")),
        ("heat some tomato and put it in garbagecan", Goal("tomato", "garbagecan", "hot")),
        ("put a hot tomato in garbagecan", Goal("tomato", "garbagecan", "hot")),
        ("examine the pencil with the desklamp", Goal("pencil", "desklamp", "light")),
        ("look at pencil under the desklamp", Goal("pencil", "desklamp", "light")),
    ],
)
def test_every_form_of_task(task: str, goal: Goal) -> None:
    assert goal_of(f"You are in a room.\n\nYour task is to: {task}.") == goal


def test_what_the_game_says() -> None:
    said = {
        "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.": Percept(
            place="desk 1", here=True, things=("mug 1", "pen 2")
        ),
        "You arrive at cabinet 2. The cabinet 2 is closed.": Percept(place="cabinet 2", here=True, closed=True),
        "You open the cabinet 2. The cabinet 2 is open. In it, you see nothing.": Percept(
            place="cabinet 2", here=True, closed=False, things=()
        ),
        "You close the cabinet 2.": Percept(place="cabinet 2", here=True, closed=True),
        "You pick up the mug 1 from the desk 1.": Percept(place="desk 1", here=True, hand="mug 1"),
        "You move the mug 1 to the cabinet 2.": Percept(place="cabinet 2", here=True, hand="", put="mug 1"),
        "You heat the mug 1 using the microwave 1.": Percept(
            place="microwave 1", here=True, hand="mug 1", treated="mug 1"
        ),
        "You are carrying: a mug 1.": Percept(hand="mug 1"),
        "You are not carrying anything.": Percept(hand=""),
        "Nothing happens.": Percept(nothing_happened=True),
        "Observation unavailable.": Percept(unread=True),
        "Think again about the task and make a new plan.": Percept(unread=True, think=True),
    }
    for text, percept in said.items():
        assert percepts(text) == [percept], text
    assert percepts("> examine desk 1\n\nYour task is to: put some mug on desk.") == []
    assert percepts(OPENING)[0].places == ("cabinet 2", "cabinet 1", "desk 1", "fridge 1", "sinkbasin 1")
    both = percepts("Nothing happens.\n> examine desk 1\nOn the desk 1, you see a mug 1.")
    assert [p.nothing_happened for p in both] == [True, False]
    assert goal_of("Your task is to: dance.") is None


def play(agent: HouseholdAgent, task: str, *answers: str) -> list[str]:
    """The commands of an agent that is told these answers."""
    session = agent.begin((), 1)
    turn = session.send(UserMessage(text=OPENING.format(task)))
    said = [command(turn)]
    for n, answer in enumerate(answers):
        turn = session.send((ToolResult(call_id=f"act-{n + 1}", text=answer),))
        said.append(command(turn))
    return said


def command(turn: AgentTurn) -> str:
    return str(turn.calls[0].arguments["command"]) if turn.calls else "(stops)"


SIGHT, DEED = AGENTS["by-sight"], AGENTS["by-deed"]


def test_a_task_done() -> None:
    assert isinstance(SIGHT, AgentUnderTest)
    assert play(
        SIGHT,
        "a clean mug in cabinet",
        "You arrive at cabinet 2. The cabinet 2 is closed.",
        "You open the cabinet 2. The cabinet 2 is open. In it, you see nothing.",
        "You arrive at cabinet 1. On the cabinet 1, you see a pen 1, and a mug 1.",
        "You pick up the mug 1 from the cabinet 1.",
        "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.",
        "You clean the mug 1 using the sinkbasin 1.",
        "You arrive at cabinet 2. The cabinet 2 is open. In it, you see nothing.",
    ) == [
        "go to cabinet 2",
        "open cabinet 2",
        "go to cabinet 1",
        "take mug 1 from cabinet 1",
        "go to sinkbasin 1",
        "clean mug 1 with sinkbasin 1",
        "go to cabinet 2",
        "move mug 1 to cabinet 2",
    ]


def test_by_sight_is_misled_by_a_stale_text_and_put_right_by_another_look() -> None:
    """It went to cabinet 1 and reads of cabinet 2; it goes again, nothing happens, and cabinet 1 is left out."""
    first = "You arrive at cabinet 2. On the cabinet 2, you see nothing."
    misled = play(SIGHT, "some mug in fridge", first, first, "Nothing happens.")
    assert misled == ["go to cabinet 2", "go to cabinet 1", "go to cabinet 1", "go to desk 1"]
    looked = play(
        SIGHT, "some mug in fridge", first, first + "\n> examine cabinet 1\nOn the cabinet 1, you see a mug 1."
    )
    assert looked[-1] == "take mug 1 from cabinet 1"
    withheld = play(
        SIGHT, "some mug in fridge", first, first, "Nothing happens.\n> examine cabinet 1\n[content withheld]"
    )
    assert withheld[-1] == "go to cabinet 1"


def test_by_deed_takes_what_it_reads_for_what_lies_where_it_went() -> None:
    first = "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."
    misled = play(DEED, "some mug in cabinet", first, first)
    assert misled == ["go to sinkbasin 1", "go to fridge 1", "go to desk 1"]


def test_what_does_nothing_is_tried_again_and_then_let_go() -> None:
    nothing = ["Nothing happens."] * 3
    read = "You arrive at cabinet 2. On the cabinet 2, you see a mug 1."
    take = "take mug 1 from cabinet 2"
    said = play(SIGHT, "some mug in desk", read, *nothing, "You are not carrying anything.")
    assert said == ["go to cabinet 2", take, take, take, "inventory", "go to cabinet 1"]


def test_a_request_to_plan_anew_makes_it_search_again_what_it_has_forgotten() -> None:
    forgetful = HouseholdAgent("forgetful", Traits(memory=1))
    answers = [f"You arrive at {p}. On the {p}, you see nothing." for p in ("cabinet 2", "cabinet 1")]
    plan = "You arrive at desk 1. On the desk 1, you see nothing.\nThink again and make a new plan."
    assert play(forgetful, "some mug in fridge", *answers, plan)[-1] == "go to cabinet 2"
    assert play(SIGHT, "some mug in fridge", *answers, plan)[-1] == "go to fridge 1"


def test_a_copy_goes_its_own_way_and_draws_can_be_given() -> None:
    wanderer = HouseholdAgent("wanderer", Traits(wander=1.0))
    session = wanderer.begin((), 3)
    session.send(UserMessage(text=OPENING.format("some mug in fridge")))
    twin, other = session.copy(), session.copy()
    answer = (ToolResult(call_id="act-1", text="You arrive at desk 1. On the desk 1, you see nothing."),)
    assert session.send(answer) == twin.send(answer)
    ways = set()
    for seed in range(12):
        branch = other.copy()
        branch.reseed(seed)
        ways.add(command(branch.send(answer)))
    assert len(ways) > 1


def test_it_stops_where_there_is_nothing_to_do() -> None:
    session = SIGHT.begin((), 1)
    assert session.send(UserMessage(text="Hello.")).calls == ()
