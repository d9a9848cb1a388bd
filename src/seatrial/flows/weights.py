"""Labelled sessions to fitted weights, and how the board's order moves with the weights (METHODS 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from seatrial import intake, scoring, signals
from seatrial.canon import content_hash
from seatrial.causal.prepare import numbered
from seatrial.errors import EvidenceError, InputError
from seatrial.flows import labels as label_files
from seatrial.flows.extract import extract_store
from seatrial.records import Weights
from seatrial.scoring import fitting
from seatrial.scoring.outcomes import VERSION as SCORING_VERSION
from seatrial.store import Store, temporary_store

FITTED = "fitted_success"
"""Name of the outcome that fitted weights make: the probability that a session went well."""

_ORDER_DRAWS = 1_000


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """Models from best to worst by the count score under one set of weights; values are differences from the mean
    over models, post-stratified by task type."""

    weights: str
    order: tuple[str, ...]
    values: tuple[float, ...]


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """How the order moves: under each preset and the fit, and over weight draws, `top` the share in which a model
    leads and `same` the share with the same order as unit weights. `drawn_from` names where the draws come from."""

    boards: tuple[Board, ...]
    top: dict[str, float]
    same: float | None
    draws: int
    drawn_from: str


class WeightsRun(msgspec.Struct, frozen=True, kw_only=True):
    """Fitted weights, the order's stability, and labels of sessions that are not there."""

    fitted: fitting.FittedWeights
    stability: Stability
    unknown: int
    data_version: str
    warnings: tuple[str, ...] = ()


def detectors() -> str:
    """Fingerprint of what counted the signals; weights are bound to it."""
    return content_hash({"signals": signals.versions(), "scoring": SCORING_VERSION})[:16]


def fit(
    labels: Path,
    paths: Sequence[Path] = (),
    *,
    store: Path | None = None,
    method: fitting.Method = "logistic",
    ordered: bool = False,
    emphasis: float = 1.0,
    draws: int = 500,
    seed: int = 0,
    level: float = 0.95,
) -> WeightsRun:
    """Fit weights on labelled sessions of a store, or of files.

    Raises:
        InputError: a bad label file. EvidenceError: no labelled session is there, or labels that cannot be fitted.
    """
    known = label_files.read_told(labels)
    if store is not None and not paths:
        return _fit(Store.open(store), known, method, ordered, emphasis, draws, seed, level)
    with temporary_store() as opened:
        intake.ingest(opened, list(paths))
        return _fit(opened, known, method, ordered, emphasis, draws, seed, level)


def _fit(
    store: Store, known: label_files.SessionLabels, method: fitting.Method, ordered: bool, emphasis: float, draws: int,
    seed: int, level: float,
) -> WeightsRun:  # fmt: skip
    labels, warnings = known.table, list(known.warnings)
    extract_store(store, scoring.UNIT)
    rows = store.table("outcomes").filter(pl.col("parent").is_null()).sort("session").collect()
    chance = labels.select("session", "label", pl.col("probability").alias("_chance"))
    joined = rows.join(chance, on="session", how="inner").sort("session")
    if joined.is_empty():
        raise EvidenceError("no labelled session is in the store", hint="label ids must be the store's session ids")
    nobody = joined["user"].null_count()
    if nobody:
        warnings.append(f"the user of {nobody} of {joined.height} labelled sessions is not known: each counts as a "
                        "user of its own")  # fmt: skip
    # By number, not by name: pseudonyms sort by the store's key, and folds must not depend on that.
    users = numbered(joined.select(pl.coalesce("user", "session"))["user"])[0].astype(str).tolist()
    fitted = fitting.fit(
        _counts(joined), joined["label"].to_numpy(), users, sessions=joined["session"].to_list(),
        sample_weight=1.0 / joined["_chance"].to_numpy(), ordered=ordered, emphasis=emphasis, method=method,
        draws=draws, seed=seed, level=level, fingerprint=detectors(),
    )  # fmt: skip
    return WeightsRun(
        fitted=fitted,
        stability=stability(rows, fitted, seed=seed),
        unknown=labels.height - joined.height,
        data_version=store.data_version,
        warnings=tuple(warnings),
    )


def _counts(rows: pl.DataFrame) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return rows.select([pl.col(f"n_{kind}").fill_null(0).cast(pl.Float64) for kind in fitting.KINDS]).to_numpy()


def stability(rows: pl.DataFrame, fitted: fitting.FittedWeights | None = None, *, seed: int = 0) -> Stability:
    """The board under both presets, the fitted weights and many weight draws: bootstrap draws of the fit where there
    is one, else shapes drawn evenly over all weights (Dirichlet)."""
    table = rows.filter(pl.col("arm").is_not_null()).with_columns(pl.col("task_type").fill_null("unknown"))
    arms, contrast = _contrasts(table)
    sign = np.array(fitting.SIGNS, float)
    named: list[Weights] = [*scoring.PRESETS, *([fitted.weights] if fitted is not None and fitted.used else [])]
    boards = []
    for weights in named:
        value = contrast @ (sign * np.array([getattr(weights, kind) for kind in fitting.KINDS]))
        order = np.argsort(-value, kind="stable")
        boards.append(
            Board(
                weights=weights.name,
                order=tuple(arms[i] for i in order),
                values=tuple(float(value[i]) for i in order),
            )
        )
    drawn = np.array(fitted.draws) if fitted is not None and fitted.draws else None
    source = "bootstrap of the fit" if drawn is not None else "even over all weights"
    if drawn is None:
        drawn = np.random.default_rng(seed).dirichlet(np.ones(len(sign)), _ORDER_DRAWS) * len(sign)
    values = (drawn * sign) @ contrast.T
    orders = np.argsort(-values, axis=1, kind="stable")
    first = [arms.index(name) for name in boards[0].order]
    return Stability(
        boards=tuple(boards),
        top={name: float((orders[:, 0] == i).mean()) for i, name in enumerate(arms)} if len(arms) else {},
        same=float((orders == np.array(first)).all(axis=1).mean()) if len(arms) else None,
        draws=len(drawn),
        drawn_from=source,
    )


def _contrasts(table: pl.DataFrame) -> tuple[list[str], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Each model's mean counts minus the mean over models, (n_models, 5), post-stratified by task type over the
    types in which every model appears (all sessions together if there is none)."""
    arms = sorted(table["arm"].unique().to_list())
    if not arms:
        raise EvidenceError("no session names a model", hint="weights rank models")
    common = [t for (t,), part in table.group_by("task_type") if part["arm"].n_unique() == len(arms)]
    used = table.filter(pl.col("task_type").is_in(common)) if common else table.with_columns(task_type=pl.lit("all"))
    total = np.zeros((len(arms), len(fitting.KINDS)))
    for (_,), part in sorted(used.group_by("task_type"), key=lambda item: str(item[0])):
        share = part.height / used.height
        for i, arm in enumerate(arms):
            total[i] += share * _counts(part.filter(pl.col("arm") == arm)).mean(axis=0)
    return arms, total - total.mean(axis=0)


def success(fitted: fitting.FittedWeights, rows: pl.DataFrame) -> pl.Series:
    """The fitted probability of success of every outcome row; `rows` may hold labelled sessions.

    Raises:
        EvidenceError: the weights were not fitted on enough labels.
    """
    return pl.Series(FITTED, fitting.success(fitted, _counts(rows), rows["session"].to_list()))


def load(path: Path) -> fitting.FittedWeights:
    """The fit in a file of `seatrial weights fit --out`.

    Raises:
        InputError: the file cannot be read. UsageError: they were fitted with other detectors.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=fitting.FittedWeights)
    except OSError as error:
        raise InputError(f"cannot read the weights: {error.strerror}", file=str(path)) from error
    except msgspec.DecodeError as error:
        raise InputError(
            f"not a weights file: {error}", hint="made by 'seatrial weights fit --out'", file=str(path)
        ) from error
    fitting.check(found.weights, detectors())
    return found
