"""The demo: agents work, users react, arms are drawn by the public assigner, and the public flow ranks the logs; then
the public gate watches an agent that is broken, and the public scorecard tells two agents apart.

Nothing in the ranking knows where its input came from. What was planted is printed beside the estimate.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from seatrial import causal, scoring
from seatrial._version import __version__
from seatrial.errors import InputError
from seatrial.examples import fleet, habits, truth
from seatrial.examples.fleet import Plan, Worked
from seatrial.flows import demo_gate, demo_recovery, demo_scorecard, demo_sections, planted
from seatrial.flows.demo_recovery import RecoveryDemo
from seatrial.flows.demo_result import Accuracy, DemoRun, GateDemo
from seatrial.flows.planted import SUCCESS, Planted, Value
from seatrial.flows.rank import RankOptions, rank_paths
from seatrial.flows.scorecard import Scored
from seatrial.records import Estimate, Ranking
from seatrial.stats import auc, clustered_proportion
from seatrial.store import Store

ProgressFn = Callable[[int, int | None, str], None]
MARKER = "seatrial-demo.json"
SESSIONS, ASSIGNMENTS, STORE, GATE, REPORT = "sessions", "assignments.csv", "store", "gate", "report.html"
SCORECARD = "scorecard"


def run(
    out: Path,
    *,
    sessions: int = 1_000,
    seed: int = 7,
    level: float = 0.95,
    draws: int = 9_999,
    workers: int | None = None,
    progress: ProgressFn | None = None,
) -> DemoRun:
    """Make `sessions` sessions under `out` and rank their agents as anybody's; then gate an agent in ``out/gate``,
    and score two in ``out/scorecard``.

    An earlier demo in `out` is replaced.

    Raises:
        InputError: `out` holds something that is not an earlier demo, or cannot be written.
    """
    _make_room(out)
    made = make_sessions(out, sessions=sessions, seed=seed, progress=progress)
    Store.open(out / STORE, create=True)
    ranked = rank_paths(
        [out / SESSIONS],
        options=RankOptions(level=level, seed=seed, draws=draws),
        assignments=out / ASSIGNMENTS,
        store=out / STORE,
        workers=workers,
        progress=progress,
    )
    gated = demo_gate.run(out / GATE, seed=seed, progress=progress)
    recovered = demo_recovery.run(seed=seed, progress=progress)
    scored = demo_scorecard.run(out / SCORECARD, seed=seed, progress=progress)
    demo = _compare(out, ranked.ranking, ranked.data_version, made, level, gated, recovered, scored)
    _write_report(demo)
    return demo


def make_sessions(out: Path, *, sessions: int, seed: int, progress: ProgressFn | None = None) -> tuple[Worked, ...]:
    """Plan sessions, draw their arms, and let the fleet work them: logs in ``out/sessions``, the assignment record
    in ``out/assignments.csv``. What the demo ranks, and anyone may."""
    out.mkdir(parents=True, exist_ok=True)
    plans = fleet.plan(sessions, seed)
    drawn = _assign(plans, out / ASSIGNMENTS, seed)

    def worked(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, "agents at work")

    return fleet.generate(out / SESSIONS, plans, drawn, progress=worked)


def _make_room(out: Path) -> None:
    try:
        if out.exists() and any(out.iterdir()):
            if not (out / MARKER).is_file():
                raise InputError(
                    "the folder is not empty and holds no earlier demo", hint="give another --out", file=str(out)
                )
            for name in (SESSIONS, STORE, GATE, SCORECARD):
                shutil.rmtree(out / name, ignore_errors=True)
            for name in (ASSIGNMENTS, REPORT):
                (out / name).unlink(missing_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).write_text(f'{{"seatrial": "{__version__}"}}\n', encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write here: {error.strerror}", hint="give another --out", file=str(out)) from None


def _assign(plans: Sequence[Plan], record: Path, seed: int) -> dict[str, str]:
    """Draw every session's arm with the public assigner, in time order, and write the record before any begins.

    The record's extra column `user` says who sat at the keyboard, which a log does not.
    """
    assigner = causal.Assigner({p.name: 1 / len(habits.FLEET) for p in habits.FLEET}, key=f"demo {seed}")
    for planned in plans:
        job = planned.jobs[0]
        assigner.assign(planned.id, task_type=job.type, difficulty=job.difficulty, time=planned.time)
    drawn = assigner.records()
    users = {planned.id: planned.persona.name for planned in plans}
    with record.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["unit", "arm", *(f"p_{a}" for a in assigner.arms), "stratum", "epoch", "time", "user"])
        for one in drawn:
            chances = [repr(one.probabilities[arm]) for arm in assigner.arms]
            writer.writerow([one.unit, one.arm, *chances, one.stratum, one.epoch, one.time, users[str(one.unit)]])
    return {str(one.unit): one.arm for one in drawn}


def _compare(
    out: Path,
    ranking: Ranking,
    data_version: str,
    made: Sequence[Worked],
    level: float,
    gated: GateDemo,
    recovered: RecoveryDemo,
    scored: Scored,
) -> DemoRun:
    known = planted.load()
    rows = [planted.outcome_row(truth.of(worked)) for worked in made]
    table = planted.outcome_table(rows).with_columns(agent=pl.Series([worked.agent for worked in made]))
    store = Store.open(out / STORE)
    signals = store.table("signals").filter(pl.col("dropped_by").is_null()).collect()
    scores = store.table("outcomes").collect()
    demo = DemoRun(
        ranking=ranking,
        data_version=data_version,
        folder=out,
        report=out / REPORT,
        truth=known,
        here=_means(table),
        detectors=accuracy(made, signals, level),
        agreement=_agreement(made, rows, scores),
        order_recovered=_order(ranking, known),
        gate=gated,
        recovery=recovered,
        scorecard=scored,
    )
    return msgspec.structs.replace(demo, sections=demo_sections.sections(demo))


def _means(table: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Net improvement of each agent over the uniform baseline, by outcome, unweighted."""
    means = {
        str(agent): {name: float(part[name].mean()) for name in part.columns if name != "agent" and part[name].count()}  # type: ignore[arg-type]
        for (agent,), part in table.group_by("agent", maintain_order=True)
    }
    overall: dict[str, float] = {}
    for name in (column for column in table.columns if column != "agent"):
        values = [mean[name] for mean in means.values() if name in mean]
        overall[name] = sum(values) / len(values) if values else 0.0
    return {agent: {name: value - overall[name] for name, value in mean.items()} for agent, mean in means.items()}


def accuracy(made: Sequence[Worked], signals: pl.DataFrame, level: float) -> dict[str, Accuracy]:
    """Recall and precision of every kind that a user can mean, over all user turns of all sessions.

    `signals` are the kept rows of the signals table. A turn counts once per kind.
    """
    found = {(str(s), int(i), str(k)) for s, i, k in signals.select("session", "step", "kind").iter_rows()}
    out: dict[str, Accuracy] = {}
    for kind in truth.VERDICTS:
        pairs = []
        for worked in made:
            for step, kinds in ((0, frozenset[str]()), *truth.meant(worked)):
                pairs.append((kind in kinds, (worked.plan.id, step, kind) in found, worked.plan.persona.name))
        recalled = [(hit, user) for meant, hit, user in pairs if meant]
        precise = [(meant, user) for meant, hit, user in pairs if hit]
        out[kind] = Accuracy(
            n_meant=len(recalled),
            n_found=len(precise),
            recall=_share(recalled, level),
            precision=_share(precise, level),
        )
    return out


def _share(values: Sequence[tuple[bool, str]], level: float) -> Estimate | None:
    if not values:
        return None
    return clustered_proportion([float(v) for v, _ in values], [user for _, user in values], level)


def _agreement(made: Sequence[Worked], rows: Sequence[dict[str, float | None]], scores: pl.DataFrame) -> float | None:
    """AUC of the signals' headline for success: do signals tell good sessions from bad ones? (METHODS 2)"""
    _, values = scoring.headline(scores)
    headline = dict(zip(scores["session"], values, strict=True))
    pairs = [(row[SUCCESS] == 1.0, headline.get(worked.plan.id)) for worked, row in zip(made, rows, strict=True)]
    scored = [(good, float(value)) for good, value in pairs if value is not None]
    return auc([value for _, value in scored], [float(good) for good, _ in scored])


def value_of(known: Planted, agent: str, outcome: str) -> Value | None:
    """The planted value of an agent for the ranking's outcome; None for outcomes that were not simulated."""
    return known.agents.get(agent, {}).get(outcome)


def _order(ranking: Ranking, known: Planted) -> bool:
    """True if the point estimates put the agents in the planted order."""
    estimates = {row.model: row.net_improvement.value for row in ranking.models if row.net_improvement is not None}
    names = list(known.agents)
    if set(estimates) != set(names):
        return False
    planted_net = [v.net for name in names if (v := value_of(known, name, ranking.outcome)) is not None]
    if len(planted_net) != len(names):
        return False
    return bool(np.array_equal(np.argsort(planted_net), np.argsort([estimates[name] for name in names])))


def _write_report(demo: DemoRun) -> None:
    from seatrial.report import page

    text = page.ranking_page(
        demo.ranking, title="Which agent does better? (demo)", version=__version__, sections=demo.sections
    )
    demo.report.write_text(text, encoding="utf-8")
