"""The committed baseline: the same bytes, reviewable changes, and margins that green history supports."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from seatrial.errors import FormatError, UsageError
from seatrial.gate import decide
from seatrial.gate.baseline import Baseline, Entry, dumps, entry, loads, proposals, updated

_SPEC = importlib.util.spec_from_file_location("gate_making", Path(__file__).parent / "making.py")
assert _SPEC is not None
assert _SPEC.loader is not None
making = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(making)
run, suite = making.run, making.suite


def test_round_trip_keeps_everything() -> None:
    made = run({"a": [1, 0, "error_infra"], "b": ["error_infra"], 'odd "name"\n': [1]}, cost_usd=0.25, model="m",
               task_hash="h", extra={"must_pass": True})  # fmt: skip
    before = Baseline(run=made, history=(Entry(time="2026-01-01T00:00:00Z", verdict="PASS", reason="first"),))
    text = dumps(before)
    after = loads(text, "x")
    assert after == before
    assert dumps(after) == text
    assert decide(made, after.run).verdict == decide(made, made).verdict


def test_one_changed_case_changes_one_line() -> None:
    tasks = suite(20, 15)
    old = dumps(Baseline(run=run(tasks))).splitlines()
    tasks["t003"] = [1, 1, 0, 1, 1]
    new = dumps(Baseline(run=run(tasks))).splitlines()
    assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_an_update_needs_a_reason_and_remembers_it() -> None:
    b, c = run(suite(30, 30)), run(suite(30, 20))
    answer = decide(b, c)
    with pytest.raises(UsageError, match="reason"):
        updated(c, Baseline(run=b), answer, time="t", reason="  ")
    made = updated(c, Baseline(run=b), answer, time="t", reason="the tool\nis gone")
    assert made.history == (entry(answer, time="t", reason="the tool is gone"),)
    assert made.history[0].verdict == "REGRESSION"


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"seatrial_baseline": 9, "label": "", "fingerprint": {}, "history": [], "metrics": {}, "tasks": {}}',
     '{"seatrial_baseline": 1, "label": "", "fingerprint": {}, "history": [], "metrics": {}, '
     '"tasks": {"a": {"metrics": {"x": {"values": [1]}}}}}'],
)  # fmt: skip
def test_what_is_no_baseline_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        loads(text, "base.json")
    assert caught.value.file == "base.json"


def test_green_history_proposes_a_margin_that_all_of_it_would_have_passed() -> None:
    def green(lower: float, verdict: str = "PASS") -> Entry:
        return Entry(time="t", verdict=verdict, lower={"passed": lower})  # type: ignore[arg-type]

    history = [green(-0.011), green(-0.004), green(-0.0075), green(0.01), green(-0.0121)]
    (found,) = proposals(history, {"passed": 0.02})
    assert (found.proposed, found.n_runs) == (0.015, 5)
    assert proposals(history[:4], {"passed": 0.02}) == ()
    assert proposals([*history, green(-0.019)], {"passed": 0.02}) == ()
    assert proposals([*history[:4], green(-0.5, "INCONCLUSIVE")], {"passed": 0.02}) == ()
    # Exactly at a step: the bound must lie above minus the margin, so the next step is proposed.
    assert proposals([green(-0.005)] * 5, {"passed": 0.02})[0].proposed == 0.01


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version_is_told_before_what_it_holds(version: int) -> None:
    text = json.dumps({"seatrial_baseline": version, "label": 3, "of a later version": []})
    with pytest.raises(FormatError, match=f"of version {version}; this seatrial reads version 1"):
        loads(text, "base.json")
