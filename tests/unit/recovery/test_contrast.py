"""Pairs to the four cells: replays, placebo, denominators, interaction, timing."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from seatrial.errors import EvidenceError
from seatrial.recovery.contrast import contrast, row
from seatrial.recovery.table import Row, from_rows
from seatrial.stats import bootstrap_interval, interaction, mcnemar_exact, zero_discordant


def rows(outcomes: dict[str, list[tuple[int, int]]], **more: object) -> list[Row]:
    """One row per task and replay."""
    cells = {"condition": "clean", "operation": "refresh", "delay": 1} | more
    return [
        Row(None, cells | {"task": task, "replay": k, "y0": y0, "y1": y1})
        for task, pairs in outcomes.items()
        for k, (y0, y1) in enumerate(pairs)
    ]


def test_replays_are_paired_every_one_with_every_one() -> None:
    given = {"a": [(0, 1), (1, 1), (0, 0)], "b": [(1, 0), (1, 1), (0, 1)]}
    (found,) = contrast(from_rows(rows(given))).rows
    rescue, harm, floor = [], [], []
    for pairs in given.values():
        none, some = [p[0] for p in pairs], [p[1] for p in pairs]
        rescue.append(np.mean([a == 0 and b == 1 for a, b in product(none, some)]))
        harm.append(np.mean([a == 1 and b == 0 for a, b in product(none, some)]))
        floor.append(np.mean([a == 0 and b == 1 for a, b in permutations(none, 2)]))
    assert found.rescue == pytest.approx(np.mean(rescue))
    assert found.harm == pytest.approx(np.mean(harm))
    assert found.placebo is not None
    assert found.placebo["floor"] == pytest.approx(np.mean(floor))
    assert found.placebo["source"] == "replays"
    assert found.placebo["rescue_excess"].value == pytest.approx(np.mean(rescue) - np.mean(floor))
    assert found.mcnemar is None
    assert (found.n, found.n_pairs) == (2, 6)


def test_placebo_pairs_count_either_way_round() -> None:
    given = rows({"a": [(0, 1)], "b": [(1, 1)]}) + rows({"a": [(0, 1)], "b": [(1, 1)]}, operation="none", placebo=True)
    found = contrast(from_rows(given)).rows[0]
    assert found.placebo is not None
    assert (found.placebo["floor"], found.placebo["source"]) == (0.25, "placebo pairs")


def test_without_noise_measured_it_says_so() -> None:
    found = contrast(from_rows(rows({"a": [(0, 1)], "b": [(1, 0)]})))
    assert any("no placebo" in w for w in found.warnings)
    assert found.rows[0].placebo is None


def test_binary_pairs_agree_with_the_statistics() -> None:
    outcomes = [(0, 1)] * 9 + [(1, 0)] * 3 + [(1, 1)] * 20 + [(0, 0)] * 8
    found = contrast(from_rows(rows({f"t{i:02d}": [p] for i, p in enumerate(outcomes)}))).rows[0]
    effect = np.array([b - a for a, b in outcomes], dtype=float)
    assert found.mcnemar == pytest.approx(mcnemar_exact(9, 3).p_value)
    # Without ties between replays a sign-flip test over tasks is the exact McNemar test.
    assert found.p_value == pytest.approx(found.mcnemar, abs=1e-12)
    reference = bootstrap_interval(effect)
    assert [found.effect.low, found.effect.high] == pytest.approx([reference.low, reference.high], abs=1 / 40)


def test_no_discordant_pair_keeps_a_width() -> None:
    found = contrast(from_rows(rows({f"t{i}": [(1, 1)] for i in range(30)}))).rows[0]
    assert (found.effect.low, found.effect.high) == pytest.approx(zero_discordant(30))
    assert found.harm_upper == pytest.approx(1 - 0.05 ** (1 / 30))


def test_terminated_tasks_are_carried_forward_and_left_out() -> None:
    given = rows({f"t{i}": [(0, 1)] for i in range(3)}) + rows({"u": [(1, 1)]}, terminated="true")
    found = contrast(from_rows(given)).rows[0]
    assert (found.n, found.n_terminated, found.effect.value) == (4, 1, 0.75)
    assert found.without_terminated is not None
    assert (found.without_terminated.n, found.without_terminated.value) == (3, 1.0)


def test_interaction_and_timing_are_paired_by_task() -> None:
    clean = {"a": [(1, 0)], "b": [(1, 1)], "c": [(0, 0)], "d": [(1, 1)]}
    stale = {"a": [(0, 1)], "b": [(0, 1)], "c": [(0, 0)], "d": [(1, 0)]}
    later = {"a": [(0, 0)], "b": [(0, 1)], "c": [(0, 0)], "d": [(1, 1)]}
    found = contrast(from_rows(
        rows(clean) + rows(stale, condition="stale-2") + rows(later, condition="stale-2", delay=4)
    ))  # fmt: skip
    (one,) = found.interactions
    reference = interaction([1, 1, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 0, 0])
    assert reference is not None
    assert one.difference.value == pytest.approx(reference.value)
    (step,) = found.timing
    assert (step.since, step.delay) == (1, 4)
    assert step.difference.value == pytest.approx(0.0)
    assert row(found, "stale-2", "refresh", 4).effect.value == pytest.approx(0.25)
    with pytest.raises(EvidenceError):
        row(found, "missing", "refresh", 1)


def test_incomplete_cohorts_and_impossible_rescues_are_told() -> None:
    given = rows({"a": [(1, 0)], "b": [(1, 1)]}, cohort="won") + rows(
        {"a": [(0, 1)]}, condition="stale-1", cohort="won"
    )
    found = contrast(from_rows(given))
    assert any("rescue is impossible" in w for w in found.warnings)
    assert any("1 of 2" in w for w in found.warnings)


def test_placebos_alone_are_no_contrast() -> None:
    with pytest.raises(EvidenceError):
        contrast(from_rows(rows({"a": [(0, 1)]}, operation="none")))
