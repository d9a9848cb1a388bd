"""Planned attempts to finished ones: side by side, in a fixed plan, each on disk before it counts as done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import msgspec

from seatrial.canon import digest
from seatrial.engine.ledger import Ledger
from seatrial.errors import UsageError
from seatrial.records import Attempt, Task, Verdict

MOST_ATTEMPTS = 1_000_000
"""Attempts of one run: every one is planned before the first is made, and kept in one ledger."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to make. `seed` depends on the run's seed, the task and the trial alone, so that neither order nor
    interruption changes it."""

    task: Task
    task_hash: str
    trial: int
    seed: int

    @property
    def key(self) -> str:
        """Its name in the ledger."""
        return f"{self.task.id}\x1f{self.task_hash}\x1f{self.trial}"


class Done(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished attempt as the ledger keeps it: `row` holds the columns of the attempts table that no `Attempt`
    has, `blob` the hash of its trace (None: it left none)."""

    attempt: Attempt
    verdicts: tuple[Verdict, ...]
    row: dict[str, Any]
    blob: str | None = None


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is. `cost_usd` sums the known costs of this run's attempts, `unpriced` counts those without one;
    `left_s` estimates what remains, in seconds (None: too early to say)."""

    done: int
    total: int
    resumed: int
    statuses: dict[str, int]
    cost_usd: float
    unpriced: int
    left_s: float | None


def plan(tasks: Sequence[Task], hashes: dict[str, str], k: int, seed: int) -> list[Planned]:
    """Every attempt, all tasks' first trials first, so that a run that is stopped early is balanced.

    Raises:
        UsageError: k is below 1, or there would be more than `MOST_ATTEMPTS`.
    """
    if k < 1:
        raise UsageError(f"k must be at least 1, got {k}")
    if k * len(tasks) > MOST_ATTEMPTS:
        raise UsageError(
            f"{k} attempts at {_counted(len(tasks), 'task')} are more than the {MOST_ATTEMPTS:,} that a run may have",
            hint=f"-k {max(1, MOST_ATTEMPTS // max(1, len(tasks)))} at most",
        )
    return [
        Planned(task=t, task_hash=hashes[t.id], trial=trial, seed=_seed(seed, t.id, trial))
        for trial in range(k)
        for t in tasks
    ]


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _seed(seed: int, task: str, trial: int) -> int:
    return int(digest(f"{seed}:{task}:{trial}".encode())[:12], 16)


def run(
    planned: Sequence[Planned],
    work: Callable[[Planned], Done],
    ledger: Ledger,
    *,
    concurrency: int = 4,
    again: Callable[[Done], bool] = lambda done: False,
    progress: Callable[[Tally], None] | None = None,
    elsewhere: Callable[[Sequence[Planned]], Iterator[list[tuple[Planned, Done]]]] | None = None,
) -> list[Done]:
    """Make every attempt that the ledger does not have; all of them, in the order of the plan.

    `work` may run in several threads at once and must not raise for anything that an agent or world does. `again`
    says which recorded attempts are made once more (their traces were lost, say). An attempt is recorded as soon as
    it is done, those that end together with one write to disk: killed at any moment, a second run goes on from there.
    `elsewhere`, if given, makes them in the place of `work` and this process's threads, and tells them as they end.

    Raises:
        UsageError: `concurrency` is below 1.
    """
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {concurrency}")
    done: dict[str, Done] = {}
    for one in planned:
        if one.key in ledger:
            before = msgspec.convert(ledger.get(one.key), Done)
            if not again(before):
                done[one.key] = before
    counter = _Counter(len(planned), done.values())
    missing = [p for p in planned if p.key not in done]
    batches = _finished(missing, work, concurrency) if elsewhere is None else elsewhere(missing)
    for batch in batches:
        ledger.record_all({p.key: d for p, d in batch})
        for p, d in batch:
            done[p.key] = d
            counter.add(d)
        if progress is not None:
            progress(counter.tally())
    return [done[p.key] for p in planned]


def _finished(
    missing: Sequence[Planned], work: Callable[[Planned], Done], concurrency: int
) -> Iterator[list[tuple[Planned, Done]]]:
    """Batches of attempts as they end."""
    source = iter(missing)
    with ThreadPoolExecutor(concurrency, thread_name_prefix="attempts") as pool:
        flying: dict[Future[Done], Planned] = {}
        try:
            while True:
                while len(flying) < concurrency * 2:
                    one = next(source, None)
                    if one is None:
                        break
                    flying[pool.submit(work, one)] = one
                if not flying:
                    return
                ended, _ = wait(flying, return_when=FIRST_COMPLETED)
                whole = [f for f in sorted(ended, key=lambda f: flying[f].key) if f.exception() is None]
                broken = next((f for f in ended if f.exception() is not None), None)
                if broken is not None:  # what is done or under way is kept before the run ends
                    for f in flying:
                        f.cancel()
                    ended, _ = wait([f for f in flying if not f.cancelled()])
                    whole = [f for f in ended if f.exception() is None]
                yield [(flying.pop(f), f.result()) for f in whole]
                if broken is not None:
                    broken.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Counter:
    def __init__(self, total: int, before: Iterable[Done]) -> None:
        self._total = total
        self._statuses: dict[str, int] = {}
        self._cost = 0.0
        self._unpriced = 0
        self._resumed = 0
        self._new = 0
        self._began = time.perf_counter()
        for one in before:
            self._count(one)
            self._resumed += 1

    def _count(self, one: Done) -> None:
        status = one.attempt.status
        self._statuses[status] = self._statuses.get(status, 0) + 1
        if one.attempt.cost_usd is None:
            self._unpriced += 1
        else:
            self._cost += one.attempt.cost_usd

    def add(self, one: Done) -> None:
        self._count(one)
        self._new += 1

    def tally(self) -> Tally:
        done = self._resumed + self._new
        spent = time.perf_counter() - self._began
        return Tally(
            done=done,
            total=self._total,
            resumed=self._resumed,
            statuses=dict(self._statuses),
            cost_usd=self._cost,
            unpriced=self._unpriced,
            left_s=spent / self._new * (self._total - done) if self._new else None,
        )
