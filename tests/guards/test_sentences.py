"""The demo's sentences were not taken from the detectors' word lists: few of them stand there as they are."""

from __future__ import annotations

import random
import re

from seatrial.examples.sentences import REGISTERS, SLOTS, built_in
from seatrial.signals import lexicon

MOST = 0.20


def _verbatim(sentences: list[str]) -> list[str]:
    """Sentences that one entry of the word lists matches from end to end, case and end punctuation aside."""
    entries = [lexicon.builtin().python_pattern(cue) for cue in lexicon.builtin().cue]
    plain = [(s, s.lower().strip(" .!?,;:")) for s in sentences]
    return [s for s, text in plain if any(entry.fullmatch(text) for entry in entries)]


def _spoken(categories: list[str]) -> list[str]:
    """Every sentence once, with plain words in its slots."""
    out = []
    for category in categories:
        required, optional = SLOTS[category]
        out += [re.sub(r"\{(\w+)\}", r"the \1", text) for text in built_in().all(category)]
        assert required | optional >= set(re.findall(r"\{(\w+)\}", " ".join(built_in().all(category))))
    return out


def test_at_most_a_fifth_of_the_verdicts_is_matched_verbatim() -> None:
    verdicts = _spoken([c for c in SLOTS if not c.startswith(("request.", "bridge"))])
    matched = _verbatim(verdicts)
    assert len(matched) <= MOST * len(verdicts), matched


def test_the_guard_sees_a_sentence_that_was_copied() -> None:
    """Words that the lists surely hold are found, so the guard can fail."""
    draws = random.Random(0)
    said = [built_in().say("confirmation", register, {}, draws) for register in REGISTERS]
    copied = ["Perfect!", "works now", "LGTM"]
    assert len(_verbatim([*said, *copied])) >= 2
