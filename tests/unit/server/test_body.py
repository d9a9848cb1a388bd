"""Limits on what is sent, before and after decompression."""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections.abc import AsyncIterator

import pytest

from seatrial.server.body import Budget, Refused, read

MIB = 1 << 20


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def fetch(data: bytes, coding: str = "", limit: int = MIB, budget: Budget | None = None, size: int = 1000) -> bytes:
    body, held = asyncio.run(read(pieces(data, size), coding, limit, budget or Budget(64 * MIB)))
    assert held == len(body)
    return body


def zeros(mib: int) -> bytes:
    """One gzip member that holds this many MiB of zeros, made by saying the first of them again and again."""
    first = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = first.compress(b"\0" * MIB) + first.flush(zlib.Z_FULL_FLUSH)
    more = zlib.compressobj(9, zlib.DEFLATED, -15)
    again = more.compress(b"\0" * MIB) + more.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(mib):
        check = zlib.crc32(bytes(MIB), check)
    return begin + again * (mib - 1) + more.flush() + struct.pack("<II", check, mib * MIB)


def test_the_made_bomb_is_a_valid_member() -> None:
    assert gzip.decompress(zeros(3)) == bytes(3 * MIB)


@pytest.mark.parametrize("size", [1, 17, 1000, 10**6])
def test_plain_and_gzip(size: int) -> None:
    data = bytes(range(256)) * 50
    assert fetch(data, size=size) == data
    assert fetch(gzip.compress(data, mtime=0), "gzip", size=size) == data
    assert fetch(gzip.compress(data, mtime=0) + gzip.compress(b"more", mtime=0), " GZIP ", size=size) == data + b"more"
    assert fetch(b"", "gzip") == b""


@pytest.mark.parametrize(
    ("data", "coding", "status"),
    [
        (b"x" * (MIB + 1), "", 413),
        (gzip.compress(b"\0" * (MIB + 1), mtime=0), "gzip", 413),
        (zeros(500), "gzip", 413),
        (b"not gzip", "gzip", 400),
        (gzip.compress(b"a" * 5000, mtime=0)[:-9], "gzip", 400),
        (gzip.compress(b"abc", mtime=0) + b"garbage", "gzip", 400),
        (zlib.compress(b"abc"), "deflate", 415),
        (b"", "br", 415),
    ],
)
def test_refused(data: bytes, coding: str, status: int) -> None:
    budget = Budget(2 * MIB)
    with pytest.raises(Refused) as error:
        fetch(data, coding, budget=budget, size=64 * 1024)
    assert error.value.status == status
    budget.take(2 * MIB)  # everything was handed back


def test_exactly_the_limit_is_allowed() -> None:
    data = b"\0" * MIB
    assert fetch(data) == data
    assert fetch(gzip.compress(data, mtime=0), "gzip") == data


def test_a_bomb_is_never_held() -> None:
    """Half a gigabyte of nothing is refused after a megabyte of it."""
    import tracemalloc

    bomb = zeros(512)
    tracemalloc.start()
    with pytest.raises(Refused):
        fetch(bomb, "gzip", size=len(bomb))
    assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    tracemalloc.stop()


def test_all_requests_share_one_budget() -> None:
    budget = Budget(1000)
    budget.take(600)
    with pytest.raises(Refused) as error:
        fetch(b"x" * 500, budget=budget)
    assert error.value.status == 503
    assert error.value.retry_after is not None
    budget.give(600)
    assert fetch(b"x" * 500, budget=budget) == b"x" * 500
