"""Which kinds of signal may head a report: those that are precise enough on labelled cases (METHODS 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial import signals
from seatrial.errors import UsageError
from seatrial.records import OUTCOMES, SIGNAL_KINDS, Estimate, KindUse
from seatrial.scoring.outcomes import NEEDS, VOICES
from seatrial.signals import measured

LEAST = 0.5
"""The lower bound of its precision that a kind must reach to count."""

_NO_PART = {
    "accept_implicit": "a kind of its own: no outcome hears it unless it is told to count as confirmation",
    "abnormal_output": "no outcome hears it, and it has no labels",
    "escalation": "no outcome hears it",
    "retry_request": "no outcome hears it, and it has no labels of real cases",
    "abandonment": "no outcome hears it, and it has no labels of real cases",
}


class Voices(NamedTuple):
    """Every kind with its use; `silent` are the kinds that some outcome would hear but the headline may not."""

    kinds: tuple[KindUse, ...]
    warnings: tuple[str, ...] = ()

    @property
    def silent(self) -> tuple[str, ...]:
        """In the order of `VOICES`: what extraction is told."""
        return tuple(use.kind for use in self.kinds if use.part and not use.counts)

    @property
    def barred(self) -> dict[str, str]:
        """Per-signal outcomes that the headline leaves out, with the reason."""
        why = {use.kind: use.why for use in self.kinds}
        silent = self.silent
        return {
            name: "; ".join(f"{kind}: {why[kind]}" for kind in NEEDS[name] if kind in silent)
            for name in OUTCOMES
            if set(NEEDS[name]) & set(silent)
        }


@lru_cache(maxsize=1)
def shipped() -> Voices:
    """By the accuracy that was measured for the shipped detectors, sources left out."""
    rows = {kind: _Known(m.precision, m.n_labelled, m.labels) for kind, m in measured.present().items()}
    return _voices(rows, set(measured.shipped()) - set(rows))


def by_labels(kinds: Mapping[str, Mapping[str, Any]]) -> Voices:
    """By labelled turns of one's own, as `signals.evaluate` scores them. What turns cannot tell (who caused an error)
    keeps the figure of `shipped`."""
    rows = {
        kind: _Known(m.precision, m.n_labelled, m.labels)
        for kind, m in measured.present().items()
        if kind == "execution_error"
    }
    for kind, row in kinds.items():
        if row["n_positive"] or row["precision"] is not None:
            rows[kind] = _Known(row["precision"], row["n_positive"], "the labelled turns given")
    return _voices(rows)


def everyone() -> Voices:
    """Every kind that some outcome hears counts, measured or not."""
    uses = [
        msgspec.structs.replace(use, counts=True, why=f"told to count: {use.why}")
        if use.part and not use.counts
        else use
        for use in shipped().kinds
    ]
    return Voices(tuple(uses))


def chosen(turn_labels: Path | None, *, every_kind: bool) -> Voices:
    """What a user's options come to.

    Raises:
        UsageError: labels are given that would decide nothing. InputError, EvidenceError: as `signals.evaluate`.
    """
    if every_kind and turn_labels is not None:
        raise UsageError(
            "turn labels say which kinds count, and every kind is told to count",
            hint="give one: --turn-labels FILE or --every-kind",
        )
    if every_kind:
        return everyone()
    if turn_labels is None:
        return shipped()
    found = signals.evaluate(turn_labels)
    return by_labels(found.kinds)._replace(warnings=found.warnings)


class _Known(NamedTuple):
    """What labels say of a kind: its precision (None: it was never found), how many cases, whose labels."""

    precision: Estimate | None
    n_labelled: int
    labels: str


def _voices(rows: Mapping[str, _Known], stale: Collection[str] = ()) -> Voices:
    heard = [kind for kind in SIGNAL_KINDS if kind in VOICES]
    rest = [kind for kind in SIGNAL_KINDS if kind not in VOICES]
    return Voices(
        (*(_heard(kind, rows.get(kind), kind in stale) for kind in heard), *(_no_part(k, rows) for k in rest))
    )


def _heard(kind: str, known: _Known | None, stale: bool) -> KindUse:
    if known is None:
        why = "its accuracy was measured for another version" if stale else "no labels of real cases"
        return KindUse(kind=kind, counts=False, why=why)
    precision = known.precision
    if precision is None:
        counts, why = False, f"never found on {known.labels}"
    elif precision.low is None:
        counts, why = False, f"its precision is not known well enough on {known.labels}"
    else:
        counts = precision.low >= LEAST
        why = (
            f"on {known.labels}" if counts else f"its precision may be as low as {precision.low:.2f}, on {known.labels}"
        )
    return KindUse(kind=kind, counts=counts, why=why, precision=precision, n_labelled=known.n_labelled)


def _no_part(kind: str, rows: Mapping[str, _Known]) -> KindUse:
    known = rows.get(kind)
    return KindUse(
        kind=kind,
        counts=False,
        why=_NO_PART[kind],
        part=False,
        precision=known.precision if known else None,
        n_labelled=known.n_labelled if known else 0,
    )
