"""How a suite grows: drafts from sessions, approval, variations, health."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial import grading
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.records import Agent, Attempt, Provenance, Signal, Status, Step, Task, ToolCall, ToolResult, Trace
from seatrial.report.chapters import growth as chapter
from seatrial.suites import Suite, load, task_hash
from seatrial.suites.draft import draft
from seatrial.suites.health import health
from seatrial.suites.results import counts, results, saturated, spread
from seatrial.suites.variations import Variation, replaced, variations
from seatrial.suites.writing import append, approve, as_json, complete


def step(index: int, who: str, text: str = "", *calls: tuple[str, str]) -> Step:
    return Step(
        index=index,
        event_class=who,  # type: ignore[arg-type]
        text=text,
        tool_calls=tuple(ToolCall(id=f"{index}.{i}", name=n) for i, (n, _) in enumerate(calls)),
        results=tuple(ToolResult(call_id=f"{index}.{i}", outcome=o) for i, (_, o) in enumerate(calls)),  # type: ignore[arg-type]
    )


SESSION = Trace(
    id="s/1",
    agent=Agent(name="a"),
    provenance=Provenance(format="x", reader="x", reader_version="1"),
    steps=(
        step(0, "harness", "system"),
        step(1, "human", "Close Ana's ticket."),
        step(2, "agent", "", ("find", "ok"), ("delete", "ok")),
        step(3, "agent", "Done."),
        step(4, "human", "No, I said close, not delete!"),
        step(5, "agent", "", ("restore", "error"), ("close", "ok")),
        step(6, "agent", "Closed."),
    ),
)
OBJECTION = Signal(
    kind="correction", session="s/1", step=4, detector="d", version="1", confidence=0.9, quote="No, I said close",
    judges_step=2,
)  # fmt: skip


def test_a_draft_says_what_was_asked_what_worked_and_what_went_wrong() -> None:
    made = draft(SESSION, [OBJECTION], added="2026-11-30")
    assert made.input == "Close Ana's ticket."
    assert (made.expected_tools, made.forbidden_tools) == (["close"], ["find", "delete"])
    assert made.source == "production_failure"
    assert made.extra["draft"] is True
    assert made.extra["why"][0]["said"] == "No, I said close"
    assert {"kind": "failed_calls", "tool": "restore", "n": 1} in made.extra["why"]
    assert any("check_final" in o for o in made.extra["open"])


def test_a_dropped_signal_blames_nothing_and_success_takes_the_whole_way() -> None:
    dropped = msgspec.structs.replace(OBJECTION, dropped_by="below_threshold")
    assert draft(SESSION, [dropped]).forbidden_tools == []
    good = draft(SESSION, [], success=True)
    assert (good.expected_tools, good.order, good.source) == (
        ["find", "delete", "close"],
        "subsequence",
        "representative",
    )
    assert good.max_turns == 6


def test_a_session_without_a_request_is_no_task() -> None:
    with pytest.raises(EvidenceError, match="no request"):
        draft(msgspec.structs.replace(SESSION, steps=SESSION.steps[2:4]))


def test_the_checks_of_a_draft_are_completed_as_plain_values(tmp_path: Path) -> None:
    """It stays a draft; other lines and fields stay; what is left out stays, and null takes a field away."""
    path = tmp_path / "suite.jsonl"
    made = msgspec.structs.replace(draft(SESSION, [OBJECTION]), input="line\u2028separator", max_turns=9)
    append(path, made)
    append(path, Task(id="other", input="x"))
    holds = [{"path": "tickets.T-1.status", "op": "eq", "value": "closed"}]
    done = complete(path, made.id, {"check_final": holds, "max_turns": None}, rubric=" It is closed. ")
    assert (done.check_final, done.max_turns, done.rubric) == (holds, None, "It is closed.")
    assert (done.expected_tools, done.forbidden_tools) == (made.expected_tools, made.forbidden_tools)
    first, second, _ = path.read_text().split("\n")
    assert json.loads(first)["extra"]["draft"] is True
    assert "max_turns" not in json.loads(first)
    assert json.loads(second) == {"id": "other", "input": "x"}
    assert approve(path, made.id, by="ana", on="2026-12-01").check_final == holds


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ({"check_final": "os:system"}, "check_final is a list of assertions here"),
        ({"setup": "os:getcwd"}, "'setup' is not among the checks"),
        ({"rubric": "x"}, "'rubric' is not among the checks"),
        ({"check_final": [{"path": "answer"}]}, "'op' is a required property"),
        ({"check_final": [{"path": "answer", "op": "eval", "value": "1"}]}, "'eval' is not one of"),
        ({"check_final": {"path": "answer"}}, "check_final"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"expected_tools": "close"}, "expected_tools"),
        ({"order": "backwards"}, "order"),
    ],
)
def test_checks_that_do_not_fit_are_refused_and_change_nothing(
    tmp_path: Path, checks: dict[str, Any], said: str
) -> None:
    path = tmp_path / "suite.jsonl"
    made = draft(SESSION, [OBJECTION])
    append(path, made)
    before = path.read_bytes()
    with pytest.raises((UsageError, InputError), match=said):
        complete(path, made.id, checks)
    assert path.read_bytes() == before


def test_only_a_draft_is_completed_and_its_own_function_may_stay(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    append(path, Task(id="x", input="x", check_final="mine:check", extra={"draft": True}))
    append(path, Task(id="y", input="y"))
    assert complete(path, "x", {"check_final": "mine:check", "max_turns": 3}).check_final == "mine:check"
    with pytest.raises(InputError, match="no draft"):
        complete(path, "y", {})
    with pytest.raises(InputError, match="no task"):
        complete(path, "z", {})


def test_a_draft_runs_only_after_a_person_completed_and_approved_it(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    made = draft(SESSION, [OBJECTION], added="2026-11-30")
    append(path, Task(id="first", input="x"))
    append(path, made)
    assert load(path).drafts == (made.id,)
    with pytest.raises(InputError, match="neither check_final nor rubric") as found:
        approve(path, made.id, by="ana", on="2026-12-01")
    assert found.value.line == 2
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["check_final"] = [{"path": "answer", "op": "contains", "value": "closed"}]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    done = approve(path, made.id, by="ana", on="2026-12-01")
    assert (done.extra["approved_by"], done.extra["added"]) == ("ana", "2026-11-30")
    suite = load(path)
    assert ([t.id for t in suite.tasks], suite.drafts) == (["first", made.id], ())
    with pytest.raises(InputError, match="no draft"):
        approve(path, made.id, by="ana", on="2026-12-01")
    with pytest.raises(InputError, match="no task 'y'"):
        approve(path, "y", by="ana", on="2026-12-01")


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="JSON lines"):
        append(tmp_path / "suite.toml", Task(id="x", input=""))
    with pytest.raises(UsageError, match="function"):
        as_json(Task(id="x", input="", check_final=lambda a, s: True))


REFUND = Task(
    id="refund",
    input="Refund Ana. The ticket is T1. She paid 40.",
    setup={"tickets": {"T1": {"customer": "Ana", "paid": 40}}},
    check_final=[
        {"path": "tickets.T1.refunded", "op": "eq", "value": 40},
        {"path": "answer", "op": "contains", "value": "Ana"},
    ],
    must_pass=True,
)
HOW = Variation(
    entities={"Ana": ["Bea", "Cleo"], "T1": ["T7", "T8"]}, phrasings=("{input}", "Please: {input}"), shuffle=True
)


def rightly(task: Task) -> tuple[str, Any]:
    """What a right run of any refund task leaves, read from the task's start alone."""
    (ticket, row), *_ = task.setup["tickets"].items()  # type: ignore[index, union-attr]
    return f"Refunded {row['customer']}.", {"tickets": {ticket: {**row, "refunded": row["paid"]}}}


def test_the_expected_end_of_a_variation_is_computed_with_it() -> None:
    """Metamorphic: who solves the task solves every variation, and the original's solution fails them."""
    made = variations(REFUND, HOW, 8, seed=3)
    assert len(made) == 8
    assert len({t.input for t in made}) > 4
    for task in (REFUND, *made):
        answer, state = rightly(task)
        line = grading.timeline([])
        status, _, reason = grading.outcome(
            grading.grade(task, grading.Evidence(timeline=line, answer=answer, final=state))
        )
        assert status == "passed", reason
    answer, state = rightly(REFUND)
    seen = grading.Evidence(timeline=grading.timeline([]), answer=answer, final=state)
    assert all(grading.outcome(grading.grade(t, seen))[0] == "failed" for t in made)


def test_variations_are_repeatable_marked_and_of_one_family() -> None:
    made = variations(REFUND, HOW, 5, seed=1)
    assert made == variations(REFUND, HOW, 5, seed=1)
    assert made != variations(REFUND, HOW, 5, seed=2)
    assert {t.source for t in made} == {"synthetic"}
    assert {t.extra["template"] for t in made} == {"refund"}
    assert not any(t.must_pass for t in made)
    assert len({task_hash(t) for t in (REFUND, *made)}) == 6
    suite = Suite("s", (REFUND, *made))
    assert len({suite.part(t) for t in suite.tasks}) == 1


def test_two_names_can_change_places_and_parts_of_words_stay() -> None:
    swapped = replaced(
        Task(id="x", input="Ana pays Bo; Anatole and T10 do not. T1."), {"Ana": "Bo", "Bo": "Ana", "T1": "T2"}
    )
    assert swapped.input == "Bo pays Ana; Anatole and T10 do not. T2."


@pytest.mark.parametrize(
    ("task", "how", "said"),
    [
        (REFUND, Variation(entities={"Zoe": ["Ana"]}), "does not mention"),
        (Task(id="g", input="Anatole", setup={"n": "Ana"}), Variation(entities={"Ana": ["Bo"]}), "does not mention"),
        (Task(id="g", input="ana", setup={"n": "Ana"}), Variation(entities={"Ana": ["Bo"]}), "does not mention"),
        (REFUND, Variation(entities={"Ana": []}), "nothing to put"),
        (REFUND, Variation(phrasings=("no frame",)), "no {input}"),
        (Task(id="f", input="Ana", check_final=lambda a, s: True), Variation(entities={"Ana": ["Bo"]}), "function"),
    ],
)
def test_a_variation_that_would_not_follow_is_refused(task: Task, how: Variation, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        variations(task, how, 2)


def attempt(task: str, trial: int, status: Status, **more: Any) -> Attempt:
    return Attempt(task=task, trial=trial, status=status, **more)


def test_health_counts_against_thirty_and_a_hundred_and_names_what_is_weak() -> None:
    tasks = tuple(
        Task(id=f"t{i}", input="", source="production_failure" if i % 2 else "adversarial",
             check_final=[] if i else None, extra={"added": f"2026-10-{i:02d}"} if 0 < i < 30 else {})
        for i in range(40)
    )  # fmt: skip
    groups = {
        "t1": [attempt("t1", i, "passed") for i in range(5)],
        "t2": [attempt("t2", i, "failed") for i in range(5)],
        "t3": [attempt("t3", i, "passed") for i in range(4)],
    }
    found = health(Suite("s", tasks, drafts=("d",)), today=date(2026, 11, 30), attempts=groups, untriaged=2)
    checks = {c.name: (c.ok, c.value) for c in found.checks}
    assert checks["first_release"] == (True, 40)
    assert checks["first_quarter"] == (False, 40)
    assert checks["all_four_sources"][0] is False
    assert checks["fed_from_production"] == (False, 32)
    assert checks["triage_is_empty"] == (False, 2)
    assert checks["every_end_is_judged"] == (False, 1)
    assert (found.saturated, found.never_passed, found.drafts) == (("t1",), ("t2",), 1)
    assert found.share["adversarial"] == 0.5


def test_health_without_a_store_does_not_guess() -> None:
    found = health(Suite("s", (Task(id="t", input=""),)), today=date(2026, 11, 30))
    checks = {c.name: c.ok for c in found.checks}
    assert checks["triage_is_empty"] is None
    assert checks["tells_agents_apart"] is None
    assert checks["fed_from_production"] is None
    assert saturated({"t": [attempt("t", 0, "passed")]}) == []


def test_counts_follow_the_outcome_algebra() -> None:
    made = [
        attempt("a", i, s)
        for i, s in enumerate(("passed", "failed", "timeout", "error_agent", "error_infra", "unscored"))
    ]  # type: ignore[arg-type]
    found = counts(made, 8)
    assert (found.n_planned, found.n_attempted, found.n_scored) == (8, 6, 4)
    assert found.excluded == {"error_infra": 1, "unscored": 1, "missing": 2}
    assert (found.worst, found.best) == (1 / 8, 5 / 8)


def test_costs_that_are_not_known_are_not_zero() -> None:
    found = spread([1.0, None, 3.0])
    assert (found.p50, found.p95, found.n, found.unknown) == (2.0, 2.9, 2, 1)
    assert spread([None]).p50 is None


def test_curve_agrees_with_counting_by_hand() -> None:
    made = [(attempt("a", i, "passed" if i < 2 else "failed"), ()) for i in range(4)]
    made += [(attempt("b", i, "passed"), ()) for i in range(4)]
    made += [(attempt("c", 0, "error_infra"), ())]
    found = results(made)
    hat = {p.k: p.pass_hat.value for p in found.curve if p.pass_hat}
    at = {p.k: p.pass_at.value for p in found.curve if p.pass_at}
    assert hat == pytest.approx({1: 0.75, 2: (1 / 6 + 1) / 2, 3: 0.5, 4: 0.5})
    assert at == pytest.approx({1: 0.75, 2: (1 - 1 / 6 + 1) / 2, 3: 1.0, 4: 1.0})


@pytest.mark.parametrize(("n", "said"), [(1, "1 failed call of Bash"), (2, "2 failed calls of Bash")])
def test_a_draft_counts_failed_calls_in_words(n: int, said: str) -> None:
    why = [{"kind": "failed_calls", "n": n, "tool": "Bash"}]
    assert f"went wrong: {said}" in chapter.draft(Task(id="t", input="i", extra={"draft": True, "why": why})).items
