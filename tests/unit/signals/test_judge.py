"""The second opinion: asked only where the rules are unsure, and never able to break a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.signals import language
from seatrial.signals.judge import HIGH, LOW, with_judge
from seatrial.signals.language import Heard


class Fixed:
    """A judge that gives one answer and remembers what it was asked."""

    name, version = "fixed", "1"

    def __init__(self, answer: Mapping[str, float] | None) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def judge(self, turns: Sequence[Heard]) -> Sequence[Mapping[str, float] | None]:
        self.asked += [turn.text for turn in turns]
        return [self.answer] * len(turns)


DONE = "I updated the parser and all tests pass."
TURNS = [
    Heard("thanks, perfect, works now", DONE),
    Heard("hmm", DONE),
    Heard("what is this?", DONE),
]
UNSURE = [t.text for t in TURNS if any(LOW <= v.confidence < HIGH for v in language.judge(t.text, t.before))]


def test_only_uncertain_turns_are_asked_about_and_the_answer_decides() -> None:
    judge = Fixed({"correction": 0.97})
    found = with_judge(TURNS, judge)
    assert UNSURE
    assert judge.asked == UNSURE
    assert found.asked == len(UNSURE)
    for turn, verdicts in zip(TURNS, found.verdicts, strict=True):
        if turn.text in UNSURE:
            assert [(v.kind, v.confidence, v.why) for v in verdicts] == [("correction", 0.97, "fixed 1")]
            assert 0 <= verdicts[0].start < verdicts[0].end <= len(turn.text)
        else:
            assert verdicts == language.judge(turn.text, turn.before)


def test_an_answer_that_cannot_be_used_changes_nothing() -> None:
    alone = [language.judge(t.text, t.before) for t in TURNS]
    for answer in (None, {"nonsense": 1.0}, {"praise": 7.0}, {"praise": float("nan")}):
        found = with_judge(TURNS, Fixed(answer))
        assert found.verdicts == alone
        assert found.unusable == len(UNSURE)


def test_a_judge_that_answers_too_little_changes_nothing() -> None:
    class Short(Fixed):
        def judge(self, turns: Sequence[Heard]) -> Sequence[Mapping[str, float] | None]:
            return []

    found = with_judge(TURNS, Short(None))
    assert found.verdicts == [language.judge(t.text, t.before) for t in TURNS]
    assert found.unusable == found.asked == len(UNSURE)
