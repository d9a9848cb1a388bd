"""The store: what goes in comes out, at every version; damage is found."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from seatrial.canon import content_hash
from seatrial.errors import InputError, SchemaError, StoreError, UsageError
from seatrial.records import Trace
from seatrial.records.tables import TABLES
from seatrial.store import Store, frames, temporary_store

Make = Callable[..., Trace]
Put = Callable[[Store, list[Trace]], str]


def test_a_trace_comes_back_as_it_went_in(store: Store, trace: Make, put: Put) -> None:
    kept = trace("s1", 3)
    put(store, [kept])
    assert store.trace("s1") == kept
    assert store.blobs_of(["s1", "none"]) == {"s1": content_hash(kept)}
    assert store.session_ids() == ["s1"]
    assert store.table("steps").collect()["chars"].to_list() == [5, 5, 5]


def test_every_table_is_there_from_the_start(store: Store) -> None:
    for table in TABLES:
        frame = store.table(table.name).collect()
        assert frame.height == 0
        assert frame.schema == table.schema()
    assert store.verify().ok
    assert store.data_version.startswith("0-")


def test_two_tables_join_before_they_are_read(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("a"), trace("b", steps=3)])
    both = store.table("steps").join(store.table("sessions").select("session", "agent"), on="session").collect()
    assert both.height == 5
    assert both["agent"].unique().to_list() == ["a"]


def test_every_column_type_survives(store: Store) -> None:
    for table in TABLES:
        full = {
            "string": "x'y\n\"é",
            "int64": 2**62,
            "float64": 0.1,
            "bool": True,
            "list<string>": ["a", "b'"],
        }
        rows = [
            {c.name: full[c.type] for c in table.columns},
            {
                c.name: None if c.nullable else (0 if c.type == "int64" else 0.0 if c.type == "float64" else "z")
                for c in table.columns
            },
        ]
        frame = pl.DataFrame(rows, schema=table.schema(), orient="row")
        store.commit({table.name: frame})
        back = store.table(table.name).collect()
        assert back.sort(table.key).equals(frame.sort(table.key), null_equal=True), table.name


def test_replacing_a_session_leaves_the_others(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1"), trace("s2"), trace("it's")])
    put(store, [trace("s1", 5), trace("it's", 1)])
    steps = store.table("steps").group_by("session").len().sort("session").collect()
    assert dict(steps.iter_rows()) == {"s1": 5, "s2": 2, "it's": 1}
    assert store.verify().superseded == 2
    assert store.verify().unreferenced == 0


def test_a_commit_covers_all_its_tables_and_no_others(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1"), trace("s2")])
    calls = next(t for t in TABLES if t.name == "calls")
    row = {"session": "s1", "step": 1, "call": 0}
    store.commit({"calls": pl.DataFrame([row], schema=calls.schema())})
    store.commit({"calls": pl.DataFrame([row | {"call": 1}], schema=calls.schema())})
    assert store.table("calls").collect()["call"].to_list() == [1]
    assert store.table("sessions").collect().height == 2
    store.commit({"calls": pl.DataFrame(schema=calls.schema())}, replace_sessions=["s1", "s2"])
    assert store.table("calls").collect().height == 0
    assert store.table("sessions").collect().height == 2


def test_old_versions_stay_readable_by_number_and_stamp(store: Store, trace: Make, put: Put) -> None:
    stamps = [put(store, [trace("s1", n)]) for n in (1, 2, 3)]
    for n, stamp in enumerate(stamps, 1):
        assert store.table("steps", version=n).collect().height == n
        assert store.table("steps", version=stamp).collect().height == n
    assert store.table("steps", version=0).collect().height == 0
    assert stamps[-1] == store.data_version
    for unknown in (4, "2-000000000000", "x"):
        with pytest.raises(StoreError, match="no data version"):
            store.table("steps", version=unknown)


def test_a_commit_of_nothing_is_no_version(store: Store, trace: Make, put: Put) -> None:
    before = put(store, [trace("s1")])
    assert store.commit(frames([], [])) == before
    assert store.commit(frames([], []), replace_sessions=["unknown"]) == before


def test_equal_content_has_equal_stamps(tmp_path: Path, trace: Make, put: Put) -> None:
    stamps = []
    for name in ("a", "b"):
        store = Store.open(tmp_path / name, create=True)
        put(store, [trace("s1"), trace("s2")])
        stamps.append(put(store, [trace("s1", 4)]))
    assert stamps[0] == stamps[1]
    other = Store.open(tmp_path / "c", create=True)
    put(other, [trace("s1"), trace("s2")])
    assert put(other, [trace("s1", 5)]) != stamps[0]


def test_many_small_commits_are_compacted(store: Store, trace: Make, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    import deltalake

    monkeypatch.setattr("seatrial.store.delta.COMPACT_AT", 4)
    for n in range(11):
        put(store, [trace(f"s{n:02}", 1)])
    table = deltalake.DeltaTable(str(store.path / "tables" / "sessions"))
    assert len(table.file_uris()) <= 4
    assert store.table("sessions").collect().height == 11
    assert store.table("sessions", version=5).collect().height == 5
    assert store.verify().ok


def test_personal_columns_stay_out_of_the_log(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1", user="user-0123456789abcdef"), trace("s2", user="user-0123456789abcdef")])
    put(store, [trace("s1", 3, user="user-0123456789abcdef")])
    logs = list((store.path / "tables").rglob("_delta_log/*.json"))
    assert logs
    for log in logs:
        text = log.read_text()
        assert "user-0123" not in text
        assert "s1.jsonl" not in text
    assert any("minValues" in log.read_text() for log in logs)


def test_frames_that_do_not_fit_are_refused(store: Store) -> None:
    sessions = next(t for t in TABLES if t.name == "sessions")
    row = pl.DataFrame([{"session": "s", "blob": "b"}], schema=sessions.schema())
    for bad, says in [
        (row.drop("blob"), r"missing columns \['blob'\]"),
        (row.with_columns(x=1), r"unknown columns \['x'\]"),
        (row.with_columns(blob=pl.lit(None, dtype=pl.String)), "column blob holds nulls"),
        (row.with_columns(steps=pl.lit("many")), "conversion"),
    ]:
        with pytest.raises(SchemaError, match=says):
            store.commit({"sessions": bad})
    with pytest.raises(UsageError, match="no table"):
        store.commit({"sesions": row})
    with pytest.raises(UsageError, match="no table"):
        store.table("sesions")
    assert store.data_version.startswith("0-")


def test_sessions_are_found_by_the_start_of_their_id(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("abc"), trace("abd"), trace("ab"), trace("x")])
    assert store.resolve("x") == "x"
    assert store.resolve("abc") == "abc"
    assert store.resolve("ab") == "ab"
    for bad in ("a", "", "zzz"):
        with pytest.raises(InputError):
            store.resolve(bad)
    with pytest.raises(InputError, match="no session"):
        store.trace("zzz")


# Opening


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("address", ["nonsense", "host:9000", "http://", "http://a b"])
def test_an_object_store_s_address_must_be_one(monkeypatch: pytest.MonkeyPatch, variable: str, address: str) -> None:
    monkeypatch.setenv(variable, address)
    with pytest.raises(UsageError, match=f"{variable} is no address"):
        Store.open("s3://bucket/store")


def test_there_must_be_a_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store here"):
        Store.open(tmp_path)
    for url in ("gs://bucket/store", "https://host/store", "s3://", "s3:"):
        with pytest.raises(UsageError, match=r"a store is a folder or s3.*not (gs|https|s3)://"):
            Store.open(url, create=True)
    (tmp_path / "thesis.doc").write_text("precious")
    with pytest.raises(InputError, match=r"not a store and is not empty .*thesis"):
        Store.open(tmp_path, create=True)
    assert (tmp_path / "thesis.doc").read_text() == "precious"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        Store.open(tmp_path / "file", create=True)


def test_an_unknown_layout_is_refused(store: Store) -> None:
    marker = store.path / "store.json"
    about = json.loads(marker.read_text())
    marker.write_text(json.dumps(about | {"format": 99, "by": "seatrial 9.0"}))
    with pytest.raises(StoreError, match=r"layout version 99.*seatrial 9.0"):
        Store.open(store.path)
    marker.write_text(json.dumps(about | {"tables": {"sessions": 77}}))
    with pytest.raises(StoreError, match="table sessions has version 77"):
        Store.open(store.path)
    marker.write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        Store.open(store.path)


def test_a_half_made_store_is_finished(store: Store) -> None:
    (store.path / "store.json").unlink()
    key = (store.path / "key").read_text()
    assert Store.open(store.path, create=True).verify().ok
    assert (store.path / "key").read_text() == key


def test_the_key_is_private_and_deletable(store: Store, trace: Make, put: Put) -> None:
    path = store.path / "key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, new = store.pseudonyms()
    assert not new
    assert Store.open(store.path).pseudonyms()[0].of("jane") == first.of("jane")
    put(store, [trace("s1")])
    path.unlink()
    second, new = store.pseudonyms()
    assert new
    assert second.of("jane") != first.of("jane")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("not hex")
    with pytest.raises(StoreError, match="key cannot be read"):
        store.pseudonyms()


def test_a_temporary_store_is_gone_and_repeatable(trace: Make, put: Put) -> None:
    stamps, names = [], []
    for _ in range(2):
        with temporary_store() as store:
            path = store.path
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
            stamps.append(put(store, [trace("s1")]))
            names.append(store.pseudonyms()[0].of("jane"))
        assert not path.exists()
    assert stamps[0] == stamps[1]
    assert names[0] == names[1]


def test_it_works_without_pyarrow_and_pandas(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'pandas'): sys.modules[name] = None\n"
        "from seatrial.store import Store, frames, session_row, step_rows\n"
        "from seatrial.records import Agent, Provenance, Step, Trace\n"
        f"s = Store.open({str(tmp_path / 'st')!r}, create=True)\n"
        "t = Trace(id='s', agent=Agent(name='a'), provenance=Provenance(format='f', reader='r', reader_version='1'),"
        " steps=(Step(index=0, event_class='human', text='x', source_ids=('r',)),))\n"
        "for n in range(2): s.commit(frames([session_row(t, s.put(t))], step_rows(t)))\n"
        "assert s.table('steps').collect().height == 1 and s.verify().ok\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Damage


def test_verify_finds_a_changed_a_missing_and_a_foreign_blob(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1"), trace("s2"), trace("s3")])
    blobs = store.blobs_of(["s1", "s2", "s3"])
    path = store.blobs.path(blobs["s1"])
    path.write_bytes(path.read_bytes()[:-3])
    store.blobs.path(blobs["s2"]).unlink()
    result = store.verify()
    assert not result.ok
    assert len(result.problems) == 2
    assert any(blobs["s1"] in p and "damaged" in p for p in result.problems)
    assert any("s2" in p and "missing" in p for p in result.problems)
    with pytest.raises(StoreError, match="damaged"):
        store.trace("s1")
    with pytest.raises(StoreError, match="missing"):
        store.trace("s2")
    # A blob under another one's name.
    store.blobs.path(blobs["s2"]).write_bytes(store.blobs.path(blobs["s3"]).read_bytes())
    assert any("other bytes" in p for p in store.verify().problems)


def test_verify_finds_doubled_keys_and_unknown_sessions(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    steps = store.table("steps").collect()
    store.commit({"steps": pl.concat([steps, steps])}, replace_sessions=["s1"])
    result = store.verify()
    assert any("stands 2 times" in p for p in result.problems)
    store.commit({"steps": steps.with_columns(session=pl.lit("ghost"))}, replace_sessions=["s1"])
    assert any("unknown session 'ghost'" in p for p in store.verify().problems)


def test_verify_finds_damaged_table_files_and_version_logs(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    put(store, [trace("s2")])
    log = store.path / "versions.jsonl"
    good = log.read_bytes()
    lines = good.splitlines(keepends=True)
    log.write_bytes(lines[0].replace(b'"content":{"sessions":"', b'"content":{"sessions":"0') + lines[1])
    assert any("does not follow" in p for p in store.verify().problems)
    log.write_bytes(b"nonsense\n" + lines[1])
    with pytest.raises(StoreError) as caught:
        store.versions.all()
    assert caught.value.line == 1
    assert any(f"{log}:1: the version log is damaged" in p for p in store.verify().problems)
    log.write_bytes(lines[1] + lines[0])
    assert any("stands on line 1" in p for p in store.verify().problems)
    log.write_bytes(good)
    data = next((store.path / "tables" / "steps").glob("*.parquet"))
    data.write_bytes(data.read_bytes()[:40])
    assert any("table steps: part-" in p and "40 bytes instead of" in p for p in store.verify().problems)
    data.unlink()
    assert any("table steps: part-" in p and "gone" in p for p in store.verify().problems)
    data.write_bytes(b"\0" * 4096)
    with pytest.raises(StoreError):
        store.table("steps", version="9")


def test_a_torn_version_line_is_a_commit_that_never_happened(store: Store, trace: Make, put: Put) -> None:
    first = put(store, [trace("s1")])
    put(store, [trace("s1", 5), trace("s2")])
    log = store.path / "versions.jsonl"
    whole = log.read_bytes()
    first_line = whole.index(b"\n") + 1
    (store.path / "head").write_text("1\n")  # it is written after the line
    for cut in (first_line, first_line + 1, (first_line + len(whole)) // 2, len(whole) - 1):
        log.write_bytes(whole[:cut])
        assert store.data_version == first
        assert store.table("steps").collect().height == 2
        assert store.verify().ok
    # The next writer undoes what the torn commit left in the tables.
    put(store, [trace("s3", 1)])
    assert store.session_ids() == ["s1", "s3"]
    assert store.table("steps").collect().height == 3
    assert store.verify().ok


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_version_log_that_lost_lines_is_damage(
    store: Store, trace: Make, put: Put, tmp_path: Path, kept: int, mark: bool
) -> None:
    """Emptied or cut, by whole lines: never an empty or a younger store, for readers, writers or verification."""
    put(store, [trace("s1")])
    put(store, [trace("s2")])
    log = store.path / "versions.jsonl"
    if not mark:
        (store.path / "head").unlink()  # a store of before this file
        if kept:
            return
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:kept]))
    store = Store.open(store.path, create=True)
    for use in (
        store.session_ids,
        lambda: store.data_version,
        lambda: put(store, [trace("s3")]),
        lambda: list(store.versions.all()),
    ):
        assert any(f"version log is damaged: it holds {kept} lines" in p for p in store.verify().problems)
        with pytest.raises(StoreError, match=f"version log is damaged: it holds {kept} lines"):
            use()
    log.unlink()
    assert any("version log is damaged" in p for p in store.verify().problems)


def test_a_first_commit_that_was_cut_short_leaves_a_fresh_store(store: Store, trace: Make, put: Put) -> None:
    store.put(trace("s1"))
    (store.path / "versions.jsonl").touch()
    assert store.verify().ok
    put(store, [trace("s1")])
    assert store.session_ids() == ["s1"]
    assert store.verify().ok


@pytest.mark.parametrize("damage", ["gone", "short", "zeros", "pages", "text", "log", "folder"])
def test_a_table_that_was_damaged_says_so_whatever_is_done(store: Store, trace: Make, put: Put, damage: str) -> None:
    """Never a traceback or a panic of the library that reads it, whether met at opening, collecting or writing."""
    put(store, [trace(f"s{i}") for i in range(40)])
    before = store.table("steps")
    table = store.path / "tables" / "steps"
    data = next(table.glob("*.parquet"))
    whole = data.read_bytes()
    if damage == "gone":
        data.unlink()
    elif damage == "log":
        next((table / "_delta_log").glob("*1.json")).write_bytes(b"nonsense")
    elif damage == "folder":
        shutil.rmtree(table)
    else:
        data.write_bytes(
            {
                "short": whole[:100],
                "zeros": bytes(len(whole)),
                "text": b"PAR1" + b"x" * (len(whole) - 8) + b"PAR1",
                "pages": whole[:4] + b"\xff" * 400 + whole[404:],
            }[damage]
        )
    for opened in (store, Store.open(store.path)):
        with pytest.raises(StoreError) as caught:
            opened.table("steps").select("session", "index", "chars", "source_ids").sort("index").collect()
        assert caught.value.exit_code == 4
        assert str(table) in str(caught.value)
        assert "verify" in (caught.value.hint or "")
        with pytest.raises(StoreError):
            opened.owners()
    if damage != "log":  # which was read by then
        with pytest.raises(StoreError):
            before.collect()
    if damage != "pages":
        with pytest.raises(StoreError):
            store.commit(frames([], []), replace_sessions=["s1"])
    result = store.verify()
    assert not result.ok
    assert any("table steps" in p for p in result.problems)


def test_a_mistake_in_a_query_is_no_damage(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        store.table("steps").select("nothing").collect()


def test_a_temporary_store_forces_nothing_to_disk(trace: Make, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[object] = []
    with temporary_store() as store:
        monkeypatch.setattr(os, "fsync", forced.append)
        monkeypatch.setattr(os, "sync", lambda: forced.append("all"))
        put(store, [trace("s1")])
        store.put(trace("s2"), durable=False)
        put(store, [trace("s2")])
        assert store.session_ids() == ["s1", "s2"]
        assert not forced
        put(Store.open(store.path), [trace("s3")])
        assert forced


def test_superseded_and_unreferenced_blobs_are_told_apart(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    put(store, [trace("s1", 4)])
    store.put(trace("s9"))
    result = store.verify()
    assert (result.ok, result.blobs, result.superseded, result.unreferenced) == (True, 3, 1, 1)


def test_what_a_crash_left_in_the_scratch_folder_is_swept_after_an_hour(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    old, new = (store.path / "blobs" / "scratch" / name for name in (".1-a.tmp", ".2-b.tmp"))
    for path in (old, new):
        path.write_bytes(b"part")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    assert store.verify().blobs == 1
    put(store, [trace("s2")])
    assert not old.exists()
    assert new.exists()


def test_reading_takes_no_lock_and_writing_says_when_it_cannot(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("s1")])
    (store.path / "lock").unlink()
    (store.path / "lock").mkdir()
    assert Store.open(store.path).trace("s1") == trace("s1")
    assert store.verify().ok
    with pytest.raises(StoreError, match="cannot be written"):
        put(store, [trace("s2")])
