"""An Inspect task as a benchmark: its own file, run by Inspect itself with epochs, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seatrial.errors import InfrastructureError, InputError, MissingExtra, UsageError
from seatrial.ingest import read_file
from seatrial.records import RecordedOutcome, Task, Trace

_RUN = """
import json, sys
asked = json.loads(sys.stdin.read())
from inspect_ai import eval
logs = eval(asked.pop("tasks"), display="none", log_level="error", **asked)
print("\\n" + json.dumps([{
    "status": log.status, "location": log.location, "name": log.eval.task,
    "ids": [str(i) for i in (log.eval.dataset.sample_ids or [])],
    "error": log.error.message if log.error else None} for log in logs]))
"""


class InspectTask:
    """Implements `records.Benchmark` over the task in an Inspect file; needs the extra [inspect].

    `spec` is what ``inspect eval`` takes: ``file.py`` or ``file.py@task``. The agent is the name of a model; None: the
    one that the task itself names. `arguments` go to the task, `samples` chooses some of its samples by id. The first
    call of `attempts` runs all of them, k epochs each, as Inspect does by itself. The environment is Inspect's own, so
    nothing is re-executed; what the log holds is measured. `seconds` bounds one call of Inspect.
    """

    version = "1"

    def __init__(
        self,
        spec: str | Path,
        *,
        arguments: dict[str, Any] | None = None,
        samples: Sequence[str] = (),
        seconds: float = 3600.0,
    ) -> None:
        self._spec = str(spec)
        file = Path(self._spec.partition("@")[0])
        if not file.is_file():
            raise InputError("there is no such Inspect task", file=str(file), hint="file.py or file.py@task")
        self.name = self._spec.rpartition("@")[2] if "@" in self._spec else file.stem
        self._folder = file.resolve().parent
        self._target = str(file.resolve()) + ("@" + self._spec.partition("@")[2] if "@" in self._spec else "")
        self._arguments = dict(arguments or {})
        self._seconds = seconds
        self._samples = tuple(samples)
        self._tasks: tuple[Task, ...] | None = None
        self._made: dict[tuple[object, int, int], dict[str, list[Trace]]] = {}

    def tasks(self) -> Sequence[Task]:
        """One task per sample of the dataset; what it asks stands in the log of an attempt.

        Raises:
            MissingExtra: Inspect is not installed.
            InputError: the file holds no task.
        """
        if self._tasks is None:
            with tempfile.TemporaryDirectory() as folder:
                found = self._eval({"run_samples": False, "log_dir": folder, "model": "mockllm/model"})
            chosen = [sample for sample in found["ids"] if not self._samples or sample in self._samples]
            self._tasks = tuple(Task(id=sample, input="", suite=self.name) for sample in chosen)
        return self._tasks

    def reset(self, task: Task, seed: int) -> None:
        """Inspect keeps its environment to itself."""

    def attempts(self, task: Task, agent: object, *, k: int, seed: int) -> Iterator[Trace]:
        """The sample's `k` epochs.

        Raises:
            UsageError: the agent is no name of a model.
            InfrastructureError: Inspect could not run.
        """
        if agent is not None and not isinstance(agent, str):
            raise UsageError(
                f"{type(agent).__name__} is no model of Inspect", hint="provider/model, as Inspect names it"
            )
        key = (agent, k, seed)
        if key not in self._made:
            self._made[key] = self._run(agent, k, seed)
        yield from self._made[key].get(task.id, ())

    def _run(self, agent: str | None, k: int, seed: int) -> dict[str, list[Trace]]:
        """By task, its attempts in order of the epochs."""
        asked: dict[str, Any] = {"epochs": k, "log_format": "json", "seed": seed % 2**31}
        if self._samples:
            asked["sample_id"] = list(self._samples)
        if agent is not None:
            asked["model"] = agent
        with tempfile.TemporaryDirectory() as folder:
            found = self._eval({**asked, "log_dir": folder})
            location = Path(str(found["location"]).removeprefix("file://"))
            if not location.is_file():
                raise InfrastructureError(f"Inspect left no log: {found['status']}, {found['error']}")
            traces = [t for t in read_file(location, format="inspect") if t.parent is None]
        out: dict[str, list[Trace]] = {}
        for trace in sorted(traces, key=lambda t: t.attempt or 0):
            out.setdefault(str(trace.task.id), []).append(trace)
        return out

    def success(self, task: Task, trace: Trace) -> RecordedOutcome:
        """What Inspect's own scorer said."""
        return trace.outcome or RecordedOutcome(status="unscored", by="inspect")

    def _eval(self, asked: dict[str, Any]) -> dict[str, Any]:
        given = {"tasks": self._target, "task_args": self._arguments, **asked}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RUN], input=json.dumps(given), capture_output=True, text=True,
                timeout=self._seconds, cwd=self._folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(f"Inspect took longer than {self._seconds:g} s") from error
        if "No module named 'inspect_ai'" in done.stderr:
            raise MissingExtra("inspect", "an Inspect task")
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise InputError(f"Inspect cannot run the task: {said[-1] if said else done.returncode}", file=self._spec)
        logs = json.loads(done.stdout.strip().splitlines()[-1])
        if not logs:
            raise InputError("the file holds no Inspect task", file=self._spec)
        first: dict[str, Any] = logs[0]
        return first
