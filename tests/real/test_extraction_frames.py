"""Every signal, call, correction and outcome of all real sessions is the one that was written down.

Extraction may become faster; what it says of a trace changes only with its versions (METHODS 0.6). After a change of
versions: ``python tests/real/test_extraction_frames.py`` writes the digests anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from seatrial import ingest, scoring, signals
from seatrial.errors import SeatrialError
from seatrial.flows.extract import extract_traces
from seatrial.records import Trace

FILE = Path(__file__).resolve().parent.parent / "golden" / "extraction.json"
FOLDERS = ("atif", "native-examples", "otel", "sessions", "swe", "tau-bench", "tau2", "traps")
AT = 1_800_000_000.0


def traces_of(folder: Path) -> list[Trace]:
    """All traces below a folder; files that no reader takes are none."""
    out: list[Trace] = []
    for path in ingest.scan([folder]):
        try:
            out.extend(ingest.read_file(path))
        except SeatrialError:
            continue
    return out


def digests(traces: Sequence[Trace]) -> dict[str, str]:
    """sha256 of each table's rows as JSON lines."""
    settings = signals.SignalSettings(observed_until=AT)
    parts = [
        extract_traces(traces[i : i + 64], scoring.UNIT, "-", blobs={}, settings=settings)
        for i in range(0, len(traces), 64)
    ]
    whole = {name: pl.concat([part[name] for part in parts]).write_ndjson() for name in parts[0]}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in whole.items()}


@pytest.mark.real
@pytest.mark.parametrize("folder", FOLDERS)
def test_frames_are_those_written_down(data: Path, folder: str) -> None:
    if not (data / folder).is_dir():
        pytest.skip(f"no real inputs in {folder!r}")
    written = json.loads(FILE.read_text("utf-8"))
    assert written["versions"] == signals.versions(), "other versions: write the digests anew (see this file's head)"
    assert digests(traces_of(data / folder)) == written["digests"][folder]


def write() -> None:
    """Write the digests of the present versions."""
    data = Path(os.environ["SEATRIAL_DATA"])
    found = {folder: digests(traces_of(data / folder)) for folder in FOLDERS}
    text = json.dumps({"versions": signals.versions(), "digests": found}, indent=1, sort_keys=True)
    FILE.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    write()
