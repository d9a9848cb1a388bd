"""Does anything of what was erased remain? Every byte of a store is read, packed ones unpacked."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

_SHORT = 12
_BATCH_CHARS = 16 * 1024 * 1024
_ROWS = 20_000
LISTED = 20


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found. `looked_for` counts identifiers: sessions, blobs, pseudonyms, source records, texts.

    `bytes` were read from disk, `unpacked_bytes` came out of blobs and Parquet files and were read too. `found`
    lists the first places where any of them still stands, by file and kind; ``ok`` when there is none.
    """

    files: int
    bytes: int
    unpacked_bytes: int
    looked_for: dict[str, int]
    found: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.found


def scan(root: Path, wanted: Mapping[str, Sequence[str]], decrypted: Iterable[tuple[str, bytes]] = ()) -> Proof:
    """Look in every file under `root`, and in its name, for identifiers, which are given by kind.

    An identifier stands somewhere when no letter, digit, ``_`` or ``-`` is next to it. One that is shorter than
    twelve characters is looked for as the value of a column named ``session`` or ``subject``. `decrypted` is what
    encrypted files hold, which is looked at too.
    """
    paths = sorted(p for p in root.rglob("*") if p.is_file())
    return scan_things(((str(path.relative_to(root)), path.read_bytes()) for path in paths), wanted, decrypted)


def scan_things(
    things: Iterable[tuple[str, bytes]],
    wanted: Mapping[str, Sequence[str]],
    decrypted: Iterable[tuple[str, bytes]] = (),
) -> Proof:
    """`scan` over names and bytes, wherever they are."""
    search = _Search(wanted)
    files = size = unpacked = 0
    for name, data in things:
        files += 1
        size += len(data)
        search.look(name, name)
        if not name.endswith(".checkpoint.parquet"):
            # A checkpoint's own bounds are cut off and rounded up, and can spell the id after the one they bound.
            # What it holds is looked at unpacked.
            search.look(name, data.decode("utf-8", "replace"))
        for text in _unpacked(name, data):
            unpacked += len(text)
            search.look(name, text)
    for name, data in decrypted:
        unpacked += len(data)
        search.look(name, data.decode("utf-8", "replace"))
    search.flush()
    return Proof(
        files=files,
        bytes=size,
        unpacked_bytes=unpacked,
        looked_for={kind: len(set(ids)) for kind, ids in sorted(wanted.items()) if ids},
        found=tuple(search.found[:LISTED]),
    )


def merged(one: Proof, other: Proof) -> Proof:
    """Two scans for the same identifiers, as one."""
    return Proof(
        files=one.files + other.files,
        bytes=one.bytes + other.bytes,
        unpacked_bytes=one.unpacked_bytes + other.unpacked_bytes,
        looked_for=one.looked_for,
        found=(*one.found, *other.found)[:LISTED],
    )


def _unpacked(name: str, data: bytes) -> Iterator[str]:
    if name.endswith(".z"):
        try:
            yield zlib.decompress(data).decode("utf-8", "replace")
        except zlib.error:
            return  # its bytes as they are have been looked at
    elif name.endswith(".parquet"):
        try:
            frame = pl.read_parquet(io.BytesIO(data))
        except (pl.exceptions.PolarsError, OSError):
            return
        for part in frame.iter_slices(_ROWS):
            yield part.write_ndjson()


class _Search:
    def __init__(self, wanted: Mapping[str, Sequence[str]]) -> None:
        self.found: list[str] = []
        self._kinds: dict[str, str] = {}
        for kind, ids in wanted.items():
            for one in ids:
                for text in [one] if len(one) >= _SHORT else [f'"{c}":"{one}"' for c in ("session", "subject")]:
                    self._kinds[text] = kind
        self._needles = list(self._kinds)
        self._texts: list[str] = []
        self._names: list[str] = []
        self._held = 0

    def look(self, name: str, text: str) -> None:
        if not self._needles:
            return
        self._names.append(name)
        self._texts.append(text)
        self._held += len(text)
        if self._held >= _BATCH_CHARS:
            self.flush()

    def flush(self) -> None:
        if not self._texts:
            return
        hits = pl.Series(self._texts).str.extract_many(self._needles, overlapping=True).to_list()
        for name, text, met in zip(self._names, self._texts, hits, strict=True):
            for one in sorted(set(met)):
                if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", text):
                    self.found.append(f"{name}: {self._kinds[one]} {one}")
        self._texts, self._names, self._held = [], [], 0
