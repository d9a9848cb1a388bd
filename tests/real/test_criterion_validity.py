"""Signals against the rewards of tau2's airline runs: the published order, and what signals alone make of it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from seatrial import ingest, scoring
from seatrial.flows import criterion
from seatrial.flows.extract import extract_traces, fingerprint

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def outcomes(data: Path) -> pl.DataFrame:
    folder = data / "tau2" / "airline"
    if not folder.is_dir():
        pytest.skip("no runs at data/tau2/airline")
    traces = list(ingest.read(folder))
    return extract_traces(traces, scoring.UNIT, fingerprint(scoring.UNIT), blobs={})["outcomes"]


def test_true_means_are_the_published_ones_and_the_docs_tell_what_signals_say(outcomes: pl.DataFrame) -> None:
    systems = criterion.orders(outcomes)
    assert [round(s.truth, 2) for s in systems] == [0.72, 0.56, 0.46, 0.18]
    alone = criterion.agreement(systems)
    assert alone is not None
    assert alone < 1.0  # docs/explanation/validity.md says that the order is wrong
    aucs = {row.signal: row.auc for row in criterion.aucs(outcomes)}
    assert aucs["n_praise"] is not None
    assert aucs["n_praise"] < 0.5  # and that praise misleads
    assert aucs["signals_mean"] is not None
    assert aucs["signals_mean"] < 0.65


def test_a_quarter_of_the_rewards_mostly_restores_the_order(outcomes: pl.DataFrame) -> None:
    drawn = criterion.over_draws(outcomes, draws=20)
    assert drawn.powered is not None
    assert drawn.powered > 0.7
