"""The main job on real sessions and published benchmark runs, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.app import run

pytestmark = pytest.mark.real


def rank(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    status = run(["rank", *argv, "--draws", "999", "--json"])
    out = capsys.readouterr()
    assert status == 0, out.err
    result: dict[str, Any] = json.loads(out.out)["result"]
    return result


def models(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in result["models"]}


def test_claude_code_sessions_are_associations(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rank(capsys, str(data / "sessions" / "claude-code"))
    assert result["design"]["verdict"] == "observational"
    assert result["design"]["title"].startswith("Associations, not a ranking")
    assert result["weights"] == "unit"
    found = models(result)
    assert {"claude-opus-4-6", "claude-opus-4-5-20251101"} <= set(found)
    assert all(row["rank"] or row["why"] for row in found.values())
    texts = json.dumps([result["design"], result["warnings"]])
    assert "causal" not in texts


def test_every_file_is_accounted_for(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["ingest", str(data / "sessions"), "--store", str(tmp_path / "store"), "--json"])
    result = json.loads(capsys.readouterr().out)["result"]
    files = result["files"]
    on_disk = [p for p in (data / "sessions").rglob("*") if p.is_file()]
    assert status == 0
    assert files["read"] == len(on_disk) == files["kept"] + files["skipped"]
    without_traces = {r["file"] for r in result["reports"] if r["status"] != "kept"}
    assert all(r["why"] for r in result["reports"] if r["status"] != "kept")
    assert len(without_traces) == files["skipped"]
    for report in result["reports"]:
        assert report["kept_bytes"] + report["skipped_bytes"] == report["n_bytes"], report["file"]


def test_all_sessions_rank(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rank(capsys, str(data / "sessions"))
    assert result["design"]["verdict"] == "observational"
    assert len(result["models"]) >= 3


PUBLISHED = {
    "claude-sonnet-4-5": 0.72,
    "gpt-4.1-mini-2025-04-14": 0.56,
    "azure/gpt-4o-2024-11-20": 0.46,
    "ollama_chat/qwen2.5:7b": 0.18,
}


def test_tau2_airline_is_crossed_with_the_published_pass_rates(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rank(capsys, str(data / "tau2" / "airline"))
    assert result["design"]["verdict"] == "crossed"
    assert result["basis"]["cluster"] == "task"
    found = models(result)
    assert {m: round(row["mean"]["value"], 10) for m, row in found.items()} == PUBLISHED
    assert {r["model"]: round(r["pass_hat"]["1"]["value"], 10) for r in result["repeats"]} == PUBLISHED
    average = sum(PUBLISHED.values()) / 4
    for model, mean in PUBLISHED.items():
        net = found[model]["net_improvement"]
        assert net["value"] == pytest.approx(mean - average)
        assert net["n_clusters"] == 50
        assert net["low"] < net["value"] < net["high"]
    assert [found[m]["rank"]["value"] for m in PUBLISHED] == [1, 2, 3, 4]
    assert any("gpt-4o" in caveat and "imulator" in caveat for caveat in result["design"]["caveats"])


def test_tau2_policy_change(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = {}
    for path in sorted((data / "tau2" / "policy-change").glob("*.json")):
        result = rank(capsys, str(path))
        rates[path.stem] = round(result["repeats"][0]["pass_hat"]["1"]["value"], 10)
    assert sorted(rates.values()) == [0.4375, 0.5625]


def test_tau_bench_pass_hat_k(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rank(capsys, str(data / "tau-bench" / "gpt-4o-airline.json"))
    (row,) = result["repeats"]
    assert row["n_tasks"] == 50
    got = [row["pass_hat"][str(k)] for k in (1, 2, 3, 4)]
    assert [round(e["value"], 3) for e in got] == [0.420, 0.273, 0.220, 0.200]
    assert [(round(e["low"], 3), round(e["high"], 3)) for e in got] == [
        (0.315, 0.525),
        (0.162, 0.385),
        (0.106, 0.334),
        (0.085, 0.315),
    ]
    (model,) = result["models"]
    assert model["n_clusters"] == 50, "repeated attempts of one task share a task (METHODS 0.4)"
    assert (round(model["mean"]["low"], 2), round(model["mean"]["high"], 2)) != (0.35, 0.49)


def test_one_known_user_is_said(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = rank(capsys, str(data / "sessions" / "claude-code"), "--user", "me")
    assert "for this user" in json.dumps([result["design"], result["warnings"]])
