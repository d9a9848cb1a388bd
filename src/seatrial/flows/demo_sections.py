"""What the demo adds to a ranking's report: the planted truth, the gate's verdicts, two scorecards,
the detectors' accuracy, and who was at work."""

from __future__ import annotations

from seatrial.examples import habits
from seatrial.flows import demo_gate, demo_recovery, demo_scorecard
from seatrial.flows.demo_result import DemoRun
from seatrial.flows.planted import SUCCESS
from seatrial.report import numbers
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table


def sections(demo: DemoRun) -> tuple[Section, ...]:
    """The demo's own sections, in reading order."""
    scored = demo_scorecard.section(demo.scorecard, demo.folder / "scorecard")
    return (
        _truth(demo),
        demo_gate.section(demo.gate),
        demo_recovery.section(demo.recovery),
        scored,
        _detectors(demo),
        _fleet(),
    )


def _truth(demo: DemoRun) -> Section:
    outcome = demo.ranking.outcome
    rows, marks = [], []
    inside = known = 0
    order = sorted(demo.truth.agents, key=lambda name: -demo.truth.agents[name][SUCCESS].net)
    estimates = {row.model: row for row in demo.ranking.models}
    for place, name in enumerate(order, 1):
        values = demo.truth.agents[name]
        true, row = values.get(outcome), estimates.get(name)
        estimate = row.net_improvement if row else None
        covered = None
        if true and estimate and estimate.low is not None and estimate.high is not None:
            covered = estimate.low <= true.net <= estimate.high
            known, inside = known + 1, inside + covered
        here = demo.here.get(name, {}).get(outcome)
        rows.append(
            (
                name,
                numbers.number(true.net if true else None, "points"),
                numbers.number(here, "points"),
                numbers.estimate(estimate, "points"),
                {True: "inside", False: "outside", None: None}[covered],
                str(place),
                numbers.rank(row.rank if row else None),
                numbers.number(values[SUCCESS].mean, "percent"),
            )
        )
        marks.append(
            Mark(
                label=name,
                value=estimate.value if estimate else None,
                low=estimate.low if estimate else None,
                high=estimate.high if estimate else None,
                other=true.net if true else None,
                why=None if estimate else "not ranked",
            )
        )
    verdict = "recovered" if demo.order_recovered else "not recovered"
    agreement = "" if demo.agreement is None else (
        f" A session whose jobs all came out right scores above one whose jobs did not with probability "
        f"{numbers.number(demo.agreement)} (0.5 would be useless, 1 perfect)."
    )  # fmt: skip
    return Section(
        heading="The truth that was planted",
        place="answer",
        paragraphs=(
            f"The planted order of the {len(order)} agents is {verdict}; {inside} of {known} planted values lie inside "
            f"their interval.",
            "Planted: the difference that true labels give when every agent works the same sessions, by simulation. "
            "True labels: these very sessions, scored from what the users meant. Estimate: what the ranking made of "
            "the logs alone. The step from planted to true labels is chance; the step from there to the estimate is "
            f"what the detectors misread.{agreement}",
        ),
        charts=(
            Chart(
                title="Estimate and planted truth",
                description="Net improvement of each agent in points, with its interval, and the planted value.",
                panels=(Panel(marks=tuple(marks), unit="points", zero=0.0),),
                legend=(("value", "estimate"), ("interval", "its interval"), ("other", "planted truth")),
                less="worse than the average agent",
                more="better",
            ),
        ),
        tables=(
            Table(
                caption="Net improvement in points of the headline outcome",
                columns=(
                    Column(head="agent", name=True),
                    Column(head="planted", right=True),
                    Column(head="true labels", right=True),
                    Column(head="estimate", right=True),
                    Column(head="planted is"),
                    Column(head="true place", right=True),
                    Column(head="rank", right=True),
                    Column(head="jobs done right", right=True),
                ),
                rows=tuple(rows),
            ),
        ),
    )


def _detectors(demo: DemoRun) -> Section:
    rows = tuple(
        (
            kind.replace("_", " "),
            numbers.count(found.n_meant),
            numbers.estimate(found.recall, "percent"),
            numbers.count(found.n_found),
            numbers.estimate(found.precision, "percent"),
        )
        for kind, found in demo.detectors.items()
    )
    return Section(
        heading="How well the users were understood",
        paragraphs=(
            "The users' sentences were written without sight of the detectors' word lists. Recall: of the turns that "
            "meant it, the share that was detected. Precision: of the turns where it was detected, the share that "
            "meant it. Intervals allow for users as clusters.",
        ),
        tables=(
            Table(
                caption="Detection of what users meant, by kind, over all of their turns",
                columns=(
                    Column(head="kind"),
                    Column(head="meant", right=True),
                    Column(head="recall", right=True),
                    Column(head="detected", right=True),
                    Column(head="precision", right=True),
                ),
                rows=rows,
            ),
        ),
    )


def _fleet() -> Section:
    return Section(
        heading="Who was at work",
        folded=True,
        paragraphs=(
            "Scripted agents in a built-in workspace. Their habits make them act well or badly; whether a job came out "
            "right is read from the world. Users do not know which agent they have.",
        ),
        items=tuple(f"{profile.name}: {profile.about}" for profile in habits.FLEET),
    )
