"""What a reader kept and what it did not (DESIGN 4: nothing is lost silently)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be kept: where (1-based line, None for a whole file), how many bytes, why.

    `noted` True marks a finding that lost nothing (two objects glued on one line, a repaired number).
    """

    file: str
    line: int | None
    why: str
    bytes: int = 0
    noted: bool = False


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """One file's account: `n_bytes` = `kept_bytes` + `skipped_bytes`, always.

    `status` is kept (gave at least one trace), skipped (gave none; `why` says why) or refused (could not be
    opened or recognised). `records` counts source records by what became of them.
    """

    file: str
    format: str | None
    status: Literal["kept", "skipped", "refused"]
    traces: int = 0
    steps: int = 0
    n_bytes: int = 0
    kept_bytes: int = 0
    skipped_bytes: int = 0
    records: dict[str, int] = {}
    skipped: tuple[Skip, ...] = ()
    why: str | None = None
    extra: dict[str, Any] = {}
