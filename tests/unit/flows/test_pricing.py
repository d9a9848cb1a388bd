"""What recorded work cost, by the price table: known where every turn is known, else unknown (METHODS 6.7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.flows.check import CheckOptions, check
from seatrial.flows.grade import grade_paths
from seatrial.flows.judge_endpoint import priced_judge
from seatrial.flows.pricing import priced
from seatrial.grading.judge import key
from seatrial.records import Agent, Provenance, Step, Totals, Trace, Usage
from seatrial.records.judge import Criterion, JudgeSpec
from seatrial.records.price import Price

PRICES = {"toy-1": Price(input=2.0, output=10.0, cached=0.5), "toy-2": Price(input=1.0, output=1.0)}
SOURCE = Provenance(format="test", reader="test", reader_version="1")


def trace(*turns: tuple[str | None, Usage | None], total: Usage = Usage(), model: str | None = None) -> Trace:
    steps = tuple(Step(index=i, event_class="agent", model=m, usage=u) for i, (m, u) in enumerate(turns))
    return Trace(id="t", agent=Agent(name="a"), provenance=SOURCE, model=model, steps=steps, totals=Totals(usage=total))


USED = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400)


def cost(made: Trace) -> float | None:
    return priced(made, PRICES).totals.usage.cost_usd


def test_turns_are_priced_by_their_model() -> None:
    one = (600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6
    two = 1100 / 1e6  # without a price of their own, cached tokens cost what others do
    assert cost(trace(("toy-1", USED), ("toy-2", USED))) == pytest.approx(one + two)
    assert cost(trace((None, USED), model="toy-1")) == pytest.approx(one)


def test_what_is_not_known_is_unknown_and_never_zero() -> None:
    assert cost(trace(("toy-1", USED), ("other", USED))) is None
    assert cost(trace(("toy-1", USED), ("toy-1", None))) is None
    assert cost(trace(("toy-1", Usage(input_tokens=5)))) is None
    assert cost(trace()) is None
    assert priced(trace(("toy-1", USED)), {}).totals.usage.cost_usd is None


def test_money_that_the_source_told_stays() -> None:
    assert cost(trace(("toy-1", USED), total=Usage(cost_usd=3.0))) == 3.0
    told = Usage(input_tokens=1000, output_tokens=100, cost_usd=0.5)
    assert cost(trace(("other", told), ("toy-2", USED))) == pytest.approx(0.5 + 1100 / 1e6)


def test_totals_alone_are_priced_by_the_traces_model() -> None:
    assert cost(trace((None, None), total=Usage(input_tokens=10, output_tokens=10), model="toy-2")) == 20 / 1e6
    assert cost(trace((None, None), total=Usage(input_tokens=10, output_tokens=10), model="other")) is None


def test_a_judge_without_prices_takes_those_of_the_settings() -> None:
    spec = JudgeSpec(name="j", model="toy-1", criteria=(Criterion(id="a", statement="b"),))
    known = priced_judge(spec, PRICES)
    assert (known.usd_per_million_input, known.usd_per_million_output) == (2.0, 10.0)
    assert key(known) == key(spec), "a price is no part of what a stamp is bound to"
    own = JudgeSpec(name="j", model="toy-1", criteria=spec.criteria, usd_per_million_input=7.0)
    assert priced_judge(own, PRICES) == own


def tau2(path: Path, tokens: int) -> Path:
    """Two runs of a benchmark that records tokens and no money."""
    said = {"role": "assistant", "content": "hi", "usage": {"prompt_tokens": tokens, "completion_tokens": 10}}
    run = {
        "info": {"agent_info": {"llm": "toy-2", "implementation": "x"}, "user_info": {"llm": "u"},
                 "environment_info": {"domain_name": "d", "policy": "p"}},
        "tasks": [{"id": str(i)} for i in range(2)],
        "simulations": [
            {"id": f"s{i}", "task_id": str(i), "trial": 0, "termination_reason": "user_stop",
             "reward_info": {"reward": 1.0}, "messages": [{"role": "user", "content": "hi"}, said]}
            for i in range(2)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(run))
    return path


def test_grade_and_gate_know_the_cost_of_what_others_ran(tmp_path: Path) -> None:
    old, new = tau2(tmp_path / "old.json", 100), tau2(tmp_path / "new.json", 1000)
    (system,) = grade_paths([old], prices=PRICES).systems
    assert system.result.cost_usd.p50 == pytest.approx(110 / 1e6)
    assert grade_paths([old]).systems[0].result.cost_usd.p50 is None
    row = next(r for r in check(old, new, CheckOptions(prices=PRICES)).comparison.metrics if r.metric == "cost_usd")
    assert row.baseline == pytest.approx(110 / 1e6)
    assert row.candidate == pytest.approx(1010 / 1e6)
    assert not any(r.metric == "cost_usd" for r in check(old, new).comparison.metrics)
