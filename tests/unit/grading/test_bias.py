"""Biases of judges that were planted: position, length, own family; and files of ratings in every shape."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import FormatError, InputError, SchemaError
from seatrial.grading.bias import biases
from seatrial.grading.ratings import Columns, read_ratings
from seatrial.grading.validate import validate


def planted(tmp_path: Path, *, swaps: float = 0.0, per_doubling: float = 0.0, own: float = 0.0, n: int = 600) -> Path:
    """A judge that agrees with the human but for the planted shifts."""
    rng = np.random.default_rng(5)
    path = tmp_path / "r.csv"
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["item", "judge", "judge_swapped", "human_1", "length", "agent_model"])
        for i in range(n):
            human = int(rng.random() < 0.5)
            length = int(2 ** rng.uniform(6, 10))
            agent = "gpt-4o" if rng.random() < 0.5 else "claude-x"
            lift = per_doubling * (np.log2(length) - 8) + (own if agent == "gpt-4o" else 0.0)
            judge = int(rng.random() < min(1.0, max(0.0, 0.15 + 0.7 * human + lift)))
            other = 1 - judge if rng.random() < swaps else judge
            out.writerow([i, judge, other, human, length, agent])
    return path


@pytest.mark.parametrize(
    ("plant", "name", "true"),
    [({"swaps": 0.3}, "position", 0.3), ({"per_doubling": 0.1}, "length", 0.1), ({"own": 0.14}, "own family", 0.14)],
)
def test_planted_biases_are_found_and_absent_ones_are_not(
    tmp_path: Path, plant: dict[str, float], name: str, true: float
) -> None:
    (ratings,) = read_ratings(planted(tmp_path, **plant))
    found = {b.name: b.estimate for b in biases(ratings, judge_family="openai")}
    e = found[name]  # type: ignore[index]
    assert e is not None
    assert e.low is not None
    assert e.high is not None
    assert e.low <= true <= e.high
    assert e.low > 0
    (plain,) = read_ratings(planted(tmp_path))
    for b in biases(plain, judge_family="openai"):
        assert b.estimate is not None
        if b.name != "position":
            assert b.estimate.low is not None
            assert b.estimate.high is not None
            assert b.estimate.low <= 0 <= b.estimate.high


def test_what_cannot_be_measured_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,judge,human_1\n" + "".join(f"{i},{i % 2},{i % 2}\n" for i in range(20)))
    (ratings,) = read_ratings(path)
    assert all(b.estimate is None and b.why for b in biases(ratings))


def test_every_shape_of_file_gives_the_same_ratings(tmp_path: Path) -> None:
    rows = [
        {"item": str(i), "criterion": "c", "judge": i % 2 == 0, "human_1": "pass", "human_2": "not met"}
        for i in range(4)
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    (tmp_path / "c.json").write_text(json.dumps({"entries": rows}))
    with (tmp_path / "d.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    read = [read_ratings(tmp_path / name) for name in ("a.json", "b.jsonl", "c.json", "d.csv")]
    assert {tuple(r[0].judge) for r in read} == {("pass", "fail", "pass", "fail")}
    assert {tuple(r[0].humans["human_2"]) for r in read} == {("fail",) * 4}
    assert all(r[0].criterion == "c" for r in read)


def test_items_that_share_a_task_are_one_cluster(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    rng = np.random.default_rng(1)
    rows = ["item,task,judge,human_1"]
    for task in range(20):
        human, wrong = int(rng.random() < 0.5), rng.random() < 0.1
        rows += [f"{task}-{i},{task},{human ^ int(wrong)},{human}" for i in range(5)]
    path.write_text("\n".join(rows) + "\n")
    (ratings,) = read_ratings(path)
    standing = validate(ratings)
    (alone,) = read_ratings(path, Columns(task="item"))
    wide, narrow = standing.agreement, validate(alone).agreement
    assert wide is not None
    assert narrow is not None
    assert (wide.n_clusters, narrow.n_clusters) == (20, 100)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("item,judge\n1,1\n", SchemaError, "human"),
        ("item,human_1\n1,1\n", SchemaError, "judge"),
        ("item,judge,human_1\n1,1,1\n1,0,1\n", InputError, "twice"),
        ('{"judge": 1}\nnot json\n', FormatError, "JSON"),
        ("[1, 2]", FormatError, "row objects"),
        ("item,judge,human_1\n", SchemaError, "no rows"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path: Path, text: str, error: type[Exception], says: str) -> None:
    path = tmp_path / "r.txt"
    path.write_text(text)
    with pytest.raises(error, match=says):
        read_ratings(path)
    with pytest.raises(InputError):
        read_ratings(tmp_path / "absent.csv")
