"""The overlap ladder: what is merged, what is dropped, and what is never done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from seatrial.causal import prepare
from seatrial.causal.strata import base_strata, components, difficulty_order, ladder, manski
from seatrial.causal.uncertainty import net_coefficients

Rows = list[tuple[str, str, str, str, int]]


def _sample(rows: Rows, p: dict[tuple[str, str], float] | None = None) -> prepare.Sample:
    """(task_type, difficulty, epoch, arm, count) to a sample of sessions that are their own clusters."""
    out = []
    for kind, hard, epoch, arm, count in rows:
        for _ in range(count):
            out.append((f"s{len(out):05d}", arm, kind, hard, epoch, float(len(out) % 2)))
    frame = pl.DataFrame(out, schema=["session", "arm", "task_type", "difficulty", "epoch", "_y"], orient="row")
    if p is not None:
        chances = [p[(row[1], row[3])] for row in out]
        frame = frame.with_columns(pl.Series("probability", chances))
    return prepare.sample(prepare.complete(frame))


def test_full_strata_stay_as_they_are() -> None:
    found = ladder(_sample([("coding", d, "1", a, 12) for d in ("easy", "hard") for a in "xy"]))
    assert found.merges == ()
    assert len(found.labels) == 2
    assert found.retained == 1.0
    assert found.thin == 0


def test_a_thin_stratum_joins_an_adjacent_difficulty_not_a_far_one() -> None:
    rows = [("coding", d, "1", a, 20) for d in ("easy", "hard") for a in "xy"]
    rows += [("coding", "trivial", "1", "x", 3), ("coding", "trivial", "1", "y", 12)]
    found = ladder(_sample(rows))
    assert found.labels == ("coding / easy+trivial / 1", "coding / hard / 1")
    assert "adjacent difficulties" in found.merges[0]
    assert found.retained == 1.0


def test_epochs_merge_only_after_difficulties_and_task_types_never() -> None:
    rows = [("coding", "easy", e, a, 20) for e in ("1", "2") for a in "xy"]
    rows += [("coding", "easy", "3", "x", 4), ("coding", "easy", "3", "y", 4)]
    rows += [("workflow", "easy", "1", "x", 5)]
    found = ladder(_sample(rows))
    assert "coding / easy / 2+3" in found.labels
    assert "adjacent epochs" in found.merges[0]
    assert not any("coding" in label and "workflow" in label for label in found.labels)
    assert found.dropped[0].n == 5
    assert "fewer than two clusters of y" in found.dropped[0].why
    assert found.retained == pytest.approx(88 / 93)


def test_two_clusters_are_needed_however_many_sessions() -> None:
    frame = pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(80)],
            "arm": ["x", "y"] * 40,
            "user": [f"u{i % 8}" if i % 2 == 0 else "only" for i in range(80)],
            "task_type": ["coding"] * 80,
            "_y": [float(i % 3 == 0) for i in range(80)],
        }
    )
    found = ladder(prepare.sample(prepare.complete(frame)))
    assert found.retained == 0.0
    assert "fewer than two clusters of y" in found.dropped[0].why


def test_equal_probabilities_are_preferred_and_unequal_ones_ask_for_weights() -> None:
    rows = [("coding", d, "1", a, 20) for d in ("1", "3") for a in "xy"]
    rows += [("coding", "2", "1", "x", 4), ("coding", "2", "1", "y", 4)]
    same_as_3 = {(a, d): (0.5 if d == "1" else 0.8 if a == "x" else 0.2) for a in "xy" for d in "123"}
    found = ladder(_sample(rows, same_as_3))
    assert found.labels == ("coding / 1 / 1", "coding / 2+3 / 1")
    assert not found.weight_by_p
    forced = {k: (0.5 if k[1] == "2" else v) for k, v in same_as_3.items()} | {("x", "1"): 0.6, ("y", "1"): 0.4}
    assert ladder(_sample(rows, forced)).weight_by_p


def test_an_arm_that_is_absent_from_a_stratum_does_not_make_probabilities_differ() -> None:
    rows = [("coding", "1", "1", a, 20) for a in "xyz"] + [("coding", "2", "1", a, 4) for a in "xy"]
    found = ladder(_sample(rows, {(a, d): 1 / 3 for a in "xyz" for d in "12"}))
    assert found.labels == ("coding / 1+2 / 1",)
    assert not found.weight_by_p


def test_difficulties_have_an_order() -> None:
    assert sorted(["hard", "unknown", "easy", "medium", "zeta"], key=difficulty_order) == [
        "easy", "medium", "hard", "zeta", "unknown",
    ]  # fmt: skip
    assert sorted(["10", "9", "level 2"], key=difficulty_order) == ["level 2", "9", "10"]


def test_row_order_does_not_matter(table: Callable[..., pl.DataFrame]) -> None:
    frame = table(300).rename({"outcome": "_y"})
    one = ladder(prepare.sample(prepare.complete(frame)))
    two = ladder(prepare.sample(prepare.complete(frame.sample(fraction=1.0, shuffle=True, seed=3))))
    assert one.labels == two.labels
    assert (one.code == two.code).all()


def test_components_link_arms_through_shared_strata() -> None:
    base, arm = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([0, 1, 1, 2, 3, 4, 4])
    assert components(base, arm, 6) == [[0, 1, 2], [3, 4], [5]]


def test_manski_bounds_by_hand() -> None:
    """Arm y is absent from a stratum of half the weight: its mean there may be anything in [0, 1]."""
    sample = _sample([("a", "e", "1", "x", 10), ("a", "e", "1", "y", 10), ("b", "e", "1", "x", 20)])
    _, base = base_strata(sample)
    q = np.array([0.5, 0.5])
    bounds = manski(base, sample, net_coefficients(q))
    # x means .5 in both strata, y .5 in the first: tau_x = .5(.5) - .5(.5 W_1 + ? W_2), W = .5 each.
    assert bounds[0] == pytest.approx([0.25 - 0.5 * (0.25 + 0.5), 0.25 - 0.5 * 0.25])
    assert bounds[1] == pytest.approx([-bounds[0][1], -bounds[0][0]])
