"""The seven dimensions in one explicit tuple; third parties' come in by entry points."""

from __future__ import annotations

from seatrial.dimensions.audit import Audit
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.fidelity import Fidelity
from seatrial.dimensions.gates import Gates
from seatrial.dimensions.repair import Repair
from seatrial.dimensions.replay import ReplayIntegrity
from seatrial.dimensions.reproducibility import Reproducibility
from seatrial.records.protocols import Dimension


def dimensions() -> tuple[Dimension, ...]:
    """D1 to D7 with their usual options."""
    return (Completion(), Fidelity(), Reproducibility(), Repair(), ReplayIntegrity(), Gates(), Audit())
