"""A request's body, read and decompressed within limits: what is sent cannot make us hold more than was allowed."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator


class Refused(Exception):
    """A request that is answered with an error: its HTTP status and why."""

    def __init__(self, status: int, why: str, *, retry_after: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.retry_after = retry_after


class Budget:
    """Bytes that all requests under way may hold together."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take(self, n: int) -> None:
        """Reserve `n` bytes.

        Raises:
            Refused: there are not that many left; the client is to come back.
        """
        if n > self._left:
            raise Refused(503, "the receiver is busy", retry_after=1)
        self._left -= n

    def give(self, n: int) -> None:
        """Hand bytes back."""
        self._left += n


async def read(chunks: AsyncIterator[bytes], coding: str, limit: int, budget: Budget) -> tuple[bytes, int]:
    """The decompressed body, and the bytes taken from the budget for it, which the caller gives back.

    Raises:
        Refused: more than `limit` bytes before or after decompression, broken compression, an unknown coding, or
            no room. Nothing stays taken then.
    """
    unpack = _decoder(coding)
    parts: list[bytes] = []
    sent = held = 0
    try:
        async for chunk in chunks:
            sent += len(chunk)
            if sent > limit:
                raise Refused(413, f"the request has more than {limit} bytes")
            for part in unpack.feed(chunk, limit - held + 1):
                budget.take(len(part))
                held += len(part)
                parts.append(part)
                if held > limit:
                    raise Refused(413, f"the request has more than {limit} bytes after decompression")
        unpack.end()
    except BaseException:
        budget.give(held)
        raise
    return b"".join(parts), held


DRAIN_BYTES, DRAIN_S = 64 << 20, 2.0
"""What of a refused request's body is read and thrown away before the connection is closed, at most."""


async def drain(chunks: AsyncIterator[bytes], limit: int = DRAIN_BYTES, seconds: float = DRAIN_S) -> None:
    """Read the rest of a body and hold none of it.

    A connection that is closed with bytes unread is reset, and the client loses the answer that says why. A body that
    is longer or slower than these limits is reset all the same.
    """
    left = limit
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return
    except TimeoutError:
        return


class _Plain:
    def feed(self, chunk: bytes, room: int) -> list[bytes]:
        return [chunk] if chunk else []

    def end(self) -> None:
        return None


class _Gzip:
    """Members one behind the other, as gzip allows; never more than `room` bytes out at a time."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)
        self._begun = False

    def feed(self, chunk: bytes, room: int) -> list[bytes]:
        out: list[bytes] = []
        try:
            while chunk and room > 0:
                self._begun = True
                part = self._member.decompress(chunk, room)
                room -= len(part)
                if part:
                    out.append(part)
                chunk = self._member.unconsumed_tail
                if self._member.eof:
                    chunk = self._member.unused_data
                    self._member = zlib.decompressobj(31)
                    self._begun = False
        except zlib.error as error:
            raise Refused(400, f"the body is not gzip: {error}") from None
        return out

    def end(self) -> None:
        if self._begun:
            raise Refused(400, "the gzip body is cut short")


def _decoder(coding: str) -> _Plain | _Gzip:
    match coding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Gzip()
        case other:
            raise Refused(415, f"content encoding {other[:40]!r} is not supported; send gzip or none")
