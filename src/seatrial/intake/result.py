"""What an ingest did (``ingest --json`` result, DESIGN 5)."""

from __future__ import annotations

import msgspec

from seatrial.intake.assignments import AssignmentReport
from seatrial.records import FileReport, Skip


class IngestResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and reasons. Every file is in `reports`, and everything that was not kept in `skipped`.

    `files` counts files ``read`` (looked at), ``kept`` (gave a session) and ``skipped`` (gave none).
    `sessions` and `steps` are those of the kept files; of the sessions, `added` are new to the store,
    `replaced` have grown or are read differently than before, and `known` add nothing. `copied` counts steps
    that repeat a record which another session counts already. `redacted` counts replacements by type.
    `originals` counts source files that were kept encrypted (``--keep-raw``).
    `notes` lists findings that lost nothing.
    """

    files: dict[str, int]
    sessions: int
    steps: int
    skipped: tuple[Skip, ...]
    redacted: dict[str, int]
    added: int
    replaced: int
    known: int
    copied: int
    data_version: str
    assignments: AssignmentReport | None = None
    originals: int = 0
    notes: tuple[Skip, ...] = ()
    warnings: tuple[str, ...] = ()
    reports: tuple[FileReport, ...] = ()
