"""Does the whole way, from typed sentences to the ranking, find what was planted? Heavy: many demos."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest

from seatrial import causal, ingest, scoring
from seatrial.examples import fleet, habits, truth
from seatrial.flows import demo, planted
from seatrial.flows.extract import extract_traces
from seatrial.records import OUTCOMES, Ranking

pytestmark = pytest.mark.full
NAMES = [profile.name for profile in habits.FLEET]


@pytest.mark.parametrize("seed", [7])
def test_the_planted_order_is_recovered_with_the_default_seed(tmp_path: Path, seed: int) -> None:
    run = demo.run(tmp_path / "demo", sessions=1_000, seed=seed)
    assert run.order_recovered
    assert run.ranking.design.verdict == "randomised"


def test_the_planted_order_is_recovered_with_most_seeds(tmp_path: Path) -> None:
    runs = [demo.run(tmp_path / str(seed), sessions=1_000, seed=seed, draws=999) for seed in range(1, 11)]
    assert sum(run.order_recovered for run in runs) >= 8


def _with_true_labels(folder: Path, n: int, seed: int) -> Ranking:
    plans = fleet.plan(n, seed)
    assigner = causal.Assigner(dict.fromkeys(NAMES, 0.25), key=f"quality {seed}")
    arms = {
        p.id: assigner.assign(p.id, task_type=p.jobs[0].type, difficulty=p.jobs[0].difficulty, time=p.time)
        for p in plans
    }
    made = {w.plan.id: w for w in fleet.generate(folder, plans, {unit: a.arm for unit, a in arms.items()})}
    traces = [
        msgspec.structs.replace(trace, user=made[trace.id].plan.persona.name, assignment=arms[trace.id])
        for trace in ingest.read(folder)
    ]
    frame = extract_traces(traces, scoring.UNIT, "quality", blobs={})["outcomes"]
    rows = [{"session": name, **planted.outcome_row(truth.of(worked))} for name, worked in made.items()]
    labels = pl.DataFrame(rows, schema_overrides=dict.fromkeys(OUTCOMES, pl.Float64))
    frame = frame.drop(OUTCOMES).join(labels, on="session", how="left", maintain_order="left")
    name, values = scoring.headline(frame)
    return causal.rank(frame, outcome=name, value=values, baseline="uniform", seed=seed, draws=999, by=())


def test_with_true_labels_the_intervals_cover_the_planted_values(tmp_path: Path) -> None:
    """Detector error apart, 95% intervals hold: 25 studies of four agents, whose errors are correlated."""
    known = planted.load()
    covered = []
    for seed in range(101, 126):
        ranking = _with_true_labels(tmp_path / str(seed), 400, seed)
        for row in ranking.models:
            estimate = row.net_improvement
            assert estimate is not None
            assert estimate.low is not None
            assert estimate.high is not None
            covered.append(estimate.low <= known.agents[row.model][ranking.outcome].net <= estimate.high)
    assert len(covered) == 100
    assert sum(covered) >= 88
