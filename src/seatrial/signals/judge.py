"""Uncertain turns to a second opinion: the seam where a language model, or any other judge, is heard (METHODS 1.2).

Nothing here calls a model. A caller hands in something with a name, a version and one method; its answers are data,
checked against the known kinds, and an answer that cannot be used leaves the verdict of the rules as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from seatrial.signals import language
from seatrial.signals.language import Heard, Verdict

LOW, HIGH = 0.3, 0.85
"""Confidences between which a verdict is uncertain and worth a question."""


class TurnJudge(Protocol):
    """Gives confidences for turns. `version` must change when its answers may."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def judge(self, turns: Sequence[Heard]) -> Sequence[Mapping[str, float] | None]:
        """For each turn the confidence in [0, 1] of each human kind that it shows; None: no answer."""


class SecondOpinion(NamedTuple):
    """Verdicts by turn, how many turns were asked about, and how many answers could not be used."""

    verdicts: list[list[Verdict]]
    asked: int
    unusable: int


def with_judge(turns: Sequence[Heard], judge: TurnJudge) -> SecondOpinion:
    """`language.judge` over many turns, where the judge decides the uncertain ones.

    A turn is uncertain if some verdict's confidence lies between `LOW` and `HIGH`. There the judge's confidences
    replace those of the rules; the evidence stays theirs, or the whole turn where they had none.
    """
    readings = language.read_many(turns)
    out = [language.verdicts(r, len(t.text)) for r, t in zip(readings, turns, strict=True)]
    unsure = [i for i, found in enumerate(out) if any(LOW <= v.confidence < HIGH for v in found)]
    if not unsure:
        return SecondOpinion(out, 0, 0)
    answers = list(judge.judge([turns[i] for i in unsure]))
    unusable = abs(len(unsure) - len(answers)) if len(answers) != len(unsure) else 0
    if unusable:
        return SecondOpinion(out, len(unsure), len(unsure))
    for i, answer in zip(unsure, answers, strict=True):
        if answer is None or not _usable(answer):
            unusable += 1
            continue
        places = {v.kind: (v.start, v.end) for v in out[i]}
        why = f"{judge.name} {judge.version}"
        kept = [v for v in out[i] if v.kind not in language.HUMAN_KINDS]
        out[i] = kept + [
            Verdict(kind, confidence, *places.get(kind, (0, min(len(turns[i].text), 120))), why)
            for kind in language.HUMAN_KINDS
            if (confidence := float(answer.get(kind, 0.0))) >= language.REPORT_FLOOR
        ]
    return SecondOpinion(out, len(unsure), unusable)


def _usable(answer: Mapping[str, float]) -> bool:
    return all(
        kind in language.HUMAN_KINDS and isinstance(value, int | float) and 0.0 <= value <= 1.0
        for kind, value in answer.items()
    )
