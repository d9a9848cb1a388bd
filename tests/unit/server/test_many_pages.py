"""Pages over a million ranked sessions with signals: processor time of a second look, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "benchmarks" / "million_sessions.py"
SECOND_CPU_S = 0.6
"""Several times what any page needs here."""

PEAK_MIB = 2_000


def measured(tmp_path: Path, n: int) -> dict[str, object]:
    command = [sys.executable, str(PROGRAM), "--sessions", str(n), "--store", str(tmp_path / "store"), "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    found: dict[str, object] = json.loads(out.stdout)
    return found


@pytest.mark.full
def test_a_million_sessions(tmp_path: Path) -> None:
    """No page takes more processor time than its share of a second; wall time is held to a second where the
    machine has a processor to spare."""
    found = measured(tmp_path, 1_000_000)
    loads = found["loads"]
    assert isinstance(loads, list)
    assert len(loads) == 16
    spare = os.getloadavg()[0] < (os.cpu_count() or 1)
    for load in loads:
        if load["page"] != "rare text":  # bounded by the clock, not by the number of sessions
            assert load["second_cpu_s"] < SECOND_CPU_S, load
        assert not spare or load["second_s"] < 1.0, load
    peak = found["peak_mib"]
    assert isinstance(peak, float)
    assert peak < PEAK_MIB
