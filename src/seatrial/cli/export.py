"""`seatrial export`: stored (redacted) traces to files that other tools read."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


class Form(enum.StrEnum):
    """What can be written."""

    atif = "atif"
    otlp = "otlp"
    parquet = "parquet"
    inspect = "inspect"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("export")(export)


def export(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if absent.")],
    session: Annotated[list[str] | None, typer.Option(help="Only this session; may be repeated.")] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="USER", help="Everything about this person, derived rows included.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The files that were kept with ingest --keep-raw, decrypted and unredacted.")
    ] = False,
    form: Annotated[Form, typer.Option("--as", help="Format of the files.")] = Form.atif,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write stored sessions as ATIF 1.8, OTLP, Parquet or Inspect files, and say what the format could not hold.

    With --subject, answer a person's request for what is stored about them: traces as stored, and rows of every table.
    With --raw, give back the files that named sessions came from, as they were: personal data and secrets included.

    Examples:

      seatrial export exported/ --session 175b29b3

      seatrial export exported/ --as parquet

      seatrial export answer/ --subject jane@example.com

      seatrial export originals/ --session 175b29b3 --raw
    """
    from seatrial.flows import exporting

    if raw:
        _originals(out, session or [], subject, store, as_json)
        return
    if subject is not None:
        _about(out, subject, store, as_json)
        return
    result, version = exporting.export(out, sessions=session or [], store=store, format=form.value)
    if as_json:
        output.emit("export", result, data_version=version)
        return
    screen = output.console()
    screen.print(f"{result['written']} sessions written to {out}")
    for left in result["left_out"]:
        output.warn(f"{left.n} {left.what}: {left.why}")
    for field, n in sorted(result["not_held"].items()):
        kept = "; kept under extra.seatrial" if form is Form.atif else ""
        screen.print(f"  {exporting.NAMES[form.value]} has no place for {field} ({n} times){kept}")


def _about(out: Path, user: str, store: str | None, as_json: bool) -> None:
    from seatrial.flows import steward
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    result = steward.export_subject(opened, steward.subject_of(opened, user=user), out)
    if as_json:
        output.emit("export", result, data_version=opened.data_version)
        return
    screen = output.console()
    screen.print(f"{result['traces']} traces and rows of {len(result['rows'])} tables written to {out}")


def _originals(out: Path, sessions: list[str], subject: str | None, store: str | None, as_json: bool) -> None:
    from seatrial.errors import UsageError
    from seatrial.flows import steward
    from seatrial.settings import load
    from seatrial.store import Store

    if subject is not None or not sessions:
        raise UsageError("name the sessions whose originals you want", hint="--session ID, which may be repeated")
    opened = Store.open(store or load().store)
    result = steward.export_originals(opened, sessions, out)
    warning = "these files are unredacted: they hold personal data and secrets as they were recorded"
    if as_json:
        output.emit("export", result, data_version=opened.data_version, warnings=[warning])
        return
    output.console().print(f"{len(result['files'])} original files written to {out}")
    for left in result["left_out"]:
        output.warn(f"{left.n} {left.what}: {left.why}")
    output.warn(warning)
