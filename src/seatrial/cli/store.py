"""`seatrial verify`: is everything that was stored still there, unchanged? And does an audit record hold together?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("verify")(verify)


def verify(
    audit: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[AUDIT]...", help="Audit records to verify instead of a store; files or folders."),
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="With one AUDIT: its chain's head, as it was kept elsewhere.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Re-derive every hash of the store and check its tables against its blobs. Exit 1 if anything differs.

    With AUDIT, check those records instead: all six components there and consistent, the hash chain unbroken.

    Examples:

      seatrial verify --store team-store

      seatrial verify audits/run-1.audit.json
    """
    if audit:
        _audits(audit, head, as_json)
        return
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    with output.progress(quiet=as_json) as step:
        result = opened.verify(progress=step)
    if as_json:
        output.emit("verify", result, data_version=result.data_version)
    else:
        from seatrial.report import looks

        output.show(looks.verification(result.ok, result.checks, result.problems, result.sessions, result.blobs))
    if result.problems:
        raise typer.Exit(1)


def _audits(paths: list[Path], head: str | None, as_json: bool) -> None:
    from seatrial.errors import UsageError
    from seatrial.flows.audits import verify_audits

    if head is not None and (len(paths) != 1 or paths[0].is_dir()):
        raise UsageError("--head goes with one audit record", hint="seatrial verify FILE --head HASH")
    found = verify_audits(paths, head.strip().lower() if head is not None else None)
    ok = all(one.ok for one in found)
    if as_json:
        output.emit("verify", {"ok": ok, "audits": found})
    else:
        from seatrial.report.chapters import audit as chapter

        output.show(chapter.audits(found))
    if not ok:
        raise typer.Exit(1)
