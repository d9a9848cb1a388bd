"""What is erased is gone from every byte of the store, and what is left is whole."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import polars as pl
import pytest

from seatrial.errors import ErasedError
from seatrial.records import Step, Trace
from seatrial.records.tables import CONSENTS, SIGNALS
from seatrial.store import Store
from seatrial.store.durable import write_atomic
from seatrial.store.erase import before, erase, family, of_user
from seatrial.store.layout import ERASING
from seatrial.store.scan import scan

Make = Callable[..., Trace]
Put = Callable[[Store, Sequence[Trace]], str]

SECRET = "a sentence that only jane ever wrote"


def everything(store: Store) -> bytes:
    """All bytes of the store, with blobs and Parquet files unpacked: written apart from the scan under test."""
    out = []
    for folder, _, names in os.walk(store.path):
        for name in names:
            data = (Path(folder) / name).read_bytes()
            out += [name.encode(), data]
            if name.endswith(".z"):
                out.append(zlib.decompress(data))
            if name.endswith(".parquet"):
                frame = pl.read_parquet(data)
                out += [str(row).encode() for row in frame.rows()]
    return b"\n".join(out)


def long_name(n: int) -> str:
    return f"{hashlib.sha256(bytes([n])).hexdigest()[:12]}-session-{n}"


def filled(store: Store, trace: Make, put: Put, versions: int = 3) -> None:
    """Jane has sessions 0-3 (3 is a sub-agent without a user), Bob 4-6; each grew several times."""
    for version in range(1, versions + 1):
        jane = [trace(long_name(n), 2 * version, user="user-jane00000000", mark=SECRET) for n in range(4)]
        traces = [*jane, *(trace(long_name(n), 2 * version, user="user-bob000000000") for n in range(4, 7))]
        traces[3] = msgspec.structs.replace(traces[3], user=None, parent=long_name(0))
        put(store, traces)
    row = dict.fromkeys(SIGNALS.names) | {
        "step": 0,
        "kind": "praise",
        "detector": "d",
        "version": "1",
        "confidence": 1.0,
    }
    rows = [row | {"session": long_name(n), "quote": SECRET if n < 4 else "bob"} for n in range(7)]
    store.commit({"signals": pl.DataFrame(rows, schema=SIGNALS.schema())})


def consent(store: Store, subject: str) -> None:
    row = {"subject": subject, "purposes": ["rank"], "basis": "contract", "time": 1.0, "withdrawn": None}
    store.commit({"consents": pl.DataFrame([row], schema=CONSENTS.schema())})


def test_nothing_of_a_person_is_left(store: Store, trace: Make, put: Put) -> None:
    filled(store, trace, put)
    consent(store, "user-jane00000000")
    consent(store, "user-bob000000000")
    earlier = store.data_version
    kept = {n: store.trace(long_name(n)) for n in (4, 5, 6)}
    assert SECRET.encode() in everything(store)
    blobs = list(store.blobs_of([long_name(n) for n in range(4)]).values())

    done = erase(store, of_user(store, "user-jane00000000"), subjects=["user-jane00000000"])

    assert done.sessions == tuple(sorted(long_name(n) for n in range(4)))
    assert done.rows == {"sessions": 4, "steps": 24, "signals": 4, "consents": 1}
    assert done.proof.ok, done.proof.found
    assert done.proof.looked_for["session"] == 4
    left = everything(store)
    for gone in (SECRET, "user-jane00000000", *(long_name(n) for n in range(4)), *blobs):
        assert gone.encode() not in left, gone
    assert b"user-bob000000000" in left
    assert {n: store.trace(long_name(n)) for n in (4, 5, 6)} == kept
    assert set(store.table("signals").collect()["session"]) == {long_name(n) for n in (4, 5, 6)}
    verified = store.verify()
    assert verified.ok, verified.problems
    assert verified.superseded == verified.unreferenced == 0
    with pytest.raises(ErasedError, match="erased on"):
        store.table("sessions", version=earlier)
    # The store lives on, and so does time travel from here.
    now = store.data_version
    put(store, [trace("later", user="user-bob000000000")])
    assert store.table("sessions", version=now).collect().height == 3
    assert store.table("sessions").collect().height == 4
    assert store.verify().ok


def test_erasing_twice_and_erasing_nothing(store: Store, trace: Make, put: Put) -> None:
    filled(store, trace, put)
    first = erase(store, [long_name(1)])
    assert len(first.sessions) == 1
    again = erase(store, [long_name(1)])
    assert again.sessions == ()
    assert again.data_version == first.data_version
    assert again.proof.ok
    assert store.verify().ok


def test_old_states_go_even_of_sessions_that_stay(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("a-session-that-stays", mark="an early wording")])
    put(store, [trace("a-session-that-stays", mark="a later wording")])
    assert b"early wording" in everything(store)
    erase(store, [])
    assert b"early wording" not in everything(store)
    assert store.trace("a-session-that-stays").steps[0].text.endswith("a later wording")


def test_a_family_is_a_session_with_its_subagents(store: Store, trace: Make, put: Put) -> None:
    child = msgspec.structs.replace(trace("child"), parent="root")
    grandchild = msgspec.structs.replace(trace("grandchild"), parent="child")
    put(store, [trace("root"), child, grandchild, trace("other")])
    assert family(store, ["root"]) == ["child", "grandchild", "root"]
    assert family(store, ["nobody"]) == []


def test_records_that_another_session_shares_are_said(store: Store, trace: Make, put: Put) -> None:
    original = trace("the-original-session")
    copied = tuple(msgspec.structs.replace(s, copied=True) for s in original.steps)
    put(store, [original, msgspec.structs.replace(trace("the-forked-session"), steps=copied)])
    done = erase(store, ["the-original-session"])
    assert done.shared == 2
    assert done.proof.looked_for["session"] == 1
    assert store.verify().ok


def test_what_ended_before_a_moment(store: Store, trace: Make, put: Put) -> None:
    def at(name: str, *times: float) -> Trace:
        steps = tuple(Step(index=i, event_class="human", text="x", time=t) for i, t in enumerate(times))
        return msgspec.structs.replace(trace(name), steps=steps)

    put(store, [at("old", 1.0, 99.0), at("across", 50.0, 150.0), at("new", 200.0), at("undated")])
    assert before(store, 100.0) == (["old"], 1)


def test_the_scan_finds_what_is_there(store: Store, trace: Make, put: Put) -> None:
    """The proof can fail: in a blob, in a table, in the log, in a file's name."""
    put(store, [trace("present-session-name", user="user-0123456789")])
    blob = store.blobs_of(["present-session-name"])["present-session-name"]
    for kind, text in (("session", "present-session-name"), ("subject", "user-0123456789"), ("blob", blob)):
        found = scan(store.path, {kind: [text]})
        assert not found.ok, text
    assert scan(store.path, {"session": ["present-session"]}).ok, "the beginning of another name is not that name"
    assert scan(store.path, {"session": ["absent-session-name"]}).ok
    (store.path / "spool").mkdir()
    (store.path / "spool" / "x").write_bytes(b"\0\xff...absent-session-name...")
    assert not scan(store.path, {"session": ["absent-session-name"]}).ok


def test_short_names_are_looked_for_as_values(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace("7"), trace("77")])
    assert not scan(store.path, {"session": ["7"]}).ok
    done = erase(store, ["7"])
    assert done.proof.ok, done.proof.found
    assert store.session_ids() == ["77"]


ERASE = """
import sys
from seatrial.store import Store
from seatrial.store.erase import erase
store = Store.open(sys.argv[1])
print("ready", flush=True)
erase(store, sys.argv[2:])
print("done", flush=True)
"""


def test_killed_while_erasing(store: Store, trace: Make, put: Put) -> None:
    """Cut short at any place, an erasure either has not begun for readers, or is ended by the next one."""
    filled(store, trace, put)
    rng = random.Random(5)
    gone = [long_name(0), long_name(1)]
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", ERASE, str(store.path), *gone], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for n in (2, 4, 5, 6):
            assert store.trace(long_name(n)).id == long_name(n)
        half = (store.path / ERASING).exists()
        verified = store.verify()
        assert verified.ok is not half, verified.problems
    done = erase(store, gone)
    assert done.proof.ok
    assert not (store.path / ERASING).exists()
    assert store.verify().ok
    left = everything(store)
    assert not any(name.encode() in left for name in (*gone, long_name(3)))


def test_what_a_killed_writer_left_half_written_is_erased_too(store: Store, trace: Make, put: Put) -> None:
    """A process that was killed while it wrote the note of its erasure, a ledger or a blob leaves a scratch file."""
    filled(store, trace, put, versions=1)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    for n, folder in enumerate((store.path, store.path / "blobs", store.path / "results", store.path / "originals")):
        folder.mkdir(exist_ok=True)
        (folder / f".{ended.pid}-{n:016x}.tmp").write_text(f'{{"session":"{long_name(0)}"}}')
    mine = store.path / f".{os.getpid()}-{9:016x}.tmp"
    mine.write_text("somebody writes this just now")
    done = erase(store, [long_name(0)])
    assert done.proof.ok, done.proof.found
    assert [p.name for p in store.path.rglob("*.tmp")] == [mine.name]
    os.utime(mine, (0, 0))
    erase(store, [long_name(1)])
    assert not list(store.path.rglob("*.tmp"))


def test_a_scratch_file_that_another_machine_took_for_a_left_one_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, taken = os.replace, []

    def robbed(source: Path, target: Path) -> None:
        if not taken:
            taken.append(source)
            source.unlink()
        replace(source, target)

    monkeypatch.setattr(os, "replace", robbed)
    write_atomic(tmp_path / "kept", b"whole")
    assert (tmp_path / "kept").read_bytes() == b"whole"
    assert taken
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "no folder" / "kept", b"whole")


@pytest.mark.parametrize("at", range(6))
def test_crash_between_any_two_parts(
    store: Store, trace: Make, put: Put, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, trace, put, versions=1)
    places = [
        (Store, "commit"),
        (type(store.delta), "expunge"),
        (type(store.versions), "rewrite"),
        (type(store.delta), "drop_log"),
        (type(store.blobs), "remove"),
        (type(store.blobs), "sweep"),
    ]
    owner, name = places[at]

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, crash)
        with pytest.raises(KeyboardInterrupt):
            erase(store, [long_name(4)])
    assert not store.verify().ok
    done = erase(store, [long_name(4)])
    assert done.proof.ok, done.proof.found
    assert store.verify().ok
    assert long_name(4).encode() not in everything(store)
    assert long_name(5) in store.session_ids()


def test_ledgers_of_runs_lose_what_was_erased(store: Store, trace: Make, put: Put) -> None:
    put(store, [trace(long_name(0)), trace(long_name(1))])
    folder = store.path / "runs"
    folder.mkdir()
    lines = [f'{{"key":"t{n}","value":{{"session":"{long_name(n)}"}}}}\n' for n in range(2)]
    (folder / "r.jsonl").write_text("".join(lines))
    done = erase(store, [long_name(0)])
    assert done.proof.ok, done.proof.found
    assert (folder / "r.jsonl").read_text() == lines[1]


def test_what_stays_no_longer_names_what_went(store: Store, trace: Make, put: Put) -> None:
    """The session that it continues, an id in its text, and an id in what its reader kept beside."""
    gone, stays, other = long_name(1), long_name(2), long_name(3)
    follows = msgspec.structs.replace(
        trace(stays, 3, mark=f"see {gone} and {gone}x"), continues=gone, extra={"forked_from": gone, "n": 1}
    )
    put(store, [trace(gone), follows, trace(other, 2, mark=f"x{gone}")])
    untouched = store.blobs_of([other])
    done = erase(store, [gone])
    assert done.linked == (stays,)
    assert done.proof.ok
    left = store.trace(stays)
    assert left.continues is None
    assert left.extra == {"forked_from": "(erased)", "n": 1}
    # Another id that merely begins with it stays.
    assert left.steps[0].text == f"{stays} 0 see (erased) and {gone}x"
    assert [s.source_ids for s in left.steps] == [s.source_ids for s in follows.steps]
    assert store.blobs_of([other]) == untouched
    assert store.session_ids() == sorted([stays, other])
    found = store.verify()
    assert found.ok
    assert (found.superseded, found.unreferenced) == (0, 0)


def test_a_short_id_goes_as_a_link(store: Store, trace: Make, put: Put) -> None:
    follows = msgspec.structs.replace(trace("b", 2, mark="a is a word"), continues="a")
    put(store, [trace("a"), follows])
    assert erase(store, ["a"]).linked == ("b",)
    left = store.trace("b")
    assert left.continues is None
    assert left.steps == follows.steps
