"""The demo's second half: an agent's baseline, the same agent again, and the agent broken, each run through the gate.

Runs, gate and settings are the public ones; nothing in them knows that a description was taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from seatrial.examples import reception
from seatrial.flows.check import CheckOptions, check
from seatrial.flows.demo_result import GateDemo
from seatrial.flows.run import RunOptions, run_suite
from seatrial.report import numbers
from seatrial.report.chapters import gate as chapter
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import name
from seatrial.suites import Suite
from seatrial.suites.runner import Tally

ProgressFn = Callable[[int, int | None, str], None]
BASELINE, UNCHANGED, BROKEN = "reception-baseline", "reception-unchanged", "reception-broken"
LOST = "cancel"
"""The tool whose description is taken away."""
K = 5
"""Thirty tasks five times: 150 attempts, where 149 without a difference exclude a drop of two points (METHODS 6.5)."""


def run(store: Path, *, seed: int = 7, progress: ProgressFn | None = None) -> GateDemo:
    """Run the front desk's thirty tasks three times into `store`, and decide twice with the gate's default settings.

    The unchanged agent has other luck than its baseline; the broken one has the same.
    """
    whole = reception.DESCRIPTIONS
    for n, (label, descriptions, luck) in enumerate(
        ((BASELINE, whole, seed), (UNCHANGED, whole, seed + 1), (BROKEN, {**whole, LOST: ""}, seed))
    ):
        _attempt(store, label, descriptions, luck, _told(progress, n))
    options = CheckOptions(store=store)
    return GateDemo(
        store=store,
        lost=LOST,
        unchanged=check(Path(BASELINE), Path(UNCHANGED), options).comparison,
        broken=check(Path(BASELINE), Path(BROKEN), options).comparison,
    )


def _attempt(
    store: Path, label: str, descriptions: Mapping[str, str], seed: int, told: Callable[[Tally], None]
) -> None:
    suite = Suite("reception", reception.tasks(), world=reception.desk(descriptions))
    run_suite(
        suite,
        agent=reception.AGENT,
        store=store,
        options=RunOptions(k=K, seed=seed, name=label, concurrency=1),
        progress=told,
    )


def _told(progress: ProgressFn | None, before: int) -> Callable[[Tally], None]:
    def tell(tally: Tally) -> None:
        if progress is not None:
            progress(before * tally.total + tally.done, 3 * tally.total, "attempts for the gate")

    return tell


def section(found: GateDemo) -> Section:
    """Both verdicts with their numbers, and of the broken agent what it did differently from where on."""
    worse = [task for task in found.broken.regressed_tasks if task.diff is not None]
    shown = worse[0] if worse else None
    lower = len({task.task for task in found.broken.regressed_tasks})
    n = len(reception.tasks())
    says = {
        "REGRESSION": f"Without the description of {name(found.lost)} the agent still has the tool, and does worse at "
        f"{lower} of {n} tasks. The gate stops the change.",
    }
    return Section(
        heading="Would a gate have stopped a bad change?",
        paragraphs=(
            f"An agent at a hotel's front desk takes the tool whose description is most like the guest's words. It "
            f"tried {n} tasks {K} times each for a baseline, again unchanged under other luck, and again with the "
            "description of one tool taken away. Nothing looks for a missing description.",
            f"Unchanged: {found.unchanged.verdict}. {chapter.SAYS[found.unchanged.verdict]}",
            f"Broken: {found.broken.verdict}. {says.get(found.broken.verdict, chapter.SAYS[found.broken.verdict])}",
        ),
        tables=(_verdicts(found),),
        notes=(
            f"default settings: the margin is {numbers.number(found.broken.margin, 'size')} points of any metric; "
            "tasks passed is one of several metrics and the verdict is over all of them",
            f"the runs are kept: seatrial gate --store {found.store} --baseline {BASELINE} --candidate {BROKEN}",
        ),
        parts=(chapter.diff(shown.diff, task=shown.task),) if shown is not None and shown.diff is not None else (),
        key="demo-gate",
    )


def _verdicts(found: GateDemo) -> Table:
    rows = []
    for label, c in (("unchanged", found.unchanged), ("broken", found.broken)):
        passed = c.metrics[0]
        rows.append(
            (
                label,
                c.verdict,
                ", ".join(c.changed) or "nothing",
                numbers.number(passed.baseline, "percent"),
                numbers.number(passed.candidate, "percent"),
                numbers.stacked(passed.difference, "points"),
            )
        )
    return Table(
        caption="The gate's verdicts, and the attempts that passed",
        columns=(
            Column(head="candidate"),
            Column(head="verdict"),
            Column(head="what changed"),
            Column(head="baseline", right=True),
            Column(head="candidate", right=True),
            Column(head="difference [90%]", right=True),
        ),
        rows=tuple(rows),
    )
