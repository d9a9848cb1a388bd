"""Three kinds of other people's benchmarks, run k times as they are, to scorecards (METHODS 5)."""

from __future__ import annotations

import json
import random
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InputError, UsageError
from seatrial.flows.benchmarks import GymSet, InspectTask, Repository, RepositorySet, evidence, from_folder
from seatrial.flows.benchmarks import score_benchmark as score
from seatrial.flows.benchmarks.repository import results
from seatrial.records import AgentTurn, Benchmark, ToolCall
from seatrial.world import ScriptedAgent, confined

LEFT, DOWN, RIGHT, UP = range(4)
MAPS = {
    "corner": {"desc": ["SFF", "HFF", "FFG"], "is_slippery": False},
    "lake": {"desc": ["SHF", "FFF", "FHG"], "is_slippery": False},
}
WAYS = {"corner": [RIGHT, DOWN, DOWN, RIGHT], "lake": [DOWN, RIGHT, RIGHT, DOWN]}


def walker(name: str, ways: dict[str, list[int]], drunk: bool = False) -> ScriptedAgent:
    """Knows the way; drunk: bumps into the wall first, and often goes the other way."""

    def script(message: Any, tools: Any, draws: random.Random) -> Any:
        way = next(steps for task, steps in ways.items() if task in message.text)
        if drunk:
            way = [LEFT, *way] if draws.random() < 0.5 else [LEFT, UP, UP]
        for n, action in enumerate(way):
            yield AgentTurn(calls=(ToolCall(id=f"a{n}", name="act", arguments={"action": action}),))
        yield AgentTurn(text="I am there.")

    return ScriptedAgent(name, "1", script)


@pytest.fixture(scope="module")
def lakes() -> GymSet:
    pytest.importorskip("gymnasium", reason="the extra [gym] is not installed")
    return GymSet("lakes", "FrozenLake-v1", MAPS, says="Cross the {task}.")


def test_the_three_are_benchmarks(lakes: GymSet, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("")
    assert isinstance(lakes, Benchmark)
    assert isinstance(RepositorySet("r", [SUMS]), Benchmark)
    assert isinstance(InspectTask(tmp_path / "t.py"), Benchmark)


def test_a_gymnasium_set_is_scored_in_every_dimension_that_it_has_evidence_for(lakes: GymSet) -> None:
    agents = {"sure": walker("sure", WAYS), "drunk": walker("drunk", WAYS, drunk=True)}
    found = score(lakes, agents, k=5)
    sure, drunk = (card.dimensions for card in found.cards)
    assert sure["D1"].estimate.value == 1.0  # type: ignore[union-attr]
    assert 0.0 < drunk["D1"].estimate.value < 1.0  # type: ignore[union-attr]
    assert sure["D2"].estimate.value == 1.0  # type: ignore[union-attr]
    # A bump into the wall changes nothing but the number of steps: extraneous, where the run passed.
    assert drunk["D2"].estimate.value == pytest.approx(0.8)  # type: ignore[union-attr]
    assert sure["D3"].estimate.value == 1.0  # type: ignore[union-attr]
    assert drunk["D3"].estimate.value < 1.0  # type: ignore[union-attr]
    for card in (sure, drunk):
        assert card["D5"].estimate.value == 1.0  # type: ignore[union-attr]
        assert card["D5"].beside["agent"].value == 1.0  # type: ignore[union-attr]


def test_one_seed_gives_the_same_attempts(lakes: GymSet) -> None:
    agent = walker("drunk", WAYS, drunk=True)
    one, two = ([e.trace.extra["final"] for e in evidence(lakes, agent, k=4)] for _ in range(2))
    assert one == two


def test_a_slippery_lake_replays_with_its_own_luck() -> None:
    pytest.importorskip("gymnasium", reason="the extra [gym] is not installed")
    slippery = GymSet("wet", "FrozenLake-v1", {"lake": {"desc": MAPS["lake"]["desc"], "is_slippery": True}})
    found = score(slippery, {"sure": walker("sure", WAYS)}, k=6)
    card = found.cards[0].dimensions
    assert card["D5"].estimate.value == 1.0  # type: ignore[union-attr]
    assert card["D1"].estimate.value < 1.0  # type: ignore[union-attr]


SUMS = Repository(
    id="sums",
    input="test_mean is red. Please repair it.",
    files={
        "sums.py": "def total(xs):\n    return sum(xs)\n\n\ndef mean(xs):\n    return sum(xs) / (len(xs) + 1)\n",
        "test_sums.py": textwrap.dedent(
            """
            import unittest

            import sums


            class Sums(unittest.TestCase):
                def test_total(self):
                    self.assertEqual(sums.total([1, 2]), 3)

                def test_mean(self):
                    self.assertEqual(sums.mean([2, 4]), 3)
            """
        ),
    },
    fail_to_pass=("test_sums.Sums.test_mean",),
    pass_to_pass=("test_sums.Sums.test_total",),
)
TEST = "python -m unittest discover -v 2>&1"


def coder(name: str, *, breaks: bool = False) -> ScriptedAgent:
    """Repairs the mean; the other one breaks the total on the way, and leaves a file behind."""

    def script(message: Any, tools: Any, draws: random.Random) -> Any:
        def call(n: int, tool: str, **arguments: str) -> AgentTurn:
            return AgentTurn(calls=(ToolCall(id=f"c{n}", name=tool, arguments=arguments),))

        yield call(1, "shell", command=TEST)
        yield call(2, "read_file", path="sums.py")
        yield call(3, "edit_file", path="sums.py", old="(len(xs) + 1)", new="len(xs)")
        if breaks:
            yield call(4, "edit_file", path="sums.py", old="return sum(xs)\n", new="return sum(xs) + 1\n")
            yield call(5, "write_file", path="notes.txt", text="done")
        yield call(6, "shell", command=TEST)
        yield AgentTurn(text="The mean is repaired.")

    return ScriptedAgent(name, "1", script)


needs_shell = pytest.mark.skipif(confined.refusal() is not None, reason=str(confined.refusal()))


@pytest.mark.full
@needs_shell
def test_a_repository_with_tests_is_scored_by_its_own_tests() -> None:
    found = score(RepositorySet("sums", [SUMS]), {"neat": coder("neat"), "rough": coder("rough", breaks=True)}, k=2)
    neat, rough = (card.dimensions for card in found.cards)
    assert neat["D1"].estimate.value == 1.0  # type: ignore[union-attr]
    assert rough["D1"].estimate.value == 0.0  # type: ignore[union-attr]
    assert neat["D5"].estimate.value == 1.0, neat["D5"].worst  # type: ignore[union-attr]
    # Every action of the neat one has its use: the tests before and after show what the repair changes.
    assert neat["D2"].estimate.value == 1.0, neat["D2"].worst  # type: ignore[union-attr]
    assert found.cards[1].causes[0].task == "sums"


@needs_shell
def test_a_folder_of_repositories(tmp_path: Path) -> None:
    base = tmp_path / "sums"
    (base / "repo").mkdir(parents=True)
    for name, text in SUMS.files.items():
        (base / "repo" / name).write_text(text)
    (base / "task.toml").write_text(
        f'input = "{SUMS.input}"\nfail_to_pass = {json.dumps(SUMS.fail_to_pass)}\n'
        f"pass_to_pass = {json.dumps(SUMS.pass_to_pass)}\n"
    )
    held = from_folder("mine", tmp_path)
    assert [t.id for t in held.tasks()] == ["sums"]
    runs = list(evidence(held, coder("neat"), k=1))
    assert [r.attempt.status for r in runs] == ["passed"]
    (base / "task.toml").write_text("input = 3\n")
    with pytest.raises(InputError, match="cannot be read"):
        from_folder("mine", tmp_path)
    with pytest.raises(InputError, match=r"no task\.toml"):
        from_folder("mine", tmp_path / "sums" / "repo")


def test_results_of_both_runners() -> None:
    told = (
        "test_a (t.T.test_a) ... ok\ntest_b (t.T.test_b)\nWhat it is about. ... FAIL\n"
        "test_c (t.T) ... ERROR\ntest_d (t.T.test_d) ... skipped 'no'\n"
    )
    assert results(told, "unittest") == {"t.T.test_a": True, "t.T.test_b": False, "t.T.test_c": False}
    told = "FAILED t.py::test_b - assert 1 == 2\nPASSED t.py::test_a\nERROR t.py::test_c\n1 failed in 0.1s"
    assert results(told, "pytest") == {"t.py::test_b": False, "t.py::test_a": True, "t.py::test_c": False}


INSPECT = '''
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def answers():
    """Right three times, then wrong once, for ever."""
    n = 0
    while True:
        n += 1
        said = ModelOutput.from_content("mockllm/model", "The answer is 3" if n % 4 == 0 else "The answer is 4")
        # Without a usage Inspect counts tokens with a table that it would have to download.
        said.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        yield said


@task
def sums():
    samples = [Sample(id=name, input=name, target="4") for name in ("two-and-two", "one-and-three")]
    model = get_model("mockllm/model", custom_outputs=answers())
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match(), model=model)
'''


@pytest.mark.full
def test_an_inspect_task_with_epochs_is_scored_from_its_log(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="the extra [inspect] is not installed")
    file = tmp_path / "sums_task.py"
    file.write_text(INSPECT)
    held = InspectTask(f"{file}@sums")
    assert [t.id for t in held.tasks()] == ["two-and-two", "one-and-three"]
    runs = list(evidence(held, None, k=4))
    assert [(r.attempt.task, r.attempt.trial) for r in runs] == [
        (t, n) for t in ("two-and-two", "one-and-three") for n in range(4)
    ]
    assert sorted(r.attempt.status for r in runs) == ["failed"] * 2 + ["passed"] * 6
    assert all(r.world is None and not r.own for r in runs)
    assert {s.event_class for r in runs for s in r.trace.steps} == {"simulated_user", "agent"}  # type: ignore[union-attr]
    found = score(held, {"mock": None}, k=4)
    card = found.cards[0].dimensions
    assert card["D1"].estimate.value == pytest.approx(0.75)  # type: ignore[union-attr]
    assert card["D3"].estimate is not None
    for name in ("D2", "D5"):
        assert card[name].estimate is None
        assert card[name].why


def test_what_cannot_be_run_is_said(lakes: GymSet, tmp_path: Path) -> None:
    agent = walker("sure", WAYS)
    with pytest.raises(UsageError, match="k must be at least 1"):
        list(evidence(lakes, agent, k=0))
    with pytest.raises(UsageError, match="no task 'sea'"):
        list(evidence(lakes, agent, k=1, tasks=["sea"]))
    with pytest.raises(UsageError, match="no agent that can act"):
        list(evidence(lakes, "gpt", k=1))
    with pytest.raises(InputError, match="no such Inspect task"):
        InspectTask(tmp_path / "none.py")
    with pytest.raises(InputError, match=re.escape("FrozenLake-v99")):
        list(evidence(GymSet("g", "FrozenLake-v99", {"a": {}}), agent, k=1, tasks=["a"]))
    with pytest.raises(UsageError, match="at least one agent"):
        score(lakes, {})
