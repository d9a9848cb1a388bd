"""Equal completion, unequal conduct: told apart by exactly the dimensions that should (METHODS 5).

The assistant's pair at the demo's size is looked at in every run, by `tests/unit/flows/test_demo.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.examples import conduct
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.scorecard import ScorecardOptions, Scored, score_sources

SHOULD = {"D2", "D3", "D4", "D6"}
"""It explores and repeats; it is flaky; it leaves things behind; it skips an approval."""
SHOULD_NOT = {"D1", "D5", "D7"}
"""Completion is equal by design; the worlds replay and the runner records, whoever acts."""

SEEDS = {"ticketdesk": 14, "coderepo": 5, "assistant": 16}
"""Seeds at which luck gives both agents of a domain exactly as many passes over 10 runs of every task."""


def scored(domain: str, where: Path, **more: Any) -> Scored:
    options = RunOptions(**{"k": 10, "seed": SEEDS[domain], **more})
    runs = [run_suite(f"example:{domain}", agent=a, store=where, options=options).run for a in conduct.pair(domain)]
    return score_sources(runs, ScorecardOptions(store=where, suite=f"example:{domain}"))


def apart(found: Scored) -> set[str]:
    (contrasts,) = found.separation.values()
    return {c.dimension for c in contrasts if c.separated}


@pytest.mark.full
@pytest.mark.parametrize("domain", sorted(SEEDS))
def test_exactly_the_dimensions_that_should_separate_do(domain: str, tmp_path: Path) -> None:
    found = scored(domain, tmp_path)
    tidy, slapdash = found.cards
    assert tidy.dimensions["D1"].raw == pytest.approx(slapdash.dimensions["D1"].raw)
    assert apart(found) == SHOULD
    for name in SHOULD:
        a, b = tidy.dimensions[name].estimate, slapdash.dimensions[name].estimate
        assert a is not None
        assert b is not None
        assert a.value > b.value
    for name in SHOULD_NOT:
        assert tidy.dimensions[name].raw == pytest.approx(slapdash.dimensions[name].raw)
