"""What the demo made and found: the records that its flow fills and its report shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from seatrial.flows.demo_recovery import RecoveryDemo
from seatrial.flows.planted import Planted
from seatrial.flows.scorecard import Scored
from seatrial.records import Comparison, Estimate, Ranking
from seatrial.report.section import Section


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """How well one kind of signal was found in the users' sentences, turn by turn. `precision` None: nothing was
    found; `recall` None: nobody meant it. Users are the clusters."""

    n_meant: int
    n_found: int
    recall: Estimate | None
    precision: Estimate | None


class GateDemo(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate decided on one agent against its own baseline: `unchanged`, under other luck, and `broken`, with
    the description of the tool `lost` taken away. `store` holds the three runs."""

    store: Path
    lost: str
    unchanged: Comparison
    broken: Comparison


class DemoRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo made and found.

    `truth` is the planted truth by agent and outcome; `here` the same outcomes of these very sessions from true
    labels (so that sampling error and detector error can be told apart); `detectors` the accuracy by kind;
    `agreement` the probability that a session whose jobs all came out right scores above one whose jobs did not;
    `gate` what the gate said of an agent before and after it was broken; `scorecard` seven dimensions of two agents.
    """

    ranking: Ranking
    data_version: str
    folder: Path
    report: Path
    truth: Planted
    here: dict[str, dict[str, float]]
    detectors: dict[str, Accuracy]
    agreement: float | None
    order_recovered: bool
    gate: GateDemo
    recovery: RecoveryDemo
    scorecard: Scored
    sections: tuple[Section, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The ``demo --json`` result."""
        return {
            "report": str(self.report),
            "order_recovered": self.order_recovered,
            "truth": self.truth.agents,
            "these_sessions_with_true_labels": self.here,
            "detectors": self.detectors,
            "agreement": self.agreement,
            "gate": {"unchanged": self.gate.unchanged.verdict, "broken": self.gate.broken.verdict},
            "scorecard": self.scorecard.summary(),
            "recovery": {"certificate": self.recovery.router.certificate, "policies": self.recovery.rows},
            "ranking": self.ranking,
        }
