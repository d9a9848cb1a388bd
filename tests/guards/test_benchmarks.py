"""Every benchmark is run by one command, says its rows as JSON, and a missing peer stays on the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import run_all
import run_all_page

FOLDER = Path(run_all.__file__).parent
NOT_BENCHMARKS = {"contract", "run_all", "run_all_page", "planted_truth", "synthetic_sessions"}
"""What they share; the planted truth's own maker; the maker of many sessions."""


def test_every_script_is_listed() -> None:
    scripts = {p.stem for p in FOLDER.glob("*.py")} - NOT_BENCHMARKS
    assert len(scripts) > 15
    assert scripts <= set(run_all.NAMES)
    assert len(run_all.NAMES) == len(set(run_all.NAMES))


def test_a_script_says_its_rows_as_one_object() -> None:
    command = [sys.executable, str(FOLDER / "scorecard.py"), "100", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["benchmark"] == "scorecard"
    assert not found["quick"]
    ours = [r for r in found["rows"] if not r["peer"]]
    assert len(ours) >= 3
    assert all(r["value"] > 0 and r["unit"] == "runs/CPU s" for r in ours)
    assert "plain loop" in done.stderr


def test_a_missing_peer_and_a_missing_benchmark_stay_on_the_page(tmp_path: Path) -> None:
    machine = run_all.machine(None)
    rows = [
        {"what": "ours", "value": 2.0, "unit": "s", "peer": False, "missing": None, "times": 1.0, "note": ""},
        {"what": "theirs", "value": 7.0, "unit": "s", "peer": True, "missing": None, "times": 3.5, "note": ""},
        {"what": "absent", "value": None, "unit": "", "peer": True, "missing": "absent is not installed", "times": None,
         "note": ""},
    ]  # fmt: skip
    kept = {"quick": True, "machine": machine, "rows": rows, "text": "", "missing": None, "wall_s": 1.0, "cpu_s": 1.0}
    results = {"gate": kept, "readers": {**kept, "rows": [], "missing": "its data are not here (SEATRIAL_DATA)"}}
    text = run_all_page.render(results, run_all.ALL, tmp_path)
    assert "| theirs (peer) | 7 | s | 3.5 |" in text
    assert "| absent (peer) | absent is not installed |" in text
    assert "Not run: its data are not here (SEATRIAL_DATA)." in text
    assert all(f"### {name.replace('_', ' ')}" in text for name in run_all.NAMES)
    assert f"Python {machine['python']}" in text


def test_versions_are_those_of_each_run_and_none_of_a_peer_that_it_missed(tmp_path: Path) -> None:
    row = {"what": "orjson loop", "value": None, "unit": "", "peer": True, "missing": "orjson is not installed",
           "times": None, "note": ""}  # fmt: skip
    limit = {"what": "within 2 s", "value": 0.0, "unit": "kept", "peer": False, "missing": None, "times": None,
             "note": "3.1 s"}  # fmt: skip
    machine = run_all.machine(None)
    kept = {"quick": True, "rows": [row], "text": "", "missing": None, "wall_s": 1.0, "cpu_s": 1.0}
    results = {
        "read_claude_code": {**kept, "machine": {**machine, "versions": {"orjson": "3.0", "numpy": "1.0"}}},
        "randomisation": {**kept, "rows": [limit], "machine": {**machine, "versions": {"scipy": "2.5", "numpy": "1.1",
                                                                                     "duckdb": "9.9"}}},
    }  # fmt: skip
    text = run_all_page.render(results, run_all.ALL, tmp_path)
    parts = {p.splitlines()[0]: p for p in text.split("### ")}
    assert "with numpy 1.0." in parts["read claude code"]
    assert "orjson 3.0" not in text
    assert "with numpy 1.1, scipy 2.5." in parts["randomisation"]
    assert "Ran at its quick size" in parts["randomisation"]
    assert "| within 2 s | missed | | 3.1 s |" in parts["randomisation"]
    assert "are set for the full size" in parts["randomisation"]
    assert "duckdb" not in parts["randomisation"]
