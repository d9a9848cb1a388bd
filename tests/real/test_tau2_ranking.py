"""Four systems on the same fifty airline tasks: a crossed ranking (METHODS 3.4e)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seatrial.causal import rank

pytestmark = pytest.mark.real


def _read(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows, conditions = [], []
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        for run in data["simulations"]:
            session = f"{path.stem}/{run['task_id']}/{run['trial']}"
            reward = (run["reward_info"] or {}).get("reward")
            rows.append((session, path.stem, str(run["task_id"]), reward))
            conditions.append((session, data["info"]["user_info"]["llm"]))
    return (
        pl.DataFrame(rows, schema=["session", "arm", "task", "outcome"], orient="row"),
        pl.DataFrame(conditions, schema=["session", "simulator"], orient="row"),
    )


def test_airline_is_crossed_by_task_and_its_simulators_are_named(data: Path) -> None:
    frame, conditions = _read(data / "tau2" / "airline")
    found = rank(frame, outcome="outcome", conditions=conditions, draws=1999)
    assert found.design.verdict == "crossed"
    assert found.basis["cluster"] == "task"
    means = {m.model: m.mean.value for m in found.models if m.mean}
    assert means == pytest.approx(
        {"qwen2.5-7b": 0.18, "gpt-4o": 0.46, "gpt-4.1-mini-toolorchestra": 0.56, "claude-sonnet-4-5": 0.72}
    )
    assert any("simulator differed" in c and "gpt-4o-2024-11-20 for gpt-4o" in c for c in found.design.caveats)
    wide = frame.pivot(on="arm", index="task", values="outcome")
    table = wide.select(sorted(means)).to_numpy()
    for row in found.models:
        tau = table[:, sorted(means).index(row.model)] - table.mean(axis=1)
        assert row.net_improvement is not None
        assert row.net_improvement.value == pytest.approx(tau.mean())
        assert row.net_improvement.se == pytest.approx(tau.std(ddof=1) / np.sqrt(50))
        assert row.net_improvement.n_clusters == 50
    assert [m.model for m in found.models][-1] == "qwen2.5-7b"
    last = found.models[-1].rank
    assert last is not None
    assert (last.low, last.high) == (4, 4)


def test_four_tasks_get_no_interval(data: Path) -> None:
    """A policy change measured on four tasks x four trials: 16 sessions look like many, four tasks are not."""
    frame, _ = _read(data / "tau2" / "policy-change")
    found = rank(frame, outcome="outcome", draws=999)
    assert found.design.verdict == "crossed"
    means = sorted(m.mean.value for m in found.models if m.mean)
    assert means == pytest.approx([0.4375, 0.5625])
    for row in found.models:
        assert row.net_improvement is not None
        assert row.net_improvement.low is None
        assert row.rank is None
        assert row.p_value is not None
        assert row.p_value > 0.1
