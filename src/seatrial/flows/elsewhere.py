"""Attempts on a cluster: each made in a worker process, and kept once, here (DESIGN 4).

A worker reads the suite and the agent anew by the names that the command was given, in the same folder; that both are
the same there is checked by the identity that names the run, which covers tasks, code and files. What comes back is
the finished attempt with its trace: only this process writes to the store and to the run's ledger.
"""

from __future__ import annotations

import functools
import os
import pickle
import socket
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from seatrial.canon import canonical
from seatrial.engine.choice import engine_at
from seatrial.engine.distributed import DistributedEngine
from seatrial.errors import InfrastructureError, UsageError
from seatrial.flows.making import Maker, RunOptions, identity, turn_limit
from seatrial.flows.suite import agent_of, open_suite
from seatrial.records import AgentUnderTest, Trace
from seatrial.store import Store
from seatrial.store.blobs import pack, unpack
from seatrial.suites import Suite
from seatrial.suites.runner import Done, Planned


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs to know of a run. `suite` and `agent` are words as on the command line, `folder` is where
    it was given and `path` where Python looked for modules there; `same` is the identity of suite, agent and
    options."""

    run: str
    suite: str
    agent: str
    same: str
    folder: str
    path: tuple[str, ...]
    options: RunOptions


class _Hands:
    """Carries the trace of one attempt."""

    def __init__(self) -> None:
        self.packed: dict[str, bytes] = {}

    def put(self, trace: Trace, *, durable: bool = True) -> str:
        """See `making.Keeper`."""
        name, packed = pack(canonical(trace))
        self.packed[name] = packed
        return name


class Elsewhere:
    """Makes attempts on a cluster, for `runner.run`. `begun_again` counts those whose worker died."""

    def __init__(self, engine: DistributedEngine, order: Order, store: Store, maker: Maker, at_once: int) -> None:
        self._engine = engine
        self._order = pickle.dumps(order)
        self._store = store
        self._maker = maker
        self._at_once = at_once
        self.begun_again = 0

    def worker_ids(self) -> tuple[int, ...]:
        """Process ids of the workers that made attempts."""
        return self._engine.worker_ids()

    def make(self, missing: Sequence[Planned]) -> Iterator[list[tuple[Planned, Done]]]:
        """The attempts as they end. One whose workers died again and again is kept as broken infrastructure, so that
        the next start of the run makes it again.

        Raises:
            SeatrialError: as `Maker.make`, and what `DistributedEngine.each_ended` raises.
        """
        pieces = [(p.task.id, p.trial, p.seed) for p in missing]
        for ended in self._engine.each_ended(partial(attempt, self._order), pieces, at_once=self._at_once):
            planned = missing[ended.place]
            self.begun_again += ended.died > 0
            if ended.pid is None:
                error = InfrastructureError(f"{ended.died} workers died in this attempt, the last: {ended.result}")
                yield [(planned, self._maker.spoilt(planned, error, ended.died))]
                continue
            done, packed = ended.result
            for name, data in packed.items():
                unpack(name, data)
                self._store.blobs.put(name, data, durable=False)
            if ended.died:
                done = msgspec.structs.replace(done, row={**done.row, "tries": done.row.get("tries", 1) + ended.died})
            yield [(planned, done)]


def elsewhere(
    url: str, suite: str | Path | Suite, agent: str | AgentUnderTest, store: Store, maker: Maker, same: str,
    run: str, options: RunOptions,
) -> Elsewhere:  # fmt: skip
    """Join the cluster at `url`, to make a run's attempts there. `same` is the identity of suite, agent and options.

    Raises:
        UsageError: suite or agent are objects of this process, which no worker can find by a name; or `url` names no
            cluster.
        InfrastructureError: the cluster cannot be reached.
    """
    if isinstance(suite, Suite) or not isinstance(agent, str):
        raise UsageError(
            "a worker of a cluster cannot reach a suite or agent that is an object of this process",
            hint="name them: a suite file or module:name, and an agent SPEC",
        )
    engine = engine_at(url)
    assert isinstance(engine, DistributedEngine)
    told = Order(
        run=run, suite=str(suite), agent=agent, same=same, folder=os.getcwd(), path=tuple(sys.path), options=options
    )
    return Elsewhere(engine, told, store, maker, options.concurrency)


def attempt(packed: bytes, piece: tuple[str, int, int]) -> tuple[Done, dict[str, bytes]]:
    """In a worker: make one attempt; it, and its trace by name.

    Raises:
        InfrastructureError: this machine does not see the folder, or has another suite or agent there.
        SeatrialError: as `Maker.make`.
    """
    name, trial, seed = piece
    told, suite, agent = _opened(packed)
    task = next(t for t in suite.tasks if t.id == name)
    planned = Planned(task=task, task_hash=suite.hashes[name], trial=trial, seed=seed)
    hands = _Hands()
    done = Maker(hands, suite, agent, told.run, told.options).make(planned)
    return done, hands.packed


@functools.lru_cache(maxsize=1)
def _opened(packed: bytes) -> tuple[Order, Suite, AgentUnderTest]:
    told: Order = pickle.loads(packed)
    here = f"the worker machine {socket.gethostname()}"
    share = "the folder must lie where every machine sees it by the same path"
    for folder in [Path(told.folder), *([told.options.cassette] if told.options.cassette else [])]:
        if not folder.is_dir():
            raise InfrastructureError(f"{here} does not see the folder {folder}", hint=share)
    os.chdir(told.folder)
    sys.path.extend(p for p in told.path if p not in sys.path and Path(p).is_dir())
    try:
        suite = open_suite(told.suite)
        agent = agent_of(told.agent, suite, turn_limit(told.options), told.options.prices)
    except Exception as error:
        hint = f"{share}, and what suite and agent name must be importable there"
        raise InfrastructureError(f"{here} cannot open the suite or agent: {error}", hint=hint) from error
    if identity(suite, agent, told.options) != told.same:
        raise InfrastructureError(
            f"{here} has another version of the suite, the agent or the code that they name", hint=share
        )
    return told, suite, agent
