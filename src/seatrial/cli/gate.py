"""`seatrial gate` and `seatrial diff`: does this change make the agent worse, and what did it do differently?"""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial._version import __version__
from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption

if TYPE_CHECKING:
    from seatrial.flows.check import Checked
    from seatrial.gate.settings import GateSettings

MARKER = "<!-- seatrial-gate -->"
"""First line of the Markdown summary: by it a workflow finds the one comment that it updates."""


class Rule(enum.StrEnum):
    """How a metric is decided."""

    noninferiority = "noninferiority"
    point = "point"


class OnInconclusive(enum.StrEnum):
    """What INCONCLUSIVE does to the exit code."""

    passes = "pass"
    fails = "fail"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("gate")(gate)
    app.command("diff")(diff)


def gate(
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="A", help="A committed baseline, a results table, traces, or a stored run's name."),
    ] = None,
    candidate: Annotated[Path | None, typer.Option(metavar="B", help="The same of the candidate.")] = None,
    rule: Annotated[Rule | None, typer.Option(help="point: block on any drop beyond the margin, noise or not.")] = None,
    margin: Annotated[
        float | None,
        typer.Option(min=0.0001, max=0.9999, help="Drop that counts, as a share (default: settings, .02)."),
    ] = None,
    on_inconclusive: Annotated[
        OnInconclusive | None, typer.Option(help="Exit 0 with a warning (pass) or 3 (fail).")
    ] = None,
    must_pass: Annotated[
        list[str] | None, typer.Option(metavar="TASK", help="A case that fails alone; may be repeated.")
    ] = None,
    baseline_model: Annotated[str | None, typer.Option(help="The model to take where A holds several.")] = None,
    candidate_model: Annotated[str | None, typer.Option(help="The model to take where B holds several.")] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report page.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a summary for a pull request's comment.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write SARIF 2.1.0.")] = None,
    summary: Annotated[
        bool, typer.Option("--github-summary", help="Append the summary to $GITHUB_STEP_SUMMARY.")
    ] = False,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Remember this comparison; green ones propose tighter margins.")
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write the candidate to A as the committed baseline.")
    ] = False,
    accept_lost_rows: Annotated[
        bool, typer.Option("--accept-lost-rows", help="With --update-baseline: write it though rows cannot be used.")
    ] = False,
    reason: Annotated[str, typer.Option(help="With --update-baseline: why the new behaviour is right.")] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide whether a candidate is worse than its baseline: PASS, REVIEW, REGRESSION or INCONCLUSIVE.

    Exits 1 on REGRESSION, 3 on missing evidence (and on INCONCLUSIVE where asked to), else 0. Margins and policies
    are the [gate] table of seatrial.toml.

    Examples:

      seatrial gate --baseline baseline.json --candidate results.csv

      seatrial gate --baseline main/ --candidate pr/ --html gate.html --junit gate.xml

      seatrial gate --baseline baseline.json --candidate pr/ --update-baseline --reason "new refund policy"
    """
    from seatrial.errors import UsageError
    from seatrial.flows import check as flow
    from seatrial.settings import load

    settings = load()
    chosen = _settings(rule, margin, on_inconclusive, must_pass, history)
    a = baseline or (Path(chosen.baseline) if chosen.baseline else None)
    if a is None or candidate is None:
        raise UsageError("give --baseline A and --candidate B", hint="or name the baseline in the settings: [gate]")
    options = flow.CheckOptions(
        settings=chosen,
        baseline_model=baseline_model,
        candidate_model=candidate_model,
        format=None if format == "auto" else format,
        store=Path(store or settings.store),
        prices=settings.prices,
    )
    if update_baseline and not reason.strip():
        raise UsageError("a new baseline needs a reason", hint="--reason 'what changed, and why it is right'")
    if reason.strip() and not update_baseline:
        raise UsageError("--reason is of a new baseline", hint="add --update-baseline, or leave it out")
    if update_baseline and not a.exists():
        from seatrial.flows.runs_read import read_source

        source = read_source(candidate, model=candidate_model, format=options.format, store=options.store,
                             prices=options.prices)  # fmt: skip
        run = source.run
        flow.update_baseline(a, None, run, reason=reason, lost=() if accept_lost_rows else source.lost)
        _say_updated(a, as_json, {"verdict": None, "baseline": str(a), "cases": len(run.tasks)})
        return
    checked = flow.check(a, candidate, options)
    if chosen.history:
        flow.remember(Path(chosen.history), checked.comparison)
    if update_baseline:
        lost = () if accept_lost_rows else checked.lost
        flow.update_baseline(a, checked, checked.candidate, reason=reason, lost=lost)
    _write(checked, a, html=html, markdown=markdown, junit=junit, sarif=sarif, summary=summary)
    warnings = checked.comparison.warnings
    output.keep(store, "gate", checked.comparison, name=f"{candidate} against {a}", warnings=warnings)
    if as_json:
        output.emit("gate", checked.comparison, warnings=warnings)
    else:
        from seatrial.report.chapters import gate as chapter

        for section in chapter.gate(checked.comparison, baseline=str(a), candidate=str(candidate),
                                    proposals=_proposals(checked)):  # fmt: skip
            output.show(section)
        if checked.comparison.verdict == "INCONCLUSIVE":
            output.warn(f"INCONCLUSIVE: {checked.comparison.why}")
    if update_baseline:
        if not as_json:
            _say_updated(a, as_json, {})
        return
    if checked.exit_code:
        raise typer.Exit(checked.exit_code)


def _settings(
    rule: Rule | None, margin: float | None, on_inconclusive: OnInconclusive | None, must_pass: list[str] | None,
    history: Path | None,
) -> GateSettings:  # fmt: skip
    """The [gate] table with the command line's changes."""
    import msgspec

    from seatrial.errors import UsageError
    from seatrial.gate.settings import GateSettings, checked
    from seatrial.settings import load

    if any(not task.strip() for task in must_pass or ()):
        raise UsageError("--must-pass names no task", hint="--must-pass TASK, as the runs name it")
    own = load().part("gate", GateSettings)
    changes: dict[str, Any] = {
        "rule": rule.value if rule else None,
        "margin": margin,
        "on_inconclusive": on_inconclusive.value if on_inconclusive else None,
        "must_pass": (*own.must_pass, *must_pass) if must_pass else None,
        "history": str(history) if history else None,
    }
    return checked(msgspec.structs.replace(own, **{k: v for k, v in changes.items() if v is not None}))


def _proposals(checked: Checked) -> list[str]:
    return [
        f"{p.metric}: margin {p.margin:g} could be {p.proposed:g}, by the last {p.n_runs} green runs"
        for p in checked.proposals
    ]


def _write(
    checked: Checked, baseline: Path, *, html: Path | None, markdown: Path | None, junit: Path | None,
    sarif: Path | None, summary: bool,
) -> None:  # fmt: skip
    from seatrial.flows.check import safety
    from seatrial.report import junit as as_junit
    from seatrial.report import page
    from seatrial.report import sarif as as_sarif
    from seatrial.report.chapters import gate as chapter

    c = checked.comparison
    sections = chapter.gate(c, baseline=checked.baseline.label, candidate=checked.candidate.label,
                            proposals=_proposals(checked))  # fmt: skip
    if html is not None:
        import msgspec

        data = msgspec.json.format(msgspec.json.encode(c), indent=1).decode()
        output.write(html, page.page(sections, title=f"Gate: {c.verdict}", eyebrow="baseline against candidate",
                                     version=__version__, data=data))  # fmt: skip
    if markdown is not None or summary:
        text = as_markdown(sections)
        if markdown is not None:
            output.write(markdown, text)
        target = os.environ.get("GITHUB_STEP_SUMMARY") if summary else None
        if target:
            output.write(Path(target), text, append=True)
        elif summary:
            output.warn("GITHUB_STEP_SUMMARY is not set, so there is no step summary")
    if junit is not None:
        output.write(junit, as_junit.junit(c))
    if sarif is not None:
        file = os.path.relpath(baseline) if baseline.exists() else "seatrial.toml"
        output.write(sarif, as_sarif.sarif(c, file=file, safety=safety(checked.candidate)))


def as_markdown(sections: Any) -> str:
    """The sections as one comment body, found again by its first line."""
    from seatrial.report import markdown, numbers

    lines = [MARKER, ""]
    for section in sections:
        lines.extend(markdown.section_lines(section))
    return numbers.plain_minus("\n".join(lines).strip() + "\n")


def _say_updated(path: Path, as_json: bool, result: dict[str, Any]) -> None:
    if as_json:
        output.emit("gate", result)
    else:
        sys.stdout.write(f"Baseline written: {path}. Commit it, so that a pull request reviews it.\n")


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="Traces of the baseline, or a stored run's name.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same of the candidate.")],
    task: Annotated[str | None, typer.Option(help="The task; none: the one that got worse most.")] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write Markdown.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what two runs of one task did differently: aligned steps, the first divergence, what followed.

    A passing run of A is compared with the failing run of B that is most like it.

    Examples:

      seatrial diff main/ pr/ --task refund-17

      seatrial diff before.json after.json --html diff.html
    """
    from seatrial.flows import check as flow
    from seatrial.settings import load

    where = Path(store or load().store)
    found = flow.diff(a, b, task=task, format=None if format == "auto" else format, store=where)
    from seatrial.report.chapters import gate as chapter

    section = chapter.diff(found, task=str(found["task"]))
    if html is not None:
        from seatrial.report import page

        output.write(html, page.page([section], title="What the agent did differently", version=__version__))
    if markdown is not None:
        output.write(markdown, as_markdown([section]))
    output.keep(store, "diff", found, name=f"{found['task']}: {b} against {a}")
    if as_json:
        output.emit("diff", found)
        return
    output.show(section)
