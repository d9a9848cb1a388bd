"""Sessions to a ranking: ingest, signals, scores, then the causal estimate (the main job)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from seatrial import causal, intake, scoring, signals
from seatrial._version import __version__
from seatrial.causal.prepare import refuse_all_excluded
from seatrial.engine.choice import Engine, LocalEngine, engine_at
from seatrial.errors import EvidenceError, UsageError
from seatrial.flows import compliance, repeats, voices
from seatrial.flows import labels as label_files
from seatrial.flows import weights as fitted_weights
from seatrial.flows.counting import call_counts
from seatrial.flows.extract import extract_store, fingerprint, unextracted
from seatrial.ingest.catalogue import named
from seatrial.records import Dropped, Ranking, Weights
from seatrial.scoring.fitting import FittedWeights
from seatrial.scoring.heading import MEAN as SIGNALS_MEAN
from seatrial.store import Store, permission, temporary_store

ProgressFn = Callable[[int, int | None, str], None]


NAMED_SKIPS = 20
"""So many unread places are named one by one."""


class RankOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a ranking may be told. `outcome` is `auto`, `fitted` (the probability of success by the `fitted` weights, a
    labelled session's by the fit without its user) or a column of the outcomes table (METHODS 2);
    `baseline` is the policy that models are compared with; `user` names the one person behind all sessions
    whose user is unknown; `where` keeps only rows whose column has that value; `every_kind` lets every kind of signal
    count in a headline of signals, however imprecise (METHODS 2)."""

    outcome: str = "auto"
    weights: Weights = scoring.UNIT
    baseline: Literal["uniform", "traffic"] = "uniform"
    level: float = 0.95
    seed: int = 0
    draws: int = 9_999
    by: tuple[str, ...] = ("task_type",)
    arm: str = "arm"
    bootstrap_t: bool = False
    where: dict[str, str] = {}
    fitted: FittedWeights | None = None
    every_kind: bool = False


class RankRun(msgspec.Struct, frozen=True, kw_only=True):
    """A ranking, what was read for it (None when a store was ranked), the data version it used, and the processes of
    a cluster that worked for it (empty: this machine did)."""

    ranking: Ranking
    read: intake.IngestResult | None
    data_version: str
    worker_ids: tuple[int, ...] = ()


def rank(
    *paths: str | Path,
    store: str | Path | None = None,
    assignments: str | Path | None = None,
    options: RankOptions = RankOptions(),
    user: str | None = None,
    workers: int | None = 1,
) -> Ranking:
    """Rank the models found in session files or folders, or in a store (METHODS 3).

    `assignments` is the record of drawn arms (CSV), without which nothing is called causal; `user` names the one
    person behind all sessions. A store is written to when paths are given too. `workers` above 1 starts processes,
    which a script must allow for with ``if __name__ == "__main__":``; None chooses by the size of the work.

    Raises:
        EvidenceError: nothing was left to rank.
        InputError: a path or the assignments cannot be read.
        UsageError: neither paths nor a store were given.
    """
    run = rank_paths(
        [Path(p) for p in paths],
        options=options,
        assignments=Path(assignments) if assignments is not None else None,
        store=Path(store) if store is not None else None,
        user=user,
        workers=workers,
    )
    return run.ranking


def rank_paths(
    paths: Sequence[Path],
    *,
    options: RankOptions = RankOptions(),
    assignments: Path | None = None,
    store: Path | None = None,
    format: str | None = None,
    user: str | None = None,
    labels: Path | None = None,
    turn_labels: Path | None = None,
    redact: bool = True,
    workers: int | None = None,
    engine: str = "local",
    progress: ProgressFn | None = None,
) -> RankRun:
    """Read files or folders and rank the models found.

    With `store` None everything happens in a temporary store that is gone afterwards; with a store and no
    paths the store is ranked as it is. `labels` is a file of session labels, the true outcomes of a random part: the
    prediction-powered estimate then heads the report (METHODS 3.4d). `turn_labels` is a file of labelled turns, which
    say instead of the shipped measurements which kinds of signal are precise enough to head a report (METHODS 2);
    `options.every_kind` lets all of them. `engine` says where signals
    are extracted and tool calls counted (`engine.choice.engine_at`); it changes no number.

    Raises:
        EvidenceError: nothing was left to rank; the message lists what was read and why it did not count.
        InfrastructureError: the cluster cannot be reached or failed.
        UsageError: neither paths nor a store were given, or a cluster elsewhere cannot see a temporary store.
    """
    if not paths and store is None:
        raise UsageError("nothing to rank", hint="give files or folders, or --store DIR")
    if store is None and "://" in engine:
        raise UsageError("a cluster cannot reach a temporary store", hint="give --store, where all its workers see it")
    power = engine_at(engine, workers=workers)
    if format is not None:
        named(format)
    with ExitStack() as stack:
        opened = Store.open(store, create=bool(paths)) if store is not None else stack.enter_context(temporary_store())
        read = None
        if paths:
            read = intake.ingest(
                opened,
                list(paths),
                format=format,
                assignments=assignments,
                user=user,
                redact=redact,
                workers=workers,
                progress=progress,
            )
        missing = intake.attrition(opened, assignments) if assignments is not None and not paths else ()
        heard = voices.chosen(turn_labels, every_kind=options.every_kind)
        extract_store(opened, options.weights, silent=heard.silent, engine=power, progress=progress)
        known = label_files.read_told(labels) if labels is not None else None
        ranking = rank_store(
            opened, options, read, labels=known.table if known else None, heard=heard, engine=power, progress=progress
        )
        told = (*(known.warnings if known is not None else ()), *missing)
        if told:
            ranking = msgspec.structs.replace(ranking, warnings=(*told, *ranking.warnings))
        return RankRun(ranking=ranking, read=read, data_version=opened.data_version, worker_ids=power.worker_ids())


def rank_store(
    store: Store,
    options: RankOptions,
    read: intake.IngestResult | None = None,
    *,
    labels: pl.DataFrame | None = None,
    heard: voices.Voices | None = None,
    engine: Engine | None = None,
    progress: ProgressFn | None = None,
) -> Ranking:
    """Rank what a store holds; signals must be up to date (`extract_store`).

    `labels` has session, label and probability; `heard` says which kinds of signal may head the report (None: those
    that were measured to be precise), and the store must have been extracted with its `silent` ones.
    `engine` reduces what is many, the tool calls, to counts (None: this process); it changes no number.
    """
    heard = heard if heard is not None else voices.shipped()
    rows = store.table("outcomes").sort("session").collect()
    allowed, refused = permission(store, "rank").among(rows["session"].to_list())
    rows, dropped = _eligible(rows.filter(pl.col("session").is_in(allowed)) if refused else rows, options)
    dropped = [*refused, *unextracted(store, options.weights), *dropped]
    if rows.is_empty():
        raise EvidenceError(
            "no session can be ranked" + _why_nothing(dropped, read),
            hint="a ranking needs sessions in which a model is named; 'seatrial ingest' shows what was read",
        )
    refuse_all_excluded(rows)
    name, value = _headline(rows, options)
    keep = rows["session"].implode()
    ranking = causal.rank(
        rows,
        outcome=name,
        value=value,
        labels=labels,
        conditions=rows.select("session", "agent", "simulator"),
        calls=call_counts(store, rows, options.by, engine or LocalEngine(1)),
        corrections=store.table("corrections").filter(pl.col("session").is_in(keep)).collect(),
        baseline=options.baseline,
        level=options.level,
        seed=options.seed,
        draws=options.draws,
        by=options.by,
        weights="fitted" if options.weights.fitted else options.weights.name,
        basis=_basis(store, rows, options, heard),
        interval="bootstrap-t" if options.bootstrap_t else "jackknife",
        progress=progress or (lambda done, total, what: None),
    )
    notes = (*(read.warnings if read is not None else ()), *compliance.warnings(rows), *_doubtful(name, heard))
    return msgspec.structs.replace(
        ranking,
        warnings=(*notes, *ranking.warnings),
        dropped=(*dropped, *_skipped(read), *_unheard(name, heard), *ranking.dropped),
        repeats=repeats.by_model(rows, options.level),
        kinds=heard.kinds if name == SIGNALS_MEAN else (),
    )


def _headline(rows: pl.DataFrame, options: RankOptions) -> tuple[str, pl.Series]:
    if options.outcome == "fitted":
        if options.fitted is None:
            raise UsageError(
                "no fitted weights were given", hint="--weights FILE, of 'seatrial weights fit --out FILE'"
            )
        return fitted_weights.FITTED, fitted_weights.success(options.fitted, rows)
    choice = SIGNALS_MEAN if options.outcome == "signals" else options.outcome
    return scoring.headline(rows, choice)


def _eligible(rows: pl.DataFrame, options: RankOptions) -> tuple[pl.DataFrame, list[Dropped]]:
    dropped: list[Dropped] = []

    def leave_out(mask: pl.Expr, what: str, why: str) -> None:
        nonlocal rows
        out = rows.filter(mask).height
        if out:
            dropped.append(Dropped(what=what, n=out, why=why))
            rows = rows.filter(~mask)

    leave_out(pl.col("parent").is_not_null(), "sub-agent traces", "part of their parent's session")
    for column, wanted in options.where.items():
        if column not in rows.columns:
            raise UsageError(f"no column {column!r} to select on", hint=f"columns: {', '.join(rows.columns)}")
        leave_out(
            pl.col(column).cast(pl.String).ne_missing(wanted),
            f"sessions with {column} other than {wanted}",
            "by --where",
        )
    if options.arm != "arm":
        if options.arm not in rows.columns:
            raise UsageError(f"no column {options.arm!r} to use as the arm", hint=f"columns: {', '.join(rows.columns)}")
        rows = rows.with_columns(pl.col(options.arm).cast(pl.String).alias("arm"))
    leave_out(pl.col("arm").is_null(), "sessions without a model", "no agent turn, or none that names its model")
    return rows, dropped


def _unheard(headline: str, heard: voices.Voices) -> list[Dropped]:
    """Kinds of signal that the headline does not hear, and the outcomes that cannot do without them."""
    if headline != SIGNALS_MEAN:
        return []
    silent = heard.silent
    kinds = [Dropped(what=f"{u.kind} in the headline", n=1, why=u.why) for u in heard.kinds if u.kind in silent]
    barred = [
        Dropped(what=f"{name} in the headline", n=1, why=f"it rests on {why}") for name, why in heard.barred.items()
    ]
    return [*kinds, *barred]


def _doubtful(headline: str, heard: voices.Voices) -> list[str]:
    """Said where a user chose to rank by an outcome that would not head the report by itself."""
    why = heard.barred.get(headline)
    return (
        [*heard.warnings]
        if why is None
        else [*heard.warnings, f"{headline} would not head a report by itself: it rests on {why}"]
    )


def _skipped(read: intake.IngestResult | None) -> list[Dropped]:
    """What could not be read, by file and place; beyond twenty places, by reason."""
    if read is None:
        return []
    lost = [skip for skip in read.skipped if not skip.noted]
    named = [
        Dropped(what=f"source {skip.file}" + (f" line {skip.line}" if skip.line else ""), n=1, why=skip.why)
        for skip in lost[:NAMED_SKIPS]
    ]
    reasons: dict[str, int] = {}
    for skip in lost[NAMED_SKIPS:]:
        reasons[skip.why] = reasons.get(skip.why, 0) + 1
    more = [Dropped(what="further source records or files", n=n, why=why) for why, n in sorted(reasons.items())]
    return [*named, *more]


def _why_nothing(dropped: Sequence[Dropped], read: intake.IngestResult | None) -> str:
    parts = [f"{d.n} {d.what} ({d.why})" for d in dropped]
    if read is not None:
        files = read.files
        parts.insert(0, f"{files['read']} files read, {files['kept']} kept, {files['skipped']} skipped")
        parts += [f"{d.what}: {d.why}" for d in _skipped(read)[:5]]
    return ": " + "; ".join(parts) if parts else ""


def _basis(store: Store, rows: pl.DataFrame, options: RankOptions, heard: voices.Voices) -> dict[str, Any]:
    """What the numbers rest on (METHODS 3.11)."""
    start = rows["start"].drop_nulls()
    versions: Mapping[str, str] = signals.versions()
    return {
        "seatrial": __version__,
        "data_version": store.data_version,
        "window": None if start.is_empty() else [start.min(), start.max()],
        "roster": sorted(rows["arm"].unique().to_list()),
        "harnesses": sorted(rows["agent"].drop_nulls().unique().to_list()),
        "detectors": dict(versions),
        "weights": {"name": options.weights.name, "fitted": options.weights.fitted},
        "extraction": fingerprint(options.weights, heard.silent),
        "seed": options.seed,
        "where": options.where,
    }
