"""The account of one file."""

from __future__ import annotations

from seatrial.ingest.log import LISTED_SKIPS, Log, Memory


def test_bytes_and_records_add_up() -> None:
    log = Log("f")
    log.kept(10, "user")
    log.kept(5, "user")
    log.kept(1)
    log.skip(3, "torn", 4)
    log.note(4, "glued")
    report = log.report(format="x", status="kept", traces=1, steps=2)
    assert (report.n_bytes, report.kept_bytes, report.skipped_bytes) == (20, 16, 4)
    assert report.records == {"user": 2, "record": 1}
    assert [(s.line, s.why, s.bytes, s.noted) for s in report.skipped] == [
        (3, "torn", 4, False),
        (4, "glued", 0, True),
    ]


def test_endless_skips_are_added_up_not_dropped() -> None:
    log = Log("f")
    for i in range(LISTED_SKIPS + 7):
        log.skip(i + 1, "torn", 3)
    log.note(1, "still listed")
    report = log.report(format=None, status="skipped")
    assert sum(s.bytes for s in report.skipped) == report.skipped_bytes == 3 * (LISTED_SKIPS + 7)
    assert report.skipped[-1].why == "7 further skips, not listed one by one"
    assert [s.why for s in report.skipped if s.noted] == ["still listed"]


def test_memory_is_shared_when_it_is_handed_in() -> None:
    seen = Memory()
    assert not Log("a", seen=seen).seen("r")
    assert Log("b", seen=seen).seen("r")
    assert not Log("c").seen("r")
