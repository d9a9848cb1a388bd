"""The numbers of a run say why a check has no result."""

from __future__ import annotations

from seatrial.records import Attempt, Verdict
from seatrial.suites.results import results


def verdict(passed: bool | None, reason: str, **evidence: bool) -> Verdict:
    return Verdict(metric="own", passed=passed, reason=reason, by="own", version="1", evidence=evidence)


def test_a_check_that_broke_says_how_and_one_that_does_not_apply_says_nothing() -> None:
    attempts = [Attempt(task="t", trial=n, status="failed") for n in range(3)]
    for last, why in (
        (verdict(None, "the check broke: ValueError: boom", broke=True), "the check broke: ValueError: boom"),
        (verdict(None, "nothing to check"), "too long"),
    ):
        said = [verdict(False, "too long"), verdict(True, ""), last]
        made = results([(a, [v]) for a, v in zip(attempts, said, strict=True)])
        (own,) = (m for m in made.metrics if m.metric == "own")
        assert (own.n, own.passed, own.not_applicable, own.why) == (2, 1, 1, why)
