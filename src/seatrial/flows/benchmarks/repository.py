"""Repositories with tests as a benchmark: an agent edits, the repository's own tests run in the confined shell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from seatrial.errors import InputError
from seatrial.flows.benchmarks import own
from seatrial.records import RecordedOutcome, Task, Trace, World, WorldStart
from seatrial.suites import Limits
from seatrial.world import confined
from seatrial.world.directory import DirectoryWorld, ShellTool, file_tools

Runner = Literal["unittest", "pytest"]
COMMANDS: dict[str, str] = {
    "unittest": "python -m unittest discover -v -s . 2>&1",
    "pytest": "python -m pytest -q -rA -p no:cacheprovider 2>&1",
}
_UNITTEST = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n.*)? \.\.\. (.+)$", re.MULTILINE)
_PYTEST = re.compile(r"^(PASSED|FAILED|ERROR) (\S+)", re.MULTILINE)
TIMES = (r"in \d+\.\d+ ?s(?:econds)?", r"0x[0-9a-f]+")
"""What differs between two runs of the same tests, and is no divergence."""


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """One task: a repository's files, what is asked, the tests that must pass afterwards and those that must go on to.

    Names of tests are as the runner prints them: ``test_add (tests.test_sum.TestSum.test_add)`` is
    ``tests.test_sum.TestSum.test_add``, and pytest's node ids.
    """

    id: str
    input: str
    files: dict[str, str]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...] = ()
    runner: Runner = "unittest"


class RepositorySet:
    """Implements `records.Benchmark` over repositories; needs bubblewrap, as tests are other people's code.

    Success is that every test of both lists passes at the end, as in SWE-bench. `seconds` bounds one run of the tests.
    """

    version = "1"

    def __init__(
        self, name: str, repositories: Sequence[Repository], *, turns: int = 40, seconds: float = 60.0
    ) -> None:
        if not repositories:
            raise InputError(f"the benchmark {name} holds no repository")
        self.name = name
        self._held = {r.id: r for r in repositories}
        self._turns = turns
        self._seconds = seconds

    def tasks(self) -> Sequence[Task]:
        """One task per repository."""
        return [
            Task(id=r.id, input=r.input, type="bug", extra={"volatile_text": list(TIMES)}) for r in self._held.values()
        ]

    def reset(self, task: Task, seed: int) -> World:
        """A fresh folder with the repository's files.

        Raises:
            InfrastructureError: this machine cannot confine a shell.
            InputError: there is no such task.
        """
        if task.id not in self._held:
            raise InputError(f"the benchmark {self.name} has no task {task.id!r}")
        repository = self._held[task.id]
        limits = confined.ShellLimits(seconds=self._seconds)

        def tests(root: Path) -> dict[str, bool]:
            return results(confined.run(root, COMMANDS[repository.runner], limits).text, repository.runner)

        world = DirectoryWorld(f"repository:{task.id}", "1", (*file_tools(), ShellTool(limits)), tests=tests)
        world.reset(WorldStart(state={"files": dict(repository.files)}, seed=seed))
        return world

    def attempts(self, task: Task, agent: object, *, k: int, seed: int) -> Iterator[Trace]:
        """`k` attempts by our runner.

        Raises:
            UsageError: the agent cannot act in a world.
        """
        limits = Limits(turns=self._turns)
        return own.attempts(self.name, task, agent, self.reset, k=k, seed=seed, limits=limits)

    def success(self, task: Task, trace: Trace) -> RecordedOutcome:
        """By the tests at the end."""
        settled = own.settled(trace)
        if settled is not None:
            return settled
        repository = self._held[task.id]
        passed = (trace.extra.get("final") or {}).get("tests", {})
        lost = [t for t in (*repository.fail_to_pass, *repository.pass_to_pass) if not passed.get(t, False)]
        said = f"{len(lost)} tests do not pass: {', '.join(lost[:3])}" if lost else "every test that must pass does"
        return RecordedOutcome(status="failed" if lost else "passed", by=self.name, extra={"reason": said})


def results(text: str, runner: Runner) -> dict[str, bool]:
    """Which tests passed, from what the runner printed; a test that was skipped is left out."""
    if runner == "pytest":
        return {name: word == "PASSED" for word, name in _PYTEST.findall(text)}
    found = {}
    for test, place, said in _UNITTEST.findall(text):
        if not said.startswith("skipped"):
            name = place if place.endswith(f".{test}") else f"{place}.{test}"
            found[name] = said.split(" ")[-1] == "ok"
    return found


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    input: str
    fail_to_pass: list[str]
    pass_to_pass: list[str] = []
    runner: Runner = "unittest"


def from_folder(name: str, folder: Path, *, turns: int = 40, seconds: float = 60.0) -> RepositorySet:
    """The set in a folder: each subfolder has ``task.toml`` (input, fail_to_pass, pass_to_pass, runner) and the
    repository in ``repo/``.

    Raises:
        InputError: a task that cannot be read; names its file.
    """
    found = []
    for head in sorted(folder.glob("*/task.toml")):
        try:
            raw = msgspec.convert(tomllib.loads(head.read_text("utf-8")), _Head)
            base = head.parent / "repo"
            files = {
                p.relative_to(base).as_posix(): p.read_text("utf-8") for p in sorted(base.rglob("*")) if p.is_file()
            }
        except (OSError, ValueError, msgspec.ValidationError) as error:
            raise InputError(f"the task cannot be read: {error}", file=str(head)) from error
        found.append(
            Repository(
                id=head.parent.name, input=raw.input, files=files, fail_to_pass=tuple(raw.fail_to_pass),
                pass_to_pass=tuple(raw.pass_to_pass), runner=raw.runner,
            )
        )  # fmt: skip
    if not found:
        raise InputError("no task.toml below this folder", file=str(folder), hint="FOLDER/<id>/task.toml and repo/")
    return RepositorySet(name, found, turns=turns, seconds=seconds)
