"""Why attempts failed: rules in a fixed order, each with its evidence (issue of dimension D6, METHODS 5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.dimensions.causes import attempts_before_success, cause_of
from seatrial.records import Agent, Attempt, Evidence, Provenance, RecordedOutcome, Trace, Verdict
from seatrial.world import Absent, Deny

PAID = ("pay", {"to": "Weber", "amount": 240})
ASKED = ("request_approval", {"tool": "pay", "arguments": PAID[1], "why": ""})


def wrong(metric: str = "world_state", layer: Any = "final") -> Verdict:
    return Verdict(metric=metric, passed=False, reason=f"{metric} does not hold", by=metric, version="1", layer=layer)


def cause(at_till: Any, calls: Any, verdicts: Any = None, **more: Any) -> Any:
    run = at_till.work(calls, status=more.pop("status", "failed"), intent=at_till.INTENT, **more)
    return cause_of(msgspec.structs.replace(run, verdicts=tuple(verdicts or (wrong(),))))


def test_passed_and_unscored_attempts_have_no_cause(at_till: Any) -> None:
    assert cause_of(at_till.work([])) is None
    assert cause_of(Evidence(attempt=Attempt(task="t", trial=0, status="error_infra"))) is None


@pytest.mark.parametrize("stopped", ["turn_limit", "call_limit", "time_limit", "cost_limit"])
def test_a_limit_is_the_budget(at_till: Any, stopped: str) -> None:
    run = at_till.work([], status="timeout")
    trace = msgspec.structs.replace(run.trace, extra={**run.trace.extra, "stopped": stopped})
    found = cause_of(msgspec.structs.replace(run, trace=trace))
    assert found is not None
    assert (found.cause, found.evidence) == ("budget", {"stopped": stopped})


def test_only_the_budget_check_failing_is_the_budget(at_till: Any) -> None:
    over = wrong("within_budget", "trajectory")
    assert cause(at_till, [], [over]).cause == "budget"
    assert cause(at_till, [], [over, wrong()]).cause != "budget"


def test_a_crash_is_execution(at_till: Any) -> None:
    found = cause(at_till, [], status="error_agent", reason="KeyError")
    assert (found.cause, "KeyError" in found.why) == ("execution", True)


@pytest.mark.parametrize("approver", [Deny(), Absent()])
def test_an_approval_that_did_not_come_is_the_gate(at_till: Any, approver: Any) -> None:
    found = cause(at_till, [ASKED], approver=approver)
    assert (found.cause, found.evidence, found.step) == ("gate", {"gate": "big"}, 1)


def test_a_forbidden_effect_is_intent(at_till: Any) -> None:
    found = cause(at_till, [("burn", {})])
    assert (found.cause, "forbidden" in found.why, found.step) == ("intent", True, 1)


def test_what_nobody_asked_for_is_intent(at_till: Any) -> None:
    assert cause(at_till, [PAID, ("note", {"text": "x"})]).why == "note changes what was not asked for"


def test_doing_nothing_where_something_is_required_is_intent(at_till: Any) -> None:
    found = cause(at_till, [("look", {})])
    assert (found.cause, "not taken up" in found.why) == ("intent", True)


def test_an_unrepaired_fault_of_the_surroundings_is_the_environment(at_till: Any) -> None:
    found = cause(at_till, [("fetch", {})])
    assert (found.cause, found.step) == ("environment", 1)


def test_an_unrepaired_error_is_execution(at_till: Any) -> None:
    found = cause(at_till, [("pay", {"to": "Nobody", "amount": 1})])
    assert (found.cause, "no such person" in found.why) == ("execution", True)


def test_an_error_that_was_repaired_is_not_the_cause(at_till: Any) -> None:
    found = cause(at_till, [("pay", {"to": "Nobody", "amount": 1}), ("pay", {"to": "Okafor", "amount": 1})])
    assert (found.cause, found.why) == ("execution", "pay with wrong arguments")


def test_a_missing_result_is_execution(at_till: Any) -> None:
    found = cause(at_till, [("pay", {"to": "Weber", "amount": 1})])
    assert (found.cause, "world_state does not hold" in found.why) == ("execution", True)


def test_without_a_log_the_cause_is_unknown() -> None:
    found = cause_of(Evidence(attempt=Attempt(task="t", trial=0, status="failed")))
    assert found is not None
    assert (found.cause, found.why) == ("unknown", "no log is stored")


@pytest.mark.parametrize(
    ("info", "cause"),
    [
        ({"info": {"r_actions": 0.0}}, "execution"),
        ({"info": {"r_outputs": 0.0}}, "execution"),
        ({"db_check": {"db_match": False}}, "execution"),
        ({"info": {"r_actions": 1.0, "r_outputs": 1.0}}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_what_a_benchmark_recorded_of_a_failure(info: Any, cause: str) -> None:
    trace = Trace(
        id="x", agent=Agent(name="a"), provenance=Provenance(format="tau2", reader="tau2", reader_version="1"),
        outcome=RecordedOutcome(status="failed", score=0.0, extra={"reward_info": info}),
    )  # fmt: skip
    found = cause_of(Evidence(attempt=Attempt(task="t", trial=0, status="failed"), trace=trace))
    assert found is not None
    assert found.cause == cause


def test_attempts_before_success_are_counted_in_order_of_trials() -> None:
    runs = [
        ("a", 1, "passed"), ("a", 0, "failed"), ("b", 0, "passed"), ("c", 0, "failed"), ("c", 1, "timeout"),
        ("d", 0, "error_infra"), ("d", 1, "failed"), ("d", 2, "passed"),
    ]  # fmt: skip
    assert attempts_before_success(runs) == {"0": 1, "1": 2, "never": 1}
