"""Readers against the trap kit: our own with the judgements of `signals`, or a foreign one by its adapter."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from seatrial import ingest, signals
from seatrial.errors import UsageError
from seatrial.ingest import traps
from seatrial.records import Trace

TIMEOUT = 120.0
"""Seconds that an adapter may take over one trap."""


def score(
    *,
    adapter: str | None = None,
    format: str | None = None,
    trap: str | None = None,
    timeout: float = TIMEOUT,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> list[traps.Verdict]:
    """A verdict per trap. `adapter` is a command line, split like a shell would and run without one; None: ours.

    Raises:
        UsageError: no such trap, or the adapter cannot be started.
    """
    chosen = traps.traps(format=format, name=trap)
    command = None if adapter is None else shlex.split(adapter)
    if command == []:
        raise UsageError("the adapter is an empty command", hint="--adapter 'PROGRAM ARGUMENTS'")
    verdicts = []
    for n, one in enumerate(chosen):
        if progress is not None:
            progress(n, len(chosen), "traps")
        with tempfile.TemporaryDirectory(prefix="seatrial-traps-") as folder:
            files = traps.lay_out(one, Path(folder))
            if command is None:
                verdicts.append(_ours(one, files))
            else:
                verdicts.append(traps.run_adapter(command, one, files, timeout=timeout))
    return verdicts


def export(folder: Path) -> list[str]:
    """Write the kit into `folder`, ``<format>/<trap>/``, generated files included; returns what was written."""
    written = []
    for trap in traps.traps():
        place = folder / trap.format / trap.name
        files = traps.lay_out(trap, place)
        (place / "answer.json").write_bytes((trap.folder / "answer.json").read_bytes())
        written += [str(file.relative_to(folder)) for file in (*files, place / "answer.json")]
    return written


def described() -> list[dict[str, str]]:
    """Format, name and the reason of every trap."""
    return [{"format": trap.format, "trap": trap.name, "why": trap.why} for trap in traps.traps()]


def _ours(trap: traps.Trap, files: Sequence[Path]) -> traps.Verdict:
    began = time.perf_counter()
    shown = show(files)
    seconds = round(time.perf_counter() - began, 3)
    return msgspec.structs.replace(traps.judge(trap, shown), seconds=seconds)


def show(files: Sequence[Path]) -> traps.Shown:
    """What our readers and `signals` show of these files, read in this order with one memory."""
    seen = ingest.Memory()
    turns: list[traps.ShownTurn] = []
    reports = []
    for file in files:
        reading = ingest.read_file(file, seen=seen)
        for trace in reading:
            turns += traps.shown_trace(trace, _causes(trace))
        reports.append(traps.shown_report(reading.report))
    return traps.Shown(turns=tuple(turns), reports=tuple(reports))


def _causes(trace: Trace) -> dict[tuple[int, str | None], str | None]:
    found = signals.extract(trace)
    return {(fact.step, fact.call_id): fact.cause for fact in found.calls}
