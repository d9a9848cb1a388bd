"""How long scorecards take: a results table of 100,000 runs against a plain loop, and audits of attempts of 50 steps.

python benchmarks/scorecard.py [RUNS] [ATTEMPTS] [--quick] [--json]

The plain loop does what both can: completion and reproducibility as a mean over tasks, without interval, reason or
evidence. Where inspect_ai is installed, its own reducer of epochs does completion on the same outcomes.
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from contract import row, told
from seatrial.dimensions.audit import Audit
from seatrial.dimensions.audit_record import sealed
from seatrial.dimensions.card import scorecard
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.reproducibility import Reproducibility
from seatrial.flows.scorecard import ScorecardOptions, score_sources
from seatrial.records import Agent, Attempt, Evidence, Provenance, Step, Task, TaskRef, ToolCall, ToolResult, Trace

EPOCHS = 10
T = TypeVar("T")


def outcomes(n: int) -> list[tuple[str, int, int]]:
    """Task, trial and outcome of `n` runs, ten of each task."""
    draws = random.Random(7)
    rows = []
    for task in range(n // EPOCHS):
        chance = draws.random()
        rows += [(f"task-{task}", trial, int(draws.random() < chance)) for trial in range(EPOCHS)]
    return rows


def plain(rows: list[tuple[str, int, int]]) -> tuple[float, float]:
    """The loop that people write."""
    tasks: dict[str, list[int]] = defaultdict(list)
    for task, _, y in rows:
        tasks[task].append(y)
    d1 = statistics.fmean(sum(ys) / len(ys) for ys in tasks.values())
    d3 = statistics.fmean(1 - 4 * sum(ys) * (len(ys) - sum(ys)) / (len(ys) * (len(ys) - 1)) for ys in tasks.values())
    return d1, d3


def inspect_reducer(rows: list[tuple[str, int, int]]) -> float | None:
    """Completion by inspect_ai's mean over epochs; None where it is not installed."""
    try:
        from inspect_ai.scorer import Score, mean_score
    except ImportError:
        return None
    reduce = mean_score()
    tasks: dict[str, list[Score]] = defaultdict(list)
    for task, _, y in rows:
        tasks[task].append(Score(value=y))
    return statistics.fmean(float(reduce(scores).value) for scores in tasks.values())  # type: ignore[arg-type]


def attempt(number: int, steps: int) -> Evidence:
    """An attempt of our runner's form, sealed."""
    made = [Step(index=0, event_class="simulated_user", text="go", time=0.0)]
    for i in range(1, steps):
        call = ToolCall(id=f"c{i}", name=f"tool_{i % 9}", arguments={"id": f"T-{i % 23}", "text": "x" * 40})
        result = ToolResult(call_id=call.id, outcome="ok", text="done " * 10, time=i + 0.5,
                            extra={"state_hash": "0" * 64})  # fmt: skip
        made.append(Step(index=i, event_class="agent", tool_calls=(call,), results=(result,), time=float(i)))
    trace = Trace(
        id=str(number), agent=Agent(name="a", version="1"), steps=tuple(made), task=TaskRef(id=f"t{number % 100}"),
        provenance=Provenance(format="seatrial-attempt", reader="benchmark", reader_version="1"),
        extra={"start": {}, "final": {}, "final_hash": "0" * 64, "task_spec": {"id": f"t{number % 100}"}},
    )  # fmt: skip
    seal = sealed(trace, {"status": "passed"})
    return Evidence(
        attempt=Attempt(task=f"t{number % 100}", trial=number // 100, status="passed"), trace=seal,
        task=Task(id=f"t{number % 100}", input="go"), own=True,
    )  # fmt: skip


def timed(what: str, work: Callable[[], T], per: int) -> T:
    """Run it, print processor seconds (others may share the machine) and runs per second of them."""
    began = time.process_time()
    found = work()
    took = time.process_time() - began
    row(what, per / took, "runs/CPU s", peer=what.startswith(("plain", "inspect")) and found is not None)
    print(f"{what:<58} {took:8.2f} s {per / took:12,.0f} runs/s")
    return found


def main(runs: int, attempts: int) -> None:
    """Time everything."""
    rows = outcomes(runs)
    evidence = [
        Evidence(attempt=Attempt(task=t, trial=n, status="passed" if y else "failed")) for t, n, y in rows
    ]  # fmt: skip
    d1, d3 = timed("plain loop: two means", lambda: plain(rows), runs)
    card = timed("D1 and D3 with intervals, evidence and causes",
                 lambda: scorecard(evidence, (Completion(), Reproducibility()), agent="a"), runs)  # fmt: skip
    assert abs((card.dimensions["D1"].raw or 0.0) - d1) < 1e-9
    assert abs((card.dimensions["D3"].raw or 0.0) - d3) < 1e-9
    inspected = timed("inspect_ai's mean over epochs (completion alone)", lambda: inspect_reducer(rows), runs)
    if inspected is None:
        print("  (inspect_ai is not installed)")
        row("inspect_ai", peer=True, missing="inspect_ai is not installed")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.csv"
        file.write_text("task,trial,passed\n" + "".join(f"{t},{n},{y}\n" for t, n, y in rows), encoding="utf-8")
        timed("the command's whole way from a CSV, seven dimensions",
              lambda: score_sources([str(file)], ScorecardOptions()), runs)  # fmt: skip
    made = [attempt(n, 50) for n in range(attempts)]
    audit = Audit()
    timed("D7 of attempts of 50 steps, chain verified", lambda: [audit.measure(run) for run in made], attempts)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    with told("scorecard") as small:
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 10_000 if small else 100_000,
            int(sys.argv[2]) if len(sys.argv) > 2 else 200 if small else 1_000,
        )
