"""An engine is chosen by URL; what it cannot be is refused with what to do."""

from __future__ import annotations

import importlib.util
import operator
from functools import partial
from pathlib import Path

import pytest

from seatrial.engine.choice import engine_at
from seatrial.errors import MissingExtra, UsageError
from seatrial.flows.rank import rank_paths


def test_local_has_both_verbs_and_does_not_tell_its_workers() -> None:
    engine = engine_at("local", workers=1)
    seen: list[tuple[int, int | None, str]] = []
    parts = engine.map_sessions(sum, [[1, 2], [3]], progress=lambda *a: seen.append(a), what="numbers")
    assert list(parts) == [3, 3]
    assert seen == [(1, 2, "numbers"), (2, 2, "numbers")]
    assert engine.aggregate(sum, [[1, 2], [3]], operator.add) == 6
    assert engine.aggregate(sum, [], operator.add) is None
    assert engine.worker_ids() == ()


@pytest.mark.parametrize("url", ["", "spark://x", "ray://", "ray:x", "rays://a:1", "LOCAL"])
def test_an_unknown_engine_is_refused_with_the_forms(url: str) -> None:
    with pytest.raises(UsageError, match="there is no engine") as refused:
        engine_at(url)
    assert refused.value.hint is not None
    assert "ray://HOST:PORT" in refused.value.hint


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="the extra is installed here")
def test_without_the_extra_the_message_names_it() -> None:
    with pytest.raises(MissingExtra, match="daft and ray") as refused:
        engine_at("ray")
    assert refused.value.hint == "pip install 'seatrial[distributed]'"


def test_a_cluster_elsewhere_needs_a_store_that_it_can_reach(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="temporary store"):
        rank_paths([tmp_path], engine="ray://192.0.2.1:10001")


def test_too_few_workers_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        list(engine_at("local", workers=0).map_sessions(partial(int, base=2), ["1", "0"]))
