"""A file of a person's verdicts on actions, and which of them are about a given run (METHODS 5, D2).

One JSON object a line: ``task``, ``attempt`` (the trial; ``trial`` is taken, too), ``index`` (the run's calls counted
from 0) and ``relevant``; optionally ``agent``, ``why`` and ``tool``, which guards against a file about other runs.
Further fields are left alone.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from seatrial.dimensions.actions import actions_of
from seatrial.errors import FormatError, InputError
from seatrial.records import ActionVerdict, Attempt, Trace


class _Row(msgspec.Struct):
    task: str
    index: int
    relevant: bool
    attempt: int | None = None
    trial: int | None = None
    agent: str | None = None
    tool: str | None = None
    why: str = ""


class Annotations:
    """A person's verdicts by run. `warnings` lists runs that the file does not fit; `misfits` also counts verdicts that
    no action was found for.

    Raises:
        InputError: the file cannot be read, or says two things about one action; names the line.
        FormatError: a line is no annotation; names the line.
    """

    def __init__(self, path: Path) -> None:
        self._rows: dict[tuple[str, int, str | None], dict[int, _Row]] = {}
        self.warnings: list[str] = []
        self._met: set[tuple[str, int, str | None]] = set()
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise InputError(f"annotations cannot be read: {error.strerror or error}", file=str(path)) from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._take(line, str(path), number)

    def _take(self, line: bytes, file: str, number: int) -> None:
        hint = "task, attempt, index and relevant; optionally agent, tool and why"
        try:
            row = msgspec.json.decode(line, type=_Row)
        except msgspec.DecodeError as error:
            raise FormatError(f"not an annotation: {error}", file=file, line=number, hint=hint) from error
        trial = row.attempt if row.attempt is not None else row.trial
        if trial is None:
            raise FormatError("not an annotation: it names no attempt", file=file, line=number, hint=hint)
        if row.index < 0:
            raise FormatError(f"index {row.index}: calls are counted from 0", file=file, line=number, hint=hint)
        held = self._rows.setdefault((row.task, trial, row.agent), {})
        if row.index in held and held[row.index].relevant != row.relevant:
            raise InputError(f"action {row.index} is called both relevant and extraneous", file=file, line=number)
        held[row.index] = row

    def __len__(self) -> int:
        return sum(len(rows) for rows in self._rows.values())

    def misfits(self) -> list[str]:
        """What of the file fits no run that was asked about so far: the warnings, then a count of verdicts."""
        stray = [(key, index) for key, rows in self._rows.items() if key not in self._met for index in rows]
        if not stray:
            return list(self.warnings)
        (task, trial, agent), index = stray[0]
        by = f" of {agent}" if agent is not None else ""
        said = f"{len(stray)} of {len(self)} annotations match no action, the first task {task}, attempt {trial}{by}"
        return [*self.warnings, f"{said}, call {index}"]

    def of(self, attempt: Attempt, trace: Trace | None) -> tuple[ActionVerdict, ...]:
        """The verdicts on this run; none where the file does not speak of it, or of other calls than it made."""
        names = (attempt.agent, None)
        key = next((k for n in names if (k := (attempt.task, attempt.trial, n)) in self._rows), None)
        if key is None or trace is None:
            return ()
        rows = self._rows[key]
        calls = actions_of(trace)
        for index, row in rows.items():
            found = calls[index].call.name if index < len(calls) else None
            if found is None or row.tool not in (None, found):
                there = f"is {found}" if found else "is not there"
                said = f"{attempt.task}, attempt {attempt.trial}: the annotated call {index} ({row.tool}) {there}"
                self.warnings.append(f"{said}; its annotations are of another run and are left out")
                return ()
        self._met.add(key)
        return tuple(
            ActionVerdict(
                index=index, step=calls[index].step, call_id=calls[index].call.id, tool=calls[index].call.name,
                relevant=row.relevant, source="annotation", why=row.why or "as annotated",
            )
            for index, row in sorted(rows.items())
        )  # fmt: skip
