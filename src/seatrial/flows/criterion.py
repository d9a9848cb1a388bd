"""Outcomes with a known reward to how well signals stand in for it: criterion validity (METHODS 2)."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import polars as pl

from seatrial import scoring
from seatrial.errors import EvidenceError
from seatrial.records import OUTCOMES, Estimate
from seatrial.stats import clustered_proportion, ppi_mean
from seatrial.stats.logistic import auc

FEWEST = 5
"""Labels of a system below which nothing is estimated. METHODS 3.4d asks for thirty before a ranking is headed by
such an estimate; a quarter of fifty runs has about twelve."""

_AGAINST = ("n_complaint", "n_correction", "n_execution_error")
_COUNTS = ("n_confirmation", "n_accept_implicit", "n_praise", *_AGAINST)


class SignalAuc(msgspec.Struct, frozen=True, kw_only=True):
    """Chance that a rewarded run has more of `signal` (less, for complaints, corrections and errors) than an
    unrewarded one; .5 says nothing, below .5 misleads. None: it never varies, or is never there."""

    signal: str
    auc: float | None
    n: int


class SystemOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One system: its true mean reward, the mean headline of signals, and the prediction-powered mean and the
    mean of the labels alone (None: fewer than five labels)."""

    system: str
    n: int
    truth: float
    signals: float | None
    powered: Estimate | None
    labelled: Estimate | None


class DrawnOrders(msgspec.Struct, frozen=True, kw_only=True):
    """Over many random draws of labels: mean Kendall tau of the order that each estimate gives with the true order."""

    draws: int
    powered: float | None
    labelled: float | None


def aucs(outcomes: pl.DataFrame) -> list[SignalAuc]:
    """AUC of every signal outcome, their mean, the count score and each count for the recorded reward (>= .5)."""
    rows = _rewarded(outcomes)
    _, mean = scoring.headline(rows, "signals_mean")
    columns = {name: rows[name].cast(pl.Float64) for name in (*OUTCOMES, "score", *_COUNTS)}
    out = []
    for name, values in {"signals_mean": mean, **columns}.items():
        there = values.is_not_null().to_numpy()
        score = values.filter(pl.Series(there)).to_numpy() * (-1.0 if name in _AGAINST else 1.0)
        truth = (rows["outcome"].to_numpy()[there] >= 0.5).astype(float)
        varies = score.size > 0 and float(np.ptp(score)) > 0
        out.append(SignalAuc(signal=name, auc=auc(score, truth) if varies else None, n=int(there.sum())))
    return out


def orders(
    outcomes: pl.DataFrame, *, by: str = "arm", share: float = 0.25, seed: int = 0, level: float = 0.95
) -> list[SystemOrder]:
    """Systems by true reward, descending, beside what signals alone and signals with a random share of rewards say.

    Intervals treat the attempts of one task as one cluster.
    """
    rows = _rewarded(outcomes).sort("session")
    _, mean = scoring.headline(rows, "signals_mean")
    drawn = pl.Series(np.random.default_rng(seed).random(rows.height) < share)
    table = rows.select(by, "task", "outcome").with_columns(mean.alias("_f"), drawn.alias("_drawn"))
    out = []
    for (system,), part in sorted(table.group_by(by), key=lambda item: str(item[0])):
        usable = part.drop_nulls("_f")
        labels, rest = usable.filter(pl.col("_drawn")), usable.filter(~pl.col("_drawn"))
        powered, labelled = (_powered(labels, rest, lam, level) for lam in (None, 0.0))
        out.append(
            SystemOrder(
                system=str(system),
                n=part.height,
                truth=float(part["outcome"].to_numpy().mean()),
                signals=float(usable["_f"].to_numpy().mean()) if usable.height else None,
                powered=powered,
                labelled=labelled,
            )
        )
    return sorted(out, key=lambda s: (-s.truth, s.system))


def _powered(labels: pl.DataFrame, rest: pl.DataFrame, lam: float | None, level: float) -> Estimate | None:
    """The mean from labels and signals, kept in [0, 1]; equal labels keep a width (METHODS 0.3)."""
    if labels.height < FEWEST or not rest.height:
        return None
    truth, names = labels["outcome"].to_numpy(), [str(t) for t in labels["task"]]
    if float(np.ptp(truth)) == 0.0:
        return clustered_proportion(truth, names, level)
    found = ppi_mean(
        truth, labels["_f"].to_numpy(), rest["_f"].to_numpy(), clusters=names,
        other_clusters=[str(t) for t in rest["task"]], lam=lam, level=level, fewest=FEWEST,
    )  # fmt: skip
    if found is None or found.low is None or found.high is None:
        return found
    return msgspec.structs.replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def agreement(systems: list[SystemOrder], by: Literal["signals", "powered", "labelled"] = "signals") -> float | None:
    """Kendall's tau-a between the order that `by` gives and the true order; 1 is the same order, None with fewer than
    two systems that have a value."""

    def value(one: SystemOrder) -> float | None:
        held = getattr(one, by)
        return held.value if isinstance(held, Estimate) else held

    known = [(s.truth, v) for s in systems if (v := value(s)) is not None]
    signs = [np.sign(a[0] - b[0]) * np.sign(a[1] - b[1]) for i, a in enumerate(known) for b in known[i + 1 :]]
    return float(np.mean(signs)) if signs else None


def over_draws(outcomes: pl.DataFrame, *, share: float = 0.25, draws: int = 100) -> DrawnOrders:
    """How well a random share of the rewards restores the order, on average over seeds 0 to draws - 1."""
    taus: dict[str, list[float]] = {"powered": [], "labelled": []}
    for seed in range(draws):
        systems = orders(outcomes, share=share, seed=seed)
        for name, found in taus.items():
            tau = agreement(systems, "powered" if name == "powered" else "labelled")
            if tau is not None:
                found.append(tau)
    mean = {name: float(np.mean(found)) if found else None for name, found in taus.items()}
    return DrawnOrders(draws=draws, powered=mean["powered"], labelled=mean["labelled"])


def _rewarded(outcomes: pl.DataFrame) -> pl.DataFrame:
    rows = outcomes.filter(pl.col("outcome").is_not_null())
    if rows.is_empty():
        raise EvidenceError("no session has a recorded reward", hint="criterion validity needs benchmark runs")
    return rows
