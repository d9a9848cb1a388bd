"""The committed truth is what the present agents, users and outcomes give."""

from __future__ import annotations

import itertools

import polars as pl
import pytest

from seatrial.examples import fleet, habits, sentences, truth
from seatrial.flows import planted
from seatrial.flows.planted import PER_POPULATION, PROBE, SEED, SUCCESS


def test_the_committed_truth_is_not_stale() -> None:
    """The first populations, worked again, give the very same numbers."""
    known = planted.load()
    assert known.made_by == planted.made_by()
    assert planted.simulate(PROBE).probe == known.probe


@pytest.mark.full
def test_the_whole_truth_is_reproduced() -> None:
    known = planted.load()
    assert planted.simulate(known.populations).agents == known.agents


def test_the_truth_is_sharp_and_sums_to_nothing() -> None:
    known = planted.load()
    assert list(known.agents) == [profile.name for profile in habits.FLEET]
    for outcome in ("signals_mean", SUCCESS):
        values = [agents[outcome] for agents in known.agents.values()]
        assert sum(v.net for v in values) == pytest.approx(0.0, abs=1e-5)
        assert all(v.se < 0.005 for v in values)
        nets = [v.net for v in values]
        assert nets == sorted(nets, reverse=True)
        assert min(a - b for a, b in itertools.pairwise(nets)) > 0.02


def test_net_improvement_and_its_error_are_those_of_the_paired_design() -> None:
    populations = 12
    got = planted.simulate(populations)
    words = sentences.built_in()
    success = {profile.name: [] for profile in habits.FLEET}  # type: dict[str, list[float]]
    for i in range(populations):
        for planned in fleet.plan(PER_POPULATION, SEED + i):
            for profile in habits.FLEET:
                success[profile.name].append(truth.of(fleet.work(planned, profile, words)).success)
    frame = pl.DataFrame(success)
    overall = frame.mean_horizontal()
    for name in frame.columns:
        difference = frame[name] - overall
        groups = [difference[i : i + PER_POPULATION].sum() for i in range(0, len(difference), PER_POPULATION)]
        centred = [g - PER_POPULATION * difference.mean() for g in groups]  # type: ignore[operator]
        n, g = len(difference), populations
        error = (g / (g - 1) * sum(c * c for c in centred)) ** 0.5 / n
        value = got.agents[name][SUCCESS]
        assert value.mean == pytest.approx(frame[name].mean(), abs=1e-6)
        assert value.net == pytest.approx(difference.mean(), abs=1e-6)
        assert value.se == pytest.approx(error, abs=1e-6)


def test_outcomes_come_from_what_was_meant() -> None:
    """A session of a perfect agent has every outcome 1 where it has one."""
    never = habits.Habits(**dict.fromkeys(habits.Habits.__struct_fields__, 0.0))
    perfect = habits.Profile(name="perfect", about="", habits=never)
    for planned in fleet.plan(30, 1):
        row = planted.outcome_row(truth.of(fleet.work(planned, perfect, sentences.built_in())))
        assert {value for name, value in row.items() if value is not None} == {1.0}
