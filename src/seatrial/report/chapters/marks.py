"""The deploys known to a store."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.records.drift import DeployMark
from seatrial.report.chapters.drift import minute
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clip, name


def known(marks: Sequence[DeployMark]) -> Section:
    """All of them in order of time, with who knows of each."""
    if not marks:
        return Section(heading="Deploys", paragraphs=("None is known: seatrial mark puts one on record.",))
    head = (Column(head="time (UTC)"), Column(head="deploy", name=True), Column(head="known from"))
    rows = tuple((minute(m.time), clip(name(m.text), 50), "a mark" if m.by == "user" else m.by) for m in marks)
    return Section(heading="Deploys", tables=(Table(caption="Deploys", columns=head, rows=rows),))
