"""`seatrial task`: a session becomes a draft, a draft becomes a task, a task becomes many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, SeedOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Make tasks from sessions, approve and vary them.", no_args_is_help=True)
    group.command("from-session")(from_session)
    group.command("edit")(edit)
    group.command("approve")(approve)
    group.command("vary")(vary)
    app.add_typer(group, name="task")


SuiteFile = Annotated[Path, typer.Argument(help="A suite file of JSON lines.")]


def from_session(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="A session, or the start of its id.")] = None,
    success: Annotated[
        bool, typer.Option("--success", help="It went well; without an id: draw sessions that did.")
    ] = False,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="With --success and no id: how many.")] = 10,
    suite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the draft to this file of JSON lines.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who drafts.")] = None,
    store: StoreOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Draft a task from a session: its request, its tools, and checks proposed from what went wrong.

    A draft is never run before it is completed and approved.

    Examples:

      seatrial task from-session 175b29b3 --suite suite.jsonl

      seatrial task from-session --success -n 5 --suite suite.jsonl
    """
    from seatrial.errors import UsageError
    from seatrial.flows import triage as flow
    from seatrial.settings import load
    from seatrial.store import Store

    if session is None and not success:
        raise UsageError("name a session, or give --success", hint="'seatrial triage' lists failing sessions")
    opened = Store.open(store or load().store)
    ids = [session] if session is not None else flow.successes(opened, n, seed)
    drafts = [flow.from_session(opened, one, success=success, suite=suite, by=by) for one in ids]
    if as_json:
        output.emit("task from-session", {"drafts": drafts}, data_version=opened.data_version)
        return
    from seatrial.report.chapters import growth

    for draft in drafts:
        output.show(growth.draft(draft))
    if suite is not None:
        output.console().print(f"Added to {suite}. Next: complete it, then: seatrial task approve {suite} ID --by NAME")


def edit(
    suite: SuiteFile,
    task: Annotated[str, typer.Argument(help="The draft's id.")],
    checks: Annotated[
        str,
        typer.Option(
            metavar="JSON",
            help="Fields to set: expected_tools, forbidden_tools, order, reference, max_turns, max_tool_calls, "
            "check_final (assertions).",
        ),
    ],
    rubric: Annotated[str | None, typer.Option(metavar="TEXT", help="Add this rubric too.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Set what a program checks of a draft. It stays a draft, and nothing is run.

    Example: seatrial task edit suite.jsonl from-175b29b3 --checks '{"max_turns": 12}'
    """
    from seatrial.flows import triage as flow

    done = flow.completed(suite, task, checks, rubric=rubric)
    if as_json:
        output.emit("task edit", {"task": done})
        return
    from seatrial.report.chapters import growth

    output.show(growth.draft(done))


def approve(
    suite: SuiteFile,
    task: Annotated[str, typer.Argument(help="The draft's id.")],
    by: Annotated[str, typer.Option(help="Who approves.")],
    rubric: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Add this rubric first: by what the end is judged.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve a draft that a person has completed: from now on it is run.

    Example: seatrial task approve suite.jsonl from-175b29b3 --by ana
    """
    from seatrial.errors import InputError
    from seatrial.flows import triage as flow
    from seatrial.settings import load
    from seatrial.store import Store

    try:
        opened = Store.open(store or load().store)
    except InputError:
        if store is not None:
            raise
        opened = None
    done = flow.approved(suite, task, by=by, store=opened, rubric=rubric)
    if as_json:
        output.emit("task approve", {"task": done}, data_version=None if opened is None else opened.data_version)
    else:
        output.console().print(f"{done.id} is approved by {by} and will be run.")


def vary(
    suite: Annotated[str, typer.Argument(help="A suite.")],
    task: Annotated[str, typer.Argument(help="The task to vary.")],
    entity: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW,NEW", help="Words to replace everywhere; may be repeated.")
    ] = None,
    phrasing: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A frame with {input}; may be repeated.")
    ] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Put the request's sentences in another order.")] = False,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many.")] = 5,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Add them to this file of JSON lines.")] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make synthetic variations of a task; the expected end follows the words.

    Example: seatrial task vary suite.jsonl refund --entity "Ana=Bea,Cleo" --phrasing "Quick one: {input}" -n 4
    """
    from seatrial.errors import UsageError
    from seatrial.flows.suite import open_suite
    from seatrial.suites.variations import Variation, variations
    from seatrial.suites.writing import append

    entities: dict[str, list[str]] = {}
    for text in entity or []:
        old, equals, new = text.partition("=")
        if not equals or not old:
            raise UsageError(f"--entity takes OLD=NEW,NEW, got {text!r}")
        entities[old] = [word for word in new.split(",") if word]
    (chosen,) = open_suite(suite).select((task,))
    how = Variation(entities=entities, phrasings=tuple(phrasing or ("{input}",)), shuffle=shuffle)
    made = variations(chosen, how, n, seed)
    for one in made if out is not None else ():
        append(out or Path(), one)
    if as_json:
        output.emit("task vary", {"tasks": made})
        return
    from seatrial.report.chapters import growth

    for one in made:
        output.show(growth.draft(one))
