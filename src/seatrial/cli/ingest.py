"""`seatrial ingest`: files into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


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
    as_json: JsonOption = False,
) -> None:
    """Read sessions into the store. Reading the same bytes again changes nothing.

    Examples:

      seatrial ingest ~/.claude/projects

      seatrial ingest runs/ --store team-store --json
    """
    from seatrial import intake
    from seatrial.settings import load
    from seatrial.store import Store

    settings = load(overrides={"store": store, "redact": redact, "workers": workers})
    opened = Store.open(settings.store, create=True)
    with output.progress(quiet=as_json) as step:
        result = intake.ingest(
            opened,
            paths,
            format=None if format == "auto" else format,
            assignments=assignments,
            user=user,
            redact=settings.redact,
            workers=settings.workers,
            progress=step,
        )
    if as_json:
        output.emit("ingest", result, data_version=opened.data_version, warnings=result.warnings)
    else:
        from seatrial.report import looks

        output.show(looks.intake(result.files, result.sessions, result.steps, result.skipped, result.redacted))
        for text in result.warnings:
            output.warn(text)
    if result.files["read"] and not result.files["kept"]:
        raise typer.Exit(2)
