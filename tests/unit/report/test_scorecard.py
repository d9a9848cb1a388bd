"""Scorecards on screen: bars, reasons in the place of values, hostile names."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.records import (
    Counts,
    DimensionResult,
    DimensionValue,
    Estimate,
    FailureCause,
    Finding,
    Scorecard,
    TaskValue,
)
from seatrial.report import page
from seatrial.report.chapters import scorecard as chapter
from seatrial.report.chapters import scorecard_plan as planning


def estimate(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, level=0.95, n=10, n_clusters=5, method="mean")


def dimension(key: str, e: Estimate | None, why: str = "") -> DimensionResult:
    worst = DimensionValue(
        dimension=key, version="1", task="<b>t</b>", trial=3, status="failed", value=0.25, why="w", trace="x~1",
        findings=(Finding(what="small", weight=0.1), Finding(what="\x1b[31mgrave", weight=1.0, step=4)),
    )  # fmt: skip
    return DimensionResult(
        dimension=key, name="completion" if key == "D1" else "repair cost", version="1", estimate=e, why=why,
        per_task={"t": TaskValue(value=0.5, n=2)}, worst=(worst,) if e else (), level=0.5, level_why="so",
        unmeasured={"because": 3}, beside={"companion": 0.5}, notes=("a note",),
    )  # fmt: skip


def card(agent: str = "<script>a</script>", **more: Any) -> Scorecard:
    given: dict[str, Any] = {
        "agent": agent, "model": None, "suite": None, "k": 2, "tasks": 5,
        "dimensions": {"D1": dimension("D1", estimate(0.5, 0.25, 0.75)), "D4": dimension("D4", None, "no run failed")},
        "counts": Counts(n_planned=10, n_attempted=10, n_scored=10),
        "causes": (FailureCause(task="t", trial=1, cause="gate", why="denied"),), "cause_counts": {"gate": 1},
        "attempts_before_success": {"0": 3, "1": 1, "never": 1}, "correlations": {"D1~D4": -0.5},
        "certifies": ("ten runs certify little",),
    }  # fmt: skip
    return Scorecard(**{**given, **more})


@pytest.mark.parametrize(
    ("e", "drawn"),
    [
        (estimate(0.5, 0.25, 0.75), "━━──"[:2] + "─●╌╌"),
        (estimate(1.0, 1.0, 1.0), "━━━━━━━●"),
        (estimate(0.0, 0.0, 0.5), "╌╌╌╌"),
        (estimate(0.0, None, None), "●"),
        (None, ""),
    ],
)
def test_a_bar_shows_value_and_interval(e: Estimate | None, drawn: str) -> None:
    assert chapter.bar(e, 8) == drawn


def test_a_dimension_without_a_value_shows_its_reason() -> None:
    shown = chapter.overview([card()])
    rows = {row[0]: row for table in shown.tables for row in table.rows if table.only == "terminal"}
    assert rows["D4 repair cost"][1:3] == ("no run failed", None)
    marks = shown.charts[0].panels[0].marks
    assert [(m.label, m.value, m.why) for m in marks][1] == ("D4 repair cost", None, "not measured")


def test_the_gravest_finding_of_the_worst_run_is_shown_with_its_trace() -> None:
    shown = chapter.evidence([card()])
    assert shown is not None
    assert shown.tables[0].rows[0][-1] == "<U+001B>[31mgrave (step 4)"
    assert "x~1" in shown.notes[0]


def test_the_page_escapes_whatever_agents_are_called() -> None:
    text = page.page(chapter.scorecards([card(), card("b")]), title="x", eyebrow="scorecard", version="0")
    assert "<script>a" not in text
    assert "<b>t</b>" not in text
    assert "\x1b" not in text


def test_all_sections_come_in_reading_order() -> None:
    keys = [s.key for s in chapter.scorecards([card()])]
    assert keys == [
        "scorecard", "scorecard-evidence", "scorecard-causes", "scorecard-beside", "scorecard-rubric",
        "scorecard-unmeasured", "scorecard-dependence", "scorecard-certifies",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, None), (1.25, "1.2 s"), (40.0, "40 s"), (720.0, "12 min"), (12600.0, "3.5 h")]
)
def test_durations(seconds: float | None, said: str | None) -> None:
    assert planning.duration(seconds) == said
