"""Pages of the web application over a store of many sessions: time, processor time and memory.

    python benchmarks/million_sessions.py [--sessions 1000000] [--store DIR] [--browser] [--write] [--quick] [--json]

Puts synthetic rows straight into the tables (sessions, outcomes, signals; a few hundred real traces stand behind
them), ranks a small store of the same models and keeps that result in the large one, then asks the application for
every page that grows with the number of sessions, twice, in one process. The second answer is the one that people
wait for; processor seconds compare where a machine is shared. `--browser` looks at the pages in Chromium too, with the
server in a process of its own; `--write` puts both into docs/reference/benchmarks/million-sessions.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import polars as pl

from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.records.tables import OUTCOMES_TABLE, SESSIONS, SIGNALS, Table
from seatrial.store import Store, frames, session_row, step_rows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "benchmarks" / "million-sessions.md"
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
        "rare text": "/sessions?text=words+that+stand+nowhere",
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
    """One page in a browser: seconds from the click to the end of its layout and first paint, at the first look, the
    second, and the quickest of three more; at the second, how many elements it has, the requests that reached the
    server, the bytes they brought, and the processor seconds of server and browser."""

    page: str
    first_s: float
    second_s: float
    best_s: float
    elements: int
    requests: int
    size: int
    server_cpu_s: float
    browser_cpu_s: float


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser saw, what it logged, its version, and the most memory that the server took."""

    seen: list[Seen]
    logged: list[str]
    browser: str
    peak_mib: float


_SHOWN = """() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(
  [performance.now() / 1000, document.querySelectorAll('*').length]))))"""


def _processes() -> dict[int, tuple[int, float, str]]:
    """Every process: its parent, its processor seconds, its name. Linux only."""
    out = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, _, rest = (folder / "stat").read_text("utf-8", "replace").rpartition(")")
            words = rest.split()
            out[int(folder.name)] = (int(words[1]), (int(words[11]) + int(words[12])) / 100, head.partition("(")[2])
    return out


def _browser_cpu() -> float:
    """Processor seconds of the browsers below this process."""
    every, below = _processes(), {os.getpid()}
    for _ in range(6):
        below |= {pid for pid, (parent, _, _) in every.items() if parent in below}
    return sum(every[pid][1] for pid in below if pid in every and "chrom" in every[pid][2])


@contextlib.contextmanager
def serving(path: Path) -> Iterator[tuple[str, int]]:
    """The application over a store, as a process of its own: its address and its number."""
    command = [sys.executable, "-c", "from seatrial.cli import main; main()", "view", "--no-browser", "--store"]
    with subprocess.Popen([*command, str(path)], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            told = next(line for line in server.stderr if "look at " in line)
            yield told.split("look at ")[1].strip().rstrip("/"), server.pid
        finally:
            server.terminate()


class Net:
    """Counts what reaches the server, through the browser's own protocol."""

    def __init__(self, page: Any) -> None:
        self.reset()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._asks)
        session.on("Network.requestServedFromCache", lambda e: self.asked.discard(e["requestId"]))
        session.on("Network.responseReceived", self._answered)
        session.on("Network.loadingFinished", self._ended)

    def reset(self) -> None:
        """Begin anew."""
        self.asked: set[str] = set()
        self.size = 0

    def _asks(self, event: dict[str, Any]) -> None:
        if not event["request"]["url"].endswith("/api/version"):  # a page asks for news while it is open
            self.asked.add(event["requestId"])

    def _answered(self, event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            self.asked.discard(event["requestId"])

    def _ended(self, event: dict[str, Any]) -> None:
        self.size += int(event["encodedDataLength"])


def seen(path: Path, n: int) -> Served:
    """Look at every page in Chromium, with the server in a process of its own. Needs playwright and a browser."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    out, logged = [], list[str]()
    with serving(path) as (address, pid), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.on("console", lambda message: logged.append(f"{message.text} {message.location.get('url', '')}"))
        page.on("pageerror", lambda error: logged.append(str(error)))
        net = Net(page)
        for title, where in pages(n).items():
            if not where.startswith("/api/"):
                out.append(_looked(page, net, pid, title, address + where))
        kind = browser.version
        browser.close()
        status = Path(f"/proc/{pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return Served(seen=out, logged=logged, browser=kind, peak_mib=peak)


def _looked(page: Any, net: Net, pid: int, title: str, address: str) -> Seen:
    taken = []
    server = browser = 0.0
    elements = requests = size = 0
    for look in range(5):
        net.reset()
        before = _processes()[pid][1], _browser_cpu()
        page.goto(address, timeout=120_000)
        seconds, there = page.evaluate(_SHOWN)
        taken.append(seconds)
        if look == 1:
            page.wait_for_timeout(200)
            server, browser = _processes()[pid][1] - before[0], _browser_cpu() - before[1]
            elements, requests, size = there, len(net.asked), net.size
    return Seen(
        page=title, first_s=taken[0], second_s=taken[1], best_s=min(taken[2:]), elements=elements, requests=requests,
        size=size, server_cpu_s=server, browser_cpu_s=browser,
    )  # fmt: skip


def report(n: int, found: list[Load], shown: Served, before: float) -> str:
    """What came out, as a page."""
    load = f"{before:.1f}, {os.getloadavg()[0]:.1f}"
    size = "" if n >= 1_000_000 else f"**A run of less than the full size.** {n:,} sessions. "
    by = {one.page: one for one in shown.seen}
    rows = []
    for one in found:
        look = by.get(one.page)
        seen_of = "| | | | | | |" if look is None else (
            f"| {look.first_s:.2f} | {look.second_s:.2f} | {look.best_s:.2f} | {look.server_cpu_s:.2f} | "
            f"{look.browser_cpu_s:.2f} | {look.requests} |"
        )  # fmt: skip
        rows.append(f"| {one.page} | {one.first_s:.2f} | {one.second_s:.2f} | {one.second_cpu_s:.3f} {seen_of} "
                    f"{one.size:,} |")  # fmt: skip
    return "\n".join([
        "# A million sessions in the browser", "",
        "Made by `python benchmarks/million_sessions.py --browser --write`, which tells what is measured and how: a "
        "store of a million synthetic sessions with outcomes and signals, ranked; every page that grows with them, "
        "asked for by HTTP and looked at in Chromium, from the click to the end of its layout and first paint.", "",
        f"{size}{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, Polars "
        f"{version('polars')}, Starlette {version('starlette')}, Chromium {shown.browser} without a graphics "
        f"processor, {datetime.now(UTC):%Y-%m-%d}. Load average over one minute when it began and ended: {load} (wall "
        "time is the machine's own only where that is no more than the number of cores; processor seconds compare).",
        "", "| page | HTTP: first s | second s | its CPU s | Chromium: first s | second s | quickest of 3 more | "
        "server CPU s | browser CPU s | requests | bytes |", "|---|---|---|---|---|---|---|---|---|---|---|", *rows, "",
        f"- Most memory of the server: {shown.peak_mib:,.0f} MiB, while the first snapshot of the sessions is built.",
        "- The requests and the processor seconds in Chromium are those of the second look: style sheet, script and "
        "icon have names that change with their content, so a browser asks for them once.",
        f"- The searched traces are {BLOBS} files that all sessions share, so they are read from memory; *rare text* "
        "looks for words that stand nowhere, reads for the time that a page gives itself and says plainly how far it "
        "came; a button reads on to the last session.", "",
    ])  # fmt: skip


def main(quick: bool) -> None:
    from contract import also, row

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20_000 if quick else 1_000_000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--browser", action="store_true", help="look at the pages in Chromium too")
    parser.add_argument("--write", action="store_true", help="put what --browser saw into the page of the docs")
    given = parser.parse_args()
    if given.write and not given.browser:
        parser.error("--write needs --browser")
    before = os.getloadavg()[0]
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
        shown = seen(path, given.sessions) if given.browser else None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    also("loads", msgspec.to_builtins(found))
    also("peak_mib", peak)
    also("served", None if shown is None else msgspec.to_builtins(shown))
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
    for look in [] if shown is None else shown.seen:
        print(
            f"{look.page:<14} in Chromium: {look.first_s:.2f} s, then {look.second_s:.2f} s, best {look.best_s:.2f} s, "
            f"{look.elements:,} elements, {look.requests} requests, {look.size:,} bytes, {look.server_cpu_s:.2f} and "
            f"{look.browser_cpu_s:.2f} CPU s"
        )
    if shown is not None:
        print(f"server: at most {shown.peak_mib:,.0f} MiB; logged: {shown.logged or 'nothing'}")
        if given.write:
            PAGE.write_text(report(given.sessions, found, shown, before))


if __name__ == "__main__":
    from contract import told

    with told("million_sessions") as small:
        main(small)
