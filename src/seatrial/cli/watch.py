"""`seatrial drift`, `watch`, `mark` and `baseline`: what changed, and could it be chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption

if TYPE_CHECKING:
    from seatrial.engine.choice import Engine
    from seatrial.records.drift import DeployMark, Drift
    from seatrial.store import Store

DrawsOption = Annotated[int, typer.Option(min=999, help="Draws of the permutation tests.")]
EngineOption = Annotated[
    str, typer.Option(metavar="URL", help="Where signals are extracted: local, ray, or ray://HOST:PORT.")
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("drift")(drift)
    app.command("watch")(watch)
    app.command("mark")(mark)
    group = typer.Typer(help="The window that others are compared with.", no_args_is_help=True)
    group.command("refresh")(refresh)
    group.command("list")(listing)
    app.add_typer(group, name="baseline")


def drift(
    baseline: Annotated[
        str | None, typer.Option(metavar="FROM..TO", help="Dates; default: the stored baseline, else what came before.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="FROM..TO", help="Dates to compare with it; default: the last --days.")
    ] = None,
    days: Annotated[float, typer.Option(min=0.01, help="Length of the window where no dates are given.")] = 7.0,
    outcome: Annotated[str, typer.Option(help="auto, or a column of outcomes.")] = "auto",
    max_age: Annotated[float, typer.Option(min=0.0, help="Days after which a baseline is stale.")] = 30.0,
    draws: DrawsOption = 1_999,
    store: StoreOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    engine: EngineOption = "local",
    as_json: JsonOption = False,
) -> None:
    """What changed between a baseline window and now: task and model mix, signals, cost, the models themselves.

    Each change is said to be after a deploy, without one, or what chance could do.

    Examples:

      seatrial drift --days 14

      seatrial drift --baseline 2026-10-01..2026-11-01 --window 2026-11-01..2026-11-08
    """
    from seatrial.engine.choice import engine_at
    from seatrial.flows import watch as flow
    from seatrial.report.chapters import drift as chapter

    opened, power = _open(store), engine_at(engine)
    with output.progress(quiet=as_json) as step:
        found = flow.drift(
            opened,
            before=None if baseline is None else flow.span(baseline),
            now=None if window is None else flow.span(window),
            days=days,
            outcome=outcome,
            max_age_days=max_age,
            level=level,
            seed=seed,
            draws=draws,
            engine=power,
            progress=step,
        )
    version = opened.data_version
    output.keep(store, "drift", found, name=_about(found), data_version=version, warnings=found.warnings)
    if as_json:
        output.emit("drift", found, data_version=version, warnings=found.warnings, engine=_worked(engine, power))
        return
    output.show(chapter.drift(found))


def watch(
    days: Annotated[float, typer.Option(min=0.01, help="What counts as now.")] = 7.0,
    detect: Annotated[
        float | None, typer.Option(help="At the first look: the difference at which limits are tightest (.02).")
    ] = None,
    user_window: Annotated[
        float | None, typer.Option(help="At the first look: days that a user is followed before they enter (7).")
    ] = None,
    draws: DrawsOption = 1_999,
    store: StoreOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    engine: EngineOption = "local",
    as_json: JsonOption = False,
) -> None:
    """What changed since last week and whether it could be chance, with a board that may be looked at every day.

    Ordinary intervals that are looked at 60 times miss the truth at some look half of the time; the board's do not.

    Example: seatrial watch --store .seatrial
    """
    from seatrial.engine.choice import engine_at
    from seatrial.flows import watch as flow
    from seatrial.report.chapters import drift as chapter

    opened, power = _open(store), engine_at(engine)
    with output.progress(quiet=as_json) as step:
        found = flow.watch(
            opened,
            days=days,
            detect=detect,
            user_window_days=user_window,
            level=level,
            seed=seed,
            draws=draws,
            engine=power,
            progress=step,
        )
    version = opened.data_version
    output.keep(store, "watch", found, name=_about(found), data_version=version, warnings=found.warnings)
    if as_json:
        output.emit("watch", found, data_version=version, warnings=found.warnings, engine=_worked(engine, power))
        return
    output.show(chapter.drift(found))


def _worked(url: str, engine: Engine) -> dict[str, object] | None:
    return {"url": url, "worker_ids": engine.worker_ids()} if url != "local" else None


def mark(
    text: Annotated[str | None, typer.Argument(help="What was deployed.", show_default=False)] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="When (UTC); default: now.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the deploys known, and change nothing.")] = False,
    removed: Annotated[
        str | None,
        typer.Option("--remove", metavar="NAME", help="Take this mark back; --at tells which of several."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a deploy on record, so that later changes can be told to come after it.

    Examples:

      seatrial mark "prompt v12" --at 2026-11-28T09:00

      seatrial mark --list

      seatrial mark --remove "prompt v12"
    """
    from seatrial.errors import UsageError
    from seatrial.flows import marks
    from seatrial.flows import watch as flow

    if (text is not None) + listed + (removed is not None) != 1 or (listed and at is not None):
        raise UsageError("name what was deployed, or give --list, or --remove NAME", hint='seatrial mark "prompt v12"')
    opened, when = _open(store), None if at is None else flow.moment(at)
    if listed:
        known = flow.marks(opened)
        if as_json:
            output.emit("mark", known)
        else:
            _show_marks(known)
        return
    made = flow.mark(opened, text, when) if text is not None else marks.remove(opened, removed or "", when)
    if as_json:
        output.emit("mark", made)
        return
    from seatrial.report.chapters.drift import minute
    from seatrial.report.text import visible

    said = "Marked" if text is not None else "Taken back, the mark"
    output.console().print(f"{said} at {minute(made.time)} UTC: {visible(made.text)}", markup=False)


def _show_marks(known: Sequence[DeployMark]) -> None:
    from seatrial.report.chapters import marks as chapter

    output.show(chapter.known(known))


def refresh(
    window: Annotated[
        str | None, typer.Option(metavar="FROM..TO", help="Dates of the new baseline; default: the last --days.")
    ] = None,
    days: Annotated[float, typer.Option(min=0.01, help="Length of the window where no dates are given.")] = 30.0,
    n: Annotated[
        int | None, typer.Option(min=1, help="Sessions of the evaluation set; default: 200, or all where fewer.")
    ] = None,
    outcome: Annotated[str, typer.Option(help="auto, or a column of outcomes.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the evaluation set, with inclusion chances, as CSV.")
    ] = None,
    store: StoreOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Redraw the evaluation set, recompute every model on the new window, keep the old baseline and print both.

    Example: seatrial baseline refresh --days 30 --out evaluation.csv
    """
    import polars as pl

    from seatrial.flows import watch as flow
    from seatrial.report.chapters import drift as chapter

    opened = _open(store)

    def write(sample: Sequence[Mapping[str, Any]]) -> None:
        if out is not None:
            output.write(out, pl.DataFrame(list(sample)).write_csv())

    made = flow.refresh(
        opened,
        None if window is None else flow.span(window),
        days=days,
        n=n,
        outcome=outcome,
        level=level,
        seed=seed,
        first=write,
    )
    if as_json:
        output.emit("baseline refresh", {"old": made.old, "new": made.new}, data_version=made.new.data_version)
        return
    output.show(chapter.baseline(made.old, made.new, made.sample))


def listing(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """The baselines kept, newest first.

    Example: seatrial baseline list
    """
    from seatrial.flows import watch as flow
    from seatrial.report.chapters import drift as chapter

    kept = flow.baselines(_open(store))
    if as_json:
        output.emit("baseline list", kept)
        return
    output.show(chapter.baselines(kept))


def _open(store: str | None) -> Store:
    from seatrial.settings import load
    from seatrial.store import Store

    return Store.open(store or load().store)


def _about(found: Drift) -> str:
    from datetime import UTC, datetime

    return "to " + datetime.fromtimestamp(found.now.end, UTC).strftime("%Y-%m-%d")
