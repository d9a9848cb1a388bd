"""Does ablation replay say of the worked domains' actions what a reader said? (METHODS 5, D2)

The labels are one reader's, made without sight of the code and committed before it was measured. Measured first, the
method of data flow alone agreed at kappa .563. What people call relevant and no value shows (a look at the object
before it is changed, a check afterwards: .890; the looks that a task expects: .943) was added with sight of the
disagreements, so the numbers pinned here are kind.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.dimensions.annotations import Annotations
from seatrial.dimensions.fidelity import Fidelity
from seatrial.examples import domains
from seatrial.flows.evidence import Setting, of_own
from seatrial.flows.judging import judge
from seatrial.records import Attempt, DimensionValue, Evidence
from seatrial.stats import cohen_kappa
from seatrial.suites import Suite, run_attempt
from seatrial.suites.load import suite_of

LABELS = Path(__file__).resolve().parents[2] / "golden" / "annotations"


@pytest.fixture(scope="module")
def annotations() -> Annotations:
    return Annotations(LABELS / "actions.jsonl")


@pytest.fixture(scope="module")
def values(annotations: Annotations) -> list[DimensionValue]:
    return measured_by(annotations)


def measured_by(annotations: Annotations, *, expected: bool = True) -> list[DimensionValue]:
    suites = {d.name: suite_of(d) for d in domains()}
    measured = []
    for line in (LABELS / "attempts.jsonl").read_text().splitlines():
        row = json.loads(line)
        run = again(suites[row["domain"]], row)
        assert run.trace is not None
        assert sum(len(s.tool_calls) for s in run.trace.steps) == row["actions"], f"{row}: its calls changed"
        given = annotations.of(run.attempt, run.trace)
        if not expected:
            assert run.task is not None
            run = replace(run, task=replace(run.task, expected_tools=[]))
        measured.append(Fidelity().measure(replace(run, annotations=given)))
    assert annotations.warnings == []
    return measured


def again(suite: Suite, row: dict[str, Any]) -> Evidence:
    """The labelled attempt once more: suites and agents are scripted."""
    task = next(t for t in suite.tasks if t.id == row["task"])
    agent = suite.agents[row["agent"]]
    episode = run_attempt(suite, task, agent, trial=row["attempt"], seed=row["seed"], name=f"{task.id}~{agent.name}")
    verdicts, status, score, reason = judge(task, episode)
    trace = replace(episode.trace, extra={**episode.trace.extra, "seed": row["seed"]})
    attempt = Attempt(
        task=task.id, trial=row["attempt"], status=status, score=score, agent=agent.name, reason=reason, trace=trace.id
    )
    return of_own(attempt, verdicts, trace, Setting(suite, None))


def pairs(values: list[DimensionValue]) -> list[tuple[bool, bool, str, str]]:
    """(annotated, replayed, task, tool) of every action that both speak of."""
    out = []
    for v in values:
        for a in v.actions:
            replayed = a.others.get("ablation", a.others.get("data_flow"))
            if a.source == "annotation" and a.relevant is not None and replayed is not None:
                out.append((a.relevant, replayed, v.task, a.tool))
    return out


def test_every_labelled_action_that_ran_is_judged(values: list[DimensionValue], annotations: Annotations) -> None:
    assert len(annotations) == 469
    # Four calls were refused by a rule of the desk before they did anything: they are no executed actions.
    assert len(pairs(values)) == 465


def test_ablation_replay_agrees_with_the_reader(values: list[DimensionValue]) -> None:
    both = pairs(values)
    found = cohen_kappa([int(p[0]) for p in both], [int(p[1]) for p in both], clusters=[p[2] for p in both], draws=1999)
    assert found.value is not None
    assert found.value >= 0.92, Counter((p[0], p[1]) for p in both)
    assert found.low is not None
    assert found.low >= 0.85


@pytest.mark.full
def test_it_agrees_without_the_tools_that_the_tasks_expect(annotations: Annotations) -> None:
    both = pairs(measured_by(annotations, expected=False))
    found = cohen_kappa([int(p[0]) for p in both], [int(p[1]) for p in both], draws=999)
    assert found.value is not None
    assert found.value >= 0.87


@pytest.mark.parametrize("prefix", ["desk", "repo", "assistant"])
def test_it_agrees_in_every_domain(values: list[DimensionValue], prefix: str) -> None:
    both = [p for p in pairs(values) if p[2].startswith(prefix)]
    found = cohen_kappa([int(p[0]) for p in both], [int(p[1]) for p in both], draws=999)
    assert found.value is not None
    assert found.value >= 0.80


def test_its_cost_is_a_few_calls_for_each_action(values: list[DimensionValue]) -> None:
    detail = Fidelity().combine(values, 0.95).detail
    # Requests for approval never reach a world, calls that a rule refused do.
    assert 460 <= detail["cost"]["actions"] <= 469
    # The first run-through is one call each; a full replay for each action would be 6 to 7 more.
    assert detail["cost"]["calls_per_action"] < 2.5


def test_the_report_tells_how_far_the_sources_agree(values: list[DimensionValue]) -> None:
    detail = Fidelity().combine(values, 0.95).detail
    assert detail["sources"] == {"annotation": 465}
    assert set(detail["agreement"]) == {"annotation~ablation", "annotation~intent", "intent~ablation"}
    assert detail["agreement"]["annotation~ablation"]["n"] == 465
