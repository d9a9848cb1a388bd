"""Traces that come in without a pause while people look: nothing lost, nothing doubled, memory bounded."""

from __future__ import annotations

import importlib.util
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from seatrial.store import Store

TURNS = 4
SENDERS = 3
VIEWERS = 2
JSON = {"content-type": "application/json"}
PAGES = ("/", "/sessions", "/sessions?q=0001&order=longest", "/api/sessions?limit=50", "/triage", "/api/version")
PEAK_MIB = 600


def _fixtures() -> Any:
    spec = importlib.util.spec_from_file_location("load_fixtures", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Load:
    """Senders and viewers of one server, for some seconds."""

    def __init__(self, address: str, seconds: float) -> None:
        self.address = address
        self.until = time.monotonic() + seconds
        self.kept: set[str] = set()
        self.sent = 0
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.problems: list[str] = []
        self._made = _fixtures()
        self._guard = threading.Lock()

    def run(self) -> None:
        work = [(self._send, n) for n in range(SENDERS)] + [(self._look, n) for n in range(VIEWERS)]
        threads = [threading.Thread(target=self._kept, args=(what, n)) for what, n in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    def _kept(self, what: Callable[[int], None], n: int) -> None:
        try:
            what(n)
        except Exception as error:
            self.problems.append(repr(error))

    def _send(self, sender: int) -> None:
        """Conversations of a few turns, each turn a request; every fifth request is sent twice."""
        with httpx.Client(timeout=60) as client:
            for trace in itertools.count(sender, SENDERS):
                for turn in range(TURNS):
                    if time.monotonic() > self.until:
                        return
                    span = self._made.chat(trace, turn, user=f"user-{trace % 7}")
                    data = self._made.body(span)
                    for _ in range(2 if (trace + turn) % 5 == 0 else 1):
                        answer = client.post(f"{self.address}/v1/traces", content=data, headers=JSON)
                        with self._guard:
                            self.sent += 1
                            self.statuses["send", answer.status_code] += 1
                            if answer.status_code == 200:
                                self.kept.add(span["spanId"])

    def _look(self, viewer: int) -> None:
        with httpx.Client(timeout=60) as client:
            for path in itertools.islice(itertools.cycle(PAGES), viewer, None):
                if time.monotonic() > self.until:
                    return
                answer = client.get(f"{self.address}{path}")
                with self._guard:
                    self.statuses["look", answer.status_code] += 1
                time.sleep(0.05)


def peak_mib(pid: int) -> float:
    """The most memory that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


@pytest.mark.parametrize("seconds", [5.0, pytest.param(20.0, marks=pytest.mark.full)])
def test_sustained_traces_with_people_looking(serving: Callable[..., Any], tmp_path: Path, seconds: float) -> None:
    server = serving(tmp_path, "--json")
    address = server.listen()
    assert address is not None
    load = Load(address, seconds)
    load.run()
    memory = peak_mib(server.process.pid)
    assert server.stop() == 0
    assert load.problems == []
    assert {status for (_, status) in load.statuses} == {200}
    assert load.statuses["send", 200] > 20
    assert load.statuses["look", 200] > 5
    done = json.loads(server.printed)["result"]
    assert done["spans"] == len(load.kept)
    assert done["repeated"] == load.sent - len(load.kept)
    store = Store.open(tmp_path / "store")
    stored = store.table("steps").select("session", pl.col("source_ids")).collect()
    ids = [i for session in store.session_ids() for s in store.trace(session).steps for i in s.source_ids]
    assert {i.partition(":")[0] for i in ids} == load.kept
    assert len(store.session_ids()) == len({int(i, 16) // 1000 for i in load.kept})
    per_session = Counter(stored["session"].to_list())
    turns = Counter((int(i, 16) - 1) // 1000 for i in load.kept)
    wanted = {f"{trace + 1:032x}": 2 * n for trace, n in turns.items()}
    assert dict(per_session) == wanted, "each turn is one question and one answer, once"
    assert memory < PEAK_MIB
    assert store.verify().ok
