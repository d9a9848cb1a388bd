"""The engine on a real cluster of processes: the local engine's answers, and a killed worker changes nothing.

``scripts/test-distributed`` makes an environment with the extra and runs these.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("daft") is None or importlib.util.find_spec("ray") is None,
                       reason="the extra [distributed] is not installed"),
    pytest.mark.filterwarnings("ignore"),
]  # fmt: skip

HERE = Path(__file__).parent
PROGRAM = str(Path(sys.executable).with_name("seatrial"))


@pytest.fixture(scope="module")
def rc() -> Iterator[Any]:
    """The helpers of `ray_cluster.py`."""
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("ray_cluster")
    sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, rc: Any) -> Path:
    """A folder that all machines see: marks of work, a suite, and what makes a machine lack a package."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "marks").mkdir()
    (folder / "lacking").mkdir()
    (folder / "lacking" / "sitecustomize.py").write_text(rc.BLOCK)
    shutil.copy(HERE / "cluster_suite.py", folder / "suite.py")
    return folder


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An S3-compatible server with one empty bucket; its address."""
    import boto3
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=address, **keys).create_bucket(Bucket="a-bucket")
    yield address
    running.stop()


@pytest.fixture(scope="module")
def environment(place: Path, bucket: str) -> dict[str, str]:
    """Where workers find the functions of `cluster_work.py`, the marks' folder, a bucket, and a token of this cluster's
    own. Workers follow buckets in a folder that is not the driver's."""
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    return os.environ | {
        "PYTHONPATH": paths, "CLUSTER_MARKS": str(place / "marks"), "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "7" * 40, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0",
        "AWS_ENDPOINT_URL": bucket,
        "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1", "SEATRIAL_MIRRORS": str(place / "mirrors-of-workers"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def url(environment: dict[str, str], rc: Any) -> Iterator[str]:
    """A cluster that runs apart from who asks it."""
    with rc.cluster(environment) as at:
        yield at


HEAD = """import json, functools, operator, sys, cluster_work as w
from seatrial.engine.choice import LocalEngine, engine_at
"""


def say(code: str, environment: dict[str, str]) -> Any:
    """What a script prints as its last line. A process of its own: a process joins one cluster in its life."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code], env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def call(environment: dict[str, str], *words: str, cwd: Path | None = None) -> Any:
    """A command's envelope; of a command that fails, its error."""
    done = subprocess.run([PROGRAM, *words, "--json"], env=environment, capture_output=True, text=True, timeout=400,
                          check=False, cwd=cwd)  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("{")]
        assert lines, done.stderr[-3000:]
        return json.loads(lines[-1])["error"] | {"exit": done.returncode}
    return json.loads(done.stdout)


def test_both_verbs_answer_as_the_local_engine_does(environment: dict[str, str], url: str) -> None:
    code = (
        "batches = [[i, i + 0.1, 1e16, -1e16] for i in range(9)]\n"
        "out = {}\n"
        f"for at in ('local', {url!r}):\n"
        "    engine = engine_at(at)\n"
        "    parts = list(engine.map_sessions(w.total, batches))\n"
        "    whole = engine.aggregate(w.total, batches, operator.add)\n"
        "    out[at] = [parts, whole, engine.aggregate(w.total, [], max)]\n"
        "def refused(work):\n"
        "    try: list(engine.map_sessions(work, [[1], [2]]))\n"
        "    except Exception as error: return [type(error).__name__, str(error)]\n"
        "out['refused'] = refused(w.refuse)\n"
        "print(json.dumps(out))\n"
    )
    answer = say(code, environment)
    assert answer[url] == answer["local"], "sums in one order are equal to the last bit"
    kind, message = answer["refused"]
    assert kind == "UsageError"
    assert "batch 1 (1)" in message


def test_a_cluster_of_our_own_lives_on_after_it_was_joined(environment: dict[str, str]) -> None:
    code = (
        "import time\n"
        "engine = engine_at('ray', workers=2)\n"
        "time.sleep(5)\n"
        "print(json.dumps([list(engine.map_sessions(w.total, [[1, 2], [3], [4]])), len(engine.worker_ids())]))\n"
    )
    sums, workers = say(code, {k: v for k, v in environment.items() if not k.startswith("RAY_AUTH")})
    assert sums == [3, 3, 4]
    assert workers >= 1


def test_work_that_stands_alone_is_told_as_it_ends_and_given_up_when_it_kills(
    environment: dict[str, str], url: str
) -> None:
    code = (
        f"engine = engine_at({url!r})\n"
        "good = sorted((e.place, e.result, e.died) for e in engine.each_ended(w.doubled, [[i] for i in range(5)],"
        " at_once=3))\n"
        "bad = [[e.place, e.pid, e.died, e.result] for e in engine.each_ended(w.dies, [[1]], at_once=1)]\n"
        "seen = []\n"
        "try:\n"
        "    for e in engine.each_ended(w.refuse, [[1], [2]], at_once=1): seen.append(e)\n"
        "except Exception as error: said = [type(error).__name__, str(error)]\n"
        "print(json.dumps([good, bad, said, len(seen), len(engine.worker_ids())]))\n"
    )
    good, bad, said, seen, workers = say(code, environment)
    assert good == [[i, i * 2, 0] for i in range(5)]
    assert bad[0][:3] == [0, None, 3]
    assert "died" in bad[0][3].lower()
    assert said[0] == "UsageError"
    assert "batch 1 (1)" in said[1]
    assert seen == 0
    assert workers >= 1


def test_a_killed_worker_changes_no_map(environment: dict[str, str], url: str, place: Path, rc: Any) -> None:
    code = (
        f"engine = w.Marking(engine_at({url!r}), {str(place / 'marks')!r})\n"
        "parts = list(engine.map_sessions(w.doubled, [[i] for i in range(12)]))\n"
        "print(json.dumps({'parts': parts, 'ids': engine.worker_ids()}))\n"
    )
    with rc.Killer(place / "marks") as killer:
        answer = say(code, environment)
    killer.check()
    assert answer["parts"] == [i * 2 for i in range(12)]
    assert len({*answer["ids"], killer.killed}) >= 2


RANKED = """
from pathlib import Path
from seatrial import scoring
from seatrial.canon import canonical
from seatrial.flows import counting, extract, rank
from seatrial.store import Store
extract.BATCH, counting.PART = 4, 3
"""


@pytest.fixture(scope="module")
def sessions(place: Path, data: Path, environment: dict[str, str]) -> Path:
    """A store of real sessions, read and not yet extracted."""
    call(environment, "ingest", str(data / "sessions" / "claude-code"), "--store", str(place / "sessions"))
    return place / "sessions"


@pytest.mark.real
@pytest.mark.parametrize("phase", ["extraction", "aggregation"])
def test_a_killed_worker_changes_no_ranking(
    phase: str, environment: dict[str, str], url: str, place: Path, sessions: Path, tmp_path: Path, rc: Any
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for twin in (here, there):
        shutil.copytree(sessions, twin)
    marks = str(place / "marks")
    code = RANKED + (
        f"one, two = LocalEngine(1), engine_at({url!r})\n"
        f"seen = w.Marking(two, {marks!r})\n"
        f"first, second = (two, seen) if {phase!r} == 'aggregation' else (seen, two)\n"
        "out = []\n"
        f"for path, a, b in (({str(here)!r}, one, one), ({str(there)!r}, first, second)):\n"
        "    store = Store.open(path)\n"
        "    extract.extract_store(store, scoring.UNIT, engine=a)\n"
        "    found = rank.rank_store(store, rank.RankOptions(draws=999), engine=b)\n"
        "    out.append(canonical([store.data_version, found]).decode())\n"
        "print(json.dumps({'out': out, 'ids': two.worker_ids()}))\n"
    )
    with rc.Killer(place / "marks") as killer:
        answer = say(code, environment)
    killer.check()
    local, distributed = answer["out"]
    assert distributed == local
    assert "examples" in local, "calls were counted"
    assert len({*answer["ids"], killer.killed}) >= 2


@pytest.mark.real
def test_a_ranking_on_a_running_cluster_is_the_local_one(
    environment: dict[str, str], url: str, sessions: Path, tmp_path: Path
) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(sessions, twin)
    shutil.copytree(sessions, tmp_path / "here")
    here = call(environment, "rank", "--store", str(tmp_path / "here"), "--draws", "999")
    there = call(environment, "rank", "--store", str(twin), "--draws", "999", "--engine", url)
    assert there["result"] == here["result"]
    assert there["data_version"] == here["data_version"]
    assert there["engine"]["url"] == url
    assert len(there["engine"]["worker_ids"]) >= 2


def attempts(store: Path) -> list[Any]:
    """A run's attempts as the store holds them, without what a clock says."""
    from seatrial.flows.attempts import resolve, stored_run
    from seatrial.store import Store

    opened = Store.open(store)
    out = []
    for attempt, verdicts in stored_run(opened, resolve(opened, None)):
        trace = opened.trace_of(attempt.extra["blob"])
        said = [(s.event_class, s.text, [c.arguments for c in s.tool_calls]) for s in trace.steps]
        out.append((attempt.task, attempt.trial, attempt.status, attempt.score, attempt.task_hash, attempt.fingerprint,
                    [(v.metric, v.passed, v.value) for v in verdicts], trace.extra["seed"], said))  # fmt: skip
    return out


def ledger(store: Path) -> list[dict[str, Any]]:
    (file,) = (store / "runs").glob("*.jsonl")
    return [json.loads(line) for line in file.read_bytes().splitlines()]


RUN = ("run", "suite.py", "--agent", "adder", "-k", "2", "--concurrency", "3")


def test_attempts_on_a_cluster_are_the_local_ones_though_a_worker_is_killed(
    environment: dict[str, str], url: str, place: Path, tmp_path: Path, rc: Any
) -> None:
    here = call(environment, *RUN, "--store", str(tmp_path / "here"), cwd=place)
    with rc.Killer(place / "marks") as killer:
        there = call(environment, *RUN, "--store", str(tmp_path / "there"), "--engine", url, cwd=place)
    killer.check()
    assert attempts(tmp_path / "there") == attempts(tmp_path / "here")
    assert there["result"]["run"] == here["result"]["run"]
    assert there["result"]["result"]["counts"] == here["result"]["result"]["counts"]
    assert len({*there["engine"]["worker_ids"], killer.killed}) >= 2
    assert any("begun again" in warning for warning in there["warnings"])
    lines = ledger(tmp_path / "there")
    assert len({line["key"] for line in lines}) == len(lines) == 12, "each attempt is recorded once"
    assert sorted(line["value"]["row"].get("tries", 1) for line in lines)[-1] >= 2
    again = call(environment, *RUN, "--store", str(tmp_path / "there"), "--engine", url, cwd=place)
    assert again["result"]["resumed"] == 12
    assert again["engine"]["worker_ids"] == []


def test_an_attempt_that_kills_its_workers_is_no_verdict_on_the_agent(
    environment: dict[str, str], url: str, place: Path, tmp_path: Path
) -> None:
    fatal = place / "fatal"
    fatal.write_text("add one (3)")
    found = call(environment, *RUN, "-k", "1", "--store", str(tmp_path / "st"), "--engine", url, cwd=place)
    fatal.unlink()
    assert found["result"]["result"]["counts"]["excluded"] == {"error_infra": 1}
    assert found["result"]["result"]["counts"]["n_scored"] == 5
    again = call(environment, *RUN, "-k", "1", "--store", str(tmp_path / "st"), "--engine", url, cwd=place)
    assert again["result"]["resumed"] == 5
    assert again["result"]["result"]["counts"]["n_scored"] == 6


def test_a_worker_that_does_not_see_the_same_suite_says_so(environment: dict[str, str], url: str, place: Path) -> None:
    """What is imported differs between the two sides; then the folder is one that only this side knows."""
    code = (
        "import os, pickle, socket, msgspec\n"
        "from seatrial.flows import elsewhere\n"
        "from seatrial.flows.making import RunOptions\n"
        f"engine = engine_at({url!r})\n"
        f"told = elsewhere.Order(run='r', suite='suite.py', agent='adder', same='other', path=(),"
        f" folder={str(place)!r}, options=RunOptions())\n"
        "out = []\n"
        "for order in (told, msgspec.structs.replace(told, folder='/nowhere/here'),"
        " msgspec.structs.replace(told, suite='no_such_module:SUITE')):\n"
        "    work = functools.partial(elsewhere.attempt, pickle.dumps(order))\n"
        "    try: list(engine.each_ended(work, [('t0', 0, 1)], at_once=1))\n"
        "    except Exception as error: out.append([type(error).__name__, str(error)])\n"
        "print(json.dumps(out))\n"
    )
    other, folder, module = say(code, environment)
    assert {other[0], folder[0], module[0]} == {"InfrastructureError"}
    assert "another version of the suite" in other[1]
    assert "does not see the folder /nowhere/here" in folder[1]
    assert "no_such_module" in module[1]
    assert "importable" in module[1]


@pytest.mark.parametrize("lacks", ["seatrial", "daft"])
def test_a_machine_that_lacks_a_package_is_named_before_any_work(
    lacks: str, environment: dict[str, str], url: str, place: Path, rc: Any
) -> None:
    poor = environment | {"CLUSTER_LACKS": lacks, "PYTHONPATH": str(place / "lacking")}
    code = (
        "import ray, time\n"
        f"ray.init({url.removeprefix('ray://')!r}, log_to_driver=False, logging_level='ERROR')\n"
        "until = time.monotonic() + 120\n"
        "while sum(n['Alive'] for n in ray.nodes()) < 2 and time.monotonic() < until: time.sleep(.2)\n"
        "said = ''\n"
        f"try: engine_at({url!r})\n"
        "except Exception as error: said = f'{type(error).__name__}: {error}'\n"
        "print(json.dumps(said))\n"
    )
    with rc.node(poor, f"--address={url.removeprefix('ray://')}", "--num-cpus=1"):
        said = say(code, environment)
    assert said.startswith("InfrastructureError: the worker machine")
    assert f"cannot import {lacks}: ModuleNotFoundError" in said
    assert "pip install 'seatrial[distributed]==" in said
    wait = code.replace("< 2", "> 1")
    assert say(wait, environment) == "", "it works again without that machine"


def test_a_cluster_that_is_none_or_another_is_told_in_words(
    environment: dict[str, str], url: str, place: Path, tmp_path: Path, rc: Any
) -> None:
    wrong = call(environment, *RUN, "--store", str(tmp_path / "a"), "--engine", f"ray://127.0.0.1:{rc.free_port()}",
                 cwd=place)  # fmt: skip
    assert (wrong["code"], wrong["exit"]) == ("infrastructure", 4)
    assert "cannot reach a Ray cluster" in wrong["message"]
    stranger = environment | {"RAY_AUTH_TOKEN": "8" * 40}
    refused = call(stranger, *RUN, "--store", str(tmp_path / "b"), "--engine", url, cwd=place)
    assert "refused the token" in refused["message"]
    code = (
        "import ray\nray.__version__ = '2.0.0'\nsaid = ''\n"
        f"try: engine_at({url!r})\n"
        "except Exception as error: said = f'{type(error).__name__}: {error}'\n"
        "print(json.dumps(said))\n"
    )
    said = say(code, environment)
    assert "runs another Ray or Python" in said
    assert "Ray: 2.0.0" in said


def test_a_store_that_workers_cannot_see_is_told(environment: dict[str, str], url: str) -> None:
    code = (
        "from seatrial.flows import counting\n"
        "import polars as pl\n"
        f"engine = engine_at({url!r})\n"
        "part = counting._Part(pl.DataFrame({'session': ['a'], '_arm': ['m']}))\n"
        "try: engine.aggregate(functools.partial(counting._count, '/nowhere/store', 'x'), [part], max)\n"
        "except Exception as error: print(json.dumps([type(error).__name__, str(error)]))\n"
    )
    kind, said = say(code, environment)
    assert kind == "InfrastructureError"
    assert "cannot open the store /nowhere/store" in said
    assert "same path" in said
    assert "calls of the sessions a to a" in said


@pytest.mark.real
def test_workers_read_a_store_in_a_bucket_by_themselves(
    environment: dict[str, str], url: str, bucket: str, place: Path, data: Path, tmp_path: Path
) -> None:
    here = environment | {"SEATRIAL_MIRRORS": str(tmp_path / "mirrors-of-the-driver")}
    store, twin = "s3://a-bucket/team/store", "s3://a-bucket/team/twin"
    added = call(here, "ingest", str(data / "sessions" / "claude-code"), "--store", store)["result"]["added"]
    copied(bucket, "team/store/", "team/twin/")
    there = call(here, "rank", "--store", store, "--draws", "999", "--engine", url)
    assert len(there["engine"]["worker_ids"]) >= 2
    fetched = list((place / "mirrors-of-workers").rglob("*.json.z"))
    assert len(fetched) == added, "every trace came to the workers from the bucket"
    local = call(here, "rank", "--store", twin, "--draws", "999")
    assert there["result"] == local["result"]
    assert there["data_version"] == local["data_version"]


def copied(address: str, source: str, target: str) -> None:
    """Copy what lies below one prefix of the bucket to another."""
    import boto3

    keys = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=address, **keys)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="a-bucket", Prefix=source):
        for thing in page.get("Contents", []):
            key = target + thing["Key"].removeprefix(source)
            client.copy_object(Bucket="a-bucket", Key=key, CopySource={"Bucket": "a-bucket", "Key": thing["Key"]})
