"""Stored sessions leave in every format that is written, and come back by its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.flows import exporting
from seatrial.ingest import parquet_write, read
from seatrial.records import Agent, Consent, Provenance, Step, TaskRef, Trace
from seatrial.store import Store, frames, session_row, set_consent, step_rows


def _trace(name: str, model: str, parent: str | None = None) -> Trace:
    steps = (
        Step(index=0, event_class="human", text=f"fix {name}"),
        Step(index=1, event_class="agent", text="Done.", model=model),
    )
    source = Provenance(format="f", reader="r", reader_version="1")
    return Trace(
        id=name, agent=Agent(name="a"), model=model, parent=parent, provenance=source, steps=steps,
        task=TaskRef(id=name, suite="desk"),
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open(tmp_path / "store", create=True, durable=False)
    traces = [_trace("one", "m"), _trace("two", "n"), _trace("child", "m", parent="one")]
    opened.commit(
        frames([session_row(t, opened.put(t)) for t in traces], [row for t in traces for row in step_rows(t)])
    )
    return opened


@pytest.mark.parametrize(
    ("form", "files"),
    [
        ("atif", {"one.json", "two.json", "child.json"}), ("otlp", {"one.otlp.json", "two.otlp.json"}),
        ("parquet", {"steps.parquet"}), ("inspect", {"desk-m.inspect.json", "desk-n.inspect.json"}),
    ],
)  # fmt: skip
def test_what_is_written_comes_back(store: Store, tmp_path: Path, form: exporting.Format, files: set[str]) -> None:
    out = tmp_path / form
    result, _ = exporting.export(out, sessions=[], store=str(store.path), format=form)
    assert {p.name for p in out.iterdir()} == set(result["files"]) == files
    assert result["written"] == 3
    back = parquet_write.read(out / "steps.parquet") if form == "parquet" else list(read(out))
    said = {step.text for trace in back for step in trace.steps if step.event_class != "agent"}
    expected = {"fix one", "fix two"} if form == "inspect" else {"fix one", "fix two", "fix child"}
    assert said >= expected


def test_who_did_not_agree_is_left_out_in_every_format(store: Store, tmp_path: Path) -> None:
    set_consent(store, [Consent(subject="two", purposes=("rank",), time=0.0)])
    for form in exporting.NAMES:
        result, _ = exporting.export(tmp_path / form, sessions=[], store=str(store.path), format=form)  # type: ignore[arg-type]
        assert result["written"] == 2
        assert [d.n for d in result["left_out"]] == [1]
        assert not any(b"fix two" in p.read_bytes() for p in (tmp_path / form).iterdir())


def test_the_command_names_its_formats(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(tmp_path / "x"), "--as", "parquet", "--store", str(store.path)]) == 0
    assert "3 sessions written" in capsys.readouterr().out
    assert run(["export", str(tmp_path / "x"), "--as", "docx", "--store", str(store.path)]) == 2
