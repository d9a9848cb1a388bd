"""`seatrial serve`: receive traces while agents work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("serve")(serve)


def serve(
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond this machine, a token is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 4318,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File that holds the bearer token (default: SEATRIAL_TOKEN, if set)."),
    ] = None,
    assignments: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Who was assigned what: unit, arm, p_<arm>..., [stratum, epoch, time, user]."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The one person behind sessions that name no user.")] = None,
    redact: Annotated[
        bool | None,
        typer.Option("--redact/--no-redact", help="Replace personal data and secrets (default: yes, or settings)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Receive OTLP/HTTP traces (protobuf or JSON, gzip) on /v1/traces into the store, until interrupted.

    An answer of 200 means that the spans are on disk. What was received is printed at the end.

    Examples:

      seatrial serve --store team-store

      seatrial serve --host 0.0.0.0 --token-file token.txt
    """
    from seatrial.intake import Assignments
    from seatrial.server import ServerSettings
    from seatrial.server.access import token_for
    from seatrial.server.run import serve as run
    from seatrial.settings import load
    from seatrial.store import Store

    settings = load(overrides={"store": store, "redact": redact})
    token = token_for(host, token_file, os.environ)

    def say(text: str) -> None:
        sys.stderr.write(f"seatrial: {text}\n")
        sys.stderr.flush()

    opened = Store.open(settings.store, create=True)
    done = run(
        opened,
        host=host,
        port=port,
        token=token,
        settings=settings.part("server", ServerSettings),
        redact=settings.redact,
        assignments=None if assignments is None else Assignments(assignments),
        user=user,
        retention_days=settings.retention_days,
        say=say,
    )
    if as_json:
        output.emit("serve", done, data_version=opened.data_version)
        return
    say(
        f"stopped: {done['requests']} requests, {done['spans']} spans, {done['sessions_added']} sessions added, "
        f"{done['sessions_replaced']} grown"
    )
