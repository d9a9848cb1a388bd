"""The seven dimensions in one explicit tuple; third parties' come in by entry points."""

from __future__ import annotations

from seatrial import plugins
from seatrial.dimensions.audit import Audit
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.fidelity import Fidelity
from seatrial.dimensions.gates import Gates
from seatrial.dimensions.repair import Repair
from seatrial.dimensions.replay import ReplayIntegrity
from seatrial.dimensions.reproducibility import Reproducibility
from seatrial.records.protocols import Dimension


def dimensions() -> tuple[Dimension, ...]:
    """D1 to D7 with their usual options, then those of other packages in name order; a name that is taken is left
    out."""
    own: tuple[Dimension, ...] = (
        Completion(), Fidelity(), Reproducibility(), Repair(), ReplayIntegrity(), Gates(), Audit()
    )  # fmt: skip
    found = {d.name: d for d in own}
    for plugin in plugins.plugins("seatrial.dimensions").found:
        found.setdefault(plugin.value.name, plugin.value)
    return tuple(found.values())
