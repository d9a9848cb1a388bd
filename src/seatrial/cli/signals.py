"""`seatrial signals`: what was found in a session and why; how accurate the detectors are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(invoke_without_command=True)
    group.callback()(explain)
    group.command("evaluate")(evaluate)
    app.add_typer(group, name="signals")


def explain(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Option("--explain", metavar="SESSION", help="Explain every signal of this session.")
    ] = None,
    path: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read this file instead of the store.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count signals by model and kind; with --explain, show one session's signals with their evidence.

    Examples:

      seatrial signals

      seatrial signals --explain 175b29b3

      seatrial signals --file session.jsonl --json
    """
    if context.invoked_subcommand is not None:
        return
    from seatrial.errors import InputError
    from seatrial.flows import look

    if session is None and path is None:
        counts, counted_at = look.signal_counts(store)
        if as_json:
            output.emit("signals", counts, data_version=counted_at)
            return
        from seatrial.report import looks

        output.show(looks.signal_counts(counts))
        return
    explained, version = look.explain(session=session, path=path, store=store)
    if not explained:
        raise InputError("no session found to explain", file=str(path) if path else None)
    if as_json:
        output.emit("signals", explained, data_version=version)
        return
    from seatrial.report import looks

    for one in explained:
        output.show(looks.explanation(one.session, one.signals))


def evaluate(
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Labelled turns, JSONL.")],
    disputed: Annotated[bool, typer.Option("--disputed", help="Count disputed turns in every table.")] = False,
    threshold: Annotated[float, typer.Option(help="Confidence from which a verdict counts, in [0, 1].")] = 0.5,
    correction_threshold: Annotated[float, typer.Option(help="The same for corrections.")] = 0.7,
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Precision, recall and F1 of the detectors on labelled human turns, with confusions, threshold curves and
    calibration.

    Example: seatrial signals evaluate --labels turns.jsonl
    """
    from seatrial import signals

    settings = signals.SignalSettings(threshold=threshold, correction_threshold=correction_threshold)
    result = signals.evaluate(labels, level=level, disputed=disputed, settings=settings)
    if as_json:
        output.emit("signals evaluate", result, warnings=result.warnings)
        return
    for warning in result.warnings:
        output.warn(warning)
    from seatrial.report import accuracy

    output.show(accuracy.accuracy(result))
