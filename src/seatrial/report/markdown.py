"""Sections to Markdown: a summary for a pull request or a wiki, with every name made inert."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from seatrial.records import Check, Ranking
from seatrial.report import chapters, numbers, words
from seatrial.report.chapters import kinds, trust
from seatrial.report.section import Section, Table
from seatrial.report.text import clean, name

_STATES = {True: "✓ holds", False: "✗ does not hold", None: "– not applicable"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~$&]|:(?=//))")
_MENTION = re.compile(r"@|\\#(?=\d)")
_BARE_LINK = re.compile(r"\bwww\.", re.IGNORECASE)
_SUMMARY = frozenset({"verdict", "models", "by", "dropped", "basis", ""})


def ranking(r: Ranking, *, sections: Sequence[Section] = (), full: bool = False) -> str:
    """A ranking's summary: verdict, answer, task types, what was left out, basis. `full` adds every section."""
    lines = [f"Outcome {_text(kinds.outcome(r))}, weights: {_text(trust.weights(r))}.", ""]
    for section in chapters.ranking(r, sections):
        if section.only is None and (full or section.key in _SUMMARY):
            lines.extend(section_lines(section))
            if section.key == "verdict":
                lines, head = [], lines
                lines = [*head[2:], *head[:2]]
    return numbers.plain_minus("\n".join(lines).strip() + "\n")


def section_lines(section: Section, depth: int = 2) -> Iterator[str]:
    """A section as lines of Markdown."""
    yield f"{'#' * depth} {_text(section.heading)}"
    yield ""
    for text in section.paragraphs:
        yield _text(text)
        yield ""
    for check in section.checks:
        yield f"- {_check(check)}"
    if section.checks:
        yield ""
    for text in section.items:
        yield f"- {_text(text)}"
    if section.items:
        yield ""
    for table in section.tables:
        if table.only is None:
            yield from _table(table)
        yield ""
    for text in section.notes:
        yield f"† {_text(text)}"
        yield ""
    for part in (part for part in section.parts if part.only is None):
        yield from section_lines(part, depth + 1)


def _check(check: Check) -> str:
    value = "" if check.value is None else f" ({_text(numbers.anything(check.value))})"
    return f"{_STATES[check.ok]}: **{_text(words.check_name(check.name))}**{value}: {_text(check.why)}"


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    yield f"*{_text(table.caption)}*"
    yield ""
    yield "| " + " | ".join(_text(column.head) for column in table.columns) + " |"
    yield "|" + "|".join("---:" if column.right else ":---" for column in table.columns) + "|"
    for row in table.rows:
        cells = (
            numbers.NA if cell is None else _text(name(cell) if column.name else cell.replace("\n", " "))
            for column, cell in zip(table.columns, row, strict=True)
        )
        yield "| " + " | ".join(cells) + " |"


def _text(text: str) -> str:
    """Plain text in which nothing is Markdown, HTML, a link or a mention.

    Hosts look for mentions and issue numbers after rendering, where a backslash is gone: an empty comment parts them.
    """
    escaped = _SPECIAL.sub(r"\\\1", clean(text))
    return _BARE_LINK.sub(lambda www: www.group()[:3] + "\\.", _MENTION.sub(r"\g<0><!-- -->", escaped))
