"""The account of one file: every byte ends up kept or skipped, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from seatrial.records import FileReport, Skip

LISTED_SKIPS = 1000
"""Skips and notes listed one by one, each; further ones are added up in one entry with their count."""


BESIDE = "read with another file"
"""What a reader counts a file's bytes as that belong to the session of another file, and are read with that one."""


class Log:
    """A `ReadLog`: counts bytes and records, lists skips and notes, and asks whether a record was seen before.

    `seen` is handed in so that a store or a whole folder can share one memory; None: this file alone.
    """

    def __init__(self, file: str, *, seen: Callable[[str], bool] | None = None) -> None:
        self.file = file
        self.kept_bytes = 0
        self.skipped_bytes = 0
        self.records: dict[str, int] = {}
        self._listed: list[Skip] = []
        self._further = {False: [0, 0], True: [0, 0]}
        self._n = {False: 0, True: 0}
        self._seen = seen if seen is not None else Memory()

    def kept(self, n_bytes: int, what: str = "record") -> None:
        """`n_bytes` became part of a trace, or are known bookkeeping named by `what`."""
        self.kept_bytes += n_bytes
        self.records[what] = self.records.get(what, 0) + 1

    def skip(self, line: int | None, why: str, n_bytes: int = 0) -> None:
        """`n_bytes` at `line` (1-based) could not be kept."""
        self.skipped_bytes += n_bytes
        self._list(Skip(file=self.file, line=line, why=why, bytes=n_bytes))

    def note(self, line: int | None, why: str) -> None:
        """A finding that lost nothing."""
        self._list(Skip(file=self.file, line=line, why=why, noted=True))

    def seen(self, record_id: str) -> bool:
        """True if this source record was already read, here or from another file; remembers it."""
        return self._seen(record_id)

    @property
    def accounted(self) -> int:
        """Bytes kept or skipped so far."""
        return self.kept_bytes + self.skipped_bytes

    @property
    def beside(self) -> bool:
        """Whether everything in this file is read with another one."""
        return set(self.records) == {BESIDE}

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Everything listed, in order, then what was added up."""
        further = [
            Skip(
                file=self.file,
                line=None,
                why=f"{n:,} further {'notes' if noted else 'skips'}, not listed one by one",
                bytes=size,
                noted=noted,
            )
            for noted, (n, size) in self._further.items()
            if n
        ]
        return (*self._listed, *further)

    def report(
        self,
        *,
        format: str | None,
        status: Literal["kept", "skipped", "refused"],
        traces: int = 0,
        steps: int = 0,
        why: str | None = None,
    ) -> FileReport:
        """The account as a record; `n_bytes` is what was accounted for."""
        return FileReport(
            file=self.file,
            format=format,
            status=status,
            traces=traces,
            steps=steps,
            n_bytes=self.accounted,
            kept_bytes=self.kept_bytes,
            skipped_bytes=self.skipped_bytes,
            records=dict(self.records),
            skipped=self.skips,
            why=why,
        )

    def _list(self, entry: Skip) -> None:
        self._n[entry.noted] += 1
        if self._n[entry.noted] <= LISTED_SKIPS:
            self._listed.append(entry)
        else:
            further = self._further[entry.noted]
            further[0] += 1
            further[1] += entry.bytes


class Memory:
    """Remembers record ids: calling it says whether the id was there before."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def __call__(self, record_id: str) -> bool:
        if record_id in self._ids:
            return True
        self._ids.add(record_id)
        return False
