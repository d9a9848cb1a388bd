"""`seatrial demo`: the whole main job, offline, on a built-in fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption

if TYPE_CHECKING:
    from seatrial.flows.demo_result import DemoRun


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("demo")(demo)


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where sessions and the report are written.")
    ] = Path("seatrial-demo"),
    sessions: Annotated[int, typer.Option(min=100, help="How many sessions the fleet works.")] = 1_000,
    seed: SeedOption = 7,
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Run the main job offline in about a minute: agents work, users react, the fleet is ranked.

    Four built-in agents of different, documented quality work in a built-in world with simulated users; arms
    are drawn by `seatrial assign`; their sessions are written as Claude Code logs, read back and ranked like
    anyone's; the planted truth is printed beside the estimate. Then the gate compares an agent with its own
    baseline, unchanged and with one tool's description taken away, and a scorecard tells two agents apart that
    complete the same share of their tasks.

    Example: seatrial demo --out my-demo
    """
    from seatrial.flows.demo import STORE, run

    with output.progress(quiet=as_json) as step:
        result = run(out, sessions=sessions, seed=seed, level=level, progress=step)
    keep(str(out / STORE), result)
    if as_json:
        output.emit("demo", result.summary(), data_version=result.data_version, warnings=result.ranking.warnings)
        return
    from seatrial.report import terminal

    screen = output.console()
    for part in terminal.ranking(result.ranking, result.sections):
        screen.print(part)
    screen.print(f"Report: {result.report}")
    screen.print(f"In the browser, down to the sentences (extra web): seatrial view --store {out / STORE}")


def keep(store: str, made: DemoRun) -> None:
    """Leave what was found in the demo's store, as the commands that it stands for would."""
    contrast, router, cards = made.recovery.contrast, made.recovery.router, made.scorecard
    output.keep(store, "recover contrast", contrast, name="the demo's homes", warnings=contrast.warnings)
    output.keep(store, "recover fit", router, name="the demo's homes")
    title = " and ".join(card.agent for card in cards.cards)
    output.keep(store, "scorecard", cards.summary(), name=title, data_version=cards.data_version)
    for what, found in (("unchanged", made.gate.unchanged), ("broken", made.gate.broken)):
        output.keep(store, "gate", found, name=f"reception-{what} against reception-baseline")
    output.keep(store, "rank", made.ranking, name="by model", data_version=made.data_version,
                warnings=made.ranking.warnings)  # fmt: skip
