"""A fitted router and its trial to sections: the certificate, the frontier, the policies, and when a router acts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.records import Evaluation, PolicyRow, RouterFit
from seatrial.report import numbers
from seatrial.report.section import Chart, Column, Curve, Mark, Panel, Plot, Section, Table
from seatrial.report.text import clean, name

ALL, ROUTER, CIR = "all", "router", "cir"
SHOWN_RULES = 12


def fit(f: RouterFit) -> tuple[Section, ...]:
    """All sections on a fitted router."""
    return (_router(f), *_frontier(f))


def _router(f: RouterFit) -> Section:
    c = f.certificate
    if c is None:
        says = f"Tuned to harm at most {numbers.number(f.limit, 'percent')} of clean tasks; nothing certifies it."
    elif c.feasible:
        says = (
            f"Certified: with {numbers.level(c.confidence)} confidence it harms at most "
            f"{numbers.number(c.limit, 'percent')} of clean tasks ({c.harms:g} of {c.n_clean} in tasks that it had "
            "not seen)."
        )
    else:
        says = (
            f"Not certified: a limit of {numbers.number(c.limit, 'percent')} at {numbers.level(c.confidence)} "
            f"takes {c.need} clean tasks without harm, and there are {c.n_clean}. The router never acts."
        )
    thresholds = tuple((k, numbers.anything(v)) for k, v in sorted(f.thresholds.items()))
    return Section(
        heading=f"A router for {name(f.operation)}",
        paragraphs=(
            says,
            f"Fitted on {numbers.count(f.n_fit)} tasks ({f.folds} folds by task), certified on "
            f"{numbers.count(f.n_certify)} others. Out of fold it gains {numbers.number(f.gain, 'points')} points on "
            f"altered observations, harms {numbers.number(f.harm, 'size')} points of clean ones, and acts in "
            f"{numbers.number(f.rate, 'percent')} of episodes, after {numbers.join([str(d) for d in f.delays])} "
            "actions.",
        ),
        tables=(
            Table(
                caption="Thresholds",
                columns=(Column(head="threshold"), Column(head="value", right=True)),
                rows=thresholds,
            ),
        )
        if thresholds
        else (),
        items=tuple(clean(w) for w in f.warnings),
        notes=(f"features: {', '.join(name(x) for x in f.features)}",),
        place="answer",
        key="router",
    )


def _frontier(f: RouterFit) -> Iterable[Section]:
    if not f.frontier:
        return ()
    chosen = next((r for r in f.frontier if r.chosen), None)
    chart = Chart(
        title="Gain against harm",
        description="Each point of the line is a threshold of the router, out of fold on the fitting tasks: harm to "
        "clean tasks across, gain on altered observations upwards. The dot is the chosen threshold, the upright line "
        "the limit.",
        plot=Plot(
            x="harm to clean tasks, points",
            y="gain on altered observations, points",
            curves=(Curve(label="thresholds", points=tuple((100 * r.harm, 100 * r.gain) for r in f.frontier)),),
            dots=((("chosen", 100 * chosen.harm, 100 * chosen.gain),) if chosen else ()),
            limit=100 * f.limit,
        ),
    )
    step = max(1, len(f.frontier) // SHOWN_RULES)
    shown = [r for i, r in enumerate(f.frontier) if i % step == 0 or r.chosen]
    head = (
        Column(head="acts in", right=True),
        Column(head="gain", right=True),
        Column(head="harm", right=True),
        Column(head="certify harms", right=True),
        Column(head="p of harm > limit", right=True),
        Column(head=""),
    )
    rows = tuple(
        (
            numbers.number(r.rate, "percent"),
            numbers.number(r.gain, "points"),
            numbers.number(r.harm, "size"),
            None if r.certify_harms is None else f"{r.certify_harms:.3g}",
            numbers.p_value(r.p_value),
            " ".join(filter(None, ("certified" if r.certified else "", "chosen" if r.chosen else ""))) or "-",
        )
        for r in shown
    )
    return (
        Section(
            heading="Gain against harm",
            charts=(chart,),
            tables=(
                Table(caption="Some of the rules, in the order in which they were tested", columns=head, rows=rows),
            ),
            key="frontier",
        ),
    )


def evaluation(e: Evaluation) -> tuple[Section, ...]:
    """All sections on a trial of policies on held-out tasks."""
    return (_verdict(e), *(_policies(e, c) for c in _groups(e)), _when(e))


def _groups(e: Evaluation) -> list[str]:
    found = list(dict.fromkeys(r.condition for r in e.rows))
    return [ALL, *(c for c in found if c != ALL)]


def _verdict(e: Evaluation) -> Section:
    rows = [r for r in e.rows if r.condition == ALL]
    chart = Chart(
        title="Gain over never acting, all conditions alike",
        description="One row per policy: gain in success over never acting, with its interval; oracle is an upper "
        "bound that knows both outcomes.",
        panels=(
            Panel(
                marks=tuple(
                    Mark(
                        label=r.policy,
                        value=r.gain.value if r.gain else None,
                        low=r.gain.low if r.gain else None,
                        high=r.gain.high if r.gain else None,
                        text=numbers.number(r.gain.value if r.gain else None, "points"),
                    )
                    for r in rows
                    if r.policy != "never"
                ),
                unit="points",
                zero=0.0,
            ),
        ),
        less="worse than never",
        more="better",
        legend=(("value", "gain"), ("interval", f"{numbers.level(e.level)} interval")),
    )
    return Section(
        heading="Which policy is worth deploying?",
        paragraphs=(
            clean(e.answer),
            f"Routers were fitted on {numbers.count(e.n_fit)} tasks and tried on {numbers.count(e.n_test)} others, "
            f"whose outcomes nothing was chosen by. Operation {name(e.operation)}, decision points after "
            f"{numbers.join([str(d) for d in e.delays])} actions.",
        ),
        charts=(chart,),
        items=tuple(clean(w) for w in e.warnings),
        place="answer",
        key="policies",
    )


def _policies(e: Evaluation, condition: str) -> Section:
    rows = [r for r in e.rows if r.condition == condition]
    mix = e.mixes.get(condition)
    title = "All conditions alike" if condition == ALL else f"Mix: {condition}" if mix else f"Condition: {condition}"
    head = (
        Column(head="policy", name=True),
        Column(head="success", right=True),
        Column(head="gain", right=True),
        Column(head="rescue", right=True),
        Column(head="harm", right=True),
        Column(head="harm at most", right=True),
        Column(head="acts in", right=True),
        Column(head="router minus it", right=True),
    )
    ours = next((r for r in rows if r.policy == ROUTER), None)
    body = tuple(
        (
            r.policy,
            numbers.number(r.success.value if r.success else None, "percent"),
            _gain(r),
            numbers.number(r.rescue, "size", 2),
            numbers.number(r.harm, "size", 2),
            numbers.number(r.harm_upper, "size"),
            numbers.number(r.intervention_rate, "percent"),
            numbers.stacked(ours.versus.get(r.policy), "points") if ours is not None and r is not ours else None,
        )
        for r in rows
    )
    shares = ", ".join(f"{name(c)} {numbers.number(s, 'percent')}" for c, s in mix.items()) if mix else ""
    return Section(
        heading=name(title),
        tables=(Table(caption=f"{numbers.count(rows[0].n)} episodes", columns=head, rows=body),),
        notes=tuple(
            filter(
                None,
                (
                    f"shares: {shares}" if shares else "",
                    "points, with intervals over tasks; 'harm at most' is the one-sided 95% bound",
                    _robust(rows),
                ),
            )
        ),
        folded=condition != ALL,
    )


def _gain(r: PolicyRow) -> str | None:
    """A plain 0 where the policy never acts and there is nothing to estimate."""
    e = r.gain
    return "0" if e is not None and e.value == e.low == e.high == 0.0 else numbers.stacked(e, "points")


def _robust(rows: Sequence[PolicyRow]) -> str:
    apart = [r for r in rows if r.gain and r.doubly_robust and abs(r.gain.value - r.doubly_robust.value) > 1e-9]
    if not apart:
        return "every pair was run, so the doubly robust gain equals the paired gain"
    told = ", ".join(f"{name(r.policy)} {numbers.estimate(r.doubly_robust, 'points')}" for r in apart)
    return f"doubly robust gain, a model standing in for pairs that were not run: {told}"


def _when(e: Evaluation) -> Section:
    conditions = [c for c in _groups(e) if c != ALL and c not in e.mixes]
    policies = [p for p in dict.fromkeys(r.policy for r in e.rows) if p in (ROUTER, CIR, "router certified")]
    found = {(r.policy, r.condition): r for r in e.rows}
    head = (
        Column(head="policy", name=True),
        Column(head="condition", name=True),
        *(Column(head=f"after {d}", right=True) for d in e.delays),
        Column(head="never", right=True),
    )
    rows, heat = [], []
    for policy in policies:
        for condition in conditions:
            r = found[policy, condition]
            shares = [r.delays[str(d)] for d in e.delays]
            shares.append(1.0 - sum(shares))
            rows.append((policy, condition, *(numbers.number(s, "percent") for s in shares)))
            heat.append((None, None, *shares))
    return Section(
        heading="When does the router act?",
        tables=(
            Table(
                caption="Share of episodes by the delay at which it acts",
                columns=head,
                rows=tuple(rows),
                heat=tuple(heat),
                grouped=True,
            ),
        ),
        key="timing",
    )
