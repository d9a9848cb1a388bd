"""Verdicts on readers as a section: one row per trap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip


def verdicts(reader: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Trap by trap: passed, failed with the difference, or not stated. Rows are `ingest.traps.Verdict` as objects."""
    counts = {name: sum(r["verdict"] == name for r in rows) for name in ("passed", "failed", "not stated")}
    body = tuple((r["format"], r["trap"], r["verdict"], clip(clean(r["why"]), 200) or "-") for r in rows)
    summary = (
        f"{numbers.count(counts['passed'])} of {numbers.count(len(rows))} traps passed, "
        f"{numbers.count(counts['failed'])} failed, {numbers.count(counts['not stated'])} not stated."
    )
    head = (Column(head="format"), Column(head="trap"), Column(head="verdict"), Column(head="why", name=True))
    return Section(
        heading=f"Readers: {clean(reader)}",
        paragraphs=(summary,),
        tables=(Table(caption="Traps", columns=head, rows=body, grouped=True),),
        notes=("--list says what each trap is; --export DIR writes the kit",),
    )


def kit(rows: Sequence[Mapping[str, Any]]) -> Section:
    """The traps and what is tricky about each."""
    head = (Column(head="format"), Column(head="trap"), Column(head="what is tricky"))
    body = tuple((r["format"], r["trap"], r["why"]) for r in rows)
    return Section(
        heading="The trap kit",
        tables=(Table(caption=f"{len(rows)} traps", columns=head, rows=body, grouped=True),),
    )
