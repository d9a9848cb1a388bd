"""What a reader shows of a file, in a small format that any program can print: JSON lines.

A line is a turn, or with ``report`` the account of a file. Every field but ``event`` has a default; a reader that
never gives a field has not stated it, and is not judged on it. docs/how-to/score-a-reader.md describes the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from seatrial.records import EventClass, FileReport, ResultOutcome, Trace


class ShownUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of a turn; `input_tokens` counts everything read, cached or not."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class ShownCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call."""

    id: str | None = None
    name: str | None = None


class ShownResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool result. `cause` is ``model`` for an error of the model's; UNSET: the reader does not judge causes."""

    call_id: str | None = None
    outcome: ResultOutcome | msgspec.UnsetType = msgspec.UNSET
    exit_code: int | msgspec.UnsetType | None = msgspec.UNSET
    text: str | None = None
    cause: str | msgspec.UnsetType | None = msgspec.UNSET


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn. `trace` tells conversations apart; `parent` is set for a sub-agent's."""

    event: EventClass
    trace: str = ""
    parent: str | None = None
    text: str = ""
    copied: bool = False
    model: str | None = None
    tool_calls: list[ShownCall] = []
    results: list[ShownResult] = []
    usage: ShownUsage | None = None


class ShownReport(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a file: the 1-based lines of which something was lost."""

    report: Literal["file"]
    file: str = ""
    lost_lines: list[int] = []


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """All that a reader showed of a trap."""

    turns: tuple[ShownTurn, ...]
    reports: tuple[ShownReport, ...] = ()


def shown_trace(trace: Trace, causes: Mapping[tuple[int, str | None], str | None]) -> Iterator[ShownTurn]:
    """A trace's turns; `causes` holds the judged causes of errors by step and call id."""
    for step in trace.steps:
        yield ShownTurn(
            event=step.event_class,
            trace=trace.id,
            parent=trace.parent,
            text=step.text,
            copied=step.copied,
            model=step.model,
            tool_calls=[ShownCall(id=call.id, name=call.name) for call in step.tool_calls],
            results=[
                ShownResult(
                    call_id=result.call_id,
                    outcome=result.outcome,
                    exit_code=result.exit_code,
                    text=result.text,
                    cause=causes.get((step.index, result.call_id)),
                )
                for result in step.results
            ],
            usage=None
            if step.usage is None
            else ShownUsage(input_tokens=step.usage.input_tokens, output_tokens=step.usage.output_tokens),
        )


def shown_report(report: FileReport) -> ShownReport:
    """The account of a file that was read."""
    lost = sorted({s.line for s in report.skipped if not s.noted and s.line is not None})
    return ShownReport(report="file", file=report.file, lost_lines=lost)


class BadLine(ValueError):
    """An adapter's line that does not fit the format: which, and why."""


def parse(lines: Iterable[bytes]) -> Shown:
    """An adapter's output.

    Raises:
        BadLine: a line is not of the format.
    """
    turns: list[ShownTurn] = []
    reports: list[ShownReport] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value: Any = msgspec.json.decode(line)
            if isinstance(value, dict) and "report" in value:
                reports.append(msgspec.convert(value, ShownReport))
            else:
                turns.append(msgspec.convert(value, ShownTurn))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise BadLine(f"line {number} of the adapter's output: {error}") from None
    return Shown(turns=tuple(turns), reports=tuple(reports))
