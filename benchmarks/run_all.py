"""Every benchmark with one command, and the page of their results.

    python benchmarks/run_all.py [--list] [--only NAME ...] [--full NAME ...] [--quick] [--peers DIR] [--write]

Each runs in a process of its own at its full size, or at its quick one with `--quick` (`--full` names exceptions), and
the page of all is printed. With `--write` it is kept instead, and what came out stands beside it in results.json
(docs/reference/benchmarks), with machine, versions, date and load, so that a benchmark that is run again replaces its
own numbers only. `--peers` installs the packages to compare with into DIR (unless they are there), behind everything
else on the path. A benchmark whose data are not there (SEATRIAL_DATA) and a peer that is not installed are named in the
page, never left out.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference" / "benchmarks"
PEER_PACKAGES = ("tea-tasting", "duckdb", "ppi-python", "regressgate", "holdline", "orjson", "vaderSentiment")
VERSIONS = (
    "numpy",
    "scipy",
    "polars",
    "numba",
    "hyperscan",
    "statsmodels",
    "scikit-learn",
    "inspect_ai",
    *PEER_PACKAGES,
)
TIME_LIMIT = 4 * 3600


class Benchmark(NamedTuple):
    """A script: what it measures, what it needs (`data`: SEATRIAL_DATA), and a page of its own, if any."""

    name: str
    what: str
    group: str
    data: bool = False
    page: str | None = None
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--quick",)
    told: bool = True
    """Takes --json; otherwise what it prints is shown."""
    remark: str = ""
    """What a reader of its numbers should know."""


ALL = (
    Benchmark("read_claude_code", "ingest: MB/s and memory beside plain JSON loops", "Reading", data=True),
    Benchmark("readers", "ingest: speed, memory and traps beside other projects' readers", "Reading", data=True,
              page="../reader-benchmarks.md"),
    Benchmark("signals", "human turns judged in a second, and how well", "Signals", data=True, told=False,
              page="../signal-benchmarks.md", arguments=("{data}/labels/turns.jsonl",), quick=("--turns", "20000")),
    Benchmark("criterion_validity", "signals against rewards that a program decided", "Signals", data=True),
    Benchmark("randomisation", "randomisation test against shuffling labels and scipy", "Statistics", remark=(
        "The limits are set for the full size (a million sessions) on an idle machine: two are of wall clock, which "
        "other work on the machine stretches, and against shuffling the drawn tables gain with the sessions, which a "
        "quick size has a tenth of. Each says by how much it was kept or missed.")),
    Benchmark("intervals", "intervals beside statsmodels, tea-tasting and scipy, same sessions", "Statistics"),
    Benchmark("interval_coverage", "coverage of the default intervals over designs", "Statistics"),
    Benchmark("validity", "coverage, type I error and power of every estimator, with peers", "Statistics",
              page="../validity-grid.md", arguments=("--runs", "200")),
    Benchmark("ranking_speed", "a ranking of a million sessions (at the quick size, of 100,000)", "Growth"),
    Benchmark("growth", "rank with sessions, models, strata and draws: time and memory", "Growth"),
    Benchmark("ten_million", "ten million steps extracted and ranked", "Growth", told=False,
              page="ten-million.md",
              quick=("--steps", "200000", "--store", "out/ten-million-quick")),
    Benchmark("scaling", "distributed work on 1, 2 and 4 workers", "Growth", told=False, page="scaling.md"),
    Benchmark("store_queries", "questions to a store beside Polars and DuckDB on the same files", "Store and pages",
              remark=(
        "The peers are faster because they do less: they read the Parquet files as they lie. The store first asks "
        "which data version is meant and refuses one whose rows were erased, opens the table's Delta log to know which "
        "files belong to that version, and gives rows in the order of the table's key.")),
    Benchmark("million_sessions", "pages of the web application over many sessions", "Store and pages",
              page="million-sessions.md"),
    Benchmark("gate", "error rates and time of gates, beside other packages", "Gate, runner, scorecard"),
    Benchmark("grading", "grading of an attempt, and the runner's own cost", "Gate, runner, scorecard"),
    Benchmark("scorecard", "scorecards of many runs", "Gate, runner, scorecard"),
    Benchmark("scorecard_independence", "correlations of the seven dimensions", "Gate, runner, scorecard"),
    Benchmark("recovery", "routers against CIR, certificates, and peers' fits", "Recovery"),
)  # fmt: skip
NAMES = tuple(b.name for b in ALL)


def install(folder: Path) -> None:
    """The peers, each by itself, so that one that cannot be installed takes no other with it."""
    for package in PEER_PACKAGES:
        if any(folder.glob(f"{package.replace('-', '_')}-*.dist-info")):
            continue
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), package]
        if subprocess.run(command, capture_output=True).returncode:
            print(f"{package} cannot be installed", file=sys.stderr)


def version(package: str, peers: Path | None) -> str | None:
    """The version here, or in the peers' folder; None: not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = list(peers.glob(f"{package.replace('-', '_')}-*.dist-info")) if peers else []
        return found[0].name.removesuffix(".dist-info").split("-")[1] if found else None


def machine(peers: Path | None) -> dict[str, Any]:
    """What the numbers were measured on."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x.split(":", 1)[1].strip() for x in info.read_text().splitlines() if x.startswith("model name")]
        model = lines[0] if lines else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "processor": model or platform.machine(), "cores": os.cpu_count(),
        "memory_gib": round(memory), "system": platform.system(), "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1), "versions": {p: version(p, peers) for p in VERSIONS},
    }  # fmt: skip


def run(b: Benchmark, *, quick: bool, peers: Path | None) -> dict[str, Any]:
    """What one benchmark found, or why there is nothing."""
    kept: dict[str, Any] = {"quick": quick, "machine": machine(peers), "rows": [], "text": "", "missing": None}
    data = os.environ.get("SEATRIAL_DATA", str(ROOT.parent / "shared" / "data"))
    script = ROOT / "benchmarks" / f"{b.name}.py"
    if not script.exists():
        return {**kept, "missing": "there is no such script"}
    if b.data and not Path(data).is_dir():
        return {**kept, "missing": "its data are not here (SEATRIAL_DATA)"}
    given = [a.format(data=data) for a in b.arguments] + list(b.quick if quick else ()) + (["--json"] if b.told else [])
    environment = os.environ | {"SEATRIAL_DATA": data} | ({"SEATRIAL_PEERS": str(peers)} if peers else {})
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run([sys.executable, str(script), *given], stdout=subprocess.PIPE, text=True, cwd=ROOT,
                              env=environment, timeout=TIME_LIMIT)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**kept, "missing": f"it did not end within {TIME_LIMIT / 3600:.0f} hours"}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept["wall_s"] = round(time.perf_counter() - wall, 1)
    kept["cpu_s"] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    if b.told and done.stdout.strip():
        kept["rows"] = json.loads(done.stdout.strip().splitlines()[-1])["rows"]
    else:
        kept["text"] = done.stdout.strip()
    if done.returncode and not kept["rows"]:
        kept["missing"] = f"it failed (exit code {done.returncode})"
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--full", nargs="+", choices=NAMES, default=(), metavar="NAME", help="with --quick: not these")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", type=Path, default=os.environ.get("SEATRIAL_PEERS"))
    parser.add_argument("--write", action="store_true", help="write docs/reference/benchmarks/index.md")
    parser.add_argument("--page", action="store_true", help="write the page from what is kept, run nothing")
    asked = parser.parse_args()
    if asked.list:
        for b in ALL:
            print(f"{b.name:24s}{b.what}")
        return
    peers = Path(asked.peers).resolve() if asked.peers else None
    kept_at = FOLDER / "results.json"
    results: dict[str, Any] = json.loads(kept_at.read_text()) if kept_at.exists() else {}
    if not asked.page:
        if peers is not None:
            install(peers)
        for b in (b for b in ALL if b.name in asked.only):
            quick = asked.quick and b.name not in asked.full
            print(f"{b.name}{' (quick)' if quick else ''} ...", file=sys.stderr, flush=True)
            results[b.name] = run(b, quick=quick, peers=peers)
            print(f"{b.name}: {results[b.name]['missing'] or str(results[b.name].get('cpu_s')) + ' CPU s'}",
                  file=sys.stderr, flush=True)  # fmt: skip
            if asked.write:
                FOLDER.mkdir(parents=True, exist_ok=True)
                kept_at.write_text(json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    from run_all_page import render

    text = render(results, ALL, FOLDER)
    if asked.write or asked.page:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "index.md").write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
