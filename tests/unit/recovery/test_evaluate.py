"""Policies on held-out tasks: what each must be, mixes, doubly robust values, certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seatrial.errors import EvidenceError, UsageError
from seatrial.records import Evaluation, PolicyRow
from seatrial.recovery import simulate
from seatrial.recovery.episodes import Episodes, episodes
from seatrial.recovery.evaluate import EvaluateOptions, evaluate, policy_rows, random_split
from seatrial.recovery.fit import FitOptions, fit
from seatrial.recovery.table import Row, from_rows

PROCESS = "three models, coupled"


@pytest.fixture(scope="module")
def sides() -> tuple[Episodes, Episodes]:
    return random_split(simulate.episodes(PROCESS, 150, seed=4), 0.4, 0)


@pytest.fixture(scope="module")
def tried(sides: tuple[Episodes, Episodes]) -> Evaluation:
    return evaluate(*sides, "refresh", EvaluateOptions(fit=FitOptions(limit=0.05)))


def found(tried: Evaluation, policy: str, condition: str = "all") -> PolicyRow:
    return next(r for r in tried.rows if (r.policy, r.condition) == (policy, condition))


def value(row: PolicyRow) -> float:
    assert row.gain is not None
    return row.gain.value


def test_never_always_and_oracle(tried: Evaluation, sides: tuple[Episodes, Episodes]) -> None:
    test = sides[1]
    never, always, oracle = (found(tried, p) for p in ("never", "always", "oracle"))
    assert (value(never), never.intervention_rate, never.harm) == (0.0, 0.0, 0.0)
    assert always.intervention_rate == 1.0
    assert value(always) == pytest.approx(test.gain[:, 0].mean())
    assert oracle.harm == 0.0
    assert value(oracle) == pytest.approx(np.maximum(test.gain.max(axis=1), 0).mean())
    assert all(value(oracle) >= value(r) - 1e-12 for r in tried.rows if r.condition == "all")
    for r in tried.rows:
        assert r.success is not None
        base = found(tried, "never", r.condition).success
        assert base is not None
        assert r.success.value == pytest.approx(base.value + value(r))
        assert value(r) == pytest.approx(r.rescue - r.harm)
        assert r.harm <= r.harm_upper
        assert sum(r.delays.values()) == pytest.approx(r.intervention_rate)


def test_rate_matched_anomaly_acts_as_often(tried: Evaluation) -> None:
    for name in ("cir", "router"):
        matched = found(tried, f"anomaly at {name}'s rate").intervention_rate
        assert matched == pytest.approx(found(tried, name).intervention_rate, abs=0.01)


def test_differences_are_paired(tried: Evaluation) -> None:
    ours, cir = found(tried, "router"), found(tried, "cir")
    e = ours.versus["cir"]
    assert e is not None
    assert e.value == pytest.approx(value(ours) - value(cir))
    back = cir.versus["router"]
    assert back is not None
    assert back.value == pytest.approx(-e.value)
    assert e.low is not None
    assert e.high is not None
    assert back.low == pytest.approx(-e.high)


def test_mixes_weigh_conditions(tried: Evaluation) -> None:
    by = {c: value(found(tried, "always", c)) for c in ("clean", "stale-1", "stale-2", "missing")}
    expected = 0.9 * by["clean"] + 0.1 / 3 * (by["stale-1"] + by["stale-2"] + by["missing"])
    assert value(found(tried, "always", "clean 90%")) == pytest.approx(expected)


def test_doubly_robust_is_the_paired_gain_where_all_was_run(tried: Evaluation) -> None:
    for r in tried.rows:
        assert r.doubly_robust is not None
        assert r.doubly_robust.value == pytest.approx(value(r))


@pytest.mark.full
def test_doubly_robust_recovers_what_was_not_run() -> None:
    """A random half of the pairs is left out: on average the model and the half that was run give the whole back."""
    fitting, test = random_split(simulate.episodes(PROCESS, 500, seed=9), 0.8, 0)
    whole = evaluate(fitting, test, "refresh", EvaluateOptions(fit=FitOptions(certified=False, limit=0.05)))
    run = np.random.default_rng(3).random(test.alive.shape) < 0.5
    part = replace(test, given=run, rescue=np.where(run, test.rescue, 0.0), harm=np.where(run, test.harm, 0.0))
    half = evaluate(fitting, part, "refresh", EvaluateOptions(fit=FitOptions(certified=False, limit=0.05)))
    row = found(half, "always")
    assert row.doubly_robust is not None
    assert row.doubly_robust.se is not None
    truth = value(found(whole, "always"))
    assert abs(row.doubly_robust.value - truth) < 3 * row.doubly_robust.se
    assert abs(row.doubly_robust.value - truth) < abs(value(row) - truth)


def test_cost_makes_a_router_act_less() -> None:
    e = simulate.episodes(PROCESS, 80, seed=2)
    free = fit(e, "refresh", FitOptions(certified=False)).record
    dear = fit(e, "refresh", FitOptions(certified=False, cost=0.15)).record
    assert dear.rate < free.rate
    assert fit(e, "refresh", FitOptions(certified=False, cost=0.9)).router.kind == "never"


def test_too_few_clean_tasks_mean_never_and_say_how_many_it_takes() -> None:
    made = fit(simulate.episodes(PROCESS, 100, seed=2), "refresh", FitOptions())
    certificate = made.record.certificate
    assert certificate is not None
    assert (certificate.feasible, certificate.need, certificate.n_clean) == (False, 149, 50)
    assert made.router.kind == "never"
    assert "149" in made.record.warnings[0]


def test_certified_router_carries_its_certificate() -> None:
    made = fit(simulate.episodes(PROCESS, 260, seed=2), "refresh", FitOptions())
    certificate = made.record.certificate
    assert certificate is not None
    assert certificate.feasible
    assert (certificate.n_clean, certificate.harms) == (149, 0.0)
    assert made.router.certificate == {"limit": 0.02, "confidence": 0.95, "n_clean": 149, "harms": 0.0,
                                       "feasible": True, "need": 149}  # fmt: skip
    assert made.record.gain > 0
    chosen = [r for r in made.record.frontier if r.chosen]
    assert len(chosen) == 1
    assert chosen[0].certified


def test_untouched_tasks_must_be_others(sides: tuple[Episodes, Episodes]) -> None:
    with pytest.raises(UsageError):
        fit(sides[0], "refresh", FitOptions(), sides[0])
    with pytest.raises(UsageError):
        evaluate(sides[0], sides[0], "refresh")
    with pytest.raises(UsageError, match="a mix names rain"):
        evaluate(*sides, "refresh", EvaluateOptions(mixes={"wet": {"rain": 1.0}}))


def test_features_are_needed(sides: tuple[Episodes, Episodes]) -> None:
    bare = replace(sides[0], features=(), x=sides[0].x[:, :, :0])
    with pytest.raises(EvidenceError, match="feature"):
        fit(bare, "refresh")


def test_episodes_of_a_table() -> None:
    cells = {"task": "a", "condition": "clean", "operation": "refresh", "f": 1.0}
    pairs = from_rows([
        Row(None, cells | {"delay": 1, "y0": 1, "y1": 0, "replay": 0}),
        Row(None, cells | {"delay": 1, "y0": 1, "y1": 1, "replay": 1}),
        Row(None, cells | {"delay": 2, "y0": 1, "y1": 1, "terminated": "true"}),
        Row(None, cells | {"delay": 2, "y0": 1, "y1": 0, "placebo": "true"}),
    ])  # fmt: skip
    e = episodes(pairs, "refresh", (1, 2, 4))
    assert e.alive.tolist() == [[True, False, False]]
    assert e.harm[0, 0] == 0.5
    assert e.base[0] == 1.0
    rows = policy_rows(e, {"always": np.array([0])})
    assert rows[0].harm == 0.5
    with pytest.raises(EvidenceError, match="has refresh"):
        episodes(pairs, "replan")
    with pytest.raises(UsageError, match="agents"):
        episodes(from_rows([Row(None, cells | {"delay": 1, "y0": 1, "y1": 0, "agent": a}) for a in "xy"]), "refresh")


def test_what_never_acts_has_gain_and_harm_zero_by_definition(
    tried: Evaluation, sides: tuple[Episodes, Episodes]
) -> None:
    """Nothing is estimated of a policy that cannot act; one that merely did not act keeps its zero-event bounds."""
    assert {r.condition for r in tried.rows} > {"clean", "all", "clean 90%"}
    for row in (r for r in tried.rows if r.policy == "never"):
        for e in (row.gain, row.doubly_robust):
            assert e is not None
            assert (e.value, e.low, e.high) == (0.0, 0.0, 0.0)
        assert (row.harm, row.harm_upper) == (0.0, 0.0)
    uncertified = evaluate(*sides, "refresh", EvaluateOptions(fit=FitOptions(limit=0.001)))
    row = found(uncertified, "router certified")
    assert row.gain is not None
    assert (row.gain.low, row.gain.high, row.harm_upper) == (0.0, 0.0, 0.0)
    between = row.versus["never"]
    assert between is not None
    assert (between.low, between.high) == (0.0, 0.0)
    test = sides[1]
    idle = np.full(len(test), -1, dtype=np.int64)
    quiet = next(r for r in policy_rows(test, {"never": idle, "quiet": idle}) if r.policy == "quiet")
    assert quiet.gain is not None
    assert quiet.gain.low is not None
    assert quiet.gain.low < 0.0 < quiet.harm_upper
