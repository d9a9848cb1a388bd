"""D7, audit completeness: of six components, how many were recorded and hold together (METHODS 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.dimensions.aggregate import recorded, result, value_of
from seatrial.dimensions.audit_check import Examined, examine
from seatrial.dimensions.audit_record import COMPONENTS, audit_of, is_own
from seatrial.errors import InputError
from seatrial.records import DimensionResult, DimensionValue, Evidence, Finding


class Audit:
    """D7. A recorded, empty error log is present; a chain that does not verify is not."""

    name = "D7"
    title = "audit completeness"
    version = "1"

    def measure(self, run: Evidence) -> DimensionValue:
        """The run's audit record, made from its trace where none is given, component by component."""
        audit = run.audit
        if audit is None:
            if run.trace is None:
                return value_of(self.name, self.version, run, None, "no log is stored")
            audit = audit_of(run.trace, run.task, run.attempt)
        seen = examine(audit)
        ok = sum(c.ok for c in seen.components)
        missing = [c.name for c in seen.components if not c.ok]
        why = "all six components are there and hold together" if not missing else f"lacks {', '.join(missing)}"
        own = run.trace is not None and is_own(run.trace)
        return value_of(
            self.name, self.version, run, seen.value, why, numerator=float(ok), denominator=float(len(COMPONENTS)),
            level=seen.value, level_why="the source gives no steps: the share itself",
            findings=tuple(
                Finding(what=f"{c.name} {'; '.join(c.problems[:3])}", weight=1.0 if c.present else 0.5)
                for c in seen.components if not c.ok
            ),
            parts={"components": {c.name: c.ok for c in seen.components}, "own": own},
        )  # fmt: skip

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """Mean of task means, and how many runs have each component."""
        known = [v for v in recorded(values) if v.value is not None]
        have = Counter(name for v in known for name, ok in v.parts["components"].items() if ok)
        mean = sum(v.value or 0.0 for v in known) / len(known) if known else None
        return result(
            self.name, self.title, self.version, values, level, method="mean of task means",
            among=recorded(values), level=mean,
            level_why="the source gives no steps: the share itself" if known else "no run has a log",
            detail={"components": {name: have.get(name, 0) for name in COMPONENTS}, "of": len(known)},
        )  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    """An audit record from a file.

    Raises:
        InputError: it cannot be read, is not JSON, holds a key twice, or is no audit record.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    try:
        found = json.loads(raw, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON: {error}", file=str(path), line=getattr(error, "lineno", None)) from None
    if not isinstance(found, dict) or "seatrial_audit" not in found:
        raise InputError("is no audit record", file=str(path), hint="seatrial scorecard --audits FOLDER writes them")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


__all__ = ["Audit", "Examined", "audit_of", "examine", "load"]
