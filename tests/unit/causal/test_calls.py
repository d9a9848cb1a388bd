"""Calls counted in parts are those counted whole, and a ranking is the same from either."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from typing import Any

import polars as pl
import pytest

from seatrial.causal import calls as counting
from seatrial.causal import rank
from seatrial.errors import SchemaError

COLUMNS = ["session", "step", "tool", "command", "outcome", "cause"]


def some_calls(n: int = 3_000, sessions: int = 40) -> pl.DataFrame:
    rng = random.Random(7)
    rows = [
        (
            f"s{rng.randrange(sessions):03d}", i, rng.choice(["bash", "edit", None]), rng.choice(["grep", "ls", None]),
            rng.choice(["ok", "ok", "error", "rejected", "interrupted", "unknown"]),
            rng.choice([None, "benign", "environment", "model"]),
        )
        for i in range(n)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def places(sessions: int = 40) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(sessions)],
            counting.ARM: ["ab"[i % 2] for i in range(sessions)],
            "task_type": [None if i % 5 == 0 else "xy"[i % 2 ^ (i % 3 > 0)] for i in range(sessions)],
        }
    )


def by_hand(calls: pl.DataFrame, place: pl.DataFrame) -> dict[Any, tuple[int, int, list[Any]]]:
    where = {s: (a, t) for s, a, t in place.iter_rows()}
    n: dict[Any, int] = defaultdict(int)
    bad: dict[Any, list[Any]] = defaultdict(list)
    for session, step, tool, command, outcome, cause in calls.iter_rows():
        if session not in where or cause == "environment" or outcome in ("rejected", "interrupted", "unknown"):
            continue
        key = (*where[session], tool or "?", command or "")
        n[key] += 1
        if outcome == "error" and cause != "benign":
            bad[key].append({"session": session, "step": step})
    first = {k: sorted(v, key=lambda e: (e["session"], e["step"]))[:3] for k, v in bad.items()}
    return {k: (n[k], len(bad.get(k, [])), first.get(k, [])) for k in n}


def test_counts_are_those_of_a_loop_over_the_calls() -> None:
    calls, place = some_calls(), places(30)
    found = {tuple(row[:4]): tuple(row[4:]) for row in counting.count(calls.lazy(), place).iter_rows()}
    assert found == by_hand(calls, place)


@pytest.mark.parametrize("cuts", [(), (10,), (1, 2, 39), (0, 20)])
def test_parts_merge_to_the_whole(cuts: tuple[int, ...]) -> None:
    calls, place = some_calls(), places()
    whole = counting.count(calls, place)
    edges = [0, *cuts, place.height]
    parts = [
        counting.count(calls.filter(pl.col("session").is_in(place["session"][a:b].implode())), place)
        for a, b in itertools.pairwise(edges)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = counting.merge(merged, part)
    assert merged.equals(whole)
    backwards = parts[-1]
    for part in parts[-2::-1]:
        backwards = counting.merge(part, backwards)
    assert backwards.equals(whole)


def test_a_ranking_is_the_same_from_calls_and_from_counts() -> None:
    rng = random.Random(3)
    place = places(40).rename({counting.ARM: "arm"})
    outcomes = place.with_columns(
        user=pl.Series([f"u{i % 13}" for i in range(40)]),
        outcome=pl.Series([float(rng.random() < 0.5) for _ in range(40)]),
        calls_counted=pl.lit(5),
        calls_ok=pl.lit(4),
    )
    calls = some_calls(sessions=40)
    counts = counting.count(calls, places(40))
    one, two = (rank(outcomes, outcome="outcome", calls=c, draws=999, by=("task_type",)) for c in (calls, counts))
    assert one == two
    worst = [
        r.models[0].dimensions["command_reliability"].detail["worst"] for r in (one, *one.by["task_type"].values())
    ]
    assert all(worst)
    assert len({str(w) for w in worst}) == len(worst), "every task type has counts of its own"


def test_calls_without_a_column_are_refused() -> None:
    with pytest.raises(SchemaError, match="no column 'cause'"):
        counting.count(some_calls().drop("cause"), places())
