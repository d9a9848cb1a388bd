"""`seatrial recover branch`: an agent in a world, branched with and without recovery, to a pairs table."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, KeepOption, SeedOption

if TYPE_CHECKING:
    from seatrial.flows.branch import Branching
    from seatrial.recovery.plan import Forecast


class Mode(enum.StrEnum):
    """How a branch comes back to the state where the reference run stood."""

    snapshot = "snapshot"
    replay = "replay"
    fork = "fork"


def branch(
    world: Annotated[
        str, typer.Argument(metavar="WORLD", help="alfworld:FOLDER, or python:module:function that gives a source.")
    ],
    agent: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="by-sight, by-deed or wanderer (scripted, for ALFWorld), react:MODEL@URL, or any agent SPEC of run.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The pairs table: .csv, .csv.gz or .parquet.")],
    shards: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where finished tasks are kept (default: FILE.shards).")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Draw so many tasks (default: all).")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    conditions: Annotated[str, typer.Option(help="What the agent is shown.")] = "clean,stale-1,stale-2,missing",
    operations: Annotated[str, typer.Option(help="refresh, ablated-refresh, replan; several with commas.")] = "refresh",
    delays: Annotated[str, typer.Option(help="Actions between the altered observation and the branch.")] = "0,1,2,4",
    replays: Annotated[int, typer.Option(min=1, help="Continuations per branch, for agents that draw.")] = 1,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Fresh draws after the branch even with one continuation.")
    ] = False,
    max_actions: Annotated[int, typer.Option(min=1, help="The agent's limit of actions.")] = 50,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of the factual run before it.")] = 0.25,
    mode: Annotated[Mode, typer.Option(help="How a branch comes back to its state.")] = Mode.snapshot,
    cohort: Annotated[str | None, typer.Option(help="Written in the table, e.g. fit or test.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Time one task, say what all will take, and stop.")
    ] = False,
    seed: SeedOption = 0,
    store: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Branch an agent's runs with and without recovery from one saved state, and write the pairs.

    What it will take is said first. A run that was killed goes on where it was; so does one with more tasks.

    Example: seatrial recover branch alfworld:games/valid_unseen --agent by-sight --out pairs.csv.gz --max-actions 35
    """
    from seatrial.flows import branch as flow
    from seatrial.recovery.plan import Plan

    plan = Plan(
        world=world,
        agent=agent,
        tasks=(),
        conditions=_words(conditions),
        operations=_words(operations),
        delays=_numbers(delays),
        replays=replays,
        redraw=redraw,
        mode=mode.value,
        share=share,
        max_actions=max_actions,
        seed=seed,
        cohort=cohort,
    )
    plan = flow.plan_of(plan, tasks=task or (), sample=sample)
    folder = shards if shards is not None else out.with_name(out.name + ".shards")
    with output.progress(quiet=as_json) as step:
        found = flow.branch(
            plan, folder, out=out, workers=workers, dry=dry_run, foresee=_foresee, progress=step
        )  # fmt: skip
    output.keep(store, "recover branch", found, name=out.name)
    if as_json:
        output.emit("recover branch", found)
        return
    _tell(found)


def _foresee(f: Forecast) -> None:
    """On stderr, before the work."""
    hours = f.core_hours
    takes = "" if hours is None else f", about {hours:.2g} core-hours, {f.eta_hours:.2g} h at {f.workers} processes"
    sys.stderr.write(f"{f.tasks} tasks, {f.done} done; up to {f.branches:,} branches to go{takes}\n")
    sys.stderr.flush()


def _tell(found: Branching) -> None:
    from seatrial.report.section import Column, Section, Table

    success = "-" if found.clean_success is None else f"{found.clean_success:.1%}"
    actions = "-" if found.actions is None else f"{found.actions:.1f}"
    table = Table(
        caption="What the branching took and gave",
        columns=(Column(head="What"), Column(head="Number", right=True)),
        rows=(
            ("tasks", f"{found.tasks}"),
            ("skipped", f"{len(found.skipped)}"),
            ("branches carried out", f"{found.branches:,}"),
            ("core-hours", f"{found.core_hours:.3g}"),
            ("success without any of it", success),
            ("actions of such a run", actions),
            ("pairs", f"{found.pairs:,}"),
            ("of them carried forward: the run had ended", f"{found.terminated:,}"),
            ("placebo pairs, both without recovery", f"{found.placebo:,}"),
            ("placebo pairs that differ", f"{found.discordant:,}"),
        ),
    )
    where = f"Written to {found.file}." if found.file else "Nothing written: this was a dry run."
    output.show(Section(heading="Branches", paragraphs=(where,), tables=(table,)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(w.strip() for w in text.split(",") if w.strip())


def _numbers(text: str) -> tuple[int, ...]:
    from seatrial.errors import UsageError

    try:
        return tuple(int(w) for w in _words(text))
    except ValueError:
        raise UsageError(f"--delays {text!r} are no whole numbers", hint="write e.g. 0,1,2,4") from None
