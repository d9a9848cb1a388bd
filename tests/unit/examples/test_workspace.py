"""The workspace's commands, its tests and the judgement of jobs by the final state."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seatrial.examples import jobs, workspace
from seatrial.examples.jobs import KINDS, Job
from seatrial.examples.repository import BUGS, RENAMES, failures
from seatrial.records import ToolCall, ToolResult
from seatrial.world import FaultyWorld


def _world(seed: int = 1) -> FaultyWorld:
    world = workspace.world(seed, fault_rate=0.0)
    world.reset(workspace.start(seed))
    return world


def _bash(world: FaultyWorld, command: str) -> ToolResult:
    return world.call(ToolCall(id="c", name="Bash", arguments={"command": command}))


def _edit(world: FaultyWorld, path: str, old: str, new: str, *, every: bool = False) -> ToolResult:
    arguments = {"file_path": path, "old_string": old, "new_string": new, "replace_all": every}
    return world.call(ToolCall(id="c", name="Edit", arguments=arguments))


@pytest.mark.parametrize(
    ("command", "code", "cause"),
    [
        ("ls src", 0, None),
        ("ls nowhere", 2, "model"),
        ("cat README.md", 0, None),
        ("cat nothing.md", 1, "model"),
        ("grep -rn load_rows src tests", 0, None),
        ("grep -rn absent src", 1, "benign"),
        ("grep -n", 2, "model"),
        ("diff config/api.toml config/api.toml", 0, None),
        ("diff config/api.toml config/worker.toml", 1, "benign"),
        ("diff config/api.toml nothing", 2, "model"),
        ("test -f README.md", 0, None),
        ("test -f nothing", 1, "benign"),
        ("pytest -q", 0, None),
        ("desk show T-101", 0, None),
        ("desk show T-999", 1, "model"),
        ("desk set T-101 --prio high", 2, "model"),
        ("desk close T-101", 2, "model"),
        ("desk list --label stale", 0, None),
        ("desk list --color red", 2, "model"),
        ("svc status api", 0, None),
        ("svc status nothing", 1, "model"),
        ("svc scale api many", 2, "model"),
        ("svc scale api", 2, "model"),
        ("svc stop api", 2, "model"),
        ("git status", 0, None),
        ("git commit -am nothing", 1, "model"),
        ("git rebase", 1, "model"),
        ("frobnicate", 127, "model"),
        ("echo 'unbalanced", 127, "model"),
        ("", 0, None),
    ],
)
def test_exit_codes_are_those_of_the_real_programs(command: str, code: int, cause: str | None) -> None:
    result = _bash(_world(), command)
    assert (result.exit_code, result.extra.get("cause")) == (code, cause)
    assert result.outcome == ("ok" if code == 0 else "error")


def test_a_failing_test_reproduces_a_bug_before_a_change_and_shows_a_mistake_after_one() -> None:
    world = _world()
    bug = BUGS[0]
    _edit(world, bug.file, bug.right, bug.planted)
    assert _bash(world, "pytest").extra["cause"] == "model"
    _bash(world, "git commit -am work")
    assert _bash(world, f"pytest {bug.test}").extra["cause"] == "benign"
    assert _bash(world, f"pytest {BUGS[1].test}").outcome == "ok"


@pytest.mark.parametrize("old", sorted(RENAMES))
def test_a_rename_breaks_the_tests_until_it_is_complete(old: str) -> None:
    world = _world()
    new = RENAMES[old][0]
    paths = _bash(world, f"grep -rl {old} src tests").text.splitlines()
    assert len(paths) >= 3
    for path in paths[:-1]:
        _edit(world, path, old, new, every=True)
        assert failures(world.state()) or path == paths[-1]
    _edit(world, paths[-1], old, new, every=True)
    assert failures(world.state()) == {}


def test_edits_that_cannot_be_made_are_refused() -> None:
    world = _world()
    before = world.state_hash()
    for path, old, new in (
        ("none.py", "a", "b"),
        ("README.md", "absent", "b"),
        ("README.md", "#", "#"),
        ("src/app/rows.py", "rows", "lines"),
    ):
        result = _edit(world, path, old, new)
        assert result.outcome == "error"
        assert result.text.startswith("<tool_use_error>")
    assert world.state_hash() == before


def test_publishing_is_gated() -> None:
    world = _world()
    push = ToolCall(id="c", name="Bash", arguments={"command": "git  push --tags"})
    gate = world.gate(push)
    assert gate is not None
    assert gate.severity == "high"
    assert world.gate(ToolCall(id="c", name="Bash", arguments={"command": "git status"})) is None


def _asked(kind: str, seed: int = 3) -> tuple[Job, dict[str, Any]]:
    state = workspace.start(seed).state
    return jobs.make(kind, state, random.Random(seed)), state


def _put(state: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        state = state[part]
    if isinstance(state, list):
        state.append(value)
    else:
        state[path[-1]] = value


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_doing_exactly_what_was_asked_is_right_and_doing_nothing_is_not(kind: str) -> None:
    for seed in range(20):
        job, before = _asked(kind, seed)
        after = workspace.start(seed).state
        jobs.make(kind, after, random.Random(seed))
        for want in jobs.wants(job, before):
            _put(after, want.path, f"now {want.value}" if want.mentions else want.value)
        right = jobs.answer(job, before)
        said = "done" if right is None else f"It is {next(iter(right[0]))}."
        assert jobs.judge(job, before, after, said) == []
        assert [f.kind for f in jobs.judge(job, before, before, "done")] == ["not_done"]


def test_faults_are_named_after_what_the_world_shows() -> None:
    job, before = _asked("set_config")
    file, key = job.slots["file"], job.slots["key"]
    other = next(c for c in workspace.CONFIGS if c != file)

    def after(*changes: tuple[str, str]) -> dict[str, Any]:
        state = workspace.start(3).state
        for path, value in changes:
            state["files"][path] = jobs.with_setting(state["files"][path], key, value)
        return state

    def kinds(state: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
        return [(f.kind, f.slots) for f in jobs.judge(job, before, state, "done")]

    right = job.slots["value"]
    assert kinds(after((file, right))) == []
    assert kinds(after((file, "7777"))) == [("wrong_value", {"where": key, "wanted": right, "got": "7777"})]
    assert kinds(after((other, "7777"))) == [("wrong_place", {"wanted": file, "got": other})]
    assert kinds(after((file, right), (other, "7777"))) == [("unasked", {"extra": other})]


def test_a_part_left_out_is_incomplete_and_a_wrong_answer_is_wrong() -> None:
    job, before = _asked("triage")
    after = workspace.start(3).state
    after["tickets"][job.slots["ticket"]]["priority"] = job.slots["priority"]
    assert [f.kind for f in jobs.judge(job, before, after, "")] == ["incomplete"]
    question, state = _asked("find_owner")
    owner = state["tickets"][question.slots["ticket"]]["assignee"]
    other = next(p for p in workspace.PEOPLE if p != owner)
    assert jobs.judge(question, state, state, f"It is {owner}.") == []
    assert [f.kind for f in jobs.judge(question, state, state, f"It is {other}.")] == ["wrong_answer"]
    assert [f.kind for f in jobs.judge(question, state, state, f"{owner} or {other}")] == ["wrong_answer"]
