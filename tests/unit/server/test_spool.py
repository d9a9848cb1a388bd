"""The spool: on disk before it says so, whole after any end, and small again once nothing needs it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from seatrial.errors import StoreError
from seatrial.server.spool import Request, Spool


def request(text: str) -> Request:
    return Request(encoding="json", body=text.encode(), time=1.5)


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.spool"))


def bodies(spool: Spool) -> list[str]:
    return [r.body.decode() for _, r in spool.found()]


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    entries = [spool.put(request(f"body {n}" * (n + 1))) for n in range(5)]
    assert [spool.read(e) for e in entries] == [request(f"body {n}" * (n + 1)) for n in range(5)]
    spool.close()
    again = Spool(tmp_path / "spool")
    found = list(again.found())
    assert [e for e, _ in found] == entries
    assert found[3][1] == request("body 3" * 4)
    assert again.damaged == 0
    again.close()


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.put(request("x"))
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0
    assert segments(tmp_path / "spool")[0].stat().st_mode & 0o077 == 0
    spool.close()


def test_the_answer_comes_after_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path / "spool")
    spool.put(request("first"))
    allowed = threading.Event()
    synced = os.fsync

    def slow(fd: int) -> None:
        allowed.wait(10)
        synced(fd)

    monkeypatch.setattr(os, "fsync", slow)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (spool.put(request("second")), done.set()))
    thread.start()
    assert not done.wait(0.2)
    allowed.set()
    assert done.wait(10)
    thread.join()
    spool.close()


@pytest.mark.parametrize("cut", [1, 7, 30, 60])
def test_a_torn_end_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = Spool(tmp_path / "spool")
    for n in range(3):
        spool.put(request(f"body {n} " * 20))
    spool.close()
    (path,) = segments(tmp_path / "spool")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = Spool(tmp_path / "spool")
    assert bodies(again) == [f"body {n} " * 20 for n in range(2)]
    again.put(request("after"))
    again.close()
    third = Spool(tmp_path / "spool")
    assert bodies(third) == [*(f"body {n} " * 20 for n in range(2)), "after"]
    third.close()


@pytest.mark.parametrize("at", [0, 9, 20, 50, 80])
def test_damage_in_the_middle_is_stepped_over_and_counted(tmp_path: Path, at: int) -> None:
    spool = Spool(tmp_path / "spool")
    entries = [spool.put(request(f"body {n} " * 20)) for n in range(3)]
    spool.close()
    (path,) = segments(tmp_path / "spool")
    data = bytearray(path.read_bytes())
    data[entries[1].offset + at] ^= 0xFF
    path.write_bytes(data)
    again = Spool(tmp_path / "spool")
    assert bodies(again) == ["body 0 " * 20, "body 2 " * 20]
    assert again.damaged >= (at >= 8)
    again.close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with pytest.raises(StoreError, match="another process"):
        Spool(tmp_path / "spool")
    spool.close()
    Spool(tmp_path / "spool").close()


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path / "spool")
    spool.put(request("before"))
    written = os.write

    def full(fd: int, data: bytes) -> int:
        written(fd, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space"):
            spool.put(request("lost"))
    spool.put(request("after"))
    spool.close()
    again = Spool(tmp_path / "spool")
    assert bodies(again) == ["before", "after"]
    again.close()


def test_segments_are_dropped_when_nothing_needs_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", segment_bytes=100)
    entries = [spool.put(request("x" * 200 + str(n))) for n in range(3)]
    assert len({e.segment for e in entries}) == 3
    assert not spool.drop(entries[0].segment), "its caller has not noted the request yet"
    for entry in entries:
        spool.noted(entry)
    assert spool.drop(entries[0].segment)
    assert not spool.drop(entries[2].segment), "it is being written to"
    spool.rotate()
    later = spool.put(request("later"))
    spool.noted(later)
    assert spool.drop(entries[2].segment)
    assert [int(p.stem) for p in segments(tmp_path / "spool")] == [entries[1].segment, later.segment]
    spool.clear()
    assert segments(tmp_path / "spool") == []
    assert spool.size == 0
    spool.close()


def test_many_threads_share_few_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path / "spool")
    synced, count = os.fsync, []

    def counted(fd: int) -> None:
        count.append(fd)
        synced(fd)

    monkeypatch.setattr(os, "fsync", counted)
    threads = [threading.Thread(target=spool.put, args=(request(f"body {n}"),)) for n in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spool.close()
    again = Spool(tmp_path / "spool")
    assert sorted(bodies(again)) == sorted(f"body {n}" for n in range(64))
    again.close()


def test_closed_it_takes_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.close()
    with pytest.raises(StoreError, match="closed"):
        spool.put(request("x"))
