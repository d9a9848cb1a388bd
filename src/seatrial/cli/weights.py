"""`seatrial weights`: fit the weights of the count score on labelled sessions."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption


class Method(enum.StrEnum):
    """How the fit is searched for."""

    logistic = "logistic"
    grid = "grid"
    random = "random"
    bayesian = "bayesian"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Weights of the count score.", no_args_is_help=True)
    group.command("fit")(fit)
    app.add_typer(group, name="weights")


def fit(
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Session labels, JSONL: session, label.")],
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Session files or folders; none: the store.")
    ] = None,
    store: StoreOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the weights here, for rank --weights.")
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="Convex fit, or a search of the same loss over weight shapes: a grid, random draws that narrow, or "
            "Bayesian (a Gaussian process, expected improvement)."
        ),
    ] = Method.logistic,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Praise at least confirmation, complaint at least correction.")
    ] = False,
    emphasis: Annotated[float, typer.Option(min=1.0, help="Weight of sessions with praise or complaint.")] = 1.0,
    draws: Annotated[int, typer.Option(min=20, help="Bootstrap draws over users.")] = 500,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit weights on labelled sessions, users left out in turn, and show how the order of models moves with them.

    Example: seatrial weights fit --labels labels.jsonl --out weights.json
    """
    import msgspec

    from seatrial.flows import weights as flow
    from seatrial.settings import load

    place = Path(store) if store else None if paths else Path(load().store)
    run = flow.fit(labels, paths or [], store=place, method=method.value, ordered=ordered, emphasis=emphasis,
                   draws=draws, seed=seed, level=level)  # fmt: skip
    if out is not None:
        output.write(out, msgspec.json.encode(run.fitted).decode() + "\n")
    if as_json:
        output.emit("weights fit", run, data_version=run.data_version, warnings=(*run.warnings, *run.fitted.why))
        return
    for warning in run.warnings:
        output.warn(warning)
    from seatrial.report import accuracy

    output.show(accuracy.weights(run))
