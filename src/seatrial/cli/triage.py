"""`seatrial triage`: failing sessions and incidents, and what became of them."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


class State(enum.StrEnum):
    """Where a failing session stands."""

    new = "new"
    task = "task"
    dismissed = "dismissed"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("triage")(triage)


def triage(
    store: StoreOption = None,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    dismiss: Annotated[str | None, typer.Option(metavar="SESSION", help="Set this one aside (needs --reason).")] = None,
    reason: Annotated[str, typer.Option(help="Why it is dismissed.")] = "",
    incident: Annotated[str | None, typer.Option(metavar="TEXT", help="Write down an incident.")] = None,
    by: Annotated[str | None, typer.Option(help="Who decides.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many rows.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List failing sessions and incidents: new, made a task, or dismissed with a reason.

    Examples:

      seatrial triage --state new

      seatrial triage --dismiss 175b29b3 --reason "the user changed their mind"

      seatrial triage --incident "the agent mailed the wrong customer"
    """
    from seatrial.flows import triage as flow
    from seatrial.report.chapters import growth
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    if dismiss is not None:
        version = flow.dismiss(opened, dismiss, reason=reason, by=by)
        _done("dismissed", dismiss, version, as_json)
        return
    if incident is not None:
        name, version = flow.incident(opened, incident, by=by)
        _done("noted", name, version, as_json)
        return
    with output.progress(quiet=as_json) as step:
        found = flow.listing(opened, state=None if state is None else state.value, progress=step)
    if as_json:
        output.emit("triage", found, data_version=found.data_version)
    else:
        output.show(growth.triage(found.items, found.counts, limit))


def _done(what: str, session: str, version: str, as_json: bool) -> None:
    if as_json:
        output.emit("triage", {what: session}, data_version=version)
    else:
        output.console().print(f"{what}: {session}")
