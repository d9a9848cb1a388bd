"""The rankings of `rankings.py`, one after the other or by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.records import Ranking

_spec = importlib.util.spec_from_file_location("report_rankings", Path(__file__).with_name("rankings.py"))
assert _spec is not None
assert _spec.loader is not None
rankings = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rankings)


@pytest.fixture(params=sorted(rankings.RANKINGS))
def ranking(request: pytest.FixtureRequest) -> Ranking:
    """Every kind of ranking in turn."""
    return rankings.RANKINGS[request.param]()


@pytest.fixture
def example() -> Callable[[str], Ranking]:
    """A ranking by its name."""
    return lambda name: rankings.RANKINGS[name]()


@pytest.fixture
def nasty() -> tuple[str, ...]:
    """Hostile names."""
    return rankings.NASTY
