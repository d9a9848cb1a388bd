"""Agents, users and logs: habits decide what agents do, the world decides what came of it, users see only that."""

from __future__ import annotations

import inspect
from pathlib import Path

import msgspec
import pytest

from seatrial import ingest
from seatrial.errors import UsageError
from seatrial.examples import claude_log, fleet, truth, users
from seatrial.examples.fleet import Worked
from seatrial.examples.habits import FLEET, Habits, Profile
from seatrial.examples.sentences import REGISTERS, SLOTS, Sentences, built_in
from seatrial.records import Trace

NEVER = Habits(**dict.fromkeys(Habits.__struct_fields__, 0.0))
PERFECT = Profile(name="perfect", about="no bad habit", habits=NEVER)


def _work(profile: Profile, n: int = 40, seed: int = 5) -> list[Worked]:
    return [fleet.work(planned, profile, built_in()) for planned in fleet.plan(n, seed)]


def _but(**habits: float) -> Profile:
    return msgspec.structs.replace(PERFECT, habits=msgspec.structs.replace(NEVER, **habits))


def _right(worked: list[Worked]) -> float:
    flat = [right for w in worked for right in w.right]
    return sum(flat) / len(flat)


def test_an_agent_without_bad_habits_is_always_right() -> None:
    worked = _work(PERFECT, 150)
    assert _right(worked) == 1.0
    assert {job.kind for w in worked for job in w.plan.jobs} == set(fleet.jobs.KINDS)
    meant = set().union(*(kinds for w in worked for _, kinds in truth.meant(w)))
    assert meant == {"confirmation", "praise", "accept_implicit"}


@pytest.mark.parametrize(
    "habits",
    [
        {"slips": 1.0},
        {"leaves_out": 1.0},
        {"meddles": 1.0},
        {"fumbles": 1.0, "gives_up": 1.0},
        {"invents": 1.0, "gives_up": 1.0},
    ],
)
def test_each_bad_habit_makes_the_world_come_out_wrong(habits: dict[str, float]) -> None:
    assert _right(_work(_but(**habits))) < 0.9


def test_verifying_repairs_what_slips_spoil() -> None:
    spoilt = _right(_work(_but(slips=0.5)))
    verified = _right(_work(_but(slips=0.5, verifies=1.0)))
    overlooked = _right(_work(_but(slips=0.5, verifies=1.0, overlooks=1.0)))
    assert verified > 0.97
    assert spoilt < 0.9
    assert overlooked < 0.9


def test_a_heeded_correction_puts_things_right() -> None:
    assert _right(_work(_but(slips=0.5, heeds=1.0))) > _right(_work(_but(slips=0.5, heeds=0.0)))


def test_users_never_learn_which_agent_they_have() -> None:
    """Two agents of other names and equal habits get word for word the same conversation."""
    other = msgspec.structs.replace(FLEET[1], name="another")
    for one, two in zip(_work(FLEET[1], 20), _work(other, 20), strict=True):
        said = [[s.text for s in w.transcript.steps if s.event_class == "human"] for w in (one, two)]
        assert said[0] == said[1]
    assert "agent" not in inspect.signature(users.SimulatedUser.__init__).parameters


def test_other_sentences_change_no_decision() -> None:
    table = {
        name: {register: [" ".join([name, *(f"{{{slot}}}" for slot in sorted(required))])] for register in REGISTERS}
        for name, (required, _) in SLOTS.items()
    }
    plain = Sentences(table)
    for planned in fleet.plan(20, 5):
        one, two = (fleet.work(planned, FLEET[3], words) for words in (built_in(), plain))
        assert truth.meant(one) == truth.meant(two)
        assert one.right == two.right


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def logs(name: str, seed: int) -> dict[str, bytes]:
        root = tmp_path / name
        _generate(root, 25, seed)
        return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.jsonl"))}

    one = logs("one", 4)
    assert len(one) == 25
    assert one == logs("two", 4)
    assert not one.keys() & logs("three", 5).keys()


def _generate(folder: Path, n: int, seed: int) -> tuple[Worked, ...]:
    plans = fleet.plan(n, seed)
    return fleet.generate(folder, plans, {p.id: FLEET[i % len(FLEET)].name for i, p in enumerate(plans)})


def test_a_session_without_an_arm_is_refused(tmp_path: Path) -> None:
    plans = fleet.plan(2, 1)
    with pytest.raises(UsageError, match="no arm"):
        fleet.generate(tmp_path, plans, {plans[0].id: "kite-mini"})
    with pytest.raises(UsageError, match="dory"):
        fleet.generate(tmp_path, plans, {p.id: "dory" for p in plans})


def test_a_plan_is_in_time_order() -> None:
    times = [p.time for p in fleet.plan(50, 1)]
    assert times == sorted(times)
    assert len({p.id for p in fleet.plan(50, 1)}) == 50


def test_the_public_reader_reads_back_what_happened(tmp_path: Path) -> None:
    worked = _generate(tmp_path, 60, 2)
    read = {trace.id: trace for trace in ingest.read(tmp_path)}
    assert read.keys() == {w.plan.id for w in worked}
    for w in worked:
        _same(read[w.plan.id], w)
    causes = {r.extra.get("cause") for w in worked for s in w.transcript.steps for r in s.results}
    assert {"model", "environment", "benign", None} <= causes


def _same(trace: Trace, worked: Worked) -> None:
    steps = worked.transcript.steps
    assert trace.model == worked.agent
    assert [(s.event_class, s.text) for s in trace.steps] == [(s.event_class, s.text) for s in steps]
    for got, made in zip(trace.steps, steps, strict=True):
        assert [(c.name, c.arguments) for c in got.tool_calls] == [(c.name, c.arguments) for c in made.tool_calls]
        assert [r.outcome for r in got.results] == [r.outcome for r in made.results]
        assert [r.exit_code for r in got.results] == [r.exit_code or None for r in made.results]
        assert got.time is not None
        assert got.time == pytest.approx(made.time, abs=0.01)
        if made.usage is not None:
            assert got.usage is not None
            assert got.usage.output_tokens == made.usage.output_tokens
            assert got.usage.input_tokens == made.usage.input_tokens


def test_a_log_holds_no_ground_truth(tmp_path: Path) -> None:
    for w in _generate(tmp_path, 30, 3):
        assert w.log is not None
        text = w.log.read_text("utf-8")
        assert not any(word in text for word in ('"meaning"', '"cause"', '"purpose"', "correction.", "planted"))
    assert claude_log.project_folder("/home/dev01/harbour") == "-home-dev01-harbour"


def test_users_are_uneven_and_many() -> None:
    people = users.population()
    assert len(people) >= 60
    assert len({p.register for p in people}) == 4
    weights = sorted((p.weight for p in people), reverse=True)
    assert sum(weights[: len(weights) // 10]) / sum(weights) > 0.2
    plan = fleet.plan(1000, 7)
    assert len({p.persona.name for p in plan}) >= 60
    assert {len(p.jobs) for p in plan} == {1, 2, 3}


def test_true_episodes_and_signals_fit_the_transcript() -> None:
    for w in _work(FLEET[3], 30):
        found = truth.of(w)
        assert found.episodes[0].start == 0
        assert found.episodes[-1].end == len(found.trace.steps)
        assert [e.end for e in found.episodes[:-1]] == [e.start for e in found.episodes[1:]]
        for signal in found.signals:
            assert found.trace.steps[signal.step].event_class == "human"
            assert signal.judges_step is not None
            assert found.trace.steps[signal.judges_step].event_class == "agent"
        assert len(found.calls) == sum(len(s.tool_calls) for s in found.trace.steps)
        assert 0.0 <= found.success <= 1.0
        assert len(w.right) == len(found.episodes)


def test_the_documented_habits_are_the_agents_habits() -> None:
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "demo.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    assert rows[0][2:] == [profile.name for profile in FLEET]
    documented = {row[0].strip("`"): [float(cell) for cell in row[2:]] for row in rows[2:]}
    assert documented == {
        name: [getattr(profile.habits, name) for profile in FLEET] for name in Habits.__struct_fields__
    }
