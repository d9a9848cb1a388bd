"""`seatrial suite`: does a suite grow, what is in it, and how its files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Look at a suite of tasks.", no_args_is_help=True)
    group.command("health")(health)
    group.command("list")(list_)
    group.command("schema")(schema)
    app.add_typer(group, name="suite")


SuiteArgument = Annotated[str, typer.Argument(help="A suite file, module:name, or example:NAME.")]


def health(suite: SuiteArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Does the suite grow? Size, sources, tasks from production, open triage, tasks that tell nothing any more.

    Example: seatrial suite health suite.jsonl
    """
    from seatrial.flows import triage as flow
    from seatrial.settings import load

    found, version = flow.suite_health(suite, Path(store or load().store))
    if as_json:
        output.emit("suite health", found, data_version=version)
        return
    from seatrial.report.chapters import growth

    output.show(growth.health(suite, found))


def list_(suite: SuiteArgument, as_json: JsonOption = False) -> None:
    """List the tasks of a suite, with the part that each belongs to and the hash of its content.

    Example: seatrial suite list suite.jsonl
    """
    from seatrial.flows.suite import open_suite

    opened = open_suite(suite)
    rows = [
        {
            "task": t.id,
            "source": t.source,
            "type": t.type,
            "part": opened.part(t),
            "must_pass": t.must_pass,
            "hash": opened.hashes[t.id],
        }
        for t in opened.tasks
    ]
    if as_json:
        output.emit("suite list", {"suite": opened.name, "tasks": rows, "drafts": list(opened.drafts)})
        return
    from seatrial.report.chapters import growth

    output.show(growth.tasks(opened.name, rows, opened.drafts))


def schema(
    task: Annotated[bool, typer.Option("--task", help="The schema of one task instead of a file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema of suite files.

    Example: seatrial suite schema --task
    """
    import json

    from seatrial.suites.schema import file_schema, task_schema

    found = task_schema() if task else file_schema()
    if as_json:
        output.emit("suite schema", found)
    else:
        typer.echo(json.dumps(found, indent=2))
