"""`seatrial doctor`: what is installed, what can be read."""

from __future__ import annotations

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("doctor")(doctor)


def doctor(as_json: JsonOption = False) -> None:
    """Say which versions, extras and readers are here.

    Example: seatrial doctor --json
    """
    from seatrial.flows import look

    result = look.installation()
    if as_json:
        output.emit("doctor", result)
        return
    from seatrial.report import looks

    output.show(looks.installation(result))
