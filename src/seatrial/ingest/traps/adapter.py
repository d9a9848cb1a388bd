"""A foreign reader, run as a program: file paths in, lines of `shown` out."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from seatrial.errors import UsageError
from seatrial.ingest.traps.judge import Verdict, judge
from seatrial.ingest.traps.kit import Trap
from seatrial.ingest.traps.shown import BadLine, parse


def run_adapter(command: Sequence[str], trap: Trap, files: Sequence[Path], *, timeout: float) -> Verdict:
    """The verdict on a program that is given `files` as its last arguments; `timeout` is in seconds.

    A program that exits with another status than 0, prints something else or does not end in time has failed.

    Raises:
        UsageError: there is no such program.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        try:
            process = subprocess.Popen(
                [*command, *(str(file) for file in files)], stdin=subprocess.DEVNULL, stdout=out, stderr=errors
            )
        except OSError as error:
            raise UsageError(
                f"the adapter cannot be started: {error.strerror or error}", hint="--adapter 'PROGRAM ARGUMENTS'"
            ) from error
        late = threading.Event()
        timer = threading.Timer(timeout, _end, (process, late))
        timer.start()
        try:
            peak = _wait(process)
        finally:
            timer.cancel()
        seconds = time.perf_counter() - began
        out.seek(0)
        errors.seek(0)
        if late.is_set():
            verdict = _failed(trap, f"did not end within {timeout:g} s")
        elif process.returncode != 0:
            said = errors.read().decode(errors="replace").strip().splitlines()
            verdict = _failed(trap, f"ended with status {process.returncode}" + (f": {said[-1][:200]}" if said else ""))
        else:
            try:
                verdict = judge(trap, parse(out))
            except BadLine as error:
                verdict = _failed(trap, str(error))
    return msgspec.structs.replace(verdict, seconds=round(seconds, 3), peak_mb=peak)


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _wait(process: subprocess.Popen[bytes]) -> float | None:
    """Wait for the program; its peak resident memory in MB where the system tells."""
    if not hasattr(os, "wait4"):
        process.wait()
        return None
    seen, pause = 0, 0.001
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        seen = max(seen, _high_water(process.pid))
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if seen:
        return round(seen / 1e6, 1)
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return round(used.ru_maxrss * unit / 1e6, 1)


def _high_water(pid: int) -> int:
    """Peak resident bytes of a running program, 0 where the system does not tell. The figure that comes with a
    program's end includes the memory of the process that started it (Linux), so this one is preferred."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            line = next((line for line in status if line.startswith("VmHWM:")), "")
    except OSError:
        return 0
    return int(line.split()[1]) * 1024 if line else 0


def _failed(trap: Trap, why: str) -> Verdict:
    return Verdict(format=trap.format, trap=trap.name, verdict="failed", why=why)
