"""A planned scorecard: what its runs would take, and what so many can certify."""

from __future__ import annotations

from typing import Any

from seatrial.report import words
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, name


def plan(made: Any) -> Section:
    """What the runs would take by agent, and what they certify."""
    return Section(
        heading=f"Plan: {name(made.suite)}, {made.tasks} tasks, {made.k} runs each",
        tables=(
            Table(
                caption="Estimated wall time and cost, runs made already included",
                columns=(
                    Column(head="agent", name=True),
                    Column(head="runs", right=True),
                    Column(head="time", right=True),
                    Column(head="cost", right=True),
                    Column(head="going by"),
                ),
                rows=tuple(
                    (name(o.agent), str(o.attempts), duration(o.seconds), _usd(o), clean(o.by)) for o in made.agents
                ),
            ),
        ),
        items=tuple(words.sentence(s) for s in made.certifies),
    )


def line(o: Any) -> str:
    """One agent's outlook on one line."""
    time = duration(o.seconds) or "an unknown time"
    return (
        f"{clean(o.agent)}: {o.attempts} runs take about {time} and {_usd(o) or 'an unknown cost'} (by {clean(o.by)})"
    )


def duration(seconds: float | None) -> str | None:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds is None:
        return None
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _usd(o: Any) -> str | None:
    if o.usd is None:
        return None
    return f"{o.usd:.2f} USD" + (f" and {o.unpriced} unpriced" if o.unpriced else "")
