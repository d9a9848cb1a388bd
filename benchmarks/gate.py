"""How often gates err: unchanged agents, drops of the margin, and the drops that must be seen (METHODS 6.5).

Usage: python benchmarks/gate.py [SIMULATIONS] [PEER_SIMULATIONS] [--quick] [--json]

Defaults are 10000 and 300; 0 leaves a part out.

The same counts go to the default gate, to the literal rule "block on a drop of more than two points", and to the
packages regressgate and holdline, which are installed into a folder of their own first, each with its own defaults. A
peer has no third answer: what it does not block, it lets pass.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "quality"))

import numpy as np
from gate_designs import FLAKINESS, chances, concentrated, dropped, partly, simulate

from contract import installed, row, told

SIZES = ((30, 5), (100, 5))
DROPS = (0, 2, 5, 8, 10, 12, 15, 20)
PEERS = ("regressgate==0.1.0", "holdline==0.2.1")
PEER_KINDS = ("mixed", "steady", "near perfect")
Counts = np.ndarray[Any, np.dtype[np.int64]]


def main(quick: bool) -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500 if quick else 10_000
    few = int(sys.argv[2]) if len(sys.argv) > 2 else 4 if quick else 300
    if n:
        own(n, np.random.default_rng(1))
    if few:
        with tempfile.TemporaryDirectory() as folder:
            install(folder)
            peers(few, np.random.default_rng(1))


def own(n: int, rng: np.random.Generator) -> None:
    """This gate and the point rule: error rates, then power."""
    began, decided = time.process_time(), 0
    print(f"{n} simulations per cell; REGRESSION of unchanged agents over six metrics, and the point rule")
    heads = ("tasks", "gate", "point", "any of 6", "PASS", "false PASS", "few tasks")
    print(f"{'agents':14s}" + "".join(f"{h:>{w}s}" for h, w in zip(heads, (6, 8, 8, 10, 8, 12, 10), strict=True)))
    for tasks, runs in SIZES:
        for kind in ("design", *FLAKINESS, "perfect"):
            p = np.ones((n, tasks)) if kind == "perfect" else chances(kind, tasks, n, rng)
            same = simulate(p, p, runs, metrics=6, seed=2)
            spread = simulate(p, dropped(p, 0.02), runs, seed=3)
            heaped = simulate(p, concentrated(p, 0.02), runs, seed=4)
            decided += 8 * n
            if (tasks, kind) == (30, "design"):
                row("unchanged agent blocked over six metrics, 30 x 5: gate", 100 * same.regression, "%")
                row("the same: block on a drop of 2 points", 100 * same.point_any, "%", peer=True)
            print(
                f"{kind:14s}{tasks:6d}{same.regression:8.1%}{same.point:8.1%}{same.point_any:10.1%}{same.pass_one:8.1%}"
                f"{spread.passes:12.1%}{heaped.passes:10.1%}"
            )
    row("a metric decided on 30 or 100 tasks, in bulk", 1e6 * (time.process_time() - began) / decided, "CPU us")
    print("\n'design': the agents of METHODS 6.5, mean p(1 - p) = .10. The drop comes from all tasks, a third, or few")
    print("REGRESSION by true drop in points (power; 0 is the false alarm), one metric")
    print(f"{'agents':14s}{'tasks':>6s}{'drop':>14s}" + "".join(f"{d:7d}" for d in DROPS))
    for tasks, runs in SIZES:
        for kind in ("design", *FLAKINESS):
            p = chances(kind, tasks, n, rng)
            for name, how in (("all tasks", dropped), ("a third", partly), ("few tasks", concentrated)):
                curve = [simulate(p, how(p, d / 100), runs, seed=5).regression for d in DROPS]
                print(f"{kind:14s}{tasks:6d}{name:>14s}" + "".join(f"{x:7.1%}" for x in curve))


def install(folder: str) -> None:
    """The peers, unless they are there, in a folder that is gone afterwards; behind everything else on the path, so
    that what they need and is here already stays as it is. One that cannot be installed is told by the import."""
    if installed("regressgate") and installed("holdline"):
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *PEERS]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        print(f"the peers cannot be installed: {made.stderr.strip()[-200:]}")
    sys.path.append(folder)


def peers(n: int, rng: np.random.Generator) -> None:
    """The same counts through every gate that is there."""
    gates: dict[str, Callable[[Counts, Counts, int], bool]] = {"point rule": _point, "seatrial": _ours}
    for name, make in (("regressgate", _regressgate), ("holdline", _holdline)):
        try:
            gates[name] = make()
        except ImportError:
            print(f"\n{name} is not installed")
            row(f"{name}: compare 30 tasks x 5 runs", peer=True, missing=f"{name} is not installed")
    print(f"\nShare of comparisons blocked, 30 tasks x 5 runs, {n} per cell ({', '.join(gates)})")
    print(f"{'agents':14s}{'drop':>6s}" + "".join(f"{name:>13s}" for name in gates) + f"{'seconds':>10s}")
    spent: dict[str, float] = {}
    for kind in PEER_KINDS:
        for drop in (0.0, 0.05, 0.10, 0.15):
            start = time.perf_counter()
            p = chances(kind, 30, n, rng)
            b, c = rng.binomial(5, p), rng.binomial(5, dropped(p, drop))
            blocked = {}
            for name, gate in gates.items():
                began = time.process_time()
                blocked[name] = np.mean([gate(x, y, 5) for x, y in zip(b, c, strict=True)])
                spent[name] = spent.get(name, 0.0) + time.process_time() - began
            took = time.perf_counter() - start
            print(
                f"{kind:14s}{drop * 100:6.0f}" + "".join(f"{blocked[m]:13.1%}" for m in gates) + f"{took:10.0f}",
                flush=True,
            )

    each = {name: 1000 * s / (4 * len(PEER_KINDS) * n) for name, s in spent.items()}
    for name, ms in each.items():
        ours = name in ("seatrial", "point rule")
        row(f"{name}: compare 30 tasks x 5 runs", ms, "CPU ms", peer=not ours, times=ms / each["seatrial"])


def _point(b: Counts, c: Counts, runs: int) -> bool:
    return bool(b.sum() - c.sum() > 0.02 * b.size * runs + 1e-9)


def _ours(b: Counts, c: Counts, runs: int) -> bool:
    from seatrial.gate import MetricRuns, Run, TaskRuns, decide

    def run(label: str, counts: Counts) -> Run:
        tasks = {str(i): TaskRuns(values=(1.0,) * int(k) + (0.0,) * (runs - int(k))) for i, k in enumerate(counts)}
        return Run(label=label, metrics={"passed": MetricRuns(tasks=tasks)}, tasks=dict.fromkeys(tasks))

    return decide(run("b", b), run("c", c)).verdict == "REGRESSION"


def _regressgate() -> Callable[[Counts, Counts, int], bool]:
    from regressgate.gate import GateConfig, compare_reports
    from regressgate.run_report import CaseResult, RunReport, Trial

    def report(counts: Counts, runs: int) -> Any:
        cases = [
            CaseResult(id=str(i), trials=[Trial(passed=t < k, latency_s=0.0) for t in range(runs)])
            for i, k in enumerate(counts)
        ]
        return RunReport(regressgate_version="0", created_at="0", target="x", repeats=runs, cases=cases)

    config = GateConfig(permutations=2000)
    return lambda b, c, runs: bool(compare_reports(report(b, runs), report(c, runs), config).failed)


def _holdline() -> Callable[[Counts, Counts, int], bool]:
    from holdline.gate import gate
    from holdline.importers import load_results

    def load(counts: Counts, runs: int, folder: str, name: str) -> Any:
        path = Path(folder) / f"{name}.csv"
        rows = [f"{i},{t},{int(t < k)}" for i, k in enumerate(counts) for t in range(runs)]
        path.write_text("\n".join(["case_id,repeat,passed", *rows]) + "\n")
        return load_results(str(path))

    def blocks(b: Counts, c: Counts, runs: int) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            return not gate(load(c, runs, folder, "c"), load(b, runs, folder, "b")).passed

    return blocks


if __name__ == "__main__":
    with told("gate") as small:
        main(small)
