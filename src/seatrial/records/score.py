"""Signals weighed into outcomes (METHODS 2)."""

from __future__ import annotations

import msgspec

OUTCOMES: tuple[str, ...] = (
    "confirmed_success",
    "praise_over_complaint",
    "steerability",
    "command_recovery",
    "no_tool_hallucination",
)
"""The five per-signal outcomes, each in [0, 1] or None. The headline's last resort is their equal-weight mean."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of the count score, all >= 0; complaints, corrections and errors are subtracted.

    `fitted` False means a preset, and every report must say ``weights: unfitted``. `fingerprint` binds
    fitted weights to the detector versions that they were fitted with.
    """

    name: str
    confirmation: float = 1.0
    praise: float = 1.0
    complaint: float = 1.0
    correction: float = 1.0
    execution_error: float = 1.0
    fitted: bool = False
    fingerprint: str | None = None
    n_labels: int = 0


class SessionScore(msgspec.Struct, frozen=True, kw_only=True):
    """One session's outcomes. Missing ones are None, with the reason in `why`.

    `score` is the count score (unbounded, never the headline). `signals` holds the five outcomes.
    `counts` are kept signals by kind. `episodes` is the number of task episodes behind the means. `mean` is the mean
    of those outcomes that may head a report, without the kinds of signal that may not.
    """

    session: str
    score: float
    signals: dict[str, float | None]
    counts: dict[str, int]
    episodes: int
    why: dict[str, str] = {}
    mean: float | None = None
