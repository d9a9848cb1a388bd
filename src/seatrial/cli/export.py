"""`seatrial export`: stored (redacted) traces to files that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("export")(export)


def export(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if absent.")],
    session: Annotated[list[str] | None, typer.Option(help="Only this session; may be repeated.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write stored sessions as ATIF 1.8, one JSON file each, and say what ATIF could not hold.

    Example: seatrial export exported/ --session 175b29b3
    """
    from seatrial.flows import look

    result, version = look.export_atif(out, sessions=session or [], store=store)
    if as_json:
        output.emit("export", result, data_version=version)
        return
    screen = output.console()
    screen.print(f"{result['written']} sessions written to {out}")
    for field, n in sorted(result["not_held"].items()):
        screen.print(f"  ATIF has no place for {field} ({n} times); kept under extra.seatrial")
