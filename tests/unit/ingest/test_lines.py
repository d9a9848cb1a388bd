"""Bytes to lines."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from seatrial.ingest.lines import Line, lines, too_long


def test_only_the_newline_byte_ends_a_line() -> None:
    data = "a\u2028b\x85c\x0cd\re\n\nlast".encode()
    assert [line.data for line in lines(io.BytesIO(data))] == ["a\u2028b\x85c\x0cd\re\n".encode(), b"\n", b"last"]


@pytest.mark.parametrize("size", [9, 10, 11, 25])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\nnext\n"])
def test_a_line_beyond_the_limit_is_counted_not_held(size: int, ending: bytes) -> None:
    data = b"x" * size + ending
    pieces: list[bytes] = []
    got = list(lines(io.BytesIO(data), limit=10, on_skipped=pieces.append))
    first = size + (1 if ending else 0)
    assert sum(line.size for line in got) == len(data)
    assert got[0] == Line(1, None if first > 10 else data[:first], first)
    assert b"".join(pieces) == (data[:first] if first > 10 else b"")
    if ending == b"\nnext\n":
        assert got[-1] == Line(2, b"next\n", 5)


def test_memory_does_not_grow_with_an_over_long_line() -> None:
    class Endless(io.RawIOBase):
        left = 100_000_000

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            n = min(len(buffer), self.left)
            buffer[:n] = b"x" * n
            self.left -= n
            return n

    tracemalloc.start()
    got = list(lines(io.BufferedReader(Endless()), limit=1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got == [Line(1, None, 100_000_000)]
    assert peak < 8_000_000


def test_the_reason_names_both_sizes() -> None:
    assert too_long(100, 10) == "line of 100 bytes is longer than the limit of 10 bytes"
