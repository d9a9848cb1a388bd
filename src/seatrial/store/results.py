"""Results that commands leave in a store, for others to look at: the JSON object that a command prints, as a file.

A result is named by its kind and content, so that the same answer is kept once, with the time it was last given. It
may quote sentences of sessions: erasing a session removes every result that names it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import canonical, digest
from seatrial.errors import InputError, StoreError, UsageError
from seatrial.store.durable import sync_path, write_atomic

FOLDER = "results"
"""The folder's name in a store."""

_ID = re.compile(r"[a-z][a-z0-9-]{0,30}-[0-9a-f]{16}")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,30}")
_SUFFIX = ".json"
_NAME_CHARS = 200


class ResultHead(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of a result without reading it.

    `kind` is the first word of the command (``rank``, ``gate``, ``recover``), `name` what a person calls it by.
    `time` is when it was last given (seconds UTC); `data_version` names the data that it was made from, None where
    it was not made from a store. `size` is the file's, in bytes.
    """

    id: str
    kind: str
    name: str
    time: float
    command: str
    data_version: str | None = None
    size: int = 0


class StoredResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result with its envelope: ``{"seatrial", "command", "data_version", "result", "warnings"}``."""

    id: str
    kind: str
    name: str
    time: float
    command: str
    envelope: dict[str, Any]
    data_version: str | None = None


class _Whole(ResultHead, frozen=True, kw_only=True):
    """A head of which it is seen that the rest of its file is there."""

    envelope: dict[str, msgspec.Raw]


class Results:
    """The folder ``results/`` of a store."""

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self._root = root
        self._durable = durable
        self._heads: dict[str, tuple[tuple[int, int], ResultHead]] = {}

    def save(self, kind: str, name: str, envelope: Mapping[str, Any], *, now: float | None = None) -> str:
        """Keep an envelope and return its id; an equal one of the same kind and name is only dated anew.

        Raises:
            StoreError: it cannot be written.
            UsageError: `kind` is not a word of small letters.
        """
        if not _KIND.fullmatch(kind):
            raise UsageError(f"a result's kind is a word of small letters, not {kind!r}")
        shown = name[:_NAME_CHARS]
        plain = msgspec.json.decode(canonical(dict(envelope)))  # records become objects, whose keys are sorted
        ident = _ident(kind, shown, plain)
        version = envelope.get("data_version")
        kept = StoredResult(
            id=ident,
            kind=kind,
            name=shown,
            time=round(time.time() if now is None else now, 3),
            command=str(envelope.get("command", kind)),
            data_version=version if isinstance(version, str) else None,
            envelope=plain,
        )
        try:
            self._root.mkdir(exist_ok=True)
            write_atomic(self._path(ident), canonical(kept) + b"\n", mode=0o600, durable=self._durable)
            if self._durable:
                sync_path(self._root)
        except OSError as error:
            raise StoreError(f"the result cannot be kept: {error.strerror}", file=str(self._path(ident))) from error
        return ident

    def heads(self, kind: str | None = None) -> list[ResultHead]:
        """What there is, newest first; of one `kind`, or all. A file that cannot be read is left out (`unreadable`)."""
        found = []
        for path in self._files():
            head = self._head(path)
            if head is not None and kind in (None, head.kind):
                found.append(head)
        return sorted(found, key=lambda h: (-h.time, h.id))

    def unreadable(self, kind: str | None = None) -> list[str]:
        """The names of files that `heads` leaves out: torn, or no result; of one `kind` by their name, or all."""
        found = [path.stem for path in self._files() if self._head(path) is None]
        return [name for name in found if kind is None or name.rpartition("-")[0] == kind]

    def get(self, ident: str) -> StoredResult:
        """One result.

        Raises:
            InputError: there is none of that id.
            StoreError: its file is damaged.
        """
        if not _ID.fullmatch(ident):
            raise InputError(f"{ident[:60]!r} is no result's id")
        path = self._path(ident)
        try:
            return msgspec.json.decode(path.read_bytes(), type=StoredResult)
        except FileNotFoundError:
            raise InputError(f"the store has no result {ident}", file=str(self._root)) from None
        except (msgspec.DecodeError, OSError, RecursionError) as error:
            raise StoreError(f"result {ident} cannot be read: {error}", file=str(path), hint="remove it") from error

    def remove(self, ident: str) -> None:
        """Remove one result.

        Raises:
            InputError: there is none of that id.
        """
        self.get(ident)
        self._path(ident).unlink(missing_ok=True)
        sync_path(self._root)

    def problems(self) -> list[str]:
        """What is wrong with the files: unreadable ones, and those that hold something else than their name says."""
        wrong = []
        for path in self._files():
            try:
                kept = msgspec.json.decode(path.read_bytes(), type=StoredResult)
            except (msgspec.DecodeError, OSError, RecursionError) as error:
                wrong.append(f"result {path.stem}: {error}")
                continue
            if not _ident(kept.kind, kept.name, kept.envelope) == kept.id == path.stem:
                wrong.append(f"result {path.stem} holds something else than its name says")
        return wrong

    def strike(self, identifiers: Sequence[str]) -> int:
        """Remove every result that names one of these identifiers (sessions, blobs, pseudonyms); how many.

        A result that cannot be read goes too: nobody can say what it holds.
        """
        if not identifiers or not self._root.is_dir():
            return 0
        long = [re.escape(i) for i in identifiers if len(i) >= 12]
        found = re.compile("|".join([rf"(?<![\w-])(?:{'|'.join(long)})(?![\w-])"] if long else []) or r"(?!)")
        quoted = [canonical(i).decode() for i in identifiers]
        removed = 0
        for path in self._files():
            text = path.read_text("utf-8", "replace")
            if found.search(text) or any(q in text for q in quoted) or self._head(path) is None:
                path.unlink(missing_ok=True)
                removed += 1
        if removed:
            sync_path(self._root)
        return removed

    def _files(self) -> list[Path]:
        if not self._root.is_dir():
            return []
        return sorted(p for p in self._root.iterdir() if p.suffix == _SUFFIX and not p.name.startswith("."))

    def _path(self, ident: str) -> Path:
        return self._root / f"{ident}{_SUFFIX}"

    def _head(self, path: Path) -> ResultHead | None:
        try:
            about = path.stat()
            stamp = (about.st_mtime_ns, about.st_size)
            there = self._heads.get(path.name)
            if there is not None and there[0] == stamp:
                return there[1]
            whole = msgspec.json.decode(path.read_bytes(), type=_Whole)
        except (msgspec.DecodeError, OSError, RecursionError):
            return None
        if whole.id != path.stem or _ID.fullmatch(whole.id) is None:
            return None
        known = {name: getattr(whole, name) for name in ResultHead.__struct_fields__}
        head = ResultHead(**{**known, "size": about.st_size})
        self._heads[path.name] = (stamp, head)
        return head


def _ident(kind: str, name: str, envelope: Mapping[str, Any]) -> str:
    return f"{kind}-{digest(canonical(name) + canonical(envelope))[:16]}"
