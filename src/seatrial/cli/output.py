"""How every command speaks: the JSON envelope, errors on stderr, tables, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial._version import __version__
from seatrial.canon import canonical
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from rich.console import Console

    from seatrial.report.section import Section

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="DIR", help="The store (default: .seatrial, or settings).", show_default=False),
]
KeepOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="DIR", help="Also keep the result in this store, for 'seatrial serve'.", show_default=False
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random: same seed, same bytes.")]
LevelOption = Annotated[float, typer.Option("--level", min=0.5, max=0.999, help="Confidence level of intervals.")]

MAX_WIDTH = 100


def emit(
    command: str,
    result: Any,
    *,
    data_version: str | None = None,
    warnings: Sequence[str] = (),
    engine: Mapping[str, Any] | None = None,
) -> None:
    """Print the JSON envelope of DESIGN 5 on stdout; `engine` tells which cluster worked, if one did."""
    envelope = _envelope(command, result, data_version, warnings)
    if engine is not None:
        envelope["engine"] = engine
    sys.stdout.write(canonical(envelope).decode() + "\n")


def _envelope(command: str, result: Any, data_version: str | None, warnings: Sequence[str]) -> dict[str, Any]:
    return {
        "seatrial": __version__,
        "command": command,
        "data_version": data_version,
        "result": result,
        "warnings": list(warnings),
    }


def keep(
    store: str | Path | None,
    command: str,
    result: Any,
    *,
    name: str = "",
    data_version: str | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """Leave the command's envelope in the store that `--store` names, where the web application shows it.

    None: no store was named, and nothing is kept. `name` is what a person will know the result by. A result that
    cannot be kept is still printed, so that is a warning.
    """
    if store is None:
        return
    from seatrial.store import Store

    try:
        opened = Store.open(store, create=True)
        envelope = _envelope(command, result, data_version, warnings)
        opened.save_result(command.split()[0], name or command, envelope)
    except SeatrialError as error:
        warn(f"the result is not kept in the store: {error.message}")


def report_error(error: SeatrialError, *, as_json: bool) -> None:
    """Print an error on stderr: one JSON object, or a line for a person."""
    if as_json:
        body = {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "file": error.file,
            "line": error.line,
        }
        sys.stderr.write(canonical({"error": body}).decode() + "\n")
        return
    where = "".join(f"{part}:" for part in (error.file, error.line) if part)
    sys.stderr.write(f"seatrial: {where + ' ' if where else ''}{error.message}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {error.hint}\n")


def console(*, stderr: bool = False) -> Console:
    """A console at most 100 columns wide; plain where the stream is not a terminal."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal or made.width > MAX_WIDTH:
        made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=MAX_WIDTH)
    return made


def show(section: Section) -> None:
    """Print one section of a report on stdout."""
    from seatrial.report import terminal

    console().print(terminal.section_block(section))


def write(path: Path, text: str, *, append: bool = False) -> None:
    """Write a file that the user named, or append to it.

    Raises:
        InputError: it cannot be written there.
    """
    from seatrial.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if append else "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        hint = "name a file, not a folder" if os.path.isdir(path) else None
        raise InputError(f"cannot be written: {error.strerror or error}", file=str(path), hint=hint) from error


def warn(text: str) -> None:
    """A warning for a person, on stderr."""
    sys.stderr.write(f"warning: {text}\n")


Progress = Callable[[int, int | None, str], None]
"""Called with (done, total or None, what is being done)."""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr; silent when stderr is not a terminal.

    With ``SEATRIAL_PROGRESS=lines`` it is lines of JSON instead, for a program that watches, `quiet` or not.
    """
    if os.environ.get("SEATRIAL_PROGRESS") == "lines":
        yield _lines()
        return
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}
    with bar:

        def step(done: int, total: int | None, what: str) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield step


def _lines() -> Progress:
    """Progress as ``{"done", "total", "what"}``, at most five lines a second, and every end."""
    import time

    last = {"at": 0.0}

    def step(done: int, total: int | None, what: str) -> None:
        now = time.monotonic()
        if now - last["at"] < 0.2 and done != total:
            return
        last["at"] = now
        sys.stderr.write(canonical({"done": done, "total": total, "what": what}).decode() + "\n")
        sys.stderr.flush()

    return step
