"""The demo's scorecard: two agents with one completion rate, and what six other dimensions say of them.

Runs and measurements are the public ones; nothing in them knows how either agent was made.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seatrial.examples import conduct
from seatrial.flows.evidence import setting
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.scorecard import ScorecardOptions, Scored, score_sources
from seatrial.flows.suite import EXAMPLE
from seatrial.report import numbers
from seatrial.report.chapters import scorecard as chapter
from seatrial.report.section import Section
from seatrial.report.text import name

ProgressFn = Callable[[int, int | None, str], None]
DOMAIN = "assistant"
K = 5
"""Five runs of fourteen tasks by two agents: 140 runs, which the demo's minute can hold."""


def run(store: Path, *, seed: int = 7, progress: ProgressFn | None = None) -> Scored:
    """Let the assistant's tidy and slapdash agents try its tasks in `store`, and score both."""
    suite = setting(EXAMPLE + DOMAIN).suite
    assert suite is not None
    made = []
    for n, agent in enumerate(conduct.pair(DOMAIN)):
        done = run_suite(suite, agent=agent, store=store, options=RunOptions(k=K, seed=seed, concurrency=1))
        made.append(done.run)
        if progress is not None:
            progress(n + 1, 2, "agents for the scorecard")
    return score_sources(made, ScorecardOptions(store=store, suite=EXAMPLE + DOMAIN), progress)


def section(found: Scored, store: Path) -> Section:
    """Both scorecards side by side, and which dimensions tell them apart."""
    tidy, slapdash = found.cards
    apart = [c.dimension for c in found.separation[slapdash.agent] if c.separated]
    completed = [numbers.number(c.dimensions["D1"].estimate.value, "percent") for c in found.cards
                 if c.dimensions["D1"].estimate is not None]  # fmt: skip
    whole = chapter.overview(found.cards)
    told = chapter.separation(found.cards, found.separation)
    return Section(
        heading="Are they fit to deploy?",
        paragraphs=(
            f"Two agents tried an assistant's {tidy.tasks} tasks {K} times each. {name(tidy.agent)} completes "
            f"{completed[0]}, {name(slapdash.agent)} {completed[1]}: a leaderboard cannot tell them apart. "
            f"{numbers.join(apart) if apart else 'Nothing'} can.",
            "One fails always at the same tasks and leaves everything as it was. The other fails at twice as many, "
            "every second time, leaves things behind when it does, looks around first, and asks nobody for approval.",
        ),
        charts=whole.charts,
        tables=whole.tables,
        notes=(f"the runs are kept: seatrial scorecard --store {store} {found.cards[0].basis['run']}",),
        parts=(told,) if told is not None else (),
        key="demo-scorecard",
    )
