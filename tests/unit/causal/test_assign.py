"""The draw and its record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

from seatrial.causal import Assigner, sample
from seatrial.causal.assign import read_assignments, write_assignments
from seatrial.errors import InputError, SchemaError, UsageError

CHANCE = {"a": 0.5, "b": 0.25, "c": 0.25}


def test_blocks_balance_every_stratum() -> None:
    assigner = Assigner(CHANCE, key="k")
    for stratum in ("coding", "workflow"):
        arms = Counter(assigner.assign(f"{stratum}{i}", task_type=stratum, difficulty="easy").arm for i in range(40))
        assert arms == {"a": 20, "b": 10, "c": 10}


def test_blocks_are_permuted_and_depend_on_the_key() -> None:
    def draw(key: str) -> list[str]:
        assigner = Assigner({"a": 0.5, "b": 0.5}, key=key)
        return [assigner.assign(str(i)).arm for i in range(24)]

    assert draw("one") == draw("one")
    assert draw("one") != draw("two")
    assert len({tuple(draw(str(k))[:4]) for k in range(30)}) == 6


def test_hash_follows_any_probabilities_and_is_the_same_everywhere() -> None:
    chance = {"a": 0.123, "b": 0.877}
    one, two = Assigner(chance, key="k", method="hash"), Assigner(chance, key="k", method="hash")
    drawn = [one.assign(f"u{i}").arm for i in range(4000)]
    assert drawn == [two.assign(f"u{i}").arm for i in reversed(range(4000))][::-1]
    counts = Counter(drawn)
    assert chisquare([counts["a"], counts["b"]], [492, 3508]).pvalue > 0.001
    with pytest.raises(UsageError, match="no block"):
        Assigner(chance, key="k")


def test_a_unit_keeps_its_arm() -> None:
    assigner = Assigner(CHANCE, key="k")
    first = assigner.assign("user 7", task_type="coding")
    for i in range(50):
        assigner.assign(f"other {i}", task_type="coding")
    assert assigner.assign("user 7", task_type="workflow") == first


def test_the_record_is_on_disk_before_the_arm_is_known(tmp_path: Path) -> None:
    path = tmp_path / "assignments.csv"
    assigner = Assigner(CHANCE, key="k", record=path)
    drawn = assigner.assign("u1", task_type="coding", difficulty="hard", time=12.5)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "unit,arm,p_a,p_b,p_c,stratum,epoch,time",
        f"u1,{drawn.arm},0.5,0.25,0.25,coding/hard,1,12.5",
    ]
    assert read_assignments(path) == [drawn]


def test_a_record_that_cannot_be_written_draws_nothing(tmp_path: Path) -> None:
    assigner = Assigner(CHANCE, key="k", record=tmp_path / "absent" / "a.csv")
    with pytest.raises(InputError, match="cannot write"):
        assigner.assign("u1")
    assert assigner.records() == []


def test_a_restart_repeats_no_draw_and_keeps_the_balance(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    arms = []
    for part in range(4):
        assigner = Assigner(CHANCE, key="k", record=path)
        arms += [assigner.assign(f"u{i}", task_type="t").arm for i in range(part * 10, part * 10 + 10)]
    assert Counter(arms) == {"a": 20, "b": 10, "c": 10}
    again = Assigner(CHANCE, key="k", record=path)
    assert [again.assign(f"u{i}").arm for i in range(40)] == arms


def test_a_new_roster_needs_a_new_epoch(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    first = Assigner({"a": 0.5, "b": 0.5}, key="k", record=path)
    first.assign("u1", time=1.0)
    with pytest.raises(InputError, match="other probabilities"):
        Assigner(CHANCE, key="k", record=path)
    second = first.new_epoch("2", CHANCE)
    second.assign("u1", time=2.0)
    rows = read_assignments(path)
    assert [(r.epoch, sorted(r.probabilities)) for r in rows] == [("1", ["a", "b"]), ("2", ["a", "b", "c"])]
    with pytest.raises(UsageError, match="already used"):
        second.new_epoch("1", CHANCE)


@pytest.mark.parametrize(
    ("chance", "key"), [({"a": 1.0}, "k"), ({"a": 0.7, "b": 0.7}, "k"), ({"a": 1.0, "b": 0.0}, "k"), (CHANCE, "")]
)
def test_draws_that_mean_nothing_are_refused(chance: dict[str, float], key: str) -> None:
    with pytest.raises(UsageError):
        Assigner(chance, key=key)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("unit,arm,p_a,p_b\nu1,a,0.5,0.6\n", 2, "sum to 1.1"),
        ("unit,arm,p_a,p_b\nu1,c,0.5,0.5\n", 2, "one of the arms a, b"),
        ("unit,arm,p_a,p_b\nu1,a,x,0.5\n", 2, "not a number"),
        ("unit,arm,p_a,p_b\nu1,a,0.5,0.5\nu2,a,0,1\n", 3, "the arm's is 0"),
        ("arm,p_a,p_b\na,0.5,0.5\n", 1, "no column 'unit'"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says) as error:
        read_assignments(path)
    assert error.value.line == line


def test_write_and_read_are_inverse(tmp_path: Path) -> None:
    assigner = Assigner(CHANCE, key="k")
    for i in range(5):
        assigner.assign(f'odd "unit", {i}', time=i / 3)
    write_assignments(tmp_path / "a.csv", assigner.records())
    read = read_assignments(tmp_path / "a.csv")
    assert [r.unit for r in read] == [r.unit for r in assigner.records()]
    assert read == assigner.records()


def _pool() -> pl.DataFrame:
    kinds = ["easy"] * 700 + ["medium"] * 250 + ["hard"] * 50
    return pl.DataFrame({"session": [f"s{i:04d}" for i in range(1000)], "task_type": "coding", "difficulty": kinds})


def test_an_evaluation_set_covers_difficulties_evenly() -> None:
    drawn = sample(_pool(), 90, seed=1)
    assert Counter(drawn["difficulty"].to_list()) == {"easy": 30, "medium": 30, "hard": 30}
    chance = dict(drawn.select("difficulty", "inclusion_probability").unique().rows())
    assert chance == {"easy": pytest.approx(30 / 700), "medium": pytest.approx(30 / 250), "hard": pytest.approx(0.6)}


def test_a_small_stratum_is_taken_whole_and_the_rest_shared() -> None:
    drawn = sample(_pool(), 500, seed=1)
    assert Counter(drawn["difficulty"].to_list()) == {"easy": 225, "medium": 225, "hard": 50}
    assert drawn["inclusion_probability"].max() == 1.0


def test_inverse_inclusion_leads_back_to_the_pool() -> None:
    pool = _pool().with_columns(y=(pl.col("difficulty") == "easy").cast(pl.Float64))
    drawn = sample(pool, 90, seed=2)
    weight = 1 / drawn["inclusion_probability"].to_numpy()
    assert np.average(drawn["y"].to_numpy(), weights=weight) == pytest.approx(0.7)


def test_sampling_ignores_row_order_and_refuses_nonsense() -> None:
    pool = _pool()
    shuffled = pool.sample(fraction=1.0, shuffle=True, seed=5)
    assert sample(pool, 91, seed=3).equals(sample(shuffled, 91, seed=3))
    with pytest.raises(UsageError, match="cannot draw"):
        sample(pool, 1001)
    with pytest.raises(SchemaError, match="no column"):
        sample(pool, 10, strata=("colour",))
