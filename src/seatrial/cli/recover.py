"""`seatrial recover`: is a recovery action worth it, and when? Pairs, rescue and harm, a router, its trial."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial._version import __version__
from seatrial.cli import output
from seatrial.cli.output import JsonOption, KeepOption, LevelOption, SeedOption
from seatrial.cli.recover_branch import branch

if TYPE_CHECKING:
    from seatrial.flows.recover import Choice
    from seatrial.recovery.fit import FitOptions
    from seatrial.report.section import Section


class Learner(enum.StrEnum):
    """How a router is learnt."""

    direct = "direct"
    cir = "cir"


PairsArgument = Annotated[Path, typer.Argument(metavar="PAIRS", help="A pairs table: CSV, JSON, JSON lines, Parquet.")]
AgentOption = Annotated[str | None, typer.Option(help="The agent to take where the table has several.")]
CohortOption = Annotated[list[str] | None, typer.Option(help="A cohort to take; may be repeated (default: all).")]
FitCohortOption = Annotated[
    list[str] | None, typer.Option(help="A cohort to fit on; may be repeated (default: all that are not held out).")
]
OperationOption = Annotated[str, typer.Option(help="The recovery operation to decide on.")]
DelaysOption = Annotated[str, typer.Option(help="Decision points: actions after the altered observation.")]
FeaturesOption = Annotated[str | None, typer.Option(metavar="A,B,C", help="Feature columns (default: all).")]
LimitOption = Annotated[float, typer.Option(min=0.0001, max=0.9999, help="Limit on harm to clean tasks, as a share.")]
ConfidenceOption = Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the certificate.")]
CostOption = Annotated[float, typer.Option(min=0.0, help="What an intervention costs, in units of the outcome.")]
LambdaOption = Annotated[float, typer.Option("--lambda", min=0.0, help="CIR's weight of harm.")]
FoldsOption = Annotated[int, typer.Option(min=2, help="Folds by task for out-of-fold thresholds.")]
HtmlOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report page.")]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Rescue and harm of recovery, and a router that limits the harm.", no_args_is_help=True)
    group.command("branch")(branch)
    group.command("contrast")(contrast)
    group.command("fit")(fit)
    group.command("evaluate")(evaluate)
    app.add_typer(group, name="recover")


def contrast(
    pairs: PairsArgument,
    agent: AgentOption = None,
    cohort: CohortOption = None,
    html: HtmlOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    store: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """What an operation rescues and harms: four cells, effects with intervals, the placebo floor, timing, overlap.

    Example: seatrial recover contrast pairs.csv --html recovery.html
    """
    from seatrial.flows import recover as flow

    found = flow.contrast(pairs, flow.Choice(agent=agent, cohorts=tuple(cohort or ())), level=level, seed=seed)
    output.keep(store, "recover contrast", found, name=pairs.name, warnings=found.warnings)
    from seatrial.report.chapters import recovery

    sections = recovery.contrast(found)
    _page(html, sections, found, "What does recovery rescue, and what does it harm?")
    _say("recover contrast", found, sections, found.warnings, as_json)


def fit(
    pairs: PairsArgument,
    operation: OperationOption = "refresh",
    delays: DelaysOption = "1,2,4",
    learner: Annotated[Learner, typer.Option(help="direct: ours; cir: the published router.")] = Learner.direct,
    limit: LimitOption = 0.02,
    confidence: ConfidenceOption = 0.95,
    certify: Annotated[
        bool, typer.Option("--certify/--no-certify", help="Certify the limit on untouched tasks, or only tune to it.")
    ] = True,
    certify_cohort: Annotated[
        list[str] | None, typer.Option(help="A cohort to certify on; may be repeated (default: part of the tasks).")
    ] = None,
    cost: CostOption = 0.0,
    lam: LambdaOption = 2.0,
    folds: FoldsOption = 5,
    features: FeaturesOption = None,
    agent: AgentOption = None,
    cohort: FitCohortOption = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the router here, as JSON.")] = None,
    html: HtmlOption = None,
    seed: SeedOption = 0,
    store: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a router: when is the operation worth it, with a certified limit on the harm it does to clean tasks?

    A limit of 2% takes 149 clean tasks without harm that the fit did not use, 5% takes 59, 1% takes 299. Where there
    are too few the router never acts, and the answer says so.

    Examples:

      seatrial recover fit pairs.csv --out router.json

      seatrial recover fit pairs.csv --limit 0.05 --features consistency,novelty --html router.html
    """
    from seatrial.flows import recover as flow

    options = _fit_options(learner.value, limit, confidence, certify, cost, lam, folds, seed)
    run = flow.fit_router(pairs, _choice(operation, delays, features, agent, cohort), options,
                          certify=tuple(certify_cohort or ()))  # fmt: skip
    record = run.fitted.record
    if out is not None:
        output.write(out, run.fitted.router.to_json() + "\n")
    output.keep(store, "recover fit", record, name=pairs.name, warnings=run.warnings)
    from seatrial.report.chapters import router

    sections = router.fit(record)
    _page(html, sections, record, f"When is a {operation} worth it?")
    _say("recover fit", record, sections, run.warnings, as_json)


def evaluate(
    pairs: PairsArgument,
    operation: OperationOption = "refresh",
    delays: DelaysOption = "1,2,4",
    test_cohort: Annotated[
        list[str] | None, typer.Option(help="A held-out cohort; may be repeated (default: test or unseen).")
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Without such a cohort: share of tasks held out at random.")
    ] = 0.4,
    router: Annotated[Path | None, typer.Option(metavar="FILE", help="A fitted router to try besides.")] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARES", help="Shares of conditions, e.g. clean=0.9; may be repeated."),
    ] = None,
    limit: LimitOption = 0.02,
    confidence: ConfidenceOption = 0.95,
    cost: CostOption = 0.0,
    lam: LambdaOption = 2.0,
    folds: FoldsOption = 5,
    features: FeaturesOption = None,
    agent: AgentOption = None,
    cohort: FitCohortOption = None,
    html: HtmlOption = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    store: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try policies on held-out tasks: never, always, anomaly, CIR, our router tuned and certified, and an upper bound.

    Examples:

      seatrial recover evaluate pairs.csv --held-out 0.4

      seatrial recover evaluate pairs.csv --test-cohort unseen --mix clean=0.95 --html trial.html
    """
    from seatrial.flows import recover as flow
    from seatrial.recovery.evaluate import EvaluateOptions

    options = EvaluateOptions(
        fit=_fit_options("direct", limit, confidence, True, cost, lam, folds, seed),
        mixes=flow.parse_mixes(mix or ()), level=level, seed=seed,
    )  # fmt: skip
    run = flow.try_policies(pairs, _choice(operation, delays, features, agent, cohort), options,
                            test=tuple(test_cohort or ()), held_out=held_out, router=router)  # fmt: skip
    found = run.evaluation
    output.keep(store, "recover evaluate", found, name=pairs.name, warnings=run.warnings)
    from seatrial.report.chapters import router as chapter

    sections = chapter.evaluation(found)
    _page(html, sections, found, "Which recovery policy is worth deploying?")
    _say("recover evaluate", found, sections, run.warnings, as_json)


def _choice(
    operation: str, delays: str, features: str | None, agent: str | None, cohort: Sequence[str] | None
) -> Choice:
    from seatrial.errors import UsageError
    from seatrial.flows.recover import Choice

    try:
        points = tuple(int(d) for d in delays.split(","))
    except ValueError:
        raise UsageError(f"--delays takes whole numbers, not {delays!r}", hint="--delays 1,2,4") from None
    if min(points) < 0:
        raise UsageError("delays are at least 0")
    names = tuple(f.strip() for f in features.split(",") if f.strip()) if features is not None else None
    return Choice(agent=agent, cohorts=tuple(cohort or ()), operation=operation, delays=points, features=names)


def _fit_options(
    learner: str, limit: float, confidence: float, certify: bool, cost: float, lam: float, folds: int, seed: int
) -> FitOptions:
    from seatrial.recovery.fit import FitOptions

    return FitOptions(learner="cir" if learner == "cir" else "direct", limit=limit, confidence=confidence,
                      certified=certify, cost=cost, lam=lam, folds=folds, seed=seed)  # fmt: skip


def _page(html: Path | None, sections: Sequence[Section], result: Any, title: str) -> None:
    if html is None:
        return
    import msgspec

    from seatrial.report import page

    data = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
    output.write(html, page.page(sections, title=title, eyebrow="recovery", version=__version__, data=data))


def _say(command: str, result: Any, sections: Sequence[Section], warnings: Sequence[str], as_json: bool) -> None:
    if as_json:
        output.emit(command, result, warnings=warnings)
        return
    for section in sections:
        if section.only != "page":
            output.show(section)
