"""A plan's shards: the same whatever interrupts them, used again only for the same plan, and one table at the end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows.branch import branch, plan_of
from seatrial.flows.recover import read_pairs
from seatrial.recovery import pairs as table
from seatrial.recovery.plan import Plan, carry_out, forecast, read_shard, select, shards
from seatrial.recovery.sources import agent, source
from seatrial.world.agents.react import ReActAgent

ROOMS = Path(__file__).resolve().parents[2] / "rooms.py"
_spec = importlib.util.spec_from_file_location("rooms", ROOMS)
assert _spec is not None
assert _spec.loader is not None
rooms: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)
sys.modules.setdefault("rooms", rooms)
seeker = rooms.seeker()
rooms.in_order = seeker

PLAN = Plan(world="python:rooms:Rooms", agent="python:rooms:in_order", tasks=(), max_actions=12)


def small(n: int = 4) -> Plan:
    return msgspec.structs.replace(PLAN, tasks=tuple(f"key-{i}" for i in range(n)))


def test_a_plan_that_goes_on_gives_the_table_of_one_that_was_never_stopped(tmp_path: Path) -> None:
    whole = [p for s in carry_out(small(), tmp_path / "a", workers=1) for p in s.pairs]
    begun = carry_out(small(), tmp_path / "b", workers=1)
    next(begun)
    begun.close()
    assert len(list(shards(small(), tmp_path / "b"))) == 1
    again = [p for s in carry_out(small(), tmp_path / "b", workers=1) for p in s.pairs]
    for name, pairs in (("a", whole), ("b", again)):
        table.write(pairs, tmp_path / f"{name}.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_shards_of_another_plan_are_not_used(tmp_path: Path) -> None:
    list(carry_out(small(1), tmp_path, workers=1))
    more = small(2)
    assert len(list(shards(more, tmp_path))) == 1
    for change in ({"max_actions": 13}, {"seed": 1}, {"operations": ("replan",)}, {"cohort": "test"}, {"replays": 2}):
        assert list(shards(msgspec.structs.replace(more, **change), tmp_path)) == []
    assert len(list(shards(msgspec.structs.replace(more, mode="replay"), tmp_path))) == 1
    path = next(tmp_path.rglob("*.json"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged"):
        read_shard(path)


def test_what_it_takes_is_said_first(tmp_path: Path) -> None:
    said = []
    found = branch(small(), tmp_path / "s", out=tmp_path / "p.csv", workers=1, foresee=said.append)
    assert [(f.tasks, f.done, f.pilot) for f in said] == [(4, 1, 1)]
    assert said[0].branches == 3 * (1 + 4 + 4 * 4 * 2)
    assert said[0].core_hours is not None
    assert said[0].core_hours > 0.0
    assert (found.tasks, found.discordant, found.file) == (4, 0, str(tmp_path / "p.csv"))
    dry = branch(small(), tmp_path / "t", out=tmp_path / "q.csv", workers=1, dry=True)
    assert (dry.file, (tmp_path / "q.csv").exists(), dry.tasks) == (None, False, 1)
    assert forecast(small(), tmp_path / "s", workers=2).branches == 0


@pytest.mark.parametrize("suffix", table.SUFFIXES)
def test_the_table_is_read_back(tmp_path: Path, suffix: str) -> None:
    found = branch(
        msgspec.structs.replace(small(), cohort="fit"), tmp_path / "s", out=tmp_path / f"p{suffix}", workers=1
    )
    path = tmp_path / f"p{suffix}"
    if suffix == ".csv.gz":
        import gzip

        path = tmp_path / "p.csv"
        path.write_bytes(gzip.decompress((tmp_path / "p.csv.gz").read_bytes()))
    read = read_pairs(path).pairs
    assert len(read) == found.pairs == 4 * 4 * 4 * 2
    assert set(read.cohort) == {"fit"}
    assert set(read.agent) == {"in-order"}
    assert int(read.terminated.sum()) == found.terminated
    assert int((read.placebo & ~read.terminated).sum()) == found.placebo
    assert "consistency" in read.features
    assert read.ignored == ()
    kept = [p for shard in shards(msgspec.structs.replace(small(), cohort="fit"), tmp_path / "s") for p in shard.pairs]
    with pytest.raises(UsageError, match=r"\.csv"):
        table.write(kept, tmp_path / "x.txt")
    with pytest.raises(EvidenceError):
        table.write([], tmp_path / "x.csv")


def test_tasks_are_drawn_or_named(tmp_path: Path) -> None:
    drawn = plan_of(PLAN, sample=5)
    assert len(drawn.tasks) == len(set(drawn.tasks)) == 5
    assert drawn.tasks == plan_of(PLAN, sample=9).tasks[:5]
    assert plan_of(PLAN, tasks=("key-3",)).tasks == ("key-3",)
    with pytest.raises(UsageError, match="key-77"):
        plan_of(PLAN, tasks=("key-77",))
    with pytest.raises(UsageError):
        select(("a", "b"), limit=3)


def test_specs() -> None:
    assert agent("by-sight").name == "by-sight"
    assert isinstance(agent("react:toy@http://localhost:1/v1"), ReActAgent)
    for bad in ("nobody", "react:toy"):
        with pytest.raises(UsageError):
            agent(bad)
    for bad in ("moon:base", "alfworld:"):
        with pytest.raises(UsageError):
            source(bad)
    with pytest.raises(InputError, match="no ALFWorld games"):
        source(f"alfworld:{ROOMS.parent}/golden")
    with pytest.raises(InputError, match="tasks"):
        source("python:rooms:rooms")


def test_killed_and_begun_again(tmp_path: Path) -> None:
    """The command itself, killed while it works."""
    script = tmp_path / "slow.py"
    script.write_text(
        "import time\nimport rooms\nfrom rooms import *\n\n\nclass Slow(Rooms):\n"
        "    def case(self, task, agent, **more):\n        time.sleep(0.3)\n"
        "        return super().case(task, agent, **more)\n\n\nin_order = seeker()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOMS.parent)])}
    words = [sys.executable, "-c", "from seatrial.cli import main; main()", "recover", "branch", "python:slow:Slow",
             "--agent", "python:slow:in_order", "--workers", "1", "--conditions", "clean", "--delays", "0"]  # fmt: skip
    out = tmp_path / "p.csv"
    child = subprocess.Popen([*words, "--out", str(out)], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60.0
    while len(list(tmp_path.rglob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = len(list(tmp_path.rglob("*.json")))
    assert 2 <= kept < 12
    done = subprocess.run([*words, "--out", str(out)], env=environment, capture_output=True, text=True, check=True)
    assert f"12 tasks, {kept} done" in done.stderr
    whole = tmp_path / "whole.csv"
    subprocess.run([*words, "--out", str(whole)], env=environment, capture_output=True, check=True)
    assert out.read_bytes() == whole.read_bytes()
