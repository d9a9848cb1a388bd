"""Intake: once however often, in whatever order and by however many workers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import polars as pl
import pytest

from seatrial import scoring
from seatrial.errors import UsageError
from seatrial.flows import extract
from seatrial.intake.pipeline import LARGE_FILE, _groups, run
from seatrial.records import Trace
from seatrial.records.tables import TABLES
from seatrial.store import Store


def state(store: Store) -> dict[str, list[dict[str, object]]]:
    return {t.name: store.table(t.name).collect().to_dicts() for t in TABLES}


def test_the_contract(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    a = fake.write(tmp_path / "a.jsonl", fake.say("1", "mail jane@example.com"), "{torn", fake.say("2"))
    b = fake.write(tmp_path / "b.jsonl")
    seen: list[tuple[int, int | None, str]] = []
    result = run(store, [a, b], fake.read_file, progress=lambda *x: seen.append(x))
    assert result.files == {"read": 2, "kept": 1, "skipped": 1}
    assert (result.sessions, result.steps, result.added, result.known) == (1, 2, 1, 0)
    assert [(s.file, s.line, s.why) for s in result.skipped] == [
        (str(a), 2, "not JSON"),
        (str(b), None, "it holds no session"),
    ]
    assert result.redacted == {"EMAIL": 1}
    assert result.data_version == store.data_version
    assert seen == [(1, 2, "files"), (2, 2, "files")]
    assert store.trace("a").steps[0].text == "mail <EMAIL_1>"


def test_the_same_bytes_again_add_nothing(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    files = [fake.write(tmp_path / f"s{n}.jsonl", fake.say(f"{n}", user="jane")) for n in range(3)]
    first = run(store, files, fake.read_file)
    before = state(store)
    for again in (files, files[::-1], [files[1]]):
        result = run(store, again, fake.read_file)
        assert (result.added, result.replaced, result.known) == (0, 0, len(again))
        assert result.sessions == len(again)
        assert result.data_version == first.data_version
        assert state(store) == before
    assert store.verify().blobs == 3


def test_a_moved_file_is_the_same_session(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    old = fake.write(tmp_path / "x" / "s.jsonl", fake.say("1"), fake.say("2"))
    run(store, [old], fake.read_file)
    new = tmp_path / "y" / "s.jsonl"
    new.parent.mkdir()
    old.rename(new)
    result = run(store, [new], fake.read_file)
    assert result.sessions == 1
    assert store.session_ids() == ["s"]
    assert not any(s.copied for s in store.trace("s").steps)


def test_a_grown_file_replaces_its_session_and_what_was_derived(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    path = fake.write(tmp_path / "s.jsonl", fake.say("1"))
    other = fake.write(tmp_path / "t.jsonl", fake.say("t1"))
    run(store, [path, other], fake.read_file)
    calls = next(t for t in TABLES if t.name == "calls")
    rows = [{"session": s, "step": 0, "call": 0} for s in "st"]
    store.commit({"calls": pl.DataFrame(rows, schema=calls.schema())})
    fake.write(path, fake.say("1"), fake.say("2"))
    result = run(store, [path], fake.read_file)
    assert (result.added, result.replaced, result.known) == (0, 1, 0)
    assert len(store.trace("s").steps) == 2
    assert store.table("calls").collect()["session"].to_list() == ["t"]
    assert not any(s.copied for s in store.trace("s").steps)
    verified = store.verify()
    assert (verified.ok, verified.superseded) == (True, 1)


def test_an_older_copy_changes_nothing_and_is_noted(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    new = fake.write(tmp_path / "s.jsonl", fake.say("1"), fake.say("2"))
    old = fake.write(tmp_path / "backup" / "s.jsonl", fake.say("1"))
    version = run(store, [new], fake.read_file).data_version
    result = run(store, [old], fake.read_file)
    assert result.data_version == version
    assert (result.known, result.replaced) == (1, 0)
    assert [n.why for n in result.notes] == ["an older copy of session s: 1 steps here, 2 in the store"]
    # In one run too, in either order.
    for order in ([new, old], [old, new]):
        fresh = Store.open(tmp_path / f"fresh{order[0].parent.name}", create=True)
        run(fresh, order, fake.read_file)
        assert len(fresh.trace("s").steps) == 2
        assert fresh.verify().ok


def test_another_session_of_the_same_name_is_kept_beside_it(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    one = fake.write(tmp_path / "p" / "s.jsonl", fake.say("p1", "one"))
    two = fake.write(tmp_path / "q" / "s.jsonl", fake.say("q1", "two"))
    result = run(store, [one, two], fake.read_file)
    assert result.added == 2
    ids = store.session_ids()
    assert ids[0] == "s"
    assert ids[1].startswith("s~")
    assert {store.trace(i).steps[0].text for i in ids} == {"one", "two"}
    assert "another session has the id s" in result.notes[0].why
    again = run(store, [two, one], fake.read_file)
    assert (again.added, again.replaced, again.known) == (0, 0, 2)
    assert again.data_version == result.data_version


def test_without_record_ids_a_beginning_tells_the_session(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    path = fake.write(tmp_path / "s.jsonl", {"text": "one"}, {"text": "two"})
    run(store, [path], fake.read_file)
    fake.write(path, {"text": "one"}, {"text": "two"}, {"text": "three"})
    assert run(store, [path], fake.read_file).replaced == 1
    fake.write(path, {"text": "one"}, {"text": "other"})
    assert run(store, [path], fake.read_file).added == 1
    assert len(store.session_ids()) == 2


def test_a_record_counts_once_across_files_and_runs(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    a = fake.write(tmp_path / "a.jsonl", fake.say("1", time=0.0), fake.say("2", time=5.0))
    b = fake.write(tmp_path / "b.jsonl", fake.say("1", time=0.0), fake.say("2", time=5.0), fake.say("3", time=9.0))
    result = run(store, [a, b], fake.read_file)
    assert result.copied == 2
    assert [s.copied for s in store.trace("a").steps] == [False, False]
    assert [s.copied for s in store.trace("b").steps] == [True, True, False]
    assert store.trace("b").totals.usage.input_tokens == 10
    rows = store.table("sessions").collect()
    assert rows["steps"].to_list() == [2, 1]
    assert rows["input_tokens"].to_list() == [20, 10]
    # From the store too: a third file, in a run of its own; and reading again changes nothing.
    c = fake.write(tmp_path / "c.jsonl", fake.say("3"), fake.say("4"))
    run(store, [c], fake.read_file)
    assert [s.copied for s in store.trace("c").steps] == [True, False]
    version = store.data_version
    for order in ([a, b, c], [c], [b], [c, b, a]):
        assert run(store, order, fake.read_file).data_version == version
    owned = [r for i in store.session_ids() for s in store.trace(i).steps if not s.copied for r in s.source_ids]
    assert sorted(owned) == ["1", "2", "3", "4"]


def test_workers_do_not_change_the_store(fake: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.intake.pipeline.WORKER_BATCH", 2_000)
    monkeypatch.setattr("seatrial.intake.pipeline.LARGE_FILE", 4_000)
    monkeypatch.setattr("seatrial.intake.commit.BATCH_SESSIONS", 5)
    files = [
        fake.write(
            tmp_path / f"s{n:02}.jsonl",
            *(
                fake.say(f"{(n * 3 + k) // 2}", f"a{k}@x.com {'x' * 300 * (1 + 9 * (n == 7))}")
                for k in range(2 + n % 3)
            ),
        )
        for n in range(20)
    ]
    states, results = [], []
    for workers in (1, 2):
        store = Store.open(tmp_path / f"store{workers}", create=True)
        (store.path / "key").write_text("ab" * 32)
        results.append(run(store, files, fake.read_file, workers=workers))
        states.append(state(store))
        assert store.verify().ok
    assert states[0] == states[1]
    assert results[0] == results[1]
    assert results[0].files["kept"] == 20
    with pytest.raises(UsageError):
        run(store, files, fake.read_file, workers=0)


def test_groups_keep_the_order_and_their_bounds(tmp_path: Path) -> None:
    files = [tmp_path / str(n) for n in range(7)]
    mb = 1024 * 1024
    groups = list(_groups(files, [mb, 5 * mb, 4 * mb, LARGE_FILE, mb, LARGE_FILE + 1, 0]))
    assert [f for _, g in groups for batch in g for f in batch] == files
    assert groups == [
        (False, [files[0:2], [files[2]]]),
        (True, [[files[3]]]),
        (False, [[files[4]]]),
        (True, [[files[5]]]),
        (False, [[files[6]]]),
    ]


def test_people_become_pseudonyms_and_homes_are_masked(
    store: Store, fake: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = fake.write(tmp_path / "a.jsonl", fake.say("1", user="jane@example.com"))
    nobody = fake.write(tmp_path / "b.jsonl", fake.say("2"))
    run(store, [named, nobody], fake.read_file)
    pseudonyms, _ = store.pseudonyms()
    rows = store.table("sessions").collect()
    assert rows["user"].to_list() == [pseudonyms.of("jane@example.com"), None]
    assert rows["file"].to_list() == ["~/a.jsonl", "~/b.jsonl"]
    assert "jane" not in str(store.trace("a"))
    # Naming the one user later keeps the named one and replaces the other.
    assert run(store, [named, nobody], fake.read_file, user="me").replaced == 1
    assert store.table("sessions").collect()["user"].to_list() == [
        pseudonyms.of("jane@example.com"),
        pseudonyms.of("me"),
    ]
    # And not naming them again forgets nothing.
    assert run(store, [named, nobody], fake.read_file).replaced == 0


def test_redaction_can_be_refused(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    path = fake.write(tmp_path / "a.jsonl", fake.say("1", "mail jane@example.com"))
    result = run(store, [path], fake.read_file, redact=False)
    assert result.redacted == {}
    assert store.trace("a").steps[0].text == "mail jane@example.com"
    assert run(store, [path], fake.read_file).replaced == 1
    assert store.trace("a").steps[0].text == "mail <EMAIL_1>"


def test_a_deleted_key_is_warned_of(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    path = fake.write(tmp_path / "a.jsonl", fake.say("1", user="jane"))
    run(store, [path], fake.read_file)
    (store.path / "key").unlink()
    result = run(store, [path], fake.read_file)
    assert "key had been deleted" in result.warnings[0]


def test_a_session_that_cannot_be_stored_is_listed(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    path = fake.write(tmp_path / "a.jsonl", '{"id": "1", "text": "\\ud800"}')
    good = fake.write(tmp_path / "b.jsonl", fake.say("2"))
    result = run(store, [path, good], fake.read_file)
    assert "session a cannot be stored" in result.skipped[0].why
    assert store.session_ids() == ["b"]


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("input_tokens", 10**30),
        ("input_tokens", 2**63),
        ("input_tokens", -1),
        ("input_tokens", 10**400),
        ("cost_usd", -0.5),
        ("cost_usd", math.inf),
        ("cost_usd", math.nan),
        ("wall", -math.inf),
    ],
)
def test_a_number_that_no_column_holds_is_left_out_and_noted(
    store: Store, fake: ModuleType, tmp_path: Path, where: str, value: float
) -> None:
    """The session stays, and so do the others; the note names file, session, what and how much."""

    class Wild(fake.Reading):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[Trace]:
            for trace in super().__iter__():
                totals = trace.totals
                if trace.id != "a":
                    yield trace
                elif where == "wall":
                    yield msgspec.structs.replace(trace, totals=msgspec.structs.replace(totals, wall=value))
                else:
                    usage = msgspec.structs.replace(totals.usage, **{where: value})
                    yield msgspec.structs.replace(trace, totals=msgspec.structs.replace(totals, usage=usage))

    def read_file(path: Path, *, format: str | None = None) -> Any:
        return Wild(path)

    files = [fake.write(tmp_path / f"{n}.jsonl", fake.say(n)) for n in "ab"]
    result = run(store, files, read_file)
    assert store.session_ids() == ["a", "b"]
    assert not result.skipped
    (note,) = result.notes
    column = "wall_s" if where == "wall" else where
    assert (note.file, note.noted) == (str(files[0]), True)
    assert f"session a: {column} is " in note.why
    assert store.table("sessions").collect()[column].to_list() == [None, None if where != "input_tokens" else 10]
    assert store.verify().ok
    again = run(store, files, read_file)
    assert (again.added, again.known) == (0, 2)
    outcomes = extract.extract_traces([store.trace(i) for i in "ab"], scoring.UNIT, "x", blobs={})["outcomes"]
    assert outcomes.height == 2
    assert outcomes["tokens"].to_list() == [None if where == "input_tokens" else 10, 10]


@pytest.mark.parametrize("at", ["start", "middle", "session"])
def test_what_breaks_on_one_file_leaves_the_others(store: Store, fake: ModuleType, tmp_path: Path, at: str) -> None:
    class Breaking(fake.Reading):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[Trace]:
            if self.path.stem == "b" and at == "start":
                raise KeyError("surprise")
            for trace in super().__iter__():
                if self.path.stem == "b" and at == "session":
                    trace = msgspec.structs.replace(trace, attempt=1.5)
                yield trace
            if self.path.stem == "b" and at == "middle":
                raise ZeroDivisionError("surprise")

    files = [fake.write(tmp_path / f"{n}.jsonl", fake.say(n)) for n in "abc"]
    result = run(store, files, lambda path, *, format=None: Breaking(path))
    assert store.session_ids() == (["a", "b", "c"] if at == "middle" else ["a", "c"])
    (skip,) = result.skipped
    assert skip.file == str(files[1])
    assert ("session b cannot be stored" if at == "session" else "surprise") in skip.why
    assert result.files["read"] == result.files["kept"] + result.files["skipped"] == 3
    assert store.verify().ok


def test_reading_again_mends_a_damaged_store(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    files = [fake.write(tmp_path / f"{n}.jsonl", fake.say(n)) for n in "abc"]
    run(store, files, fake.read_file)
    blobs = store.blobs_of(["a", "b"])
    store.blobs.path(blobs["a"]).unlink()
    store.blobs.path(blobs["b"]).write_bytes(b"rust")
    assert not store.verify().ok
    run(store, files, fake.read_file)
    assert store.verify().ok


def test_the_real_reader_is_what_ingest_uses(store: Store, tmp_path: Path) -> None:
    from seatrial import intake

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "noise.bin").write_bytes(b"\0\1\2")
    result = intake.ingest(store, [tmp_path / "in"])
    assert result.files == {"read": 1, "kept": 0, "skipped": 1}
    assert result.skipped[0].file.endswith("noise.bin")


@pytest.mark.parametrize("same_bytes", [True, False])
def test_one_session_in_two_files_settles_on_one_whatever_the_order(
    fake: ModuleType, tmp_path: Path, same_bytes: bool
) -> None:
    """Two exports of one session, with the same records or the very same bytes: read again, nothing changes."""
    further = {} if same_bytes else {"model": "m"}
    a = fake.write(tmp_path / "a" / "s.jsonl", fake.say("1", "hello"), fake.say("2", "more"))
    b = fake.write(tmp_path / "b" / "s.jsonl", fake.say("1", "hello"), fake.say("2", "more", **further))
    winners = set()
    for n, order in enumerate(((a, b), (b, a))):
        store = Store.open(tmp_path / f"store{n}", create=True)
        run(store, [order[0]], fake.read_file)
        run(store, [order[1]], fake.read_file)
        version, before = store.data_version, state(store)
        for again in (order, order[::-1], order[:1], order[1:]):
            result = run(store, again, fake.read_file)
            assert (result.added, result.replaced, result.known) == (0, 0, 1)
            assert (result.data_version, state(store)) == (version, before)
        winners.add(store.trace("s").steps[1].model)
    assert winners == {None if same_bytes else "m"}
