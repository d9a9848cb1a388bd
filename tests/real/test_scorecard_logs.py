"""Scorecards of logs that other programs wrote: each dimension that the log supports, and the reason for the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.flows.scorecard import ScorecardOptions, score_sources
from seatrial.records import Scorecard

DATA = Path(os.environ.get("SEATRIAL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "proportions.json").read_text(encoding="utf-8"))
pytestmark = [pytest.mark.real, pytest.mark.skipif(not DATA.is_dir(), reason="no real data at SEATRIAL_DATA")]


def cards(*where: str, **more: Any) -> tuple[Scorecard, ...]:
    path = DATA.joinpath(*where)
    if not path.exists():
        pytest.skip(f"no {path.name} at SEATRIAL_DATA")
    return score_sources([str(path)], ScorecardOptions(**more)).cards


def reasons(card: Scorecard, *names: str) -> dict[str, str]:
    for name in names:
        assert card.dimensions[name].estimate is None, name
    return {name: card.dimensions[name].why for name in names}


def test_reproducibility_of_tau_bench_s_four_trials() -> None:
    """The published run has 14, 12, 10, 4 and 10 tasks with 0 to 4 successes of 4."""
    (card,) = cards("tau-bench", "gpt-4o-airline.json")
    histogram = {int(c): n for c, n in GOLDEN["pass_hat_k"]["histogram_of_successes"].items()}
    expected = sum(n * (1 - 4 * c * (4 - c) / (4 * 3)) for c, n in histogram.items()) / 50
    assert (card.k, card.tasks) == (4, 50)
    d1, d3 = card.dimensions["D1"], card.dimensions["D3"]
    assert d1.raw == pytest.approx(GOLDEN["pass_hat_k"]["expect"]["1"])
    assert d1.estimate is not None
    assert [round(d1.estimate.low or 0, 3), round(d1.estimate.high or 0, 3)] == GOLDEN["pass_hat_k"]["ci95_t"]["1"]
    assert d1.beside["pass^4"].value == pytest.approx(GOLDEN["pass_hat_k"]["expect"]["4"])  # type: ignore[union-attr]
    assert d3.raw == pytest.approx(expected)
    outcomes = [[1.0] * c + [0.0] * (4 - c) for c, n in histogram.items() for _ in range(n)]
    assert d3.raw == pytest.approx(float(np.mean([1 - 4 * np.var(ys, ddof=1) for ys in outcomes])))
    why = reasons(card, "D2", "D4", "D5", "D6")
    assert "no world states" in why["D4"]
    assert "reading the log back is not a replay" in why["D5"]
    assert "no gates are declared" in why["D6"]
    held = card.dimensions["D7"].detail["components"]
    assert held["task_spec"] == held["decision_log"] == 200
    assert held["state_snapshots"] == held["provenance_chain"] == 0
    assert card.cause_counts["execution"] + card.cause_counts["unknown"] == 116
    assert card.attempts_before_success == {"0": 21, "1": 10, "2": 3, "3": 2, "never": 14}


def test_tau2() -> None:
    for card in cards("tau2", "airline"):
        assert card.tasks == 50
        assert card.dimensions["D1"].estimate is not None
        assert (card.dimensions["D3"].estimate is None) == (card.k < 2)
        assert card.dimensions["D7"].detail["components"]["task_spec"] == card.dimensions["D7"].detail["of"]
        reasons(card, "D2", "D4", "D5", "D6")


def test_inspect_with_epochs() -> None:
    (card,) = cards("inspect", "log_streaming.eval")
    assert (card.k, card.tasks) == (2, 2)
    assert card.dimensions["D3"].estimate is not None
    assert card.dimensions["D1"].estimate is not None
    reasons(card, "D2", "D4", "D5", "D6")


def test_suites_in_one_folder_stay_apart() -> None:
    """Three Inspect evaluations number their samples from 1: task 1 of one is not task 1 of another."""
    found = cards("inspect")
    same = [c for c in found if c.model == "openai/gpt-4o-mini"]
    assert len(same) >= 3
    assert len({c.agent for c in found}) == len(found)
    assert all(c.suite and c.suite in c.agent for c in same)
    twice = next(c for c in found if c.model == "ollama/llama3.1")  # one run, as .eval and as .json
    assert twice.counts.n_planned == 1
    assert any("in more than one file" in w for w in twice.warnings)


def test_swe_agent_logs_have_an_audit_and_no_outcome() -> None:
    for card in cards("swe", "swe-agent"):
        assert card.dimensions["D7"].estimate is not None
        why = reasons(card, "D1", "D2", "D3", "D4", "D5", "D6")
        assert why["D1"] == "nothing was scored"
        assert card.counts.n_scored == 0


def test_traces_without_a_task_are_tasks_of_their_own() -> None:
    (card,) = cards("swe", "mini-swe-agent")
    assert card.tasks == 2
    assert any("name no task" in w for w in card.warnings)
