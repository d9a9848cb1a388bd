"""`seatrial verify`: is everything that was stored still there, unchanged?"""

from __future__ import annotations

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("verify")(verify)


def verify(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Re-derive every hash of the store and check its tables against its blobs. Exit 1 if anything differs.

    Example: seatrial verify --store team-store
    """
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    with output.progress(quiet=as_json) as step:
        result = opened.verify(progress=step)
    if as_json:
        output.emit("verify", result, data_version=opened.data_version)
    else:
        from seatrial.report import looks

        output.show(looks.verification(result.ok, result.checks, result.problems, result.sessions, result.blobs))
    if result.problems:
        raise typer.Exit(1)
