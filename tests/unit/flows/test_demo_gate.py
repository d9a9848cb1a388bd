"""The demo's gate chapter: an unchanged agent passes, a broken one is caught, and the report shows where they part."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.examples import reception
from seatrial.flows import demo_gate
from seatrial.flows.demo_result import GateDemo
from seatrial.records import UserMessage


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> GateDemo:
    return demo_gate.run(tmp_path_factory.mktemp("gate") / "store", seed=7)


def test_an_unchanged_agent_passes(found: GateDemo) -> None:
    assert found.unchanged.verdict == "PASS"
    assert found.unchanged.changed == ()
    assert found.unchanged.margin == 0.02
    assert found.unchanged.regressed_tasks == ()


def test_a_lost_description_is_caught_by_what_the_agent_does(found: GateDemo) -> None:
    assert found.broken.verdict == "REGRESSION"
    assert found.broken.changed == ("tools",)
    worse = {task.task for task in found.broken.regressed_tasks}
    about = {task.id for task in reception.tasks() if task.expected_tools == [demo_gate.LOST]}
    assert worse
    assert worse <= about
    passed = found.broken.metrics[0]
    assert (passed.metric, passed.baseline) == ("passed", 1.0)
    assert passed.candidate is not None
    assert passed.candidate < 0.9


def test_the_section_shows_both_verdicts_and_the_first_divergence(found: GateDemo) -> None:
    section = demo_gate.section(found)
    assert section.place == "end"
    assert [row[:3] for row in section.tables[0].rows] == [
        ("unchanged", "PASS", "nothing"),
        ("broken", "REGRESSION", "tools"),
    ]
    (difference,) = section.parts
    assert difference.paragraphs[0].startswith("First divergence: ")
    rows = difference.tables[0].rows
    assert sum((change or "").startswith("▶") for change, _, _ in rows) == 1
    assert any("cancel(" in (before or "") for _, before, _ in rows)
    assert not any("cancel(" in (after or "") for _, _, after in rows)


def test_an_undecided_broken_agent_is_not_called_caught(found: GateDemo) -> None:
    undecided = msgspec.structs.replace(found.broken, verdict="INCONCLUSIVE", regressed_tasks=())
    section = demo_gate.section(msgspec.structs.replace(found, broken=undecided))
    assert section.parts == ()
    assert section.paragraphs[2].startswith("Broken: INCONCLUSIVE.")
    assert "stops the change" not in " ".join(section.paragraphs)


@pytest.mark.parametrize("seed", range(5))
def test_with_every_description_luck_decides_nothing(seed: int) -> None:
    tools = reception.desk(reception.DESCRIPTIONS)(0).tools
    for task in reception.tasks():
        turn = reception.AGENT.begin(tools, seed).send(UserMessage(text=str(task.input)))
        assert [call.name for call in turn.calls] == task.expected_tools
