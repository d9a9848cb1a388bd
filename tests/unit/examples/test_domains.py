"""The worked domains: tasks of every source, agents of different quality, checks that tell them apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from seatrial.examples import Domain, domains
from seatrial.examples.clerk import HABITS
from seatrial.examples.coderepo.arithmetic import Interpreter, Refused
from seatrial.grading import assertions
from seatrial.records import Agent, Task, World
from seatrial.records.protocols import AgentUnderTest
from seatrial.world import Approve, FixedText, Transcript, offered, rules, run_episode, start_of, trace_of

ALL = domains()
TRIALS = 2


def attempt(domain: Domain, task: Task, agent: AgentUnderTest, seed: int) -> tuple[Transcript, bool]:
    world = domain.build()
    world.reset(start_of(task, seed, domain.start))
    gates = rules(task.gates)
    conversation = agent.begin(offered(world.tools, gates), seed)
    transcript = run_episode(world, conversation, FixedText(task.input), gates=gates, approver=Approve())
    trace = trace_of(transcript, id=f"{task.id}-{seed}", agent=Agent(name=agent.name), world=world)
    answer = next((s.text for s in reversed(trace.steps) if s.event_class == "agent" and s.text), "")
    changes = world.difference(transcript.start, transcript.final)
    assert isinstance(task.check_final, list)
    outcomes = [
        assertions.judge(a, answer=answer, state=transcript.final, start=transcript.start, changes=changes)
        for a in assertions.parse(task.check_final)
    ]
    return transcript, all(o.ok for o in outcomes)


@cache
def rate(name: str, habit: str) -> float:
    domain = next(d for d in ALL if d.name == name)
    agent = next(a for a in domain.agents if a.name.endswith("-" + habit))
    passed = [attempt(domain, t, agent, seed)[1] for t in domain.tasks for seed in range(TRIALS)]
    return sum(passed) / len(passed)


def each(domain: Domain, *types: str) -> Iterator[Task]:
    return (t for t in domain.tasks if not types or t.type in types)


@pytest.mark.parametrize("domain", ALL, ids=lambda d: d.name)
def test_a_domain_is_a_suite(domain: Domain) -> None:
    assert isinstance(domain.world(0), World)
    assert len(domain.tasks) >= 10
    assert len({t.id for t in domain.tasks}) == len(domain.tasks)
    assert len({t.input for t in domain.tasks}) == len(domain.tasks)
    assert {t.source for t in domain.tasks} == {"production_failure", "representative", "adversarial", "synthetic"}
    assert sum(1 for _ in each(domain, "ambiguous")) >= 2
    assert sum(1 for _ in each(domain, "refuse")) >= 2
    known = {t.name for t in domain.build().tools}
    for task in domain.tasks:
        assert set(task.expected_tools) <= known, task.id
        assert set(task.forbidden_tools) <= known, task.id
        assert not set(task.expected_tools) & set(task.forbidden_tools), task.id
        assert task.intent is not None
        assert {a["tool"] for part in ("allowed", "prohibited") for a in task.intent[part]} <= known
        assert task.r_max
        assert task.max_turns
    assert [a.name for a in domain.agents] == [f"{domain.name}-{h}" for h in HABITS]


@pytest.mark.parametrize("domain", ALL, ids=lambda d: d.name)
def test_doing_nothing_passes_no_task(domain: Domain) -> None:
    for task in domain.tasks:
        world = domain.build()
        world.reset(start_of(task, 1, domain.start))
        state = world.state()
        assert isinstance(task.check_final, list)
        outcomes = [
            assertions.judge(a, answer="Done.", state=state, start=state, changes=())
            for a in assertions.parse(task.check_final)
        ]
        assert not all(o.ok for o in outcomes), task.id


@pytest.mark.parametrize("domain", ALL, ids=lambda d: d.name)
def test_the_clean_agent_does_everything_as_it_should(domain: Domain) -> None:
    for task in domain.tasks:
        transcript, passed = attempt(domain, task, domain.agents[0], 2)
        calls = [c.name for s in transcript.steps for c in s.tool_calls]
        assert passed, task.id
        assert transcript.stopped == "user_left"
        assert not [e for e in transcript.gates if e.respected is False], task.id
        assert not set(calls) & set(task.forbidden_tools), task.id
        assert all(calls.count(tool) >= task.expected_tools.count(tool) for tool in task.expected_tools), task.id
        assert sum(s.event_class == "agent" for s in transcript.steps) <= (task.max_turns or 0), task.id
        if task.type in ("ambiguous", "refuse"):
            assert transcript.final_hash == start_hash(domain, task), task.id


def start_hash(domain: Domain, task: Task) -> str:
    world = domain.build()
    world.reset(start_of(task, 2, domain.start))
    return world.state_hash()


@pytest.mark.parametrize("domain", ALL, ids=lambda d: d.name)
def test_agents_differ_in_quality_as_their_habits_say(domain: Domain) -> None:
    assert rate(domain.name, "clean") == rate(domain.name, "curious") == 1.0
    assert 0.6 < rate(domain.name, "flaky") < 1.0
    assert 0.2 < rate(domain.name, "messy") < 0.8
    assert rate(domain.name, "careless") < rate(domain.name, "hasty") < 0.75


@pytest.mark.parametrize("domain", ALL, ids=lambda d: d.name)
def test_habits_show_in_the_trace(domain: Domain) -> None:
    by = dict(zip(HABITS, domain.agents, strict=True))
    task = next(t for t in domain.tasks if t.type in ("change", "calendar") and t.source == "representative")

    def calls(habit: str) -> list[tuple[str, str]]:
        transcript, _ = attempt(domain, task, by[habit], 2)
        return [(c.name, str(c.arguments)) for s in transcript.steps for c in s.tool_calls]

    clean, curious = calls("clean"), calls("curious")
    assert len(set(clean)) == len(clean)
    assert len(set(curious)) < len(curious)
    assert len(set(curious)) > len(set(clean))
    unasked = [
        e
        for t in domain.tasks
        for e in attempt(domain, t, by["hasty"], 2)[0].gates
        if e.gate is not None and e.respected is False
    ]
    assert unasked, "an approval was skipped"
    flaky = [attempt(domain, task, by["flaky"], seed)[1] for seed in range(20)]
    assert 0 < sum(flaky) < 20


def test_one_seed_gives_one_transcript() -> None:
    for domain in ALL:
        one, two = (attempt(domain, domain.tasks[0], domain.agents[-1], 4)[0] for _ in range(2))
        assert [s.tool_calls for s in one.steps] == [s.tool_calls for s in two.steps]
        assert one.final_hash == two.final_hash


@pytest.mark.parametrize(
    "body",
    [
        "return 'a' * 1000000000",
        "return '%999999999d' % 1",
        "return f(x)",
        "return (10 ** 9) ** 9",
        "return __import__('os')",
        "return [1] * 9",
        "return x.real",
        "return 1000000 * 1000000 * 1000000",
        "import os",
        "while True: x = 1",
        "return lambda: 1",
    ],
)
def test_the_interpreter_of_tests_refuses_everything_else(body: str) -> None:
    with pytest.raises(Refused):
        Interpreter({"a.py": f"def f(x):\n    {body}\n"}).call("f", [1])


def test_the_interpreter_computes_what_python_does() -> None:
    source = """
def g(a):
    return a if a > 2 else -a

def f(x, y):
    z = x * 3 // 2 % 5
    if z >= 1 and not y == 2:
        return max(z, g(y)) / 2
    return 'no' + 'thing'
"""
    for x in range(-3, 6):
        for y in range(-2, 5):
            z = x * 3 // 2 % 5
            g = y if y > 2 else -y
            expected = max(z, g) / 2 if z >= 1 and y != 2 else "nothing"
            assert Interpreter({"a.py": source}).call("f", [x, y]) == expected
