"""Audit files to their verdicts: what `seatrial verify AUDIT` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from seatrial.dimensions.audit import load
from seatrial.dimensions.audit_check import Component, examine
from seatrial.errors import EvidenceError

PATTERN = "*.audit.json"


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """One audit record: `ok` exactly when every component is there and consistent. `head` is its chain's last hash."""

    file: str
    ok: bool
    value: float
    components: tuple[Component, ...]
    problems: tuple[str, ...]
    head: str | None


def verify_audits(paths: Sequence[Path], head: str | None = None) -> tuple[Verified, ...]:
    """Examine audit records; a folder stands for the records in it.

    `head` is the chain's last hash as it was kept elsewhere: who changes a record and computes its chain anew cannot
    change that.

    Raises:
        InputError: a file cannot be read, or is no audit record.
        EvidenceError: a folder holds none.
    """
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
        if not inside:
            raise EvidenceError(f"{path} holds no audit record", hint="seatrial scorecard --audits FOLDER writes them")
        files += inside
    return tuple(_verified(path, head) for path in files)


def _verified(path: Path, head: str | None) -> Verified:
    seen = examine(load(path), head)
    return Verified(
        file=str(path), ok=not seen.problems, value=seen.value, components=seen.components, problems=seen.problems,
        head=seen.head,
    )  # fmt: skip
