"""Many steps on one machine: extraction and ranking against the machine's own limit, and the cost of a little more.

    python benchmarks/ten_million.py [--steps 10000000] [--store DIR] [--workers 2] [--write]

Writes a store of synthetic sessions of realistic sizes (two thousand different conversations whose lengths are
log-normal; every session says something of its own), unless DIR has one. Then measures, each in a process of its own:

- the limit: decompress and parse every stored trace, nothing else, in as many processes;
- `seatrial rank`: extraction of every signal, then the ranking;
- `seatrial rank` again after one percent more sessions came.

CPU seconds compare where a machine is shared; wall time and peak memory (of the largest process) stand beside them.
`--write` puts the table into docs/reference/benchmarks/ten-million.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl

from seatrial.engine.local import map_sessions
from seatrial.records import Agent, Provenance, Step, TaskRef, ToolCall, ToolResult, Totals, Trace, Usage
from seatrial.store import Store, frames, session_row, step_rows

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks" / "ten-million.md"
MODELS = ("amber", "birch", "cobalt", "dune")
SHAPES = 2_000
CHUNK = 4_096
T0 = 1_780_000_000.0

ASKED = (
    "please fix the failing test in {f}", "add a flag to {f} that skips the cache", "why is {f} read twice?",
    "rename the class in {f} and update its callers", "write a test for {f}", "the import in {f} is wrong, please look",
)  # fmt: skip
ANSWERED = (
    "I read {f} and changed the loop so that the buffer is flushed once.", "Done: {f} now takes the flag.",
    "The test in {f} passes now.", "I looked at {f}; the second read comes from the validator, so I removed it.",
)  # fmt: skip
REACTED = (
    ("perfect, thank you", 0.10), ("that works", 0.08), ("ok", 0.06), ("commit this", 0.05),
    ("no, that is wrong, undo it", 0.07), ("this is still broken, the test fails", 0.06),
    ("now do the same for {f}", 0.30), ("and {f}?", 0.28),
)  # fmt: skip
WORDS = ("def", "return", "self", "path", "value", "error", "line", "file", "test", "import", "cache", "loop", "read",
         "write", "open", "close", "class", "token")  # fmt: skip


def _words(rng: random.Random, n: int) -> str:
    return " ".join(rng.choices(WORDS, k=n))


def shape(number: int) -> Trace:
    """One conversation: a log-normal number of steps, about one tool call in each agent step, results of hundreds of
    characters."""
    rng = random.Random(number)
    n = max(4, min(2_000, int(rng.lognormvariate(4.3, 0.8))))
    model = MODELS[number % len(MODELS)]
    at, steps = T0 + number * 60.0, []
    index = 0
    while index < n:
        file = f"src/{rng.choice(WORDS)}_{rng.randrange(100)}.py"
        lines = ASKED if index == 0 else [r for r, _ in REACTED]
        weights = None if index == 0 else [w for _, w in REACTED]
        said = rng.choices(lines, weights=weights)[0].format(f=file)
        steps.append(Step(index=index, event_class="human", text=said, time=at))
        index += 1
        for _ in range(rng.randrange(3, 14)):
            at += rng.uniform(2, 30)
            call = ToolCall(id=f"c{index}", name=rng.choice(("Bash", "Read", "Edit")),
                            arguments={"command": f"grep -n {rng.choice(WORDS)} {file}", "path": file})  # fmt: skip
            failed = rng.random() < 0.06
            result = ToolResult(call_id=call.id, outcome="error" if failed else "ok", exit_code=1 if failed else 0,
                                text=_words(rng, rng.randrange(10, 120)), time=at + 1)  # fmt: skip
            steps.append(
                Step(index=index, event_class="agent", text=rng.choice(ANSWERED).format(f=file), time=at, model=model,
                     tool_calls=(call,), results=(result,), usage=Usage(input_tokens=900, output_tokens=80))
            )  # fmt: skip
            index += 1
        at += rng.uniform(20, 600)
    return Trace(
        id=f"shape-{number}", agent=Agent(name="synthetic", version="1"), model=model, task=TaskRef(type="coding"),
        provenance=Provenance(format="synthetic", reader="benchmark", reader_version="1"), steps=tuple(steps),
        totals=Totals(usage=Usage(input_tokens=900 * n, output_tokens=80 * n)),
    )  # fmt: skip


def sessions(n_steps: int, first: int) -> Iterator[Trace]:
    """Sessions until there are so many steps; each greets in words of its own, so that no two blobs are equal."""
    shapes = [shape(i) for i in range(SHAPES)]
    done, number = 0, first
    while done < n_steps:
        like = shapes[number % SHAPES]
        opening = msgspec.structs.replace(like.steps[0], text=f"{like.steps[0].text} (ticket {number})")
        user = f"user-{number % max(1, 20_000)}"
        yield msgspec.structs.replace(like, id=f"s{number:08d}", user=user, steps=(opening, *like.steps[1:]))
        done += len(like.steps)
        number += 1


def fill(store: Store, n_steps: int, first: int) -> tuple[int, int]:
    """Put sessions into the store; how many, with how many steps."""
    n = steps = 0
    batch: list[Trace] = []

    def keep() -> None:
        rows = [session_row(t, store.put(t, durable=False)) for t in batch]
        store.commit(frames(rows, [row for t in batch for row in step_rows(t)]))
        batch.clear()
        print(f"\r{steps:,} steps", end="", file=sys.stderr, flush=True)

    for trace in sessions(n_steps, first):
        batch.append(trace)
        n, steps = n + 1, steps + len(trace.steps)
        if len(batch) == CHUNK:
            keep()
    if batch:
        keep()
    print(file=sys.stderr)
    return n, steps


def parse(path: str, ids: list[str]) -> int:
    """The limit: every trace of a batch decompressed and parsed."""
    store = Store.open(path)
    blobs = store.blobs_of(ids)
    return sum(len(store.trace_of(blobs[i]).steps) for i in ids)


def limit(path: str, workers: int) -> int:
    """Parse everything."""
    from functools import partial

    ids = Store.open(path).session_ids()
    batches = [ids[i : i + 64] for i in range(0, len(ids), 64)]
    return sum(map_sessions(partial(parse, path), batches, workers=workers))


def measured(arguments: list[str]) -> dict[str, float]:
    """Wall and CPU seconds and the largest process's memory of a command."""
    # Workers belong to a server process that outlives the command for a moment: as their reaper, wait for all of them,
    # so that their time is counted.
    code = (
        "import ctypes, json, os, resource, subprocess, time\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "t = time.perf_counter()\n"
        f"done = subprocess.run({arguments!r}, stdout=subprocess.PIPE)\n"
        "wall = time.perf_counter() - t\n"
        "try:\n"
        "    while True: os.wait()\n"
        "except ChildProcessError: pass\n"
        "use = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps({'wall': wall, 'cpu': use.ru_utime + use.ru_stime,"
        " 'mb': use.ru_maxrss / 1024, 'code': done.returncode, 'out': done.stdout.decode()[-200:]}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    if answer["code"] != 0:
        sys.exit(f"failed: {arguments}\n{done.stderr}{answer['out']}")
    return answer


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
    folder = Path(options.store)
    fresh = not (folder / "store.json").exists()
    store = Store.open(folder, create=True, durable=False)
    if fresh:
        fill(store, options.steps, 0)
    n, steps = store.table("sessions").select(pl.len(), pl.col("steps").sum()).collect().row(0)
    rank = [sys.executable, "-m", "seatrial", "rank", "--store", str(folder), "--draws", "999", "--json",
            "--workers", str(options.workers)]  # fmt: skip
    least = [sys.executable, __file__, "--limit-only", "--store", str(folder), "--workers", str(options.workers)]
    rows = [
        ("decompress and parse only (the limit)", measured(least)),
        ("seatrial rank: extract and rank", measured(rank)),
        ("seatrial rank again, nothing new", measured(rank)),
    ]  # fmt: skip
    fill(store, max(1, steps // 100), n)
    rows.append(("seatrial rank after 1% more", measured(rank)))
    text = [
        f"{n:,} sessions, {steps:,} steps; {platform.machine()}, {options.workers} processes, Python "
        f"{platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}.",
        "",
        "| work | wall s | CPU s | peak MB | CPU / limit |",
        "|---|---|---|---|---|",
    ]
    base = rows[0][1]["cpu"]
    text += [
        f"| {what} | {m['wall']:.1f} | {m['cpu']:.1f} | {m['mb']:.0f} | {m['cpu'] / base:.2f} |" for what, m in rows
    ]
    print("\n".join(text))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this script itself: {own:.0f} MB)", file=sys.stderr)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(
            "# Ten million steps\n\nMade by `benchmarks/ten_million.py --write`: extraction and ranking against the "
            "limit of decompressing and parsing the same stored traces. Peak MB is of the largest process.\n\n"
            + "\n".join(text) + "\n"
        )  # fmt: skip


if __name__ == "__main__":
    main()
