"""Rows that stand twice, or that are the header again, are told with what they name, and are no attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.flows.check import check
from seatrial.ingest.log import Log
from seatrial.ingest.results import read_table


def test_a_header_that_stands_again_is_noted_and_no_attempt(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("task,trial,passed\na,0,1\ntask,trial,passed\na,1,0\n")
    log = Log(str(file))
    assert [(a.trial, a.status) for a in read_table(file, log)] == [(0, "passed"), (1, "failed")]
    assert [(s.line, s.noted) for s in log.skips] == [(3, True)]


@pytest.mark.parametrize("metric", ["", "quality"])
def test_rows_that_contradict_are_named(metric: str, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    head, tail = ("task,trial,passed,metric", f",{metric}") if metric else ("task,trial,passed", "")
    file.write_text(f"{head}\na,0,1{tail}\na,0,0{tail}\n")
    log = Log(str(file))
    assert len(read_table(file, log)) == 1
    (skip,) = log.skips
    assert "task a, trial 0" + (", metric quality" if metric else "") in skip.why


def test_a_row_that_cannot_be_read_makes_no_other_task_short(tmp_path: Path) -> None:
    rows = [f"t{t},{k},1" for t in range(40) for k in range(5)]
    good, bad = tmp_path / "b.csv", tmp_path / "c.csv"
    good.write_text("\n".join(["task,trial,passed", *rows]) + "\n")
    bad.write_text("\n".join(["task,trial,passed", *rows, "t0,x,1"]) + "\n")
    (metric,) = check(good, bad).comparison.metrics
    assert metric.excluded == {"unscored": 1}
