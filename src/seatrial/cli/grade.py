"""`seatrial grade`: checks on recorded trajectories, or once more on a stored run."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, StoreOption


class By(enum.StrEnum):
    """What tells systems apart."""

    model = "model"
    agent = "agent"
    suite = "suite"
    file = "file"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("grade")(grade)


def grade(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Trajectories; none: a run of the store.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Tasks to grade against, by task id.")] = None,
    run: Annotated[str | None, typer.Option(help="Without paths: this run (default: the newest).")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Grade the run anew with the checks of today (needs --suite).")
    ] = False,
    by: Annotated[By, typer.Option(help="Compare systems by this.")] = By.model,
    max_turns: Annotated[int | None, typer.Option(min=1, help="Budget of agent turns, where no task sets one.")] = None,
    max_tool_calls: Annotated[
        int | None, typer.Option(min=1, help="Limit of tool calls, where no task sets one.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, metavar="USD", help="What an attempt may cost, where no task says.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds that an attempt may take, where no task says.")
    ] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    store: StoreOption = None,
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Grade trajectories mechanically: each check by itself, with its reason.

    Examples:

      seatrial grade trajectories/ --max-turns 30

      seatrial grade --run my-run

      seatrial grade --run my-run --again --suite suite.jsonl
    """
    from seatrial.report.chapters import suite as chapter

    if paths:
        from seatrial.flows.grade import grade_paths
        from seatrial.flows.suite import open_suite
        from seatrial.settings import load

        with output.progress(quiet=as_json) as step:
            graded = grade_paths(
                paths,
                suite=open_suite(suite) if suite else None,
                by=by.value,
                format=None if format == "auto" else format,
                max_turns=max_turns,
                max_tool_calls=max_tool_calls,
                max_cost_usd=max_cost,
                max_seconds=max_seconds,
                prices=load().prices,
                level=level,
                progress=step,
            )
        if as_json:
            output.emit("grade", graded)
        else:
            output.show(chapter.systems([(s.system, s.result) for s in graded.systems], graded.skipped))
        return
    _stored(suite, run, again, store, level, as_json)


def _stored(suite: str | None, run: str | None, again: bool, store: str | None, level: float, as_json: bool) -> None:
    from seatrial.errors import UsageError
    from seatrial.flows import run as flow
    from seatrial.flows.suite import open_suite
    from seatrial.report.chapters import suite as chapter
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    warnings: list[str] = []
    if again:
        if suite is None:
            raise UsageError("grading again needs the tasks", hint="--suite FILE")
        _, changed = flow.again(opened, run, open_suite(suite))
        if changed:
            warnings.append(f"left as they were graded, their content changed since: {', '.join(changed)}")
    name, judged, result = flow.stored(opened, run, level)
    if as_json:
        attempts = [{"attempt": a, "verdicts": v} for a, v in judged]
        body = {"run": name, "result": result, "attempts": attempts}
        output.emit("grade", body, data_version=opened.data_version, warnings=warnings)
        return
    for section in chapter.run(name, result, warnings):
        output.show(section)
