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
        with output.progress(quiet=as_json) as step:
            counts, counted_at = look.signal_counts(store, step)
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
    leave_sources_out: Annotated[
        bool,
        typer.Option("--leave-sources-out", help="Fit the detectors anew without each source that is scored (slow)."),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(metavar="chat:MODEL@URL", help="A model to decide turns that the detectors are unsure of."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="Confidence from which a verdict counts, in [0, 1].")] = 0.5,
    correction_threshold: Annotated[float, typer.Option(help="The same for corrections.")] = 0.7,
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Precision, recall and F1 of the detectors on labelled human turns, with confusions, threshold curves and
    calibration.

    Examples:

      seatrial signals evaluate --labels turns.jsonl

      seatrial signals evaluate --labels turns.jsonl --leave-sources-out

      seatrial signals evaluate --labels turns.jsonl --judge chat:qwen3@http://localhost:8000/v1
    """
    from seatrial import signals
    from seatrial.errors import UsageError

    if judge is not None and leave_sources_out:
        raise UsageError("--judge and --leave-sources-out measure different detectors", hint="give one of them")
    settings = signals.SignalSettings(threshold=threshold, correction_threshold=correction_threshold)
    turns = signals.read_labels(labels)
    if judge is not None:
        from contextlib import closing

        from seatrial.flows import turn_judge

        with output.progress(quiet=as_json) as step, closing(turn_judge.by_spec(judge, step=step)) as second:
            result = turn_judge.evaluate(turns, second, level=level, disputed=disputed, settings=settings)
    else:
        fitted = None
        if leave_sources_out:
            from seatrial.signals import training

            with output.progress(quiet=as_json) as step:
                fitted = training.left_out(turns, step)
        result = signals.evaluate(turns, level=level, disputed=disputed, settings=settings, judge=fitted)
    if as_json:
        output.emit("signals evaluate", result, warnings=result.warnings)
        return
    for warning in result.warnings:
        output.warn(warning)
    from seatrial.report import accuracy

    output.show(accuracy.accuracy(result))
