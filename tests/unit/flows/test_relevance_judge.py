"""A judge of actions: the last source, and none without its stamp (METHODS 5, D2; 6.4)."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.fidelity import Fidelity
from seatrial.errors import EvidenceError, UsageError
from seatrial.flows.relevance_judge import RelevanceJudge, record
from seatrial.grading.judge import key
from seatrial.records.judge import Criterion, JudgeSpec, JudgeStamp, Reply

_spec = importlib.util.spec_from_file_location("shelf", Path(__file__).resolve().parents[2] / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)

JUDGE = JudgeSpec(
    name="actions", model="judge-1", criteria=(Criterion(id="relevant", statement="The action served the task."),)
)


def stamp(status: Any = "usable", of: JudgeSpec = JUDGE) -> JudgeStamp:
    return JudgeStamp(key=key(of), name=of.name, model=of.model, prompt_hash="", rubric_hash="",
                      criteria={"relevant": status}, made="2026-01-01")  # fmt: skip


def complete(messages: Any) -> Reply:
    """Calls relevant what puts the lamp."""
    said = messages[-1].content
    question = re.search(r"THE ACTION IN QUESTION \d+\. (.*?) ->", said)
    assert question is not None
    name = re.search(r'"id": "([0-9a-f]{16})"', said)
    assert name is not None
    met = "lamp" in question[1]
    answer = {"id": name[1], "verdicts": [{"criterion": "relevant", "met": met, "because": "so"}]}
    return Reply(text=json.dumps(answer))


RUN = shelf.run([("put", {"key": "lamp", "value": "on"}), ("put", {"key": "x", "value": "y"})], status="failed")


def test_a_usable_judge_decides_where_nobody_else_can() -> None:
    judge = RelevanceJudge(JUDGE, complete, stamp())
    judged = judge.of(RUN)
    assert [(j.relevant, j.source) for j in judged] == [(True, "judge"), (False, "judge")]
    assert judge.asked == 2
    value = Fidelity().measure(msgspec.structs.replace(RUN, judged=judged))
    assert value.value == 0.5
    assert [a.source for a in value.actions] == ["judge", "judge"]
    assert Fidelity().measure(RUN).value is None


@pytest.mark.parametrize("status", ["provisional", "refused", "fix the rubric"])
def test_any_other_judge_decides_nothing(status: str) -> None:
    with pytest.raises(EvidenceError, match="decides nothing"):
        RelevanceJudge(JUDGE, complete, stamp(status))
    other = msgspec.structs.replace(JUDGE, model="judge-2")
    with pytest.raises(EvidenceError, match="not of judge actions as it is now"):
        RelevanceJudge(other, complete, stamp())
    two = msgspec.structs.replace(JUDGE, criteria=(*JUDGE.criteria, Criterion(id="polite", statement="It was polite.")))
    with pytest.raises(UsageError, match="no judge of actions"):
        RelevanceJudge(two, complete, stamp(of=two))


def test_an_answer_that_cannot_be_read_leaves_the_action_open() -> None:
    judge = RelevanceJudge(JUDGE, lambda messages: Reply(text="yes"), stamp())
    assert [j.relevant for j in judge.of(RUN)] == [None, None]
    assert Fidelity().measure(msgspec.structs.replace(RUN, judged=judge.of(RUN))).value is None


def test_what_the_judge_reads_marks_one_action_and_shortens_results() -> None:
    from seatrial.dimensions.actions import actions_of

    long = shelf.run([("read", {"key": "k"})], state={"items": {"k": "z" * 5000}, "clock": 0})
    actions = actions_of(long.trace)
    text = record(actions, actions[0])
    assert text.startswith('THE ACTION IN QUESTION 1. read({"key":"k"}) -> zz')
    assert len(text) < 800
