"""Many steps on one machine: extraction and ranking against the machine's own limit, and the cost of a little more.

    python benchmarks/ten_million.py [--steps 10000000] [--store DIR] [--workers 2] [--write]

Fills a store with synthetic sessions of realistic sizes (`synthetic_sessions`) until it holds so many steps, which a
run that was stopped goes on with. Then measures, each in processes of its own:

- the limit: read, decompress and parse every stored trace, nothing else, not even a check of its hash, in as many
  processes and without garbage collection;
- `seatrial rank`: extraction of every signal, then the ranking;
- `seatrial rank` again: the ranking alone;
- `seatrial rank` after one percent more sessions came.

CPU seconds, of all processes together, compare where a machine is shared; wall time and peak memory stand beside them:
of the largest process, and of all at once (shared pages counted once, looked at twice a second). `--write` puts the
table into docs/reference/benchmarks/ten-million.md. Needs Linux. Signals that the store has are forgotten first.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial.engine.local import map_sessions
from seatrial.records import Trace
from seatrial.store import Store
from synthetic_sessions import fill, sizes

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks" / "ten-million.md"
BATCH = 128
AIM = 3.0
EXTRACTED = ("signals", "calls", "corrections", "outcomes")

# Workers belong to a server process that outlives the command for a moment: as their reaper, wait for all of them, so
# that their time is counted.
MEASURE = """
import ctypes, json, os, resource, subprocess, threading, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
peak, over = 0, threading.Event()

def held():
    parents, total = {}, 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(pid)] = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    for pid in parents:
        above = pid
        while above in parents and parents[above] != os.getpid():
            above = parents[above]
        if above in parents:
            try:
                lines = open(f"/proc/{pid}/smaps_rollup").readlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            except OSError:
                pass
    return total

def watch():
    global peak
    while not over.wait(0.5):
        peak = max(peak, held())

threading.Thread(target=watch, daemon=True).start()
began = time.perf_counter()
done = subprocess.run(ARGUMENTS, stdout=subprocess.PIPE)
wall = time.perf_counter() - began
over.set()
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"wall": wall, "cpu": use.ru_utime + use.ru_stime, "mb": use.ru_maxrss / 1024, "all": peak / 1024,
                  "code": done.returncode, "out": done.stdout.decode()[-300:]}))
"""


def parse(path: str, blobs: Sequence[str]) -> int:
    """The limit: every trace of a batch read, decompressed and parsed."""
    gc.disable()
    store = Store.open(path)
    decoder = msgspec.json.Decoder(Trace)
    return sum(len(decoder.decode(zlib.decompress(store.blobs.packed(blob))).steps) for blob in blobs)


def limit(path: str, workers: int) -> int:
    """Parse everything."""
    blobs = Store.open(path).table("sessions").select("blob").collect()["blob"].to_list()
    batches = [blobs[i : i + BATCH] for i in range(0, len(blobs), BATCH)]
    return sum(map_sessions(partial(parse, path), batches, workers=workers))


def measured(arguments: list[str]) -> dict[str, Any]:
    """Wall and CPU seconds, the largest process's memory and that of all together (MB)."""
    code = f"ARGUMENTS = {arguments!r}\n{MEASURE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["code"] != 0:
        sys.exit(f"failed: {arguments}\n{done.stderr}{answer['out']}")
    print(f"{arguments[2]}: {answer['wall']:.0f} s wall, {answer['cpu']:.0f} s CPU", file=sys.stderr, flush=True)
    return answer


def held(store: Store) -> tuple[int, int]:
    """Sessions and steps in the store."""
    n, steps = store.table("sessions").select(pl.len(), pl.col("steps").sum()).collect().row(0)
    return n, steps or 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--store", default="out/ten-million")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--limit-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.limit_only:
        print(limit(options.store, options.workers))
        return
    store = Store.open(options.store, create=True, durable=False)
    if store.table("sessions").filter(pl.col("format") != "synthetic").limit(1).collect().height:
        sys.exit("this store holds sessions that are not synthetic: name another")
    n, steps = held(store)
    if steps < options.steps:
        fill(store, options.steps - steps, n)
        n, steps = held(store)
    done = store.table("outcomes").select("session").collect()["session"].to_list()
    if done:
        store.commit({name: store.table(name).head(0).collect() for name in EXTRACTED}, replace_sessions=done)
    text = report(options, n, steps)
    print(text)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)


def _kept(ratio: float) -> str:
    return f"kept ({ratio:.2f})" if ratio < AIM else f"missed ({ratio:.2f})"


def report(options: argparse.Namespace, n: int, steps: int) -> str:
    """Measure, and write down what came out."""
    rank = [sys.executable, "-m", "seatrial", "rank", "--store", options.store, "--draws", "999", "--json",
            "--workers", str(options.workers)]  # fmt: skip
    least = [sys.executable, __file__, "--limit-only", "--store", options.store, "--workers", str(options.workers)]
    loads = [os.getloadavg()[1]]
    base, first, again = measured(least), measured(rank), measured(rank)
    fill(Store.open(options.store, durable=False), max(1, steps // 100), n)
    more = measured(rank)
    loads.append(os.getloadavg()[1])
    rows = [
        ("read, decompress and parse only (the limit)", base), ("`seatrial rank`: extract and rank", first),
        ("`seatrial rank` again: the ranking alone", again), ("`seatrial rank` after 1% more sessions", more),
    ]  # fmt: skip
    extraction = first["cpu"] - again["cpu"]
    shown = sizes()
    made = f"{n:,} sessions, {steps:,} steps"
    if steps < 9_900_000:
        made = f"**A run of less than the full size: starting processes weighs more in it than at ten million.** {made}"
    return "\n".join([
        "# Ten million steps", "",
        "Made by `python benchmarks/ten_million.py --write`, which tells what is measured and how. Extraction of every "
        "signal and the ranking stand against the limit of this machine: reading, decompressing and parsing the same "
        "stored traces in as many processes.", "",
        f"{made}; {platform.machine()}, {os.cpu_count()} cores, {options.workers} worker processes, Python "
        f"{platform.python_version()}, msgspec {version('msgspec')}, Polars {version('polars')}, "
        f"{datetime.now(UTC):%Y-%m-%d}. Load average over five minutes when it began and ended: {loads[0]:.1f}, "
        f"{loads[1]:.1f} (wall time is the machine's own only where that is no more than the number of workers).", "",
        "| work | wall s | CPU s | CPU / limit | peak MB, largest process | peak MB, all processes |",
        "|---|---|---|---|---|---|",
        *(f"| {what} | {m['wall']:.1f} | {m['cpu']:.1f} | {m['cpu'] / base['cpu']:.2f} | {m['mb']:.0f} | {m['all']:.0f}"
          " |" for what, m in rows), "",
        f"- Extraction without the ranking: {extraction:.1f} CPU seconds, {extraction / base['cpu']:.2f} times the "
        f"limit, {1e6 * extraction / steps:.1f} µs a step.",
        f"- Less than {AIM:.0f} times the limit is the aim: {_kept(extraction / base['cpu'])} by extraction, "
        f"{_kept(first['cpu'] / base['cpu'])} by extraction and ranking together.",
        f"- One percent more sessions cost {more['cpu'] - again['cpu']:.1f} CPU seconds beyond the ranking, "
        f"{(more['cpu'] - again['cpu']) / extraction:.1%} of what all of them cost.", "",
        "What the sessions are like (the first 500; `benchmarks/synthetic_sessions.py` names the real ones that they "
        "follow):", "",
        *(f"- {what}: {value:,.3g}" if value < 100 else f"- {what}: {value:,.0f}" for what, value in shown.items()), "",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
