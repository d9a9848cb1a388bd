"""What holds for every scorecard, whatever the runs."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.dimensions.audit import Audit
from seatrial.dimensions.card import Gathered, correlations, of_gathered
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.gates import Gates
from seatrial.dimensions.repair import Repair
from seatrial.dimensions.reproducibility import Reproducibility
from seatrial.flows.scorecard import plain
from seatrial.records import STATUSES, Attempt, Evidence, Scorecard

DIMENSIONS = (Completion(), Reproducibility(), Repair(), Gates(), Audit())
runs = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(STATUSES),
        st.none() | st.floats(0, 1),
        st.dictionaries(st.sampled_from(["repair_minutes", "repair_r_max", "irreversible"]),
                        st.sampled_from([0, 5, 60, "x", True])),
    ),
    min_size=1, max_size=24,
)  # fmt: skip


def evidence(drawn: list[tuple[str, str, float | None, dict[str, object]]]) -> list[Evidence]:
    return [
        Evidence(attempt=Attempt(task=task, trial=n, status=status, score=score, extra=extra))  # type: ignore[arg-type]
        for n, (task, status, score, extra) in enumerate(drawn)
    ]


def card(made: list[Evidence]) -> Scorecard:
    gathered = Gathered(DIMENSIONS)
    for run in made:
        gathered.add(run)
    return of_gathered(gathered, agent="a")


@settings(max_examples=150, deadline=None)
@given(runs)
def test_values_lie_in_range_and_no_attempt_is_lost(
    drawn: list[tuple[str, str, float | None, dict[str, object]]],
) -> None:
    found = card(evidence(drawn))
    n = found.counts
    assert n.n_planned == len(drawn) == n.n_scored + sum(n.excluded.values())
    assert len(found.causes) == sum(v for k, v in found.statuses.items() if k in ("failed", "error_agent", "timeout"))
    for result in found.dimensions.values():
        e = result.estimate
        if e is None:
            assert result.why
        else:
            assert 0.0 <= e.value <= 1.0
            if e.low is not None and e.high is not None:
                assert 0.0 <= e.low <= e.value + 1e-12
                assert e.value - 1e-12 <= e.high <= 1.0
    assert msgspec.json.encode(plain(found))


@settings(max_examples=60, deadline=None)
@given(runs, st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(
    drawn: list[tuple[str, str, float | None, dict[str, object]]], draws: random.Random
) -> None:
    made = evidence(drawn)
    mixed = list(made)
    draws.shuffle(mixed)
    one, two = card(made), card(mixed)
    for name, a in one.dimensions.items():
        b = two.dimensions[name]
        assert (a.estimate is None) == (b.estimate is None)
        if a.estimate is not None and b.estimate is not None:
            assert abs(a.estimate.value - b.estimate.value) < 1e-9
    assert one.attempts_before_success == two.attempts_before_success
    assert one.cause_counts == two.cause_counts


@settings(max_examples=60, deadline=None)
@given(runs)
def test_correlations_lie_between_minus_one_and_one(
    drawn: list[tuple[str, str, float | None, dict[str, object]]],
) -> None:
    found = correlations([card(evidence(drawn)).dimensions])
    assert all(v is None or -1 - 1e-9 <= v <= 1 + 1e-9 for v in found.values())
