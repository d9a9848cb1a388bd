"""Long work: child processes of the command line, with their progress, their end and what they said.

The server computes nothing itself. A job is `seatrial COMMAND --store S --json` in a process of its own; what it
answers is kept in the store by the command, and shown from there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from seatrial.errors import UsageError
from seatrial.server.joblog import OPEN, JobLog, Record, State, lives, named, this_server

Lane = Literal["long", "quick"]
KEPT = 100
SAID = 40
PROGRESS = "SEATRIAL_PROGRESS"
"""Set to ``lines``, commands write their progress to stderr as lines of JSON."""

_STOP_S = 5.0
_LOOK_S = 0.5


class Step(msgspec.Struct):
    """How far a job is: ``done`` of ``total`` (None: not known) of what."""

    done: int
    total: int | None
    what: str


class Job(msgspec.Struct, kw_only=True):
    """One run of a command. `status` is its exit code; `said` its last lines on stderr; `printed` the start of what it
    printed. Times are seconds UTC."""

    id: str
    title: str
    arguments: list[str]
    by: str
    state: State = "waiting"
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    status: int | None = None
    progress: Step | None = None
    said: list[str] = []
    printed: str = ""


class Jobs:
    """Runs jobs, long ones one after the other and quick ones beside them; `most` may wait. Safe between threads.

    Long ones are remembered beyond the server's end (`joblog`): quick ones name sessions, and the audit log has them.
    A child that outlived the server that started it is watched, can be cancelled, and is waited for.
    """

    def __init__(self, store: Path, *, most: int = 20, say: Callable[[str], None] = lambda text: None) -> None:
        self._store = store
        self._most = most
        self._say = say
        self._guard = threading.Condition()
        self._log = JobLog(store)
        self._server = this_server()
        there = self._log.load(KEPT)
        self._jobs = {r.id: _remembered(r) for r in there}
        self._orphans = {r.id: r.process for r in there if r.state == "running" and r.process is not None}
        self._kept: set[str] = set(self._orphans)
        self._process_of: dict[str, str] = dict(self._orphans)
        self._queues: dict[Lane, deque[str]] = {"long": deque(), "quick": deque()}
        self._alone: set[str] = set()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._closed = False
        self._workers: dict[Lane, threading.Thread] = {}
        if self._orphans:
            threading.Thread(target=self._watch, name="jobs", daemon=True).start()

    @property
    def torn(self) -> int:
        """Lines of the log that nobody can read."""
        return self._log.torn

    def start(self, title: str, arguments: Sequence[str], by: str, lane: Lane = "long", *, stored: bool = True) -> Job:
        """Put a command in a queue: its words without ``--json`` and, where it takes one (`stored`), ``--store``,
        which are added.

        Raises:
            UsageError: too many are waiting.
        """
        with self._guard:
            queue = self._queues[lane]
            if self._closed or len(queue) >= self._most:
                raise UsageError(f"{len(queue)} jobs are waiting", hint="wait for one to end, or cancel one")
            job = Job(id=secrets.token_hex(6), title=title, arguments=list(arguments), by=by, created=time.time())
            self._jobs[job.id] = job
            if not stored:
                self._alone.add(job.id)
            if lane == "long":
                self._kept.add(job.id)
            self._note(job)
            queue.append(job.id)
            for old in [j for j in self._jobs.values() if j.ended is not None][: max(len(self._jobs) - KEPT, 0)]:
                del self._jobs[old.id]
                self._alone.discard(old.id)
                self._kept.discard(old.id)
            if lane not in self._workers:
                self._workers[lane] = threading.Thread(target=self._work, args=(lane,), name="jobs", daemon=True)
                self._workers[lane].start()
            self._guard.notify_all()
            return msgspec.structs.replace(job)

    def all(self) -> list[Job]:
        """Every job, newest first."""
        with self._guard:
            return [msgspec.structs.replace(j) for j in reversed(self._jobs.values())]

    def running(self) -> list[Job]:
        """Those that wait or run."""
        with self._guard:
            return [msgspec.structs.replace(j) for j in self._jobs.values() if j.state in OPEN]

    def get(self, ident: str) -> Job | None:
        """A job by its id."""
        with self._guard:
            found = self._jobs.get(ident)
            return None if found is None else msgspec.structs.replace(found)

    def wait(self, ident: str, timeout: float) -> Job | None:
        """A job when it has ended, or as it is after `timeout` seconds."""
        until = time.monotonic() + timeout
        with self._guard:
            while (job := self._jobs.get(ident)) is not None and job.ended is None:
                left = until - time.monotonic()
                if left <= 0 or not self._guard.wait(left):
                    break
            return None if job is None else msgspec.structs.replace(job)

    def cancel(self, ident: str) -> bool:
        """Stop a job, or take it out of the queue; False when it has ended or is not known."""
        with self._guard:
            job = self._jobs.get(ident)
            if job is None or job.ended is not None:
                return False
            waiting = job.state == "waiting"
            job.state = "cancelled"
            if waiting:
                for queue in self._queues.values():
                    if ident in queue:
                        queue.remove(ident)
                job.ended = time.time()
                self._note(job)
                self._guard.notify_all()
                return True
            process, orphan = self._processes.get(ident), self._orphans.get(ident)
            self._note(job)
        if process is not None:
            _stop(process)
        elif orphan is not None:
            _stop_named(orphan)
        return True

    def close(self) -> None:
        """Stop what runs, and take no more."""
        with self._guard:
            self._closed = True
            for queue in self._queues.values():
                queue.clear()
            processes, orphans = list(self._processes.values()), list(self._orphans.values())
            for job in self._jobs.values():
                if job.ended is None and job.state in OPEN:
                    job.state = "interrupted"
                    self._note(job)
            self._guard.notify_all()
        for process in processes:
            _stop(process)
        for orphan in orphans:
            _stop_named(orphan)
        for worker in self._workers.values():
            worker.join(_STOP_S * 2)

    def _note(self, job: Job) -> None:
        if job.id in self._kept:
            self._log.note(
                Record(
                    id=job.id, title=job.title, arguments=job.arguments, by=job.by, state=job.state,
                    created=job.created, server=self._server, process=self._process_of.get(job.id),
                    started=job.started, ended=job.ended, status=job.status,
                )
            )  # fmt: skip

    def _work(self, lane: Lane) -> None:
        queue = self._queues[lane]
        while True:
            with self._guard:
                while (not queue or (lane == "long" and self._orphans)) and not self._closed:
                    self._guard.wait()
                if self._closed:
                    return
                job = self._jobs[queue.popleft()]
                job.state = "running"
                job.started = time.time()
                self._note(job)
            try:
                self._run(job)
            except OSError as error:
                self._end(job, None, f"it could not be started: {error}")

    def _run(self, job: Job) -> None:
        at = job.arguments.index("--") if "--" in job.arguments else len(job.arguments)
        place = [] if job.id in self._alone else ["--store", str(self._store)]
        words = [*job.arguments[:at], *place, "--json", *job.arguments[at:]]
        command = [sys.executable, "-c", "from seatrial.cli import main; main()", *words]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, PROGRESS: "lines"},
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        with self._guard:
            self._processes[job.id] = process
            self._process_of[job.id] = named(process.pid)
            self._note(job)
            cancelled = job.state != "running"
        if cancelled or self._closed:
            _stop(process)
        printed: list[bytes] = []
        reader = threading.Thread(target=_drain, args=(process.stdout, printed), daemon=True)
        reader.start()
        for line in process.stderr:
            self._heard(job, line.decode("utf-8", "replace").rstrip())
        status = process.wait()
        reader.join(_STOP_S)
        process.stdout.close()
        process.stderr.close()
        with self._guard:
            del self._processes[job.id]
            job.printed = b"".join(printed).decode("utf-8", "replace")
        self._end(job, status)

    def _watch(self) -> None:
        """Wait for the children that outlived their server; what they ended with, nobody saw."""
        while True:
            with self._guard:
                if self._closed or not self._orphans:
                    return
                for ident in [i for i, process in self._orphans.items() if not lives(process)]:
                    del self._orphans[ident]
                    job = self._jobs[ident]
                    job.ended = time.time()
                    if job.state == "running":
                        job.state = "unseen"
                    self._note(job)
                self._guard.notify_all()
                self._guard.wait(_LOOK_S)

    def _heard(self, job: Job, line: str) -> None:
        try:
            step = msgspec.json.decode(line, type=Step)
        except (msgspec.DecodeError, RecursionError):
            step = None
        with self._guard:
            if step is not None:
                job.progress = step
            elif line:
                job.said = [*job.said, line[:500]][-SAID:]

    def _end(self, job: Job, status: int | None, said: str = "") -> None:
        with self._guard:
            self._process_of.pop(job.id, None)
            job.status = status
            job.ended = time.time()
            if said:
                job.said = [*job.said, said]
            if job.state == "running":
                # 1 is a finding and 3 an answer that is not decided: the command did its work.
                job.state = "done" if status in (0, 1, 3) and job.printed else "failed"
            self._note(job)
            self._guard.notify_all()
        self._say(f"job {job.title}: {job.state}")


def _remembered(record: Record) -> Job:
    return Job(
        id=record.id, title=record.title, arguments=record.arguments, by=record.by, state=record.state,
        created=record.created, started=record.started, status=record.status,
        ended=None if record.state in OPEN else record.ended or record.started or record.created,
    )  # fmt: skip


_PRINTED = 4 * 1024 * 1024


def _drain(stream: object, into: list[bytes]) -> None:
    held = 0
    while chunk := stream.read(65536):  # type: ignore[attr-defined]
        if held < _PRINTED:
            into.append(chunk)
        held += len(chunk)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a job with all that it started: it leads a session of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _stop_named(process: str) -> None:
    """End a child that another server started, with all that it started, if it is still the same one."""
    group = int(process.partition(" ")[0])
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not lives(process):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        until = time.monotonic() + _STOP_S
        while lives(process) and time.monotonic() < until:
            time.sleep(0.05)
