"""Which outcome heads the report, in the order of METHODS 2."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from seatrial.errors import EvidenceError, UsageError
from seatrial.records import OUTCOMES

MEAN = "signals_mean"
"""The equal-weight mean of the per-signal outcomes, over those that a session has and that may head a report."""

HEADLINES: tuple[str, ...] = ("outcome", *OUTCOMES, MEAN)
"""What `choice` may name besides ``auto``. The count score is never the headline: it grows with length."""

RECORDED_SHARE = 0.5
"""``auto`` takes the recorded outcome when at least this share of the sessions has one."""


def headline(outcomes: pl.DataFrame, choice: str = "auto", *, without: Sequence[str] = ()) -> tuple[str, pl.Series]:
    """The headline's name and values, one per row of `outcomes` (null: the session has none).

    The user's choice; else the recorded reward or success; else the mean of the five signals. The
    prediction-powered estimate, which comes before the mean where labels exist, is a contrast's business and is
    made from this column. A column `signals_mean` is that mean, made with the kinds of signal that may head a report
    (`score`'s `silent`); without it the mean is made here, over the outcomes not named in `without`.

    Raises:
        UsageError: a choice that is no outcome, or the count score.
        EvidenceError: no session has a value.
    """
    if choice == "score":
        raise UsageError("the count score is never the headline: it is unbounded and grows with length")
    if choice != "auto" and choice not in HEADLINES and choice not in outcomes.columns:
        raise UsageError(f"no outcome {choice!r}", hint=f"choose auto or one of {', '.join(HEADLINES)}")
    unknown = set(without) - set(OUTCOMES)
    if unknown:
        raise UsageError(f"not signals: {', '.join(sorted(unknown))}", hint=f"signals are {', '.join(OUTCOMES)}")
    if choice == "auto":
        recorded = outcomes["outcome"].count() if "outcome" in outcomes.columns else 0
        choice = "outcome" if recorded and recorded >= RECORDED_SHARE * outcomes.height else MEAN
    if choice == MEAN and (MEAN not in outcomes.columns or without):
        parts = [name for name in OUTCOMES if name in outcomes.columns and name not in without]
        if not parts:
            raise EvidenceError("no signal outcome is left for the headline", hint="label some sessions, or choose one")
        values = outcomes.select(pl.mean_horizontal([pl.col(p).cast(pl.Float64) for p in parts]).alias(MEAN))[MEAN]
    else:
        values = outcomes[choice].cast(pl.Float64)
    if not values.count():
        raise EvidenceError(f"no session has a value of {choice!r}", hint="nothing scored is never a result")
    return choice, values.alias(choice)
