"""Extraction of every signal by 1, 2 and 4 workers of a cluster, beside the local engine on the same store.

    python benchmarks/scaling.py [--steps 300000] [--store DIR] [--quick] [--write]

Needs the extra [distributed]. Makes a store of synthetic sessions, unless DIR has one. Each row is a process of its
own that starts its cluster on this machine, has every session's signals, calls and outcomes worked out (the function
that `seatrial rank` maps over sessions; what comes back is hashed and dropped, not stored), and ends it. Times: `wall`
from the first batch sent to the last result in hand; `join` until the cluster answers; `work` the processor seconds of
the function itself in all workers; `all` those of every process of the row, Ray's own too (read from /proc when the
last result is in hand, with the time of children that had ended by then: needs Linux). The hash of the results is
the same in every row, or the script fails. More workers than cores cannot be faster: the rows beyond them show what
waiting for a core costs. `--write` puts the table into docs/reference/benchmarks/scaling.md.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from seatrial import scoring
from seatrial.engine.choice import Engine, engine_at
from seatrial.flows import extract
from seatrial.store import Store

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks" / "scaling.md"
ROWS: tuple[tuple[str, int], ...] = (("local", 1), ("local", 2), ("ray", 1), ("ray", 2), ("ray", 4))


def timed(work: Callable[[Sequence[str]], dict[str, pl.DataFrame]], ids: Sequence[str]) -> tuple[float, bytes]:
    """Processor seconds of a batch, and a hash of what came out of it."""
    begun = time.process_time()
    found = work(ids)
    spent = time.process_time() - begun
    held = hashlib.sha256()
    for name in sorted(found):
        held.update(name.encode() + found[name].write_json().encode())
    return spent, held.digest()


def one(path: str, url: str, workers: int) -> dict[str, Any]:
    """A row: in a process of its own."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    store = Store.open(path)
    ids = store.session_ids()
    batches = [ids[i : i + extract.BATCH] for i in range(0, len(ids), extract.BATCH)]
    begun = time.perf_counter()
    engine: Engine = engine_at(url, workers=workers)
    joined = time.perf_counter() - begun
    stamp = extract.fingerprint(scoring.UNIT)
    work = partial(extracted, path, stamp)
    begun = time.perf_counter()
    spent, held = 0.0, hashlib.sha256()
    for seconds, part in engine.map_sessions(partial(timed, work), batches):
        spent += seconds
        held.update(part)
    wall = time.perf_counter() - begun
    return {
        "wall": wall,
        "join": joined,
        "work": spent,
        "hash": held.hexdigest()[:16],
        "pids": len(engine.worker_ids()),
        "all": used_below(os.getpid()),
    }


def extracted(path: str, stamp: str, ids: Sequence[str]) -> dict[str, pl.DataFrame]:
    """What `rank` maps over sessions, without the store's commit."""
    store = Store.open(path)
    blobs = store.blobs_of(ids)
    traces = [store.trace_of(blobs[i]) for i in ids]
    return extract.extract_traces(traces, scoring.UNIT, stamp, blobs=blobs)


def used_below(root: int) -> float:
    """Processor seconds of a process and all below it, with those of children that were waited for."""
    tick = os.sysconf("SC_CLK_TCK")
    above: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        above[int(name)] = int(words[1])
        seconds[int(name)] = sum(map(int, words[11:15])) / tick
    total = 0.0
    for pid in above:
        at = pid
        while at in above and at != root:
            at = above[at]
        total += seconds[pid] if at == root else 0.0
    return total


def measured(path: str, url: str, workers: int) -> dict[str, Any]:
    """`one` in a process of its own, to which what it started falls when it loses its parent."""
    own = [sys.executable, __file__, "--row", url, str(workers), "--store", path]
    load = os.getloadavg()[0]
    # Ray's workers stand back behind all other processes unless told otherwise, the local engine's do not.
    same = os.environ | {"RAY_worker_niceness": "0"}
    done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=False, env=same)
    if done.returncode:
        sys.exit(f"{url} with {workers} workers failed")
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return row | {"url": url, "workers": workers, "load": load}


def table(rows: Sequence[dict[str, Any]], n: int, steps: int) -> list[str]:
    """The rows as Markdown."""
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("ray", "daft", "polars"))
    first = {r["url"]: r for r in reversed(rows)}
    text = [
        f"{n:,} sessions, {steps:,} steps; {os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, {versions}; {datetime.now(UTC):%Y-%m-%d}. All rows gave the same results "
        f"(hash {rows[0]['hash']}).",
        "",
        "| engine | workers | wall s | times 1 worker | join s | work CPU s | all CPU s | steps per CPU s | load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        text.append(
            f"| {r['url']} | {r['workers']} | {r['wall']:.1f} | {first[r['url']]['wall'] / r['wall']:.2f} | "
            f"{r['join']:.1f} | {r['work']:.1f} | {r['all']:.1f} | {steps / r['all']:,.0f} | {r['load']:.1f} |"
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--store")
    parser.add_argument("--quick", action="store_true", help="20,000 steps; 1 and 2 workers")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row is not None:
        print(json.dumps(one(options.store, options.row[0], int(options.row[1]))))
        return
    from synthetic_sessions import fill

    with tempfile.TemporaryDirectory() as scratch:
        path = options.store or scratch
        if not (Path(path) / "store.json").exists():
            fill(Store.open(path, create=True, durable=False), 20_000 if options.quick else options.steps)
        n, steps = Store.open(path).table("sessions").select(pl.len(), pl.col("steps").sum()).collect().row(0)
        rows = []
        for url, workers in ROWS[:-1] if options.quick else ROWS:
            rows.append(measured(path, url, workers))
            print(f"{url} {workers}: {rows[-1]['wall']:.1f} s", file=sys.stderr, flush=True)
    if len({r["hash"] for r in rows}) != 1:
        sys.exit("the engines do not agree")
    text = table(rows, n, steps)
    print("\n".join(text))
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        page = PAGE.read_text() if PAGE.exists() else "<!-- table -->\n<!-- /table -->\n"
        head, _, rest = page.partition("<!-- table -->")
        PAGE.write_text(
            f"{head}<!-- table -->\n" + "\n".join(text) + f"\n<!-- /table -->{rest.partition('<!-- /table -->')[2]}"
        )


if __name__ == "__main__":
    main()
