"""Bytes to lines: split on the newline byte only, in memory bounded by the longest line that is allowed.

A JSON string may hold U+2028, U+0085, form feeds or a carriage return; ``str.splitlines`` would tear such a
record in two. Nothing but ``\\n`` ends a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

LINE_LIMIT = 256 * 1024 * 1024
"""Longest line that is kept, in bytes, its newline included. Longer lines are skipped with a reason.

Reading a line of this length into a store takes memory of some five times its length."""

BOM = b"\xef\xbb\xbf"
_PIECE = 1024 * 1024


class Line(NamedTuple):
    """One line of a file.

    `number` counts from 1. `data` holds the bytes with their newline (the last line may have none); None when
    the line is longer than the limit. `size` is its length in bytes either way. A byte order mark before the first
    line is left out of its `data`.
    """

    number: int
    data: bytes | None
    size: int


_line = tuple.__new__
"""A `Line` at half the price of calling its class: one is made for every line of every log."""


def lines(
    stream: BinaryIO,
    *,
    limit: int = LINE_LIMIT,
    on_skipped: Callable[[bytes], None] | None = None,
) -> Iterator[Line]:
    """The lines of `stream`, holding one at a time; sizes add up to the bytes of the stream.

    `on_skipped` is given the bytes of over-long lines piece by piece, e.g. to hash them.
    """
    readline = stream.readline
    number = 0
    while data := readline(limit + 1):
        number += 1
        if len(data) <= limit:
            size = len(data)
            yield _line(Line, (number, data.removeprefix(BOM) if number == 1 else data, size))
            continue
        if on_skipped is not None:
            on_skipped(data)
        size, last = len(data), data[-1:]
        del data
        while last != b"\n" and (piece := readline(_PIECE)):
            if on_skipped is not None:
                on_skipped(piece)
            size += len(piece)
            last = piece[-1:]
        yield Line(number, None, size)


def too_long(size: int, limit: int = LINE_LIMIT) -> str:
    """Why an over-long line was skipped, in words."""
    return f"line of {size:,} bytes is longer than the limit of {limit:,} bytes"
