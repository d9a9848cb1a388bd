"""`seatrial ingest`: files into the store."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption

if TYPE_CHECKING:
    from seatrial.intake import IngestResult
    from seatrial.store import Store


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("ingest")(ingest)


def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Session files or folders.")],
    store: StoreOption = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    assignments: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Who was assigned what: unit, arm, p_<arm>..., [stratum, epoch, time, user]."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The one person behind all these sessions.")] = None,
    redact: Annotated[
        bool | None,
        typer.Option("--redact/--no-redact", help="Replace personal data and secrets (default: yes, or settings)."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: up to the cores).")] = None,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the files themselves too: encrypted, unredacted, never exported.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on reading what other programs write there, until interrupted.")
    ] = False,
    quiet: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="With --watch: read a file once it is still for so long.")
    ] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Read sessions into the store. Reading the same bytes again changes nothing.

    With --watch and --json, one object is printed for each time that something was read. Sessions older than the
    setting retention_days are erased afterwards.

    Examples:

      seatrial ingest ~/.claude/projects

      seatrial ingest runs/ --store team-store --json

      seatrial ingest ~/.claude/projects --watch
    """
    from seatrial import intake
    from seatrial.settings import load
    from seatrial.store import Store

    settings = load(overrides={"store": store, "redact": redact, "workers": workers})
    opened = Store.open(settings.store, create=True)

    def read(wanted: list[Path]) -> intake.IngestResult:
        with output.progress(quiet=as_json or watch) as step:
            result = intake.ingest(
                opened,
                wanted,
                format=None if format == "auto" else format,
                assignments=assignments,
                user=user,
                redact=settings.redact,
                workers=settings.workers,
                keep_raw=keep_raw,
                progress=step,
            )
        _show(result, opened, [*result.warnings, *_expired(opened, settings.retention_days)], as_json)
        return result

    if watch:
        _follow(paths, read, quiet)
        return
    result = read(paths)
    if result.files["read"] and not result.files["kept"]:
        raise typer.Exit(2)


def _show(result: IngestResult, store: Store, warnings: list[str], as_json: bool) -> None:
    if as_json:
        output.emit("ingest", result, data_version=store.data_version, warnings=warnings)
        sys.stdout.flush()
        return
    from seatrial.report import looks

    output.show(looks.intake(result.files, result.sessions, result.steps, result.skipped, result.redacted))
    for text in warnings:
        output.warn(text)


def _expired(store: Store, days: int | None) -> list[str]:
    if days is None:
        return []
    from seatrial.store import expire

    done = expire(store, days)
    return [] if done is None else [f"{len(done.sessions)} sessions were older than {days} days and are erased"]


def _follow(paths: list[Path], take: Callable[[list[Path]], object], quiet: float) -> None:
    from seatrial.intake.watch import Watch, follow

    stop = threading.Event()
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: object) -> None:
        # What is being read is finished; who asks twice need not wait for that.
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, end)
    sys.stderr.write(f"seatrial: watching {', '.join(map(str, paths))}\n")
    sys.stderr.flush()
    try:
        follow(Watch(paths, quiet=quiet), take, stop, every=min(1.0, max(quiet / 2, 0.05)), say=output.warn)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
