"""`seatrial assign` and `seatrial sample`: make the next comparison a randomised one (METHODS 3.6b)."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, SeedOption, StoreOption


class Method(enum.StrEnum):
    """How arms are drawn."""

    blocks = "blocks"
    hash = "hash"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("assign")(assign)
    app.command("sample")(sample)


def assign(
    unit: Annotated[str, typer.Argument(help="What is assigned: a session, task or user id (user: sticky).")],
    record: Annotated[Path, typer.Option("--record", metavar="CSV", help="The assignment record; appended to.")],
    arms: Annotated[
        str, typer.Option("--arms", metavar="A=P,B=P", help="Arms with probabilities, or just names for equal ones.")
    ],
    task_type: Annotated[str | None, typer.Option(help="Stratum: the task's type.")] = None,
    difficulty: Annotated[str | None, typer.Option(help="Stratum: the task's difficulty.")] = None,
    method: Annotated[
        Method, typer.Option(help="blocks: permuted blocks in strata; hash: keyed hash.")
    ] = Method.blocks,
    epoch: Annotated[str, typer.Option(help="Period of one roster; new arms or chances need a new one.")] = "1",
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The secret key (default: the record's name with .key).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the arm for a task that is about to start, and write the record first.

    Prints the arm. Run it from the launcher that starts the agent; show the arm to nobody.

    Example: seatrial assign task-17 --record arms.csv --arms opus=.5,sonnet=.5 --task-type coding
    """
    from seatrial.flows.assign import draw

    drawn = draw(
        unit,
        record=record,
        arms=arms,
        task_type=task_type,
        difficulty=difficulty,
        method=method.value,
        epoch=epoch,
        key_file=key_file,
    )
    if as_json:
        output.emit("assign", drawn)
    else:
        typer.echo(drawn.arm)


def sample(
    n: Annotated[int, typer.Argument(min=1, help="How many sessions.")],
    store: StoreOption = None,
    by: Annotated[str, typer.Option(help="Columns that make strata, comma-separated.")] = "task_type,difficulty",
    out: Annotated[Path | None, typer.Option(metavar="CSV", help="Write the sample here.")] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Draw an evaluation set spread evenly over strata, with inclusion probabilities, from the store.

    Example: seatrial sample 200 --by task_type,difficulty --out evaluation-set.csv
    """
    from seatrial.flows.assign import draw_sample

    frame, version = draw_sample(n, store=store, by=tuple(by.split(",")), seed=seed)
    if out is not None:
        output.write(out, frame.write_csv())
    if as_json:
        output.emit("sample", {"n": frame.height, "sessions": frame.to_dicts()}, data_version=version)
        return
    from seatrial.report import looks

    output.show(looks.sample(frame.to_dicts(), by.split(",")))
