"""The engine's two verbs: order, bounds, failures; workers do not change answers."""

from __future__ import annotations

import importlib
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from seatrial.engine.local import aggregate, map_sessions
from seatrial.errors import InfrastructureError, InputError, UsageError


@pytest.fixture(scope="module", autouse=True)
def work() -> Iterator[ModuleType]:
    """The functions that workers run: in a module that they can import."""
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    yield importlib.import_module("engine_work")
    sys.path.remove(folder)


BATCHES = [[1, 2], [3], [], [4, 5, 6]]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_batches(work: ModuleType, workers: int) -> None:
    assert list(map_sessions(work.squares, BATCHES, workers=workers)) == [[1, 4], [9], [], [16, 25, 36]]


def test_the_sum_does_not_depend_on_the_workers(work: ModuleType) -> None:
    batches = [[0.1 * i, 1e16 / (i + 1)] for i in range(20)]
    one, two = (aggregate(work.total, batches, work.add, workers=w) for w in (1, 2))
    assert one == two
    expected = work.total(batches[0])
    for batch in batches[1:]:
        expected = expected + work.total(batch)
    assert one == expected


def test_nothing_to_aggregate_is_none(work: ModuleType) -> None:
    assert aggregate(work.total, [], work.add) is None


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_batches(work: ModuleType, workers: int) -> None:
    seen: list[tuple[int, int | None, str]] = []
    list(map_sessions(work.squares, BATCHES, workers=workers, progress=lambda *a: seen.append(a), what="files"))
    assert seen == [(i, 4, "files") for i in range(1, 5)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_names_its_batch(work: ModuleType, workers: int) -> None:
    with pytest.raises(InfrastructureError, match=r"batch 2 \(3\) failed: ValueError: three is too many"):
        list(map_sessions(work.fails_at_three, BATCHES, workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_our_own_errors_keep_their_kind_and_place(work: ModuleType, workers: int) -> None:
    with pytest.raises(InputError) as caught:
        list(map_sessions(work.refuses, [["a", "b", "c"], ["d"]], workers=workers))
    assert (caught.value.file, caught.value.line, caught.value.hint) == ("x.jsonl", 7, "mend it")
    assert "batch 1 (a .. c)" in str(caught.value)


def test_an_error_that_cannot_travel_is_told_in_words(work: ModuleType) -> None:
    with pytest.raises(InfrastructureError, match=r"extra \[fast\]"):
        list(map_sessions(work.lacks, [["a"], ["b"]], workers=2))


def test_a_dead_worker_is_an_error_not_a_hang(work: ModuleType) -> None:
    with pytest.raises(InfrastructureError, match="worker process died"):
        list(map_sessions(work.dies, [[1], [2]], workers=2))


KILLED = """
import sys, time
from seatrial.engine.local import map_sessions
sys.path.insert(0, sys.argv[1])
if __name__ == "__main__":
    import engine_work
    parts = map_sessions(engine_work.listens, iter([[1], [2], [3], [4], [5]]), workers=2)
    print(next(parts), next(parts), flush=True)
    time.sleep(600)
"""


def test_workers_end_when_what_started_them_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    started = subprocess.Popen(
        [sys.executable, str(script), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    with started:
        assert started.stdout is not None
        ports = [int(port) for port in started.stdout.readline().split()]
        assert len(ports) == 2
        socket.create_connection(("127.0.0.1", ports[0])).close()
        started.kill()
    for port in ports:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                break
            time.sleep(0.25)
        else:
            pytest.fail("a worker lives on")


def test_work_that_cannot_travel_says_so() -> None:
    with pytest.raises(InfrastructureError, match="cannot be sent"):
        list(map_sessions(lambda batch: batch, [[1], [2]], workers=2))


def test_batches_are_taken_as_needed(work: ModuleType) -> None:
    taken = 0

    def endless() -> Iterator[list[int]]:
        nonlocal taken
        for n in itertools.count():
            taken += 1
            yield [n]

    results = map_sessions(work.squares, endless(), workers=2)
    assert list(itertools.islice(results, 3)) == [[0], [1], [4]]
    results.close()  # type: ignore[attr-defined]
    assert taken <= 3 + 2 * 2


def test_no_workers_is_a_usage_error(work: ModuleType) -> None:
    with pytest.raises(UsageError):
        map_sessions(work.squares, BATCHES, workers=0)
