"""`seatrial scorecard`: is an agent fit to deploy? Seven dimensions, measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption

if TYPE_CHECKING:
    from seatrial.flows.scorecard import Scored
    from seatrial.report.section import Section


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("scorecard")(scorecard)


def scorecard(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="RUNS...", help="Stored runs, results tables, traces; with --agent one SUITE."),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Run the suite with this agent first; may be repeated to compare."),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--attempts", min=1, help="With --agent: runs per task.")] = 10,
    plan: Annotated[
        bool, typer.Option("--plan", help="With --agent: only say what the runs would take, and what they certify.")
    ] = False,
    max_hours: Annotated[
        float | None, typer.Option(min=0.0, help="With --agent: do not start what is estimated to take longer.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, metavar="USD", help="With --agent: nor what is estimated to cost more.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="With --agent: attempts at the same time.")] = 4,
    task: Annotated[list[str] | None, typer.Option(help="With --agent: only this task; may be repeated.")] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="SUITE", help="The suite that stored runs were made in, for its worlds.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only this model, where a source holds several.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="D1..D7", help="Only this dimension; may be repeated.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Deployment profiles: a TOML table of weights for each.")
    ] = None,
    audits: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write each run's audit record (see 'seatrial verify').")
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A person's verdicts on actions (JSON lines); they outrank other sources."),
    ] = None,
    judge: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A judge of actions (criterion 'relevant'); needs --stamp.")
    ] = None,
    stamp: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its stamp, from 'seatrial judge validate --stamp'.")
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="With --json: every run's values and evidence too.")] = False,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a Markdown summary.")] = None,
    store: StoreOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Score agents in seven dimensions: completion, fidelity, reproducibility, repair, replay, gates, audit.

    Nothing is blended and nothing is guessed: a dimension whose evidence a log lacks has no value, and says why.

    Examples:

      seatrial scorecard results.csv

      seatrial scorecard ticketdesk-clean-1a2b ticketdesk-messy-3c4d --html scorecard.html

      seatrial scorecard example:ticketdesk --agent ticketdesk-clean --agent ticketdesk-careless -k 10

      seatrial scorecard suite.jsonl --agent chat:my-model@http://localhost:8000/v1 -k 10 --plan
    """
    from seatrial.dimensions.annotations import Annotations
    from seatrial.dimensions.profiles import load_profiles
    from seatrial.errors import UsageError
    from seatrial.flows.relevance_judge import from_files
    from seatrial.flows.scorecard import ScorecardOptions, score_sources
    from seatrial.settings import load

    if (judge is None) != (stamp is None):
        raise UsageError("--judge and --stamp go together", hint="an unvalidated judge decides nothing")
    where = Path(store or load().store)
    options = ScorecardOptions(
        level=level,
        suite=suite,
        model=model,
        format=None if format == "auto" else format,
        store=where,
        only=tuple(only or ()),
        audits=audits,
        profiles=load_profiles(profile) if profile is not None else (),
        values=values,
        annotations=Annotations(annotations) if annotations is not None else None,
        judge=from_files(judge, stamp) if judge is not None and stamp is not None else None,
    )
    _refuse_idle(context, sources, agent)
    if agent:
        if len(sources) != 1:
            raise UsageError("with --agent, name one suite", hint="seatrial scorecard SUITE --agent SPEC")
        scored = _made(sources[0], agent, k, plan, max_hours, max_cost, concurrency, task, seed, options, as_json)
        if scored is None:
            return
    else:
        with output.progress(quiet=as_json) as step:
            scored = score_sources(sources, options, step)
    _show(scored, sources, html, markdown, store, as_json)


_RUNNING = {"k": "-k", "plan": "--plan", "max_hours": "--max-hours", "max_cost": "--max-cost",
            "concurrency": "--concurrency", "task": "--task"}  # fmt: skip


def _refuse_idle(context: typer.Context, sources: Sequence[str], agent: Sequence[str] | None) -> None:
    """Refuse options that would do nothing here."""
    from seatrial.errors import UsageError

    given = {
        name for name in context.params if str(getattr(context.get_parameter_source(name), "name", "")) == "COMMANDLINE"
    }
    files = [Path(source).exists() for source in sources]
    idle = [] if agent else [shown for name, shown in _RUNNING.items() if name in given]
    if idle:
        raise UsageError(f"{', '.join(idle)} would do nothing: nothing is run without --agent",
                         hint="seatrial scorecard SUITE --agent SPEC")  # fmt: skip
    if "suite" in given and (agent or all(files)):
        raise UsageError("--suite would do nothing: it is for stored runs, whose worlds it makes again",
                         hint="leave it out")  # fmt: skip
    for name in ("model", "format"):
        if name in given and (agent or not any(files)):
            raise UsageError(f"--{name} would do nothing: it is for results tables and traces", hint="leave it out")
    if not agent and (suites := [s for s in sources if s.startswith("example:")]):
        raise UsageError(
            f"{suites[0]} is a suite, and holds no runs", hint=f"seatrial scorecard {suites[0]} --agent SPEC"
        )


def _made(
    suite: str, agents: Sequence[str], k: int, plan: bool, max_hours: float | None, max_cost: float | None,
    concurrency: int, task: list[str] | None, seed: int, options: object, as_json: bool,
) -> Scored | None:  # fmt: skip
    """Run the suite with the agents and score them; None where only the plan was asked for."""
    from seatrial.flows.run import RunOptions
    from seatrial.flows.scorecard import ScorecardOptions
    from seatrial.flows.scorecard_runs import Bounds, planned, run_and_score
    from seatrial.report.chapters import scorecard_plan as chapter

    assert isinstance(options, ScorecardOptions)
    running = RunOptions(k=k, seed=seed, concurrency=concurrency, tasks=tuple(task or ()))
    if plan:
        made = planned(suite, agents, running, options)
        if as_json:
            output.emit("scorecard", made)
        else:
            output.show(chapter.plan(made))
        return None

    def told(found: object) -> None:
        sys.stderr.write(chapter.line(found) + "\n")

    bounds = Bounds(hours=max_hours, usd=max_cost)
    with output.progress(quiet=as_json) as step:
        return run_and_score(suite, agents, running, options, bounds=bounds, told=told, progress=step)


def _show(
    scored: Scored, sources: Sequence[str], html: Path | None, markdown: Path | None, store: str | None, as_json: bool
) -> None:
    from seatrial.report.chapters import scorecard as chapter

    sections = chapter.scorecards(scored.cards, correlations=scored.correlations, profiles=scored.profiles,
                                  separated=scored.separation)  # fmt: skip
    title = " and ".join(card.agent for card in scored.cards)
    _write(sections, title, html, markdown)
    output.keep(store, "scorecard", scored.summary(), name=title, data_version=scored.data_version,
                warnings=scored.warnings)  # fmt: skip
    if as_json:
        output.emit("scorecard", scored.summary(), data_version=scored.data_version, warnings=scored.warnings)
    else:
        for section in sections:
            output.show(section)
    if all(found.estimate is None for card in scored.cards for found in card.dimensions.values()):
        raise typer.Exit(3)


def _write(sections: Sequence[Section], title: str, html: Path | None, markdown: Path | None) -> None:
    if html is not None:
        from seatrial._version import __version__
        from seatrial.report import page

        output.write(html, page.page(sections, title=title, eyebrow="scorecard", version=__version__))
    if markdown is not None:
        from seatrial.report.markdown import section_lines

        output.write(markdown, "\n".join(line for s in sections for line in section_lines(s)) + "\n")
