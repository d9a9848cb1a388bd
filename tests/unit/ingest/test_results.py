"""Results tables: columns asked for, cells checked, one status each."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from seatrial.errors import FormatError, SchemaError
from seatrial.ingest import read_file
from seatrial.ingest.log import Log
from seatrial.ingest.results import read_table

CSV = '''task,trial,passed,model,cost_usd,latency_s,tokens,task_type,note
a,0,true,m-1,0.5,2.5,100,code,"x, ""y"""
a,1,false,m-1,,,,code,
b,0,1,m-2,1e-3,3,7,,"two
lines"
'''


def write(tmp_path: Path, text: str, name: str = "r.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_a_csv_table(tmp_path: Path) -> None:
    first, second, third = read_table(write(tmp_path, CSV))
    assert (first.task, first.trial, first.status, first.score, first.model) == ("a", 0, "passed", 1.0, "m-1")
    assert (first.cost_usd, first.latency_s, first.tokens) == (0.5, 2.5, 100)
    assert first.extra == {"note": 'x, "y"', "task_type": "code"}
    assert (second.status, second.score, second.cost_usd) == ("failed", 0.0, None)
    assert third.extra == {"note": "two\nlines"}


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "r.parquet"])
def test_other_files_say_the_same(tmp_path: Path, name: str) -> None:
    rows = [
        {
            "task": "a",
            "trial": 0,
            "passed": True,
            "model": "m-1",
            "cost_usd": 0.5,
            "latency_s": 2.5,
            "tokens": 100,
            "task_type": "code",
            "note": 'x, "y"',
        },
        {
            "task": "a",
            "trial": 1,
            "passed": False,
            "model": "m-1",
            "cost_usd": None,
            "latency_s": None,
            "tokens": None,
            "task_type": "code",
            "note": None,
        },
        {
            "task": "b",
            "trial": 0,
            "passed": True,
            "model": "m-2",
            "cost_usd": 1e-3,
            "latency_s": 3.0,
            "tokens": 7,
            "task_type": None,
            "note": "two\nlines",
        },
    ]
    path = tmp_path / name
    if name == "r.parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text(json.dumps(rows) if name == "r.json" else "\n".join(map(json.dumps, rows)))
    expected = read_table(write(tmp_path, CSV))
    assert read_table(path) == expected
    reading = read_file(path)
    assert [t.attempt for t in reading] == [0, 1, 0]
    assert reading.report.n_bytes == reading.report.kept_bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("task,passed", "trial"),
        ("trial,score", "task"),
        ("task,trial,reward", "passed or score"),
        ("name,model", "task and no column trial and no column passed or score"),
    ],
)
def test_a_missing_column_is_named_with_what_is_expected(tmp_path: Path, header: str, named: str) -> None:
    path = write(tmp_path, f"{header}\na,b\n")
    with pytest.raises(SchemaError) as caught:
        read_table(path)
    assert caught.value.file == str(path)
    assert f"no column {named}" in caught.value.message
    assert "task, trial and passed or score" in str(caught.value.hint)


def test_an_empty_table_still_needs_its_columns(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "task,trial,passed\n")) == []
    with pytest.raises(SchemaError):
        read_table(write(tmp_path, "task,trial\n"))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (",0,true,", "column task"),
        ("a,x,true,", "column trial: expected a whole number from 0 up, found 'x'"),
        ("a,-1,true,", "column trial"),
        ("a,0,maybe,", "column passed: expected true or false, found 'maybe'"),
        ("a,0,,inf", "column score: expected a finite number"),
        ("a,0,true,1,extra", "expected 4 cells, found 5"),
    ],
)
def test_a_bad_cell_is_listed_with_its_line(tmp_path: Path, row: str, why: str) -> None:
    path = write(tmp_path, f"task,trial,passed,score\nz,0,true,1\n{row}\nz,1,true,1\n")
    log = Log(str(path))
    assert [a.trial for a in read_table(path, log)] == [0, 1]
    (skip,) = log.skips
    assert skip.line == 3
    assert why in skip.why
    assert log.accounted == path.stat().st_size


def test_a_bad_optional_cell_is_left_out_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "task,trial,passed,cost_usd\na,0,true,cheap\n")
    log = Log(str(path))
    (attempt,) = read_table(path, log)
    assert (attempt.status, attempt.cost_usd) == ("passed", None)
    assert log.skips[0].line == 2
    assert log.skips[0].bytes == len("cheap")
    assert log.accounted == path.stat().st_size


def test_an_open_quote_loses_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, 'task,trial,passed\na,0,true\n"b,0,true\nc,0,true\n')
    log = Log(str(path))
    assert [a.task for a in read_table(path, log)] == ["a", "c"]
    assert log.skips[0].line == 3
    assert log.accounted == path.stat().st_size


@pytest.mark.parametrize(
    ("cells", "status", "score"),
    [
        ("true,,", "passed", 1.0),
        (",1,", "passed", 1.0),
        (",0.7,", "failed", 0.7),
        (",,", "unscored", None),
        (",,error_infra", "error_infra", None),
        ("false,0,timeout", "timeout", 0.0),
        (",,pass", "passed", None),
    ],
)
def test_one_status_per_row(tmp_path: Path, cells: str, status: str, score: float | None) -> None:
    (attempt,) = read_table(write(tmp_path, f"task,trial,passed,score,status\na,0,{cells}\n"))
    assert (attempt.status, attempt.score) == (status, score)


def test_columns_that_contradict_each_other(tmp_path: Path) -> None:
    path = write(tmp_path, "task,trial,passed,status\na,0,true,failed\n")
    log = Log(str(path))
    assert read_table(path, log) == []
    assert "contradict" in log.skips[0].why


def test_rows_are_traces_that_rank_like_others(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    traces = list(read_file(path))
    assert [(t.model, t.task.id, t.task.type, t.attempt) for t in traces] == [
        ("m-1", "a", "code", 0),
        ("m-1", "a", "code", 1),
        ("m-2", "b", None, 0),
    ]
    assert [t.outcome.status for t in traces if t.outcome is not None] == ["passed", "failed", "passed"]
    assert (traces[0].totals.usage.cost_usd, traces[0].totals.wall) == (0.5, 2.5)
    assert [t.id for t in read_file(path)] == [t.id for t in traces]
    assert len({t.id for t in traces}) == 3


def test_rows_that_differ_in_their_metric_are_one_attempt(tmp_path: Path) -> None:
    path = write(tmp_path, "task,trial,metric,score\na,0,f1,0.5\na,0,exact,1\n")
    assert len(read_table(path)) == 2
    reading = read_file(path)
    (trace,) = reading
    assert trace.outcome is not None
    assert (trace.outcome.by, trace.outcome.score) == ("f1", 0.5)
    assert trace.outcome.extra["metrics"]["exact"]["score"] == 1.0
    assert any("2 metrics" in s.why for s in reading.report.skipped)


def test_a_row_that_says_the_same_again_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path, "task,trial,passed\na,0,true\na,0,true\n")
    reading = read_file(path)
    assert len(list(reading)) == len(read_table(path)) == 1
    (note,) = reading.report.skipped
    assert (note.line, note.noted) == (3, True)
    assert "line 2 says the same of task a, trial 0" in note.why
    assert reading.report.skipped_bytes == 0


@pytest.mark.parametrize("second", ["a,0,m,false,0.5", "a,0,m,true,0.25"])
def test_of_rows_that_contradict_each_other_the_first_counts(tmp_path: Path, second: str) -> None:
    text = f"task,trial,model,passed,cost_usd\na,0,m,true,0.5\n{second}\na,0,n,false,0.5\na,1,m,false,0.5\n"
    path = write(tmp_path, text)
    reading = read_file(path)
    traces = list(reading)
    assert [(t.model, t.attempt, t.outcome and t.outcome.status) for t in traces] == [
        ("m", 0, "passed"),
        ("n", 0, "failed"),
        ("m", 1, "failed"),
    ]
    (skip,) = reading.report.skipped
    assert (skip.line, skip.noted, skip.bytes) == (3, False, len(second) + 1)
    assert "line 2 says otherwise (" in skip.why
    assert ("cost_usd" in skip.why) == second.endswith("0.25")
    assert reading.report.n_bytes == len(text)
    assert [(a.model, a.trial, a.status) for a in read_table(path)] == [
        ("m", 0, "passed"), ("n", 0, "failed"), ("m", 1, "failed"),
    ]  # fmt: skip


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read_table(write(tmp_path, "PAR1 but not really", "r.parquet"))
    with pytest.raises(FormatError, match="line 2"):
        read_table(write(tmp_path, '[{"task": "a",\n', "r.json"))
