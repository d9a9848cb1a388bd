"""How fast Claude Code sessions are read, per core, beside plain JSON loops over the same lines.

    python benchmarks/read_claude_code.py [--megabytes 400] [--rounds 3] [--quick] [--json]

Real sessions (SEATRIAL_DATA) are replicated with fresh ids into a temporary folder. Each reader runs in a
process of its own on one core; speed is megabytes (10^6 bytes) per second of processor time, best of the
rounds, and memory is the peak resident set beyond that of the bare process. `json loop` parses every line with
the standard library and keeps nothing; `orjson loop` (when installed) and `msgspec loop` likewise. `seatrial`
builds whole traces with the account of every byte, hashes the source, and drops each trace before the next.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from contract import installed, row, told

ROOT = Path(__file__).resolve().parent.parent


def replicate(source: list[Path], folder: Path, megabytes: int) -> tuple[int, int]:
    """Copies of the sessions under fresh ids, of the same lengths; returns files and bytes."""
    files = size = 0
    while size < megabytes * 1_000_000:
        for path in source:
            data = path.read_bytes()
            at = data.find(b'"sessionId":"')
            if at < 0:
                continue
            old = data[at + 13 : at + 49]
            new = str(uuid.UUID(int=files)).encode()
            data = data.replace(old, new)
            (folder / f"{new.decode()}.jsonl").write_bytes(data)
            files, size = files + 1, size + len(data)
    return files, size


def by_loop(parse: Callable[[bytes], object]) -> Callable[[Path], int]:
    """Parse each line and keep nothing; lines that do not parse are passed over."""

    def run(folder: Path) -> int:
        n = 0
        for path in sorted(folder.iterdir()):
            with path.open("rb") as stream:
                for line in stream:
                    try:
                        parse(line)
                    except ValueError:
                        continue
                    n += 1
        return n

    return run


def by_seatrial(folder: Path) -> int:
    """Whole traces, dropped one by one, with the account of each file checked."""
    from seatrial import ingest

    n = 0
    for path in ingest.scan([folder]):
        reading = ingest.read_file(path)
        for trace in reading:
            n += len(trace.steps)
        report = reading.report
        assert report.status == "kept"
        assert report.kept_bytes == path.stat().st_size
    return n


def runner(name: str) -> Callable[[Path], int]:
    """The reader of that name, its library imported."""
    if name == "seatrial":
        return by_seatrial
    if name == "json loop":
        return by_loop(json.loads)
    if name == "orjson loop":
        assert installed("orjson")
        return by_loop(importlib.import_module("orjson").loads)
    return by_loop(importlib.import_module("msgspec.json").decode)


def child(name: str, folder: Path) -> None:
    """One round in this process: processor seconds, records or steps, peak memory beyond the start's."""
    run = runner(name)
    if name == "seatrial":
        import seatrial.ingest.claude_code  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    n = run(folder)
    took, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": took, "wall": wall, "n": n, "before": before, "peak": peak}))


def measure(name: str, folder: Path) -> dict[str, float]:
    """One round in a fresh process."""
    command = [sys.executable, __file__, "--child", name, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    out: dict[str, float] = json.loads(done.stdout)
    return out


def main(quick: bool) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=40 if quick else 400)
    parser.add_argument("--rounds", type=int, default=1 if quick else 3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]))
        return
    data = Path(os.environ.get("SEATRIAL_DATA", ROOT.parent / "shared" / "data")) / "sessions" / "claude-code"
    source = sorted(data.rglob("*.jsonl"))
    if not source:
        sys.exit("no real sessions found: set SEATRIAL_DATA")
    names = ["seatrial", "msgspec loop", "json loop"]
    if installed("orjson"):
        names.append("orjson loop")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files, size = replicate(source, folder, options.megabytes)
        largest = max(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{files} files, {size / 1e6:.0f} MB, largest {largest:.1f} MB; best of {options.rounds} rounds")
        best: dict[str, dict[str, float]] = {}
        for _ in range(options.rounds):
            for name in names:
                got = measure(name, folder)
                if name not in best or got["seconds"] < best[name]["seconds"]:
                    best[name] = got
        plain = best["json loop"]["seconds"]
        print(
            f"{'reader':<14}{'MB/s per core':>14}{'MB/s wall':>11}{'peak RSS MB':>13}{'beyond start':>14}{'x json':>8}"
        )
        if "orjson loop" not in names:
            row("orjson loop", peer=True, missing="orjson is not installed")
        for name in names:
            got = best[name]
            speed = size / 1e6 / got["seconds"]
            times, note = best["seatrial"]["seconds"] / got["seconds"], f"peak {got['peak'] / 1024:.0f} MB"
            row(name, speed, "MB/s per core", peer=name != "seatrial", times=times, note=note)
            print(
                f"{name:<14}{size / 1e6 / got['seconds']:>14.0f}{size / 1e6 / got['wall']:>11.0f}"
                f"{got['peak'] / 1024:>13.0f}{(got['peak'] - got['before']) / 1024:>14.0f}"
                f"{plain / got['seconds']:>8.2f}"
            )


if __name__ == "__main__":
    with told("read_claude_code") as small:
        main(small)
