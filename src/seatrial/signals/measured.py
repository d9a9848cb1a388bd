"""The accuracy that was measured for the shipped detectors, as `measured.json` holds it (METHODS 1.5, 2).

`scripts/measure` writes the file. A figure belongs to one version of its detector: for any other there is none.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import msgspec

from seatrial.records import Estimate
from seatrial.signals.extraction import versions


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One kind's accuracy: `labels` says on what, `n_labelled` how many true cases that held, `version` of which
    version of the detector `detector` it is true."""

    detector: str
    version: str
    labels: str
    n_labelled: int
    precision: Estimate | None
    recall: Estimate | None
    f1: Estimate | None


@lru_cache(maxsize=1)
def shipped() -> dict[str, Measured]:
    """What was measured, by kind of signal; kinds that are missing were not measured on real cases."""
    data = resources.files("seatrial.signals").joinpath("measured.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Measured])


def present() -> dict[str, Measured]:
    """`shipped` without the kinds whose detector has another version by now: a figure of one version says nothing
    about another (METHODS 0.6)."""
    now = versions()
    return {kind: row for kind, row in shipped().items() if now.get(row.detector) == row.version}
