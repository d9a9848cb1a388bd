"""`seatrial forget`, `purge` and `consent`: what people may ask of a store, and how long it keeps what it has."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption

if TYPE_CHECKING:
    from seatrial.store import Erasure, Store

UserArgument = Annotated[str | None, typer.Argument(metavar="[USER]", help="The person: name as read, or pseudonym.")]
SessionOption = Annotated[list[str] | None, typer.Option("--session", help="A session; may be repeated.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; needed where there is no terminal.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("forget")(forget)
    app.command("purge")(purge)
    group = typer.Typer(help="Record, withdraw and list consent.", no_args_is_help=True)
    group.command("set")(consent_set)
    group.command("withdraw")(consent_withdraw)
    group.command("list")(consent_list)
    app.add_typer(group, name="consent")


def forget(
    user: UserArgument = None,
    session: SessionOption = None,
    store: StoreOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Erase a person, or sessions, from the store for good, and prove it by reading every byte of it.

    Every earlier data version can no longer be read afterwards. Exit 1 if anything was found.

    Examples:

      seatrial forget jane@example.com

      seatrial forget --session 175b29b3 --yes
    """
    from seatrial.flows import steward

    _refuse_unasked(yes)
    opened = _open(store)
    lost = _emptied(opened)
    about = steward.subject_of(opened, user=user, sessions=session or [])
    _ask(f"Erase {len(about.sessions)} sessions for good?", yes)
    tasks = steward.tasks_made(opened)
    with output.progress(quiet=as_json) as step:
        done = steward.forget(opened, about, step)
    _show("forget", done, opened, [*lost, *_outside(tasks, done)], as_json)


def purge(
    before: Annotated[str | None, typer.Option(metavar="DATE", help="What ended before this date (UTC).")] = None,
    older_than: Annotated[
        int | None, typer.Option(metavar="DAYS", min=0, help="What ended more than so many days ago.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    store: StoreOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Erase old sessions for good (default: older than the setting retention_days), and all earlier data versions.

    Sessions without any time are kept and counted. Where there is nothing to erase, earlier data versions stay too.

    Examples:

      seatrial purge --older-than 90

      seatrial purge --before 2026-01-01 --yes
    """
    from seatrial.errors import StoreError
    from seatrial.flows import steward

    moment = steward.cutoff(before, older_than)
    if not dry_run:
        _refuse_unasked(yes)
    opened = _open(store)
    lost: list[str] = []
    if not dry_run:
        try:
            lost = _emptied(opened)
        except StoreError as error:
            # A running receiver holds what is an hour old at most.
            output.warn(f"{error.message}: what it holds was left alone")
    plan = steward.purge(opened, moment, dry_run=True)
    undated = [f"{plan.undated} sessions have no time and are kept"] if plan.undated else []
    if dry_run:
        if as_json:
            output.emit("purge", plan, data_version=opened.data_version, warnings=undated)
        else:
            output.console().print(f"{plan.sessions} sessions would be erased.")
            for text in undated:
                output.warn(text)
        return
    if plan.sessions:
        _ask(f"Erase {plan.sessions} sessions, and every earlier data version, for good?", yes)
    tasks = steward.tasks_made(opened)
    with output.progress(quiet=as_json) as step:
        done = steward.purge(opened, moment, progress=step)
    assert done.erased is not None
    _show("purge", done.erased, opened, [*lost, *undated, *_outside(tasks, done.erased)], as_json)


def consent_set(
    user: UserArgument = None,
    session: SessionOption = None,
    purpose: Annotated[
        list[str] | None, typer.Option(help="rank, label, judge, export or serve; may be repeated (default: none).")
    ] = None,
    basis: Annotated[str | None, typer.Option(help="Why, such as a contract or a form.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or JSON Lines: user or session, purposes, [basis, time, withdrawn]."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record what a person, or a session, may be used for. A new record takes the place of the earlier one.

    Examples:

      seatrial consent set jane@example.com --purpose rank --purpose label --basis contract

      seatrial consent set --file consents.csv
    """
    from seatrial.errors import UsageError
    from seatrial.flows import steward
    from seatrial.records import Consent

    opened = _open(store, create=True)
    if sum((user is not None, bool(session), file is not None)) != 1:
        raise UsageError("name a user, sessions or a file", hint="see 'seatrial consent set --help'")
    if file is not None:
        given = steward.consent_file(opened, file)
    else:
        names = [steward.subject_name(opened, user)] if user is not None else [opened.resolve(s) for s in session or []]
        now = round(time.time(), 6)
        given = [Consent(subject=n, purposes=tuple(purpose or ()), basis=basis, time=now) for n in names]
    version = steward.record_consents(opened, given)
    if as_json:
        output.emit("consent set", {"recorded": len(given)}, data_version=version)
    else:
        output.console().print(f"{len(given)} consents on record.")


def consent_withdraw(
    user: UserArgument = None,
    session: SessionOption = None,
    store: StoreOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take consent back: what the store holds is erased for good, and what comes later is not used.

    That it was withdrawn stays on record, under the pseudonym; 'seatrial forget' erases that too.

    Example: seatrial consent withdraw jane@example.com
    """
    from seatrial.errors import InputError
    from seatrial.flows import steward

    _refuse_unasked(yes)
    opened = _open(store)
    lost = _emptied(opened)
    try:
        about = steward.subject_of(opened, user=user, sessions=session or [])
    except InputError:
        if user is None:
            raise
        about = steward.Subject((steward.subject_name(opened, user),), ())
    _ask(f"Withdraw consent and erase {len(about.sessions)} sessions for good?", yes)
    tasks = steward.tasks_made(opened)
    with output.progress(quiet=as_json) as step:
        done = steward.take_back(opened, about, step)
    _show("consent withdraw", done, opened, [*lost, *_outside(tasks, done)], as_json)


def consent_list(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the consents on record, by pseudonym or session.

    Example: seatrial consent list --json
    """
    from seatrial.report import looks
    from seatrial.store import consents

    opened = _open(store)
    found = consents(opened)
    if as_json:
        output.emit("consent list", {"consents": found}, data_version=opened.data_version)
    else:
        output.show(looks.consents(found))


def _open(store: str | None, *, create: bool = False) -> Store:
    from seatrial.settings import load
    from seatrial.store import Store

    return Store.open(store or load().store, create=create)


def _emptied(store: Store) -> list[str]:
    """Bring what a receiver left in its spool into the store, where it can be found."""
    from seatrial.server.receiver import drain
    from seatrial.settings import load

    return [f"dropped from the spool: {why}" for why in drain(store, redact=load().redact)]


def _outside(tasks: dict[str, str], done: Erasure) -> list[str]:
    """Says which tasks quote what was erased: they stand in suite files, which are no part of the store."""
    made = [tasks[s] for s in done.sessions if s in tasks]
    if not made:
        return []
    named = ", ".join(made[:5]) + (f" and {len(made) - 5} more" if made[5:] else "")
    return [f"made from what was erased, and still in a suite file, with its words: {named}; take it out there"]


def _refuse_unasked(yes: bool) -> None:
    """Nothing is erased for good unless somebody said so.

    Raises:
        UsageError: neither was ``--yes`` given, nor is there anybody to ask.
    """
    from seatrial.errors import UsageError

    if not yes and not sys.stdin.isatty():
        raise UsageError("this erases for good, and there is nobody to ask", hint="say --yes to go ahead")


def _ask(question: str, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _show(command: str, done: Erasure, store: Store, warnings: list[str], as_json: bool) -> None:
    if as_json:
        output.emit(command, {**_fields(done)}, data_version=store.data_version, warnings=warnings)
    else:
        from seatrial.report import looks

        output.show(looks.erasure(done.sessions, done.rows, done.blobs, done.versions, done.shared, done.proof))
        for text in warnings:
            output.warn(text)
    if not done.proof.ok:
        raise typer.Exit(1)


def _fields(done: Erasure) -> dict[str, object]:
    from msgspec.structs import asdict

    return {
        **asdict(done),
        "sessions": len(done.sessions),
        "linked": len(done.linked),
        "proof": {**asdict(done.proof), "ok": done.proof.ok},
    }
