"""Verdicts beside labels, turn by turn, to what a threshold costs, how far confidences can be believed, and which
kinds are mistaken for which (METHODS 1.5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from seatrial.signals import language

KINDS = language.HUMAN_KINDS
EXAMPLES = 3
_CLIP = 160
_GRID = tuple(i / 20 for i in range(6, 20))
_BINS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One labelled turn with the confidence that the detectors gave to each kind (absent: below the floor)."""

    id: str
    turn: str
    labels: frozenset[str]
    confidence: dict[str, float]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What a threshold gives; None: nothing found, or nothing there."""

    threshold: float
    found: int
    precision: float | None
    recall: float | None
    f1: float | None


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts with a confidence in [low, high): how sure they were on average, and how often they were right."""

    low: float
    high: float
    n: int
    confidence: float
    right: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Reliability of one kind's verdicts. `error` is the mean distance of confidence and share right over `bins`,
    weighted by their size; `brier` the mean squared error over all turns (no verdict counts as 0)."""

    bins: tuple[Bin, ...]
    error: float | None
    brier: float | None


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was judged otherwise than labelled; the text is clipped."""

    id: str
    turn: str
    confidence: float


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Turns labelled `labelled` (``other``: no kind) on which `found` was said (``nothing``: no kind), wrongly."""

    labelled: str
    found: str
    n: int
    examples: tuple[Example, ...]


def curve(rows: Sequence[Judged], kind: str) -> tuple[Point, ...]:
    """Precision, recall and F1 of one kind at every threshold from .30 to .95."""
    truth = [kind in row.labels for row in rows]
    said = [row.confidence.get(kind, 0.0) for row in rows]
    positive = sum(truth)
    out = []
    for threshold in _GRID:
        found = sum(s >= threshold for s in said)
        both = sum(t and s >= threshold for t, s in zip(truth, said, strict=True))
        out.append(
            Point(
                threshold=threshold,
                found=found,
                precision=both / found if found else None,
                recall=both / positive if positive else None,
                f1=2 * both / (found + positive) if found + positive else None,
            )
        )
    return tuple(out)


def calibration(rows: Sequence[Judged], kind: str) -> Calibration:
    """How far the confidences of one kind can be read as shares of right verdicts."""
    pairs = [(row.confidence[kind], kind in row.labels) for row in rows if kind in row.confidence]
    bins = []
    for low, high in pairwise(_BINS):
        inside = [(c, t) for c, t in pairs if low <= c < high or (high == 1.0 and c == 1.0)]
        if inside:
            bins.append(
                Bin(
                    low=low,
                    high=high,
                    n=len(inside),
                    confidence=sum(c for c, _ in inside) / len(inside),
                    right=sum(t for _, t in inside) / len(inside),
                )
            )
    n = sum(b.n for b in bins)
    squares = [(row.confidence.get(kind, 0.0) - (kind in row.labels)) ** 2 for row in rows]
    return Calibration(
        bins=tuple(bins),
        error=sum(b.n * abs(b.confidence - b.right) for b in bins) / n if n else None,
        brier=sum(squares) / len(squares) if squares else None,
    )


def confusion(rows: Sequence[Judged], thresholds: dict[str, float]) -> tuple[Confusion, ...]:
    """What is mistaken for what, most frequent first. A kind that is both labelled and found is no mistake."""
    cells: dict[tuple[str, str], list[Example]] = {}
    for row in rows:
        found = {k for k, c in row.confidence.items() if c >= thresholds[k]}
        wanted = row.labels & set(KINDS)
        lost, extra = sorted(wanted - found), sorted(found - wanted)
        pairs = [(a, b) for a in lost for b in extra]
        if not extra:
            pairs = [(a, "nothing") for a in lost]
        elif not lost:
            pairs = [("+".join(sorted(wanted)) or "other", b) for b in extra]
        for labelled, said in pairs:
            clipped = " ".join(row.turn.split())[:_CLIP]
            confidence = row.confidence.get(said if said != "nothing" else labelled, 0.0)
            cells.setdefault((labelled, said), []).append(Example(id=row.id, turn=clipped, confidence=confidence))
    return tuple(
        Confusion(
            labelled=labelled,
            found=said,
            n=len(found),
            examples=tuple(sorted(found, key=lambda e: (-e.confidence, e.id, e.turn))[:EXAMPLES]),
        )
        for (labelled, said), found in sorted(cells.items(), key=lambda item: (-len(item[1]), item[0]))
    )
