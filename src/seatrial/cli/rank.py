"""`seatrial rank`: the main job."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from seatrial._version import __version__
from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption


class Baseline(enum.StrEnum):
    """The policy that models are compared with."""

    uniform = "uniform"
    traffic = "traffic"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("rank")(rank)


def rank(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Session files or folders; with --store they are added to it first."),
    ] = None,
    store: StoreOption = None,
    assignments: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Who was assigned what: unit, arm, p_<arm>..., [stratum, epoch, time, user]."),
    ] = None,
    outcome: Annotated[
        str,
        typer.Option(help="auto, outcome (recorded), signals (their mean), one of the five, fitted (--weights)."),
    ] = "auto",
    weights: Annotated[
        str, typer.Option(help="Weights of the count score: unit, emphasis, or a file of 'seatrial weights fit'.")
    ] = "unit",
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True outcomes of a random part of the sessions, JSONL.")
    ] = None,
    turn_labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled turns: they say which kinds of signal may count.")
    ] = None,
    every_kind: Annotated[
        bool, typer.Option("--every-kind", help="Let kinds of signal count whose precision is low or not known.")
    ] = False,
    baseline: Annotated[
        Baseline, typer.Option(help="Compare with the mean over models: every model alike, or by traffic.")
    ] = Baseline.uniform,
    arm: Annotated[str, typer.Option(help="Compare by this column instead of the model, e.g. agent.")] = "arm",
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Keep only these sessions; may be repeated.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The one person behind all sessions; results are then 'for this user'.")
    ] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a Markdown summary.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="No data yet: sessions needed to see 1, 2 and 5 points.")
    ] = False,
    models: Annotated[int, typer.Option(min=2, help="With --plan: how many models.")] = 2,
    sd: Annotated[float, typer.Option(min=0.0, help="With --plan: standard deviation of the outcome.")] = 0.5,
    sessions_per_user: Annotated[float, typer.Option(min=1.0, help="With --plan: sessions per user.")] = 1.0,
    correlation: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="With --plan: correlation of one user's sessions.")
    ] = 0.0,
    bootstrap_t: Annotated[bool, typer.Option("--bootstrap-t", help="Symmetric bootstrap-t intervals.")] = False,
    draws: Annotated[int, typer.Option(min=999, help="Draws of the randomisation test.")] = 9_999,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: up to the cores).")] = None,
    engine: Annotated[
        str, typer.Option(metavar="URL", help="Where signals are extracted: local, ray, or ray://HOST:PORT.")
    ] = "local",
    as_json: JsonOption = False,
) -> None:
    """Rank the models found in sessions by net improvement over the average model.

    Examples:

      seatrial rank ~/.claude/projects

      seatrial rank sessions/ --assignments arms.csv --html report.html

      seatrial rank --plan --models 4 --sd 0.45
    """
    if plan:
        _plan(models, sd, sessions_per_user, correlation, level, as_json)
        return
    from seatrial import scoring
    from seatrial.errors import UsageError
    from seatrial.flows.rank import RankOptions, rank_paths
    from seatrial.settings import load

    preset = {"unit": scoring.UNIT, "emphasis": scoring.EMPHASIS}.get(weights)
    fitted = None
    if preset is None and Path(weights).is_file():
        from seatrial.flows.weights import load as load_weights

        fitted = load_weights(Path(weights))
        preset = fitted.weights
    if preset is None:
        raise UsageError(f"no weights named {weights!r}", hint="unit, emphasis, or a file of 'seatrial weights fit'")
    pairs = dict(_pair(text) for text in where or [])
    store_path = Path(store) if store else None if paths else Path(load().store)
    options = RankOptions(
        outcome=outcome,
        weights=preset,
        baseline=baseline.value,
        level=level,
        seed=seed,
        draws=draws,
        arm=arm,
        bootstrap_t=bootstrap_t,
        where=pairs,
        fitted=fitted,
        every_kind=every_kind,
    )
    with output.progress(quiet=as_json) as step:
        run = rank_paths(
            paths or [],
            options=options,
            assignments=assignments,
            store=store_path,
            format=None if format == "auto" else format,
            user=user,
            labels=labels,
            turn_labels=turn_labels,
            workers=workers,
            engine=engine,
            progress=step,
        )
    from seatrial.report import markdown as as_markdown
    from seatrial.report import page, terminal

    if html is not None:
        output.write(html, page.ranking_page(run.ranking, version=__version__))
    if markdown is not None:
        output.write(markdown, as_markdown.ranking(run.ranking))
    about = ", ".join([f"by {arm if arm != 'arm' else 'model'}", *(where or [])])
    output.keep(store, "rank", run.ranking, name=about, data_version=run.data_version, warnings=run.ranking.warnings)
    if as_json:
        about_engine = {"url": engine, "worker_ids": run.worker_ids} if engine != "local" else None
        output.emit(
            "rank", run.ranking, data_version=run.data_version, warnings=run.ranking.warnings, engine=about_engine
        )
        return
    screen = output.console()
    if run.read is not None:
        screen.print(terminal.read_line(run.read.files, run.read.sessions, run.read.steps))
    for part in terminal.ranking(run.ranking):
        screen.print(part)
    if html is not None:
        screen.print(f"Report: {html}")


def _pair(text: str) -> tuple[str, str]:
    from seatrial.errors import UsageError

    column, equals, value = text.partition("=")
    if not equals or not column:
        raise UsageError(f"--where takes COLUMN=VALUE, got {text!r}")
    return column, value


def _plan(models: int, sd: float, sessions_per_user: float, correlation: float, level: float, as_json: bool) -> None:
    from seatrial import causal

    power = causal.plan(models=models, sd=sd, sessions_per_cluster=sessions_per_user, icc=correlation, level=level)
    if as_json:
        output.emit("rank", {"power": power})
        return
    from seatrial.report import terminal

    for part in terminal.plan(power):
        output.console().print(part)
