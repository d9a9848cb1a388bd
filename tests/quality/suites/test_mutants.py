"""The checks see what is broken: one tool, instruction or check at a time, each by a metric that should (METHODS 6.2).

The mutants were written down before the checks were (``mutants.json``).
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from seatrial.flows.judging import judge
from seatrial.records import Task, Verdict
from seatrial.suites import Suite, run_attempt, task_hash

HERE = Path(__file__).parent
MUTANTS: list[dict[str, Any]] = json.loads((HERE / "mutants.json").read_text())["mutants"]
LEAST = 0.90


def _desk() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suites_desk", HERE / "desk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["suites_desk"] = module
    spec.loader.exec_module(module)
    return module


desk = _desk()


def attempts(suite: Suite, habit: str | None) -> dict[str, dict[str, Verdict]]:
    """Verdicts by task and metric, one attempt per task."""
    out = {}
    for task in suite.tasks:
        episode = run_attempt(suite, task, desk.agent(habit), trial=0, seed=1, name=f"m~{task.id}")
        verdicts, status, _, _ = judge(task, episode)
        assert status not in ("error_infra", "unscored") or task.check_final is None, episode.reason
        out[task.id] = {v.metric: v for v in verdicts}
    return out


@pytest.fixture(scope="module")
def unchanged() -> dict[str, dict[str, Verdict]]:
    return attempts(desk.suite(), None)


def test_the_unchanged_agent_passes_every_check(unchanged: dict[str, dict[str, Verdict]]) -> None:
    failed = [(t, v.metric, v.reason) for t, vs in unchanged.items() for v in vs.values() if v.passed is False]
    assert not failed


def mutated(mutant: dict[str, Any]) -> tuple[Suite, str | None]:
    change = mutant["change"]
    if mutant["kind"] == "tool":
        return desk.suite(change), None
    if mutant["kind"] == "instruction":
        return desk.suite(), change["habit"]
    empty = next(f.default for f in msgspec.structs.fields(Task) if f.name == change["drop"])
    value = [] if change["drop"] in ("expected_tools", "forbidden_tools") else empty
    tasks = tuple(
        msgspec.structs.replace(t, **{change["drop"]: value}) if t.id == change["task"] else t for t in desk.tasks()
    )
    return desk.suite(tasks_of=tasks), None


def seen(mutant: dict[str, Any], before: dict[str, dict[str, Verdict]]) -> set[str]:
    """The metrics that are worse than before: passed and does not any more, or is not applicable any more."""
    suite, habit = mutated(mutant)
    after = attempts(suite, habit)
    worse = {
        metric
        for task, verdicts in after.items()
        for metric, verdict in verdicts.items()
        if before[task][metric].passed is True and verdict.passed is not True
        and (verdict.passed is False or mutant["kind"] == "check")
    }  # fmt: skip
    worse |= {
        v.metric
        for task, verdicts in after.items()
        for v in verdicts.values()
        if v.passed is False and before[task][v.metric].passed is None
    }
    original = {t.id: task_hash(t) for t in desk.tasks()}
    if any(task_hash(t) != original[t.id] for t in suite.tasks):
        worse.add("task_changed")
    return worse


def test_at_least_nine_in_ten_mutants_are_seen_by_a_metric_that_should(
    unchanged: dict[str, dict[str, Verdict]],
) -> None:
    assert len(MUTANTS) >= 30
    assert len({m["id"] for m in MUTANTS}) == len(MUTANTS)
    missed = {m["id"]: sorted(found) for m in MUTANTS if not (found := seen(m, unchanged)) & set(m["seen_by"])}
    assert len(missed) <= (1 - LEAST) * len(MUTANTS), missed
    print(f"seen {len(MUTANTS) - len(missed)} of {len(MUTANTS)}; missed: {missed}")  # noqa: T201


def test_every_metric_is_needed_by_some_mutant(unchanged: dict[str, dict[str, Verdict]]) -> None:
    """The list is older than three checks: `approval_asked` has mutants of its own in `test_worked_mutants.py`, and
    budgets of money and time break nothing."""
    named = {metric for m in MUTANTS for metric in m["seen_by"]} - {"task_changed"}
    assert named == set(next(iter(unchanged.values()))) - {"approval_asked", "within_cost", "within_time"}
