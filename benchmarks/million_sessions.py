"""Pages of the web application over a store of many sessions: time, processor time and memory.

    python benchmarks/million_sessions.py [--sessions 1000000] [--store DIR] [--browser] [--quick] [--json]

Puts synthetic rows straight into the tables (sessions, outcomes, signals; a few hundred real traces stand behind
them), ranks a small store of the same models and keeps that result in the large one, then asks the application for
every page that grows with the number of sessions, twice, in one process. The second answer is the one that people
wait for; processor seconds compare where a machine is shared.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import polars as pl

from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.records.tables import OUTCOMES_TABLE, SESSIONS, SIGNALS, Table
from seatrial.store import Store, frames, session_row, step_rows

MODELS = ("model-a", "model-b", "model-c", "model-d")
TYPES = ("coding", "writing", "data", "operations", "research", "support")
HARNESSES = ("claude-code", "codex", "opencode")
BLOBS = 200
PEOPLE = 50_000
T0 = 1_700_000_000.0
CHUNK = 250_000


def name(number: int) -> str:
    """A session's id."""
    return f"session-{number:010d}-of-many"


def trace(number: int) -> Trace:
    """A short conversation; every fifth goes wrong, of one model every third."""
    model, at = MODELS[number % len(MODELS)], T0 + 60.0 * number
    bad = number % (3 if model == "model-b" else 5) == 0
    said = "No, that is wrong. You broke the totals." if bad else "Perfect, thank you, that works!"
    call = ToolCall(id="c1", name="Bash", arguments={"command": "pytest -q"})
    result = ToolResult(call_id="c1", outcome="error" if bad else "ok", exit_code=int(bad), text="3 passed")
    steps = (
        Step(index=0, event_class="human", text=f"Please write report {number} about the sales.", time=at),
        Step(index=1, event_class="agent", text="Done.", model=model, time=at + 20, tool_calls=(call,),
             results=(result,)),
        Step(index=2, event_class="human", text=said, time=at + 60),
        Step(index=3, event_class="agent", text="Noted.", model=model, time=at + 80),
    )  # fmt: skip
    return Trace(
        id=name(number), agent=Agent(name=HARNESSES[0], version="2"), model=model, user=f"user-{number % PEOPLE:08d}",
        provenance=Provenance(format="made", reader="made", reader_version="1", file=f"{number}.jsonl"), steps=steps,
    )  # fmt: skip


def _frame(table: Table, columns: dict[str, Any], n: int) -> pl.DataFrame:
    nulls = {c: pl.Series(c, [None], dtype=t).new_from_index(0, n) for c, t in table.schema().items()}
    made = {c: nulls[c] if columns.get(c) is None else pl.Series(c, columns[c], dtype=t)
            for c, t in table.schema().items()}  # fmt: skip
    return pl.DataFrame(made)


def _labels(values: tuple[str, ...], at: np.ndarray) -> pl.Series:
    return pl.Series(list(values)).gather(pl.Series(at))


def rows(first: int, n: int, blobs: list[str], seed: int) -> dict[str, pl.DataFrame]:
    """Rows of sessions [first, first + n) of three tables."""
    rng = np.random.default_rng((seed, first))
    number = np.arange(first, first + n)
    ids = pl.select(
        pl.format("session-{}-of-many", pl.lit(pl.Series(number)).cast(pl.String).str.zfill(10))
    ).to_series()
    users = pl.select(pl.format("user-{}", pl.lit(pl.Series(number % PEOPLE)).cast(pl.String).str.zfill(8))).to_series()
    start = T0 + 60.0 * number
    arm = _labels(MODELS, number % len(MODELS))
    kind = _labels(TYPES, rng.integers(0, len(TYPES), n))
    agent = _labels(HARNESSES, rng.integers(0, len(HARNESSES), n))
    parent = pl.select(pl.when(pl.lit(pl.Series(number % 20 == 7))).then(pl.lit(ids.shift(1)))).to_series()
    complaints = rng.binomial(2, 0.1, n)
    corrections = rng.binomial(2, 0.08, n)
    errors = rng.binomial(4, 0.05, n)
    praise = rng.binomial(1, 0.2, n)
    calls = errors + rng.integers(1, 30, n)
    blob = pl.Series(blobs).gather(pl.Series(number % len(blobs)))
    shared = {"session": ids, "agent": agent, "arm": arm, "user": users, "parent": parent, "start": start,
              "task_type": kind, "mixed": np.zeros(n, bool)}  # fmt: skip
    sessions = _frame(
        SESSIONS,
        {**shared, "blob": blob, "agent_version": ["2"] * n, "end": start + 300, "steps": rng.integers(4, 400, n),
         "human_turns": rng.integers(1, 9, n), "agent_turns": rng.integers(1, 200, n), "tool_calls": calls,
         "tool_errors": errors, "input_tokens": rng.integers(500, 90_000, n),
         "output_tokens": rng.integers(50, 9_000, n),
         "cost_usd": rng.gamma(2.0, 0.2, n), "wall_s": rng.gamma(2.0, 200.0, n), "format": ["made"] * n,
         "source_bytes": rng.integers(1_000, 90_000, n), "reader": ["made"] * n, "reader_version": ["1"] * n},
        n,
    )  # fmt: skip
    outcomes = _frame(
        OUTCOMES_TABLE,
        {**shared, "served": arm, "difficulty": ["unknown"] * n, "confirmed_success": (complaints == 0).astype(float),
         "praise_over_complaint": (praise >= complaints).astype(float), "steerability": (corrections < 2).astype(float),
         "command_recovery": (errors < 2).astype(float), "no_tool_hallucination": np.ones(n),
         "score": (praise - complaints).astype(float), "n_confirmation": rng.integers(0, 2, n),
         "n_accept_implicit": rng.integers(0, 3, n), "n_praise": praise, "n_complaint": complaints,
         "n_correction": corrections, "n_execution_error": errors, "calls_counted": calls, "calls_ok": calls - errors,
         "blob": blob},
        n,
    )  # fmt: skip
    hit = np.flatnonzero((complaints > 0) | (corrections > 0) | (errors > 0))
    which = np.where(complaints[hit] > 0, 0, np.where(corrections[hit] > 0, 1, 2))
    signals = _frame(
        SIGNALS,
        {"session": ids.gather(pl.Series(hit)), "step": np.where(which == 2, 1, 2),
         "kind": _labels(("complaint", "correction", "execution_error"), which), "detector": ["made"] * len(hit),
         "version": ["1"] * len(hit), "confidence": rng.uniform(0.5, 1.0, len(hit)), "span_start": [0] * len(hit),
         "span_end": [17] * len(hit), "span_field": ["text"] * len(hit), "quote": ["No, that is wrong"] * len(hit),
         "time": start[hit] + 60, "model": arm.gather(pl.Series(hit)), "value": np.ones(len(hit))},
        len(hit),
    )  # fmt: skip
    return {SESSIONS.name: sessions, OUTCOMES_TABLE.name: outcomes, SIGNALS.name: signals}


def fill(path: Path, n: int, seed: int = 0) -> Store:
    """Make a store of `n` sessions, in a few large commits."""
    store = Store.open(path, create=True, durable=False)
    blobs = [store.put(trace(i), durable=False) for i in range(BLOBS)]
    for first in range(0, n, CHUNK):
        store.commit(rows(first, min(CHUNK, n - first), blobs, seed), replace_sessions=[])
    return store


def rank_like(store: Store, n: int = 80) -> None:
    """Keep a ranking of the same models, made from a small store, as a result of this one."""
    from seatrial.cli.app import run

    with tempfile.TemporaryDirectory() as folder:
        small = Store.open(Path(folder) / "store", create=True, durable=False)
        traces = [trace(i * 7) for i in range(n)]
        made = [session_row(t, small.put(t, durable=False)) for t in traces]
        small.commit(frames(made, [r for t in traces for r in step_rows(t)]))
        with contextlib.redirect_stdout(io.StringIO()):
            status = run(["rank", "--store", str(small.path), "--draws", "999", "--workers", "1", "--json"])
        if status != 0:
            raise SystemExit("the small store could not be ranked")
        (head,) = small.results("rank")
        store.save_result("rank", head.name, {**small.result(head.id).envelope, "data_version": store.data_version})


def pages(n: int) -> dict[str, str]:
    """Addresses that grow with the number of sessions."""
    middle = name(n // 2)
    return {
        "leaderboard": "/",
        "why": "/why?model=model-b",
        "sessions": "/sessions",
        "facets": "/sessions?model=model-b&type=coding&with=complaint&order=errors",
        "search": f"/sessions?q={quote(str(n // 2))}",
        "deep": f"/sessions?page={max(n // 50 * 9 // 10, 1)}",
        "deep by cost": f"/sessions?page={max(n // 50 * 9 // 10, 1)}&order=cost&agents=all",
        "text": "/sessions?text=broke+the+totals",
        "session": f"/session?id={middle}",
        "steps": f"/session/steps?id={middle}",
        "suites": "/suites",
        "triage": "/triage",
        "label": "/label",
        "audit": "/audit",
        "API": "/api/sessions?limit=500&order=complaints",
    }


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One page: seconds and processor seconds of the first and second answer, and its bytes."""

    page: str
    first_s: float
    first_cpu_s: float
    second_s: float
    second_cpu_s: float
    size: int


def loads(store: Store, n: int) -> Iterator[Load]:
    """Ask for every page twice.

    Raises:
        RuntimeError: a page does not answer with 200.
    """
    from starlette.testclient import TestClient

    from seatrial.server import ServerSettings
    from seatrial.server.app import make

    with TestClient(make(store, ServerSettings()), base_url="http://127.0.0.1:4318") as client:
        for title, address in pages(n).items():
            taken = []
            for _ in range(2):
                wall, cpu = time.perf_counter(), time.process_time()
                answer = client.get(address)
                taken += [time.perf_counter() - wall, time.process_time() - cpu]
                if answer.status_code != 200:
                    raise RuntimeError(f"{address}: {answer.status_code} {answer.text[-500:]}")
            yield Load(page=title, first_s=taken[0], first_cpu_s=taken[1], second_s=taken[2], second_cpu_s=taken[3],
                       size=len(answer.content))  # fmt: skip


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One page in a browser: seconds from the click to the end of its layout and first paint, at the first and the
    second look, and how many elements it has."""

    page: str
    first_s: float
    second_s: float
    elements: int


_SHOWN = """() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(
  [performance.now() / 1000, document.querySelectorAll('*').length]))))"""


def seen(path: Path, n: int) -> Iterator[Seen]:
    """Look at every page twice in Chromium, with the server in a process of its own. Needs playwright and a browser."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-c", "from seatrial.cli import main; main()", "view", "--no-browser"]
    with subprocess.Popen([*command, "--store", str(path)], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = next(line.split("look at ")[1].strip().rstrip("/") for line in server.stderr if "look at " in line)
        found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        try:
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                for title, where in pages(n).items():
                    if where.startswith("/api/"):
                        continue
                    taken = []
                    for _ in range(2):
                        page.goto(address + where, timeout=120_000)
                        taken.append(page.evaluate(_SHOWN))
                    yield Seen(page=title, first_s=taken[0][0], second_s=taken[1][0], elements=taken[1][1])
                browser.close()
        finally:
            server.terminate()


def main(quick: bool) -> None:
    from contract import also, row

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20_000 if quick else 1_000_000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--browser", action="store_true", help="look at the pages in Chromium too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.store or Path(folder) / "store"
        began, cpu = time.perf_counter(), time.process_time()
        if path.exists():
            store = Store.open(path)
        else:
            store = fill(path, given.sessions)
            rank_like(store)
        made = f"made in {time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s of processor)"
        found = list(loads(store, given.sessions))
        shown = list(seen(path, given.sessions)) if given.browser else []
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    also("loads", msgspec.to_builtins(found))
    also("peak_mib", peak)
    also("seen", msgspec.to_builtins(shown))
    for one in found:
        row(
            f"page {one.page}, second answer",
            1000 * one.second_cpu_s,
            "CPU ms",
            note=f"first {1000 * one.first_cpu_s:.0f}",
        )
    row("memory of the process", peak, "MiB", note=f"{given.sessions:,} sessions")
    print(f"{given.sessions:,} sessions, {made}; peak {peak:,.0f} MiB")
    print(f"{'page':<14}{'first s':>9}{'cpu':>8}{'second s':>10}{'cpu':>8}{'bytes':>11}")
    for one in found:
        print(f"{one.page:<14}{one.first_s:>9.2f}{one.first_cpu_s:>8.2f}{one.second_s:>10.2f}{one.second_cpu_s:>8.2f}"
              f"{one.size:>11,}")  # fmt: skip
    for look in shown:
        print(
            f"{look.page:<14} in Chromium: {look.first_s:.2f} s, then {look.second_s:.2f} s, {look.elements:,} elements"
        )


if __name__ == "__main__":
    from contract import told

    with told("million_sessions") as small:
        main(small)
