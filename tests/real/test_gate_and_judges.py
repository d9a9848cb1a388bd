"""Real runs through the gate, and real judges held to people and to a program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as reference
from sklearn.metrics import cohen_kappa_score

from seatrial.flows.check import check, diff
from seatrial.grading.ratings import Columns, read_ratings
from seatrial.grading.validate import validate

pytestmark = pytest.mark.real


def rewards(path: Path) -> dict[str, list[float]]:
    """Passes by the task whose criteria judged the run: one system's file numbers its runs, not its tasks."""
    run = json.loads(path.read_text())
    said = {str(t["id"]): t["evaluation_criteria"]["nl_assertions"] for t in run["tasks"]}
    out: dict[str, list[float]] = {}
    for s in run["simulations"]:
        info = s["reward_info"]
        tasks = {c["action"]["action_id"].split("_")[0] for c in info.get("action_checks") or []}
        claims = [c["nl_assertion"] for c in info.get("nl_assertions") or []]
        task = next(iter(tasks)) if tasks else next((t for t, a in said.items() if claims and a == claims), None)
        out.setdefault(task or str(s["task_id"]), []).append(float(info["reward"] >= 1 - 1e-6))
    return out


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("claude-sonnet-4-5", "qwen2.5-7b", "REGRESSION"),
        ("claude-sonnet-4-5", "gpt-4o", "REGRESSION"),
        ("gpt-4.1-mini-toolorchestra", "gpt-4o", "INCONCLUSIVE"),
        ("qwen2.5-7b", "claude-sonnet-4-5", "PASS"),
        ("gpt-4o", "gpt-4o", "INCONCLUSIVE"),  # 50 attempts alike cannot rule out a drop of 2 points; 149 could
    ],
)
def test_pairs_of_systems(data: Path, old: str, new: str, verdict: str) -> None:
    paths = [data / "tau2" / "airline" / f"{name}.json" for name in (old, new)]
    checked = check(*paths)
    c = checked.comparison
    (row,) = [r for r in c.metrics if r.metric == "passed"]
    assert row.verdict == verdict
    assert c.single_run
    assert (c.population.missing, c.population.new, c.population.changed) == ((), (), ())
    b, k = (rewards(p) for p in paths)
    d = np.array([np.mean(k[t]) - np.mean(b[t]) for t in sorted(b)])
    assert row.difference is not None
    assert row.difference.value == pytest.approx(d.mean())
    if d.any():
        interval = reference.ttest_1samp(d, 0.0).confidence_interval(0.90)
        assert (row.difference.low, row.difference.high) == pytest.approx((interval.low, interval.high))
        assert "model" in c.changed
        if "gpt-4o" in (old, new):
            assert "simulator" in c.changed
            assert any("not the agent alone" in w for w in c.warnings)
    if verdict == "REGRESSION":
        assert checked.exit_code == 1
        assert c.regressed_tasks
        assert all(t.diff is not None for t in c.regressed_tasks)


def test_a_policy_change_on_four_tasks_decides_nothing(data: Path) -> None:
    folder = data / "tau2" / "policy-change"
    checked = check(folder / "grok-3_airline.json", folder / "grok-3_airline_tighter_policy.json")
    c = checked.comparison
    (row,) = [r for r in c.metrics if r.metric == "passed"]
    assert (row.baseline, row.candidate) == pytest.approx((0.4375, 0.5625))
    assert (c.verdict, checked.exit_code) == ("INCONCLUSIVE", 0)
    assert row.difference is not None
    assert row.difference.low is not None
    assert row.difference.low < -0.3
    assert row.more_runs is None
    assert row.more_tasks is not None
    assert row.more_tasks > 100
    assert c.changed == ("environment",)
    shown = diff(folder / "grok-3_airline.json", folder / "grok-3_airline_tighter_policy.json", task="32")
    assert "update_reservation_flights" in str(shown["summary"])


def pandalm(data: Path, tmp_path: Path, judge: str, field: str) -> Path:
    folder = data / "judges" / "pandalm"
    said = {r["idx"]: str(r[field]) for r in json.loads((folder / judge).read_text())}
    # Both write a tie their own way; 25 replies of one are no verdict at all.
    words = {"0": "0", "1": "1", "2": "2", "Tie": "0"}
    rows = [
        {
            "item": r["idx"],
            "judge": words.get(said[r["idx"]], ""),
            **{f"human_{i}": r[f"annotator{i}"] for i in (1, 2, 3)},
        }
        for r in json.loads((folder / "testset-v1.json").read_text())
    ]
    path = tmp_path / "pandalm.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize(
    ("judge", "field", "unscored"),
    [("pandalm-7b-testset-v1.json", "pandalm_result", 0), ("gpt-3.5-turbo-testset-v1.json", "gpt_result", 25)],
)
def test_pandalm(data: Path, tmp_path: Path, judge: str, field: str, unscored: int) -> None:
    (ratings,) = read_ratings(pandalm(data, tmp_path, judge, field))
    standing = validate(ratings)
    assert sorted(round(k or 0.0, 2) for k in standing.human_kappas.values()) == [0.85, 0.86, 0.88]
    assert standing.n_items + standing.unscored == 999
    assert standing.unscored == unscored
    assert not ratings.binary
    pairs = [(h, j) for h, j in zip(ratings.humans["human_1"], ratings.judge, strict=True) if j is not None]
    assert standing.kappa is not None
    assert standing.kappa.value is not None
    each = []
    for human in ratings.humans.values():
        pairs = [(h, j) for h, j in zip(human, ratings.judge, strict=True) if j is not None]
        each.append(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert standing.kappa.value == pytest.approx(np.mean(each))
    assert standing.majority["kappa"] is not None
    assert 0.4 < standing.majority["kappa"] < 0.6
    assert standing.status == "refused"


def test_four_prompts_on_tau2_are_all_refused(data: Path) -> None:
    program = {
        s["id"]: s["reward_info"]["reward"] >= 1
        for s in json.loads((data / "tau2" / "airline" / "gpt-4o.json").read_text())["simulations"]
    }
    kappas = []
    for path in sorted((data / "judges" / "tau2-airline").glob("*.json")):
        entries = json.loads(path.read_text())["entries"]
        assert all(program[e["simulation_id"]] == e["tau2_success"] for e in entries)
        columns = Columns(judge="judge_verdict", humans=("tau2_success",), item="simulation_id")
        (ratings,) = read_ratings(path, columns)
        assert ratings.binary, "satisfied, compliant and correct are words for pass"
        standing = validate(ratings)
        assert standing.n_items == 50
        assert standing.status == "refused"
        assert "kappa" in standing.why
        assert standing.kappa is not None
        assert standing.kappa.value is not None
        assert standing.kappa.value == pytest.approx(cohen_kappa_score(ratings.humans["tau2_success"], ratings.judge))
        kappas.append(standing.kappa.value)
    assert (round(min(kappas), 2), round(max(kappas), 2)) == (-0.16, 0.37)
