"""Files and folders: whatever they hold, each is accounted for and nothing escapes as a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial import ingest, plugins
from seatrial.errors import FormatError, InputError, UsageError
from seatrial.ingest import catalogue
from seatrial.records import Agent, FileReport, Provenance, Reader, ReadLog, Trace

LINE = (
    json.dumps(
        {
            "type": "user",
            "uuid": "u1",
            "sessionId": "s1",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": "user", "content": "hello"},
        }
    )
    + "\n"
)


def _read(path: Path, **options: str) -> tuple[list[Trace], FileReport]:
    reading = ingest.read_file(path, **options)  # type: ignore[arg-type]
    traces = list(reading)
    return traces, reading.report


def test_a_folder_is_walked_in_order_hidden_folders_included_machinery_left_out(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "b/1.jsonl", ".claude/x.jsonl", ".git/no", "node_modules/no", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [str(p.relative_to(tmp_path)) for p in ingest.scan([tmp_path, tmp_path / "b"])]
    assert found == ["a.txt", ".claude/x.jsonl", "b/1.jsonl", "b/2.jsonl"]


def test_a_session_file_brings_its_sub_agents_files(tmp_path: Path) -> None:
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    (tmp_path / "s.jsonl").write_text(LINE)
    (tmp_path / "s" / "subagents" / "agent-1.jsonl").write_text(LINE)
    assert [p.name for p in ingest.scan([tmp_path / "s.jsonl"])] == ["s.jsonl", "agent-1.jsonl"]


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.*no such file or folder"):
        list(ingest.read(tmp_path / "nowhere"))


def test_a_folder_that_cannot_be_listed_is_handed_on_and_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert ingest.scan([tmp_path]) == [locked]
    traces, report = _read(locked)
    assert (traces, report.status, report.why) == ([], "refused", "a folder that cannot be listed")


def test_an_empty_folder_gives_nothing(tmp_path: Path) -> None:
    assert list(ingest.read(tmp_path)) == []


def test_a_binary_file_is_refused_with_all_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(bytes(range(256)) * 40)
    traces, report = _read(path)
    assert (traces, report.status, report.skipped_bytes, report.n_bytes) == ([], "refused", 10240, 10240)
    assert report.why == "a binary file that no reader recognises"
    with pytest.raises(FormatError, match=r"x\.jsonl: a binary file.*--format"):
        list(ingest.read(path))


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.touch()
    assert _read(path)[1].why == "the file is empty"
    assert _read(path, format="claude-code")[1].why == "the file is empty"


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(LINE)

    def refuse(self: Path, *args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    traces, report = _read(path)
    assert (traces, report.status, report.why) == ([], "refused", "cannot be opened: Permission denied")
    assert report.skipped_bytes == report.n_bytes == len(LINE)
    with pytest.raises(InputError, match="Permission denied"):
        list(ingest.read(path))
    traces, report = _read(path, format="claude-code")
    assert (report.status, report.why) == ("skipped", "could not be read: Permission denied")
    assert report.skipped_bytes == len(LINE)


def test_a_special_file_is_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert _read(tmp_path / "pipe.jsonl")[1].why == "not a regular file"


def test_mixed_formats_in_one_folder_are_each_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "c.jsonl").write_text('{"neither": "nor"}\n')
    reports: list[FileReport] = []
    traces = list(ingest.read(tmp_path, on_report=reports.append))
    assert [t.id for t in traces] == ["s1@a"]
    assert [r.status for r in reports] == ["kept", "refused", "refused"]
    assert all(r.n_bytes == Path(r.file).stat().st_size == r.kept_bytes + r.skipped_bytes for r in reports)


def test_an_unknown_format_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no format named 'nope'.*claude-code"):
        ingest.read_file(tmp_path / "x", format="nope")


def test_the_report_waits_for_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    reading = ingest.read_file(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="not ready"):
        _ = reading.report
    assert len(list(reading)) == reading.report.traces == 1


class _Careless:
    """A reader that accounts for half of a file, or breaks in the middle of it."""

    name = "careless"
    version = "7"
    verified = False

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def sniff(self, path: Path, head: bytes) -> float:
        return 1.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        log.kept(4)
        provenance = Provenance(format="careless", reader="careless", reader_version="7")
        yield Trace(id="t", agent=Agent(name="a"), provenance=provenance)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "the reader careless did not account for these bytes"),
        (KeyError("x"), "the reader careless 7 broke: KeyError: 'x'"),
        (InputError("bad header", hint="export again"), "bad header (export again)"),
        (OSError(5, "Input/output error"), "could not be read: Input/output error"),
    ],
)
def test_a_careless_reader_loses_no_byte_of_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, why: str
) -> None:
    monkeypatch.setattr(catalogue, "_plugin_readers", lambda: (_Careless(error),))
    path = tmp_path / "x.dat"
    path.write_bytes(b"0123456789")
    traces, report = _read(path)
    assert [t.id for t in traces] == ["t"]
    assert (report.format, report.kept_bytes, report.skipped_bytes) == ("careless", 4, 6)
    assert [(s.why, s.bytes) for s in report.skipped] == [(why, 6)]


class _Point:
    name = "careless"
    value = "their.module:READER"
    dist = None

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def load(self) -> object:
        if isinstance(self.thing, Exception):
            raise self.thing
        return self.thing


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    def use(thing: object) -> None:
        plugins.plugins.cache_clear()
        monkeypatch.setattr(plugins, "entry_points", lambda group: [_Point(thing)])

    yield use
    plugins.plugins.cache_clear()


def test_a_plugin_comes_in_by_name_and_by_sniffing(tmp_path: Path, plug: Callable[[object], None]) -> None:
    plug(_Careless)
    assert catalogue.named("careless").version == "7"
    assert ingest.readers()[-1].name == "careless"
    (tmp_path / "x").write_text("0123")
    assert _read(tmp_path / "x")[1].format == "careless"


@pytest.mark.parametrize("thing", [ImportError("no such thing"), object()])
def test_a_broken_plugin_is_left_out_and_listed(plug: Callable[[object], None], thing: object) -> None:
    plug(thing)
    assert [r.name for r in ingest.readers()] == [entry.name for entry in catalogue.BUILT_IN]
    assert [broken.name for broken in plugins.plugins("seatrial.readers").broken] == ["careless"]


def test_every_built_in_reader_is_a_reader_under_its_listed_name() -> None:
    for entry in catalogue.BUILT_IN:
        reader = entry.load()
        assert isinstance(reader, Reader)
        assert reader.name == entry.name
        assert reader.version


def test_sniffing_imports_only_readers_of_that_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = catalogue.importlib.import_module

    def record(name: str) -> object:
        loaded.append(name)
        return load(name)

    monkeypatch.setattr(catalogue.importlib, "import_module", record)
    (tmp_path / "x.unheard-of").write_text("?")
    assert _read(tmp_path / "x.unheard-of")[1].status == "refused"
    assert loaded == []
