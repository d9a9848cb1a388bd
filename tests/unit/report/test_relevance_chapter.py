"""The section that says which actions served the task, and who says so."""

from __future__ import annotations

import msgspec

from seatrial.records import ActionVerdict, Counts, DimensionResult, DimensionValue, Scorecard
from seatrial.report.chapters.relevance import relevance

ACTIONS = (
    ActionVerdict(index=0, step=1, call_id="a", tool="look", relevant=False, source="intent", why="it feeds nothing",
                  others={"data_flow": True}),
    ActionVerdict(index=1, step=2, call_id="b", tool="write", relevant=None, source=None, why="no source can tell"),
)  # fmt: skip
RUN = DimensionValue(
    dimension="D2", version="1", task="t", trial=3, status="failed", value=0.0, why="", actions=ACTIONS
)  # fmt: skip
D2 = DimensionResult(
    dimension="D2", name="intent fidelity", version="1", estimate=None, why="", worst=(RUN,),
    detail={
        "sources": {"intent": 7, "None": 1},
        "agreement": {
            "intent~ablation": {"n": 7, "agree": 0.857, "kappa": None, "low": None, "high": None},
            "annotation~ablation": {"n": 40, "agree": 0.95, "kappa": 0.89, "low": 0.83, "high": 0.94},
        },
        "cost": {"actions": 8, "calls": 20, "restores": 3, "trials": 2, "calls_per_action": 2.5},
    },
)  # fmt: skip
CARD = Scorecard(
    agent="a", model=None, suite=None, k=1, tasks=1, dimensions={"D2": D2},
    counts=Counts(n_planned=1, n_attempted=1, n_scored=1),
)  # fmt: skip


def test_sources_agreement_cost_and_the_actions_of_the_worst_runs() -> None:
    found = relevance([CARD])
    assert found is not None
    sources, agreement, worst = found.tables
    assert ("a", "the task's intent specification", "7") in sources.rows
    assert ("a", "no source can tell", "1") in sources.rows
    assert ("a", "intent and ablation", "7", "86%", "n/a") in agreement.rows
    assert any(row[4] is not None and row[4].startswith("0.89 [") for row in agreement.rows)
    assert worst.rows[0][1:] == ("1", "look", "extraneous, intent (not: data_flow)", "it feeds nothing")
    assert worst.rows[1][3] == "not known, nobody"
    assert found.items == ("a: ablation replay executed 20 calls for 8 actions, 2.5 each, from 3 snapshots",)


def test_nothing_judged_is_no_section() -> None:
    bare = msgspec.structs.replace(D2, detail={})
    assert relevance([msgspec.structs.replace(CARD, dimensions={"D2": bare})]) is None
    assert relevance([msgspec.structs.replace(CARD, dimensions={})]) is None
