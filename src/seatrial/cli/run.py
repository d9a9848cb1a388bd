"""`seatrial run`: k attempts at every task of a suite, graded."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption

if TYPE_CHECKING:
    from seatrial.flows.run import RunOptions
    from seatrial.report.section import Section
    from seatrial.suites.runner import Tally


class Part(enum.StrEnum):
    """Which tasks may be looked at while an agent is being improved."""

    dev = "dev"
    holdout = "holdout"


class Tape(enum.StrEnum):
    """What a cassette does with tool calls."""

    auto = "auto"
    record = "record"
    replay = "replay"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("run")(run)


def run(
    suite: Annotated[
        str | None, typer.Argument(metavar="[SUITE]", help="A suite file, module:name, or example:NAME.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="python:module:function, cmd:program args, http(s)://..., chat:MODEL@URL, mcp:..., "
            "or an agent of the suite by name.",
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", "--attempts", min=1, help="Attempts per task (default 5).")] = None,
    store: StoreOption = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    part: Annotated[Part | None, typer.Option(help="Only the tasks of this part.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Attempts at the same time (default 4).")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds that one attempt may take (default 600).")
    ] = None,
    turn_limit: Annotated[
        int | None,
        typer.Option(min=1, help="Turns after which an attempt is stopped (default: twice max_turns)."),
    ] = None,
    call_limit: Annotated[
        int | None, typer.Option(min=1, help="Tool calls after which an attempt is stopped (default 500).")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, metavar="USD", help="Money after which an attempt is stopped.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, help="New tries of an attempt whose infrastructure failed (default 1).")
    ] = None,
    cassette: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Tapes of tool calls, one per attempt.")
    ] = None,
    cassette_mode: Annotated[Tape, typer.Option(help="auto replays what is known and records the rest.")] = Tape.auto,
    approver: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="What the person does who is asked about gated calls, where no task says: approve (default), deny, "
            'absent, delay:SECONDS, delay:SECONDS:deny, or amend:{"argument": value}.',
        ),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace personal data in what is kept; it cannot be replayed then.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name the run (default: by suite, agent, seed and limits).")] = None,
    until_decided: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="The baseline's agent: run both and add looks until the gate has decided."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="With --until-decided: further attempts, both agents together (1000).")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a Markdown summary.")] = None,
    engine: Annotated[
        str, typer.Option(metavar="URL", help="Where attempts are made: local, ray, or ray://HOST:PORT.")
    ] = "local",
    listing: Annotated[bool, typer.Option("--list", help="List the runs of the store and stop.")] = False,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Let an agent try every task of a suite k times, and grade every attempt.

    A run that was cut short goes on where it stopped: give the same command again. What no option says is as the
    settings say in [suites]; prices of models are in [prices].

    Examples:

      seatrial run suite.jsonl --agent chat:my-model@http://localhost:8000/v1 -k 5

      seatrial run example:ticketdesk --agent ticketdesk-clean -k 2

      seatrial run suite.jsonl --agent cmd:./new --until-decided cmd:./old --budget 600

      seatrial run --list
    """
    from seatrial.settings import load

    settings = load()
    where = Path(store or settings.store)
    if listing:
        _list(where, as_json)
        return
    from seatrial.errors import UsageError

    if suite is None or agent is None:
        raise UsageError("name a suite and an agent", hint="seatrial run SUITE --agent SPEC")
    from seatrial.flows.run import RunOptions, run_suite
    from seatrial.suites import Limits
    from seatrial.suites.settings import SuiteSettings, checked

    usual = checked(settings.part("suites", SuiteSettings))
    options = RunOptions(
        k=usual.k if k is None else k,
        seed=seed,
        concurrency=usual.concurrency if concurrency is None else concurrency,
        limits=Limits(
            turns=usual.turn_limit if turn_limit is None else turn_limit,
            calls=usual.call_limit if call_limit is None else call_limit,
            seconds=usual.timeout if timeout is None else timeout,
            cost_usd=usual.max_cost if max_cost is None else max_cost,
        ),
        part=None if part is None else part.value,
        tasks=tuple(task or ()),
        retries=usual.retries if retries is None else retries,
        cassette=cassette,
        cassette_mode=cassette_mode.value,
        approver=approver or usual.approver,
        prices=settings.prices,
        redact=redact,
        level=level,
        name=name,
    )
    if until_decided is not None:
        if engine != "local":
            raise UsageError("--until-decided makes its attempts on this machine", hint="leave out --engine")
        _until_decided(suite, agent, until_decided, budget or usual.budget, where, options, as_json)
        return
    with _progress(quiet=as_json) as step:
        made = run_suite(suite, agent=agent, store=where, options=options, progress=step, engine=engine)
    from seatrial.report.chapters import suite as chapter

    reused = f", {made.resumed} of {made.result.counts.n_planned} attempts made before" if made.resumed else ""
    title = f"{made.suite} by {made.agent}{reused}"
    sections = chapter.run(title, made.result, made.warnings)
    _write(sections, title, html, markdown)
    if as_json:
        about = {"url": engine, "worker_ids": made.worker_ids} if engine != "local" else None
        output.emit("run", made, data_version=made.data_version, warnings=made.warnings, engine=about)
    else:
        resumed = f", {made.resumed} of them made before" if made.resumed else ""
        for section in sections:
            output.show(section)
        output.console().print(f"Run {made.run}: {made.result.counts.n_planned} attempts{resumed}, kept in {where}")
    if not made.result.counts.n_scored:
        raise typer.Exit(3)


def _until_decided(
    suite: str, agent: str, baseline: str, budget: int, where: Path, options: RunOptions, as_json: bool
) -> None:
    from seatrial.flows.until_decided import run_until_decided
    from seatrial.gate.decision import exit_status
    from seatrial.gate.settings import GateSettings, checked
    from seatrial.settings import load

    settings = checked(load().part("gate", GateSettings))
    with _progress(quiet=as_json) as tally:
        found = run_until_decided(suite, baseline=baseline, candidate=agent, store=where, budget=budget,
                                  settings=settings, options=options, progress=tally)  # fmt: skip
    step = found.step
    if as_json:
        result = {"comparison": step.comparison, "looks": step.looks, "plan": found.plan.runs, "why": step.why,
                  "baseline": found.baseline, "candidate": found.candidate, "runs": found.runs}  # fmt: skip
        output.emit("run", result, warnings=step.comparison.warnings)
    else:
        from seatrial.report.chapters import gate as chapter

        for section in chapter.gate(step.comparison, baseline=found.baseline, candidate=found.candidate):
            output.show(section)
        output.console().print(f"Stopped after look {len(step.looks)} of {len(found.plan.runs)}, {found.runs} runs per "
                               f"task and agent: {step.why}.")  # fmt: skip
    status = exit_status(step.comparison, settings.on_inconclusive)
    if status:
        raise typer.Exit(status)


def _write(sections: Sequence[Section], title: str, html: Path | None, markdown: Path | None) -> None:
    if html is not None:
        from seatrial._version import __version__
        from seatrial.report import page

        text = page.page(sections, title=title, eyebrow="suite", version=__version__)
        output.write(html, text)
    if markdown is not None:
        from seatrial.report.markdown import section_lines

        lines = [line for section in sections for line in section_lines(section)]
        output.write(markdown, "\n".join(lines) + "\n")


def _list(where: Path, as_json: bool) -> None:
    from seatrial.flows import attempts
    from seatrial.report.chapters import suite as chapter
    from seatrial.store import Store

    opened = Store.open(where)
    rows = attempts.runs(opened).to_dicts()
    if as_json:
        output.emit("run", {"runs": rows}, data_version=opened.data_version)
    else:
        output.show(chapter.run_list(rows))


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[Tally], None] | None]:
    """A bar with what is done, what it cost so far and what remains; silent where stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=output.console(stderr=True), transient=True) as bar:
        made = bar.add_task("", total=None)

        def step(tally: Tally) -> None:
            left = "" if tally.left_s is None else f"{tally.left_s:.0f} s left, "
            cost = f"{tally.cost_usd:.2f} USD" + (f" and {tally.unpriced} unpriced" if tally.unpriced else "")
            passed = tally.statuses.get("passed", 0)
            bar.update(
                made,
                total=tally.total,
                completed=tally.done,
                description=f"{left}{cost}, {passed} passed",
                refresh=True,
            )

        yield step
