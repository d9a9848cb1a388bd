"""Features are finite, mean what they say, and know nothing of what comes after the decision."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.records import Exchange
from seatrial.recovery.features import NAMES, exchange, features

WORDS = st.sampled_from(
    ["go to desk 1", "go to desk 2", "take mug 1", "look", "", "Nothing happens.", "On the desk 1."]
)
EXCHANGES = st.lists(st.builds(exchange, WORDS, WORDS, WORDS, failed=st.booleans()), max_size=8)


@given(EXCHANGES, EXCHANGES, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_nothing_after_the_decision_changes_a_feature(
    before: list[Exchange], after: list[Exchange], draws: object
) -> None:
    """The features of a moment in a run, whatever follows and however it is permuted."""
    import random

    assert isinstance(draws, random.Random)
    run = before + after
    at = len(before)
    known = features(run[:at], max_actions=20)
    shuffled = list(after)
    draws.shuffle(shuffled)
    run[at:] = shuffled
    assert features(run[:at], max_actions=20) == known
    assert set(known) == set(NAMES)
    assert all(math.isfinite(v) for v in known.values())


def of(*said: tuple[str, str]) -> dict[str, float]:
    return features([exchange(action, text) for action, text in said], max_actions=10)


def test_each_feature_moves_with_what_it_names() -> None:
    fine = of(("go to desk 1", "You arrive at desk 1."), ("go to bed 2", "You arrive at bed 2."))
    again = of(("go to desk 1", "You arrive at desk 1."), ("go to desk 1", "You arrive at desk 1."))
    stale = of(("go to desk 1", "You arrive at desk 1."), ("go to bed 2", "You arrive at desk 1."))
    assert (fine["action_repeated"], again["action_repeated"]) == (0.0, 1.0)
    assert (fine["noop_run"], again["noop_run"]) == (0.0, 1.0)
    assert (fine["progress"], again["progress"]) == (1.0, 0.5)
    assert (fine["observation_seen"], stale["observation_seen"]) == (0.0, 1.0)
    assert stale["consistency"] < fine["consistency"]
    assert stale["consistency_drop"] > fine["consistency_drop"]
    assert (fine["novelty"] > 0.0, stale["novelty"]) == (True, 0.0)
    assert fine["budget_left"] == 0.8
    failed = features([exchange("open desk 1", "Nothing happens.", failed=True)], max_actions=10)
    assert failed["noop_share"] == 1.0
    thinking = [exchange("a", "b", "I look in desk 1"), exchange("c", "d", "I look in desk 1")]
    assert features(thinking, max_actions=10)["reasoning_overlap"] == 1.0
    long = features([exchange("a", "x" * 3_000)], max_actions=10, max_context=4_000)
    assert 0.7 < long["context_used"] < 0.8


def test_an_empty_history_has_features() -> None:
    empty = features([], max_actions=10)
    assert empty.pop("budget_left") == 1.0
    assert set(empty.values()) == {0.0}
