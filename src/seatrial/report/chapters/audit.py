"""What verification of audit records found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.records import Check
from seatrial.report.section import Section
from seatrial.report.text import clean, clip, name

SHOWN = 20


def audits(found: Sequence[Any]) -> Section:
    """One record with its six components, or several with what is wrong."""
    wrong = [one for one in found if not one.ok]
    says = "everything holds together" if not wrong else f"{len(wrong)} of {len(found)} do not hold together"
    if len(found) == 1:
        one = found[0]
        says = "holds together" if one.ok else "does not hold together"
        checks = tuple(
            Check(name=c.name, ok=c.ok, value=None, why=clip(clean("; ".join(c.problems)), 200) or "consistent")
            for c in one.components
        )  # fmt: skip
        tail = (f"head of its chain: {clean(one.head)}",) if one.head else ()
        return Section(heading=f"Audit record {says}", paragraphs=(name(one.file),), checks=checks, notes=tail)
    items = [f"{name(one.file)}: {clip(clean(one.problems[0]), 160)}" for one in wrong[:SHOWN]]
    if len(wrong) > SHOWN:
        items.append(f"{len(wrong) - SHOWN} more")
    return Section(heading=f"{len(found)} audit records: {says}", items=tuple(items))
