"""Killed at any moment under load, the receiver loses nothing that it acknowledged and doubles nothing."""

from __future__ import annotations

import importlib.util
import itertools
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.ingest.otlp_spans import spans_of
from seatrial.intake.live import Live
from seatrial.records.tables import SESSIONS, STEPS
from seatrial.store import Store

_here = Path(__file__).with_name("conftest.py")
_spec = importlib.util.spec_from_file_location("serving_fixtures", _here)
assert _spec is not None
assert _spec.loader is not None
fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fixtures)

CONVERSATIONS = 12
CALLS = 6


def batches(rng: random.Random, rounds: int) -> list[list[Any]]:
    """The spans of some conversations in the order in which they end, cut into requests of several conversations."""
    spans = [
        fixtures.chat(trace, number, session="shared" if trace % 4 == 0 else None)
        for block in range(rounds)
        for number in range(CALLS)
        for trace in range(block * CONVERSATIONS, (block + 1) * CONVERSATIONS)
    ]
    out = []
    while spans:
        n = rng.randint(1, 9)
        out.append(spans[:n])
        spans = spans[n:]
    return out


class Load:
    """Clients that send each request until it is acknowledged, and some once more after that."""

    def __init__(self, work: list[list[Any]], clients: int, pause: float) -> None:
        self.address: str | None = None
        self.acknowledged = 0
        self.again = 0
        self.over = False
        self.pause = pause
        self.attempts = 0
        self._work: queue.Queue[list[Any]] = queue.Queue()
        for item in work:
            self._work.put(item)
        self.threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def _send(self, number: int) -> None:
        rng = random.Random(number)
        with httpx.Client(timeout=10) as client:
            while True:
                try:
                    spans = self._work.get_nowait()
                except queue.Empty:
                    return
                data = fixtures.body(*spans)
                again = rng.random() < 0.15
                while not self._post(client, data):
                    if self.over:
                        return
                    time.sleep(0.01)
                self.acknowledged += 1
                if again and self._post(client, data):
                    self.again += 1
                time.sleep(rng.uniform(0, self.pause))

    def _post(self, client: httpx.Client, data: bytes) -> bool:
        address = self.address
        if address is None:
            return False
        self.attempts += 1
        try:
            answer = client.post(f"{address}/v1/traces", content=data, headers={"content-type": "application/json"})
        except httpx.TransportError:
            return False
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)


def run(serving: Callable[..., Any], folder: Path, kills: int, settle: float, seed: int) -> tuple[Store, list[Any]]:
    (folder / "seatrial.toml").write_text(f"[server]\ncommit_after = 0.05\nsettle_after = {settle}\n")
    store = Store.open(folder / "store", create=True)
    (store.path / "key").write_text("cd" * 32)
    rng = random.Random(seed)
    work = batches(rng, rounds=3 + kills + (settle < 1))
    load = Load(work, *((3, 0.03) if settle > 1 else (1, 0.3)))
    killed = 0
    while killed < kills:
        assert load.busy, "the load was over before the kills were"
        server = serving(folder)
        if killed % 5 == 1:
            # While it starts, or takes up what it left.
            time.sleep(rng.uniform(0.3, 1.5))
        else:
            load.address = server.listen()
            assert load.address is not None, server.said
            time.sleep(rng.uniform(0.0, 0.5))
        server.kill()
        load.address = None
        killed += 1
        verified = store.verify()
        assert verified.ok, verified.problems
    server = serving(folder)
    load.address = server.listen()
    assert load.address is not None, server.said
    for thread in load.threads:
        thread.join(120)
    assert not load.busy
    assert load.acknowledged == len(work)
    assert load.again > 0
    if settle < 1:
        settled(load.address)
    assert server.stop() == 0, server.said
    return store, list(itertools.chain.from_iterable(work))


def settled(address: str) -> None:
    """Wait until no conversation is open."""
    end = time.monotonic() + 60
    while httpx.get(f"{address}/healthz").json()["open_conversations"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(0.5)


def kept_calls(store: Store) -> Counter[str]:
    steps = store.table("steps").collect()
    return Counter(i for ids, copied in steps.select("source_ids", "copied").iter_rows() if not copied for i in ids)


def check_whole(serving: Callable[..., Any], tmp_path: Path, kills: int) -> None:
    store, spans = run(serving, tmp_path, kills, settle=3600.0, seed=11)
    expected = Store.open(tmp_path / "expected", create=True)
    (expected.path / "key").write_text("cd" * 32)
    by_name: dict[str, list[Any]] = {}
    for span in spans:
        shared = any(a["value"].get("stringValue") == "shared" for a in span["attributes"])
        by_name.setdefault("shared" if shared else span["traceId"], []).append(span)
    Live(expected).keep([spans_of(fixtures.request(*group)) for group in by_name.values()])
    for table in (SESSIONS.name, STEPS.name):
        assert store.table(table).collect().equals(expected.table(table).collect()), table
    assert store.verify().ok


def check_settling(serving: Callable[..., Any], tmp_path: Path, kills: int) -> None:
    """Conversations that settle between their spans: what comes late is beside them, and each call counts once."""
    store, spans = run(serving, tmp_path, kills, settle=0.15, seed=12)
    assert kept_calls(store) == Counter(span["spanId"] for span in spans)
    assert store.verify().ok
    left = list((store.path / "spool").glob("*.spool"))
    assert len(left) <= 1, "what has settled leaves the spool; the segment that is written to stays"


def test_kill(serving: Callable[..., Any], tmp_path: Path) -> None:
    check_whole(serving, tmp_path, 3)


def test_kill_while_settling(serving: Callable[..., Any], tmp_path: Path) -> None:
    check_settling(serving, tmp_path, 2)


@pytest.mark.full
def test_fifty_kills(serving: Callable[..., Any], tmp_path: Path) -> None:
    check_whole(serving, tmp_path, 50)


@pytest.mark.full
def test_fifty_kills_while_settling(serving: Callable[..., Any], tmp_path: Path) -> None:
    check_settling(serving, tmp_path, 50)
