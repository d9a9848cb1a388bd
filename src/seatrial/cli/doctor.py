"""`seatrial doctor`: what is installed, what can be read, and whether readers fall into traps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption

_group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.add_typer(_group, name="doctor")


@_group.callback()
def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Say which versions, extras and readers are here.

    Example: seatrial doctor --json
    """
    if context.invoked_subcommand is not None:
        return
    from seatrial.flows import look

    result = look.installation()
    if as_json:
        output.emit("doctor", result)
        return
    from seatrial.report import looks

    output.show(looks.installation(result))


@_group.command("readers")
def readers(
    adapter: Annotated[
        str | None,
        typer.Option(
            "--adapter",
            metavar="COMMAND",
            help="Score this program instead of the built-in readers: it gets file paths and prints JSON lines.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="Only the traps of this format.", show_default=False)
    ] = None,
    trap: Annotated[str | None, typer.Option("--trap", help="Only the trap of this name.", show_default=False)] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds an adapter may take per trap.")] = 120.0,
    listed: Annotated[bool, typer.Option("--list", help="Say what each trap is, and read nothing.")] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Write the kit's files and answers there.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read files that break readers and compare with the right answers; exit status 1 when a trap is failed.

    Example: seatrial doctor readers --adapter 'python adapter.py' --format claude-code
    """
    from seatrial.flows import readers as flow

    if export is not None:
        written = flow.export(export)
        if as_json:
            output.emit("doctor readers", {"written": written})
        else:
            typer.echo(f"{len(written)} files written to {export}")
        return
    if listed:
        _list(flow.described(), as_json=as_json)
        return
    with output.progress(quiet=as_json) as progress:
        verdicts = flow.score(adapter=adapter, format=format, trap=trap, timeout=timeout, progress=progress)
    rows = [{name: getattr(v, name) for name in v.__struct_fields__} for v in verdicts]
    failed = sum(row["verdict"] == "failed" for row in rows)
    if as_json:
        counts = {name: sum(r["verdict"] == name for r in rows) for name in ("passed", "failed", "not stated")}
        output.emit("doctor readers", {"reader": adapter or "seatrial", "counts": counts, "traps": rows})
    else:
        from seatrial.report import trap_table

        output.show(trap_table.verdicts(adapter or "seatrial", rows))
    if failed:
        raise typer.Exit(1)


def _list(traps: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        output.emit("doctor readers", {"traps": traps})
        return
    from seatrial.report import trap_table

    output.show(trap_table.kit(traps))
