"""`seatrial serve` and `seatrial view`: the web application, with and without the receiver of traces."""

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
    app.command("view")(view)


def serve(
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond this machine, a token is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 4318,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="One token, or lines 'role name token' (default: SEATRIAL_TOKEN, if set)."),
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
    """Show a store in the browser, and receive OTLP/HTTP traces into it on /v1/traces, until interrupted.

    Spans (protobuf or JSON, gzip) are on disk when they are answered with 200. Roles of tokens: sender (only sends);
    viewer, labeller, admin, from least to most. What was received is printed at the end.

    Examples:

      seatrial serve --store team-store

      seatrial serve --host 0.0.0.0 --token-file token.txt
    """
    from seatrial.intake import Assignments
    from seatrial.server import ServerSettings
    from seatrial.server.access import tokens_for
    from seatrial.server.run import serve as run
    from seatrial.settings import load
    from seatrial.store import Store

    settings = load(overrides={"store": store, "redact": redact})
    holders = tokens_for(host, token_file, os.environ)

    def say(text: str) -> None:
        sys.stderr.write(f"seatrial: {text}\n")
        sys.stderr.flush()

    opened = Store.open(settings.store, create=True)
    done = run(
        opened,
        host=host,
        port=port,
        holders=holders,
        consent=settings.consent,
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


def view(
    store: StoreOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Show a store in the browser, on this machine alone, until interrupted. Nothing is received.

    With --json, where it was shown is printed at the end.

    Example: seatrial view --store team-store
    """
    from seatrial.server import ServerSettings
    from seatrial.server.run import view as run
    from seatrial.settings import load
    from seatrial.store import Store

    settings = load(overrides={"store": store})

    def say(text: str) -> None:
        sys.stderr.write(f"seatrial: {text}\n")
        sys.stderr.flush()

    where: list[str] = []

    def show(address: str) -> None:
        where.append(address)
        if browser:
            import webbrowser

            webbrowser.open(address)

    opened = Store.open(settings.store)
    run(
        opened,
        port=port,
        settings=settings.part("server", ServerSettings),
        consent=settings.consent,
        opened=show,
        say=say,
    )
    if as_json:
        output.emit("view", {"address": where[-1] if where else None}, data_version=opened.data_version)
