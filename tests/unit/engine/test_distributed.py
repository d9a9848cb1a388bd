"""The engine on a cluster, started here for these tests: same answers, and a killed worker changes nothing."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("daft") is None or importlib.util.find_spec("ray") is None,
                       reason="the extra [distributed] is not installed"),
    pytest.mark.filterwarnings("ignore"),
]  # fmt: skip

WORK = Path(__file__).with_name("cluster_work.py")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A place where workers find the functions of `cluster_work.py`."""
    paths = os.pathsep.join(filter(None, [str(WORK.parent), os.environ.get("PYTHONPATH", "")]))
    return os.environ | {"PYTHONPATH": paths}


def _say(code: str, environment: dict[str, str]) -> dict[str, object]:
    """What a script prints as its last line. A process of its own: Ray can be started once in a process."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


HEAD = "import json, functools, operator, cluster_work as w\nfrom seatrial.engine.choice import engine_at\n"


def test_both_verbs_answer_as_the_local_engine_does(environment: dict[str, str]) -> None:
    code = HEAD + (
        "batches = [[i, i + 0.1, 1e16, -1e16] for i in range(9)]\n"
        "out = {}\n"
        "for url in ('local', 'ray'):\n"
        "    engine = engine_at(url, workers=2)\n"
        "    parts = list(engine.map_sessions(w.total, batches))\n"
        "    out[url] = [parts, engine.aggregate(w.total, batches, operator.add), engine.aggregate(w.total, [], max)]\n"
        "out['ids'] = engine.worker_ids()\n"
        "try: list(engine.map_sessions(w.refuse, [[1], [2]]))\n"
        "except Exception as error: out['error'] = [type(error).__name__, str(error)]\n"
        "print(json.dumps(out))\n"
    )
    answer = _say(code, environment)
    assert answer["ray"] == answer["local"], "sums in one order are equal to the last bit"
    assert len(answer["ids"]) >= 1  # type: ignore[arg-type]
    kind, message = answer["error"]  # type: ignore[misc]
    assert kind == "UsageError"
    assert "batch 1 (1)" in message


def test_a_killed_worker_changes_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    code = HEAD + (
        f"engine = engine_at('ray', workers=2)\n"
        f"work = functools.partial(w.slow, {str(tmp_path)!r})\n"
        "parts = list(engine.map_sessions(work, [[i] for i in range(12)]))\n"
        "print(json.dumps({'parts': parts, 'ids': engine.worker_ids()}))\n"
    )
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 200
        while time.monotonic() < until and not killed:
            for busy in tmp_path.glob("busy-*"):
                os.kill(int(busy.name.split("-")[1]), signal.SIGKILL)
                killed.append(int(busy.name.split("-")[1]))
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    answer = _say(code, environment)
    killer.join()
    assert killed
    assert answer["parts"] == [i * 2 for i in range(12)]
    assert len(set(answer["ids"]) | set(killed)) >= 2  # type: ignore[call-overload]
    done = sorted(int(p.name.split("-")[1]) for p in tmp_path.glob("done-*"))
    begun = [int(p.name.split("-")[2]) for p in tmp_path.glob("busy-*")]
    assert done == list(range(12))
    assert len(begun) > len(set(begun)), "the batch that was in hand was begun twice, and counted once"


@pytest.fixture(scope="module")
def cluster(environment: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """A cluster of two processes that runs apart from who asks it, with a token of its own."""
    ray = Path(sys.executable).with_name("ray")
    secret = environment | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 40, "RAY_USAGE_STATS_ENABLED": "0"}
    start = [str(ray), "start", "--head", "--num-cpus=2", "--port=26379", "--include-dashboard=false"]
    subprocess.run([*start, "--disable-usage-stats"], env=secret, check=True, capture_output=True, timeout=120)
    yield "ray://127.0.0.1:26379", secret
    subprocess.run([str(ray), "stop", "--force"], env=secret, check=False, capture_output=True, timeout=120)


@pytest.mark.real
def test_a_ranking_on_a_running_cluster_is_the_local_one(
    cluster: tuple[str, dict[str, str]], data: Path, tmp_path: Path
) -> None:
    url, secret = cluster
    program = str(Path(sys.executable).with_name("seatrial"))
    store = tmp_path / "store"
    ask = functools.partial(subprocess.run, capture_output=True, text=True, timeout=400, check=True, env=secret)
    ask([program, "ingest", str(data / "sessions" / "claude-code"), "--store", str(store), "--json"])
    twin = tmp_path / "twin"
    subprocess.run(["cp", "-r", str(store), str(twin)], check=True)
    here = json.loads(ask([program, "rank", "--store", str(store), "--draws", "999", "--json"]).stdout)
    there = json.loads(ask([program, "rank", "--store", str(twin), "--draws", "999", "--json", "--engine", url]).stdout)
    assert there["result"] == here["result"]
    assert there["data_version"] == here["data_version"]
    assert there["engine"]["url"] == url
    assert len(there["engine"]["worker_ids"]) >= 2
