"""Stored traces to signals and outcomes: a pure function of a batch of sessions, run by the engine."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from seatrial import scoring, signals
from seatrial.canon import canonical, content_hash
from seatrial.engine.choice import Engine, LocalEngine
from seatrial.errors import SeatrialError
from seatrial.flows import voices
from seatrial.flows.reach import address_of, reached
from seatrial.records import SCORED, Assignment, Dropped, SessionScore, Trace, Weights
from seatrial.records.fitting import frame_of
from seatrial.records.tables import OUTCOMES_TABLE
from seatrial.scoring.outcomes import VERSION as SCORING_VERSION
from seatrial.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 128
"""Sessions per unit of work: small enough to bound memory, large enough to amortise what a unit costs."""

MANY = 10_000
"""Sessions from which every worker reads human turns by compiled loops at once: for so many it loads them anyway."""

COMMIT_EVERY = 64
"""Batches per commit: what a stopped run may have to do again, and what is held in memory at most."""

VERSION = "4"
"""Bumped when the same trace would give another outcome row for a reason outside signals and scoring."""


class Stored(NamedTuple):
    """A session and the blob of its trace; messages name it by the session."""

    session: str
    blob: str

    def __str__(self) -> str:
        return self.session


def fingerprint(weights: Weights, silent: Sequence[str] | None = None) -> str:
    """Identity of everything that turns a trace into an outcome row (METHODS 0.6). `silent`: as `extract_store`."""
    versions = {"rows": VERSION, "signals": signals.versions(), "scoring": SCORING_VERSION}
    unheard = sorted(_silent(silent))
    return content_hash({**versions, "weights": weights, "silent": unheard})[:16]


def _silent(given: Sequence[str] | None) -> Sequence[str]:
    return voices.shipped().silent if given is None else given


def extract_store(
    store: Store,
    weights: Weights,
    *,
    silent: Sequence[str] | None = None,
    engine: Engine | None = None,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> int:
    """Bring signals, calls, corrections and outcomes up to date with the stored traces.

    Only sessions that are new, changed, or extracted by other versions are worked on, and what is done is committed
    as it comes, so that a run that is stopped goes on where it was. Returns how many were worked on. `engine` does
    the work (None: this machine's processors); its workers must reach the store (`reach`). `silent` are kinds of
    signal that have no part in the mean that may head a report (None: those of `voices.shipped`).
    """
    unheard = tuple(_silent(silent))
    stamp = fingerprint(weights, unheard)
    sessions = store.table("sessions").select("session", "blob").collect()
    until = _observed_until(store)
    done = store.table("outcomes").filter(pl.col("extraction") == stamp).select("session", "blob").collect()
    fresh = sessions.join(done, on=["session", "blob"], how="anti")["session"]
    again = pl.Series(_no_longer_censored(store, until), dtype=pl.String())
    wanted = pl.concat([fresh, again]).unique()
    todo = [Stored(*row) for row in sessions.filter(pl.col("session").is_in(wanted.implode())).iter_rows()]
    if not todo:
        if progress is not None and sessions.height:
            progress(sessions.height, sessions.height, "signals")
        return 0
    batches = [todo[i : i + BATCH] for i in range(0, len(todo), BATCH)]
    work = partial(_extract_ids, address_of(store), weights, unheard, stamp, until, many=len(todo) >= MANY)
    tables: dict[str, list[pl.DataFrame]] = {}
    finished, committed = 0, 0
    parts = (engine or LocalEngine()).map_sessions(work, batches)
    for number, (part, ids) in enumerate(zip(parts, batches, strict=True), 1):
        for name, frame in part.items():
            tables.setdefault(name, []).append(frame)
        finished += len(ids)
        if progress is not None:
            progress(finished, len(todo), "signals")
        if number % COMMIT_EVERY == 0 or finished == len(todo):
            whole = {name: pl.concat(frames) for name, frames in tables.items()}
            store.commit(whole, replace_sessions=[s.session for s in todo[committed:finished]])
            tables, committed = {}, finished
    return len(todo)


def _observed_until(store: Store) -> float | None:
    """The end of the window that the store has seen (s, UTC): its latest step. None: no session has times."""
    return store.table("sessions").select(pl.col("end").max()).collect().item()  # type: ignore[no-any-return]


def _no_longer_censored(store: Store, until: float | None) -> list[str]:
    """Sessions whose open request has by now gone unanswered for long enough to count as abandoned (METHODS 1.2)."""
    if until is None:
        return []
    enough = until - signals.SignalSettings().abandon_after * 3600
    waiting = store.table("signals").filter(
        (pl.col("kind") == "abandonment")
        & pl.col("dropped_by").str.starts_with("censored")
        & (pl.col("time") <= enough)
    )
    return waiting.select("session").unique().collect()["session"].to_list()


def _extract_ids(
    path: str,
    weights: Weights,
    silent: Sequence[str],
    stamp: str,
    until: float | None,
    batch: Sequence[Stored],
    *,
    many: bool = False,
) -> dict[str, pl.DataFrame]:
    store = reached(path)
    settings = signals.SignalSettings(observed_until=until)
    # Traces hold no cycles: looking for some among their many objects would cost more than reading them.
    collects = gc.isenabled()
    gc.disable()
    try:
        form = signals.seen_form()
        # No name is given to the traces: they are gone before anything looks for cycles again.
        return extract_traces(
            [store.trace_of(stored.blob, form) for stored in batch], weights, stamp, blobs=dict(batch),
            settings=settings, silent=silent, many=many,
        )  # fmt: skip
    finally:
        if collects:
            gc.enable()


def extract_traces(
    traces: Sequence[Trace],
    weights: Weights,
    stamp: str,
    *,
    blobs: dict[str, str],
    settings: signals.SignalSettings | None = None,
    silent: Sequence[str] | None = None,
    many: bool = False,
) -> dict[str, pl.DataFrame]:
    """Signals, calls, corrections and outcomes of a batch of traces, as tables of `records.tables`.

    `stamp` identifies the versions (see `fingerprint`); `blobs` maps session ids to stored content hashes. A trace that
    breaks a detector has no rows: `unextracted` lists it. `silent`: as `extract_store`;
    `many`: as `signals.extract_many`.
    """
    unheard = _silent(silent)
    chosen = settings if settings is not None else signals.SignalSettings()
    found, rows = [], []
    for trace, done in zip(traces, _all_extracted(traces, weights, chosen, unheard, many), strict=True):
        if isinstance(done, str):
            continue
        found.append(done[0])
        rows.append(done[1] | {"extraction": stamp, "blob": blobs.get(trace.id)})
    frames = signals.frames(found)
    frames["outcomes"] = frame_of(OUTCOMES_TABLE, {n: [row.get(n) for row in rows] for n in OUTCOMES_TABLE.names})
    return frames


def _all_extracted(
    traces: Sequence[Trace], weights: Weights, settings: signals.SignalSettings, silent: Sequence[str], many: bool
) -> list[tuple[signals.Extraction, dict[str, Any]] | str]:
    """Each trace's extraction and outcome row, or what broke on it: together, and one by one where that breaks."""
    try:
        together = signals.extract_many(traces, settings, many=many)
    except (SeatrialError, MemoryError):
        raise
    except Exception:
        return [_extracted(trace, weights, settings, silent) for trace in traces]
    return [_extracted(trace, weights, settings, silent, found) for trace, found in zip(traces, together, strict=True)]


def _extracted(
    trace: Trace,
    weights: Weights,
    settings: signals.SignalSettings,
    silent: Sequence[str],
    found: signals.Extraction | None = None,
) -> tuple[signals.Extraction, dict[str, Any]] | str:
    """A trace's extraction (`found`, where it was made already) and outcome row; where something unforeseen broke on
    it, what that was."""
    try:
        found = found if found is not None else signals.extract(trace, settings)
        scored = scoring.score(trace, found.signals, found.episodes, weights, calls=found.calls, silent=silent)
        return found, _outcome_row(trace, found, scored)
    except (SeatrialError, MemoryError):
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def unextracted(store: Store, weights: Weights, most: int = 20) -> list[Dropped]:
    """Sessions that a finished `extract_store` has no outcome for, each with what broke on it, at most `most` by name.

    What broke is found by trying again: extraction is a pure function of the trace.
    """
    held = store.table("outcomes").select("session").collect()
    sessions = store.table("sessions").select("session", "blob").collect()
    left = sessions.join(held, on="session", how="anti").sort("session")
    settings = signals.SignalSettings(observed_until=_observed_until(store))
    out = []
    for session, blob in left.head(most).iter_rows():
        done = _extracted(store.trace_of(blob), weights, settings, ())
        why = done if isinstance(done, str) else "it broke once and did not when tried again"
        out.append(Dropped(what=f"session {session!r}: its signals could not be read", n=1, why=why))
    if left.height > most:
        more = left.height - most
        out.append(Dropped(what="further sessions whose signals could not be read", n=more, why="as those above"))
    return out


def arm_of(trace: Trace) -> tuple[str | None, list[str]]:
    """The model of the first agent turn (intention to treat, METHODS 3.1) and every model that spoke."""
    spoke: list[str] = []
    last = None
    for step in trace.steps:
        if step.event_class == "agent" and not step.copied:
            model = step.model or trace.model
            if model is not last and model is not None and model not in spoke:
                spoke.append(model)
            last = model
    if not spoke and not trace.steps and trace.model is not None:
        spoke.append(trace.model)
    return (spoke[0] if spoke else None), spoke


def _outcome_row(trace: Trace, found: signals.Extraction, scored: SessionScore) -> dict[str, Any]:
    arm, spoke = arm_of(trace)
    assigned = trace.assignment
    usage = trace.totals.usage
    outcome = trace.outcome
    first = next((s for s in trace.steps if s.event_class in ("human", "simulated_user") and not s.copied), None)
    times = [s.time for s in trace.steps if s.time is not None and not s.copied]
    counted = _calls(found)
    tokens = [n for n in (usage.input_tokens, usage.output_tokens) if n is not None and n >= 0]
    return {
        "session": trace.id,
        "parent": trace.parent,
        "agent": trace.agent.name,
        "simulator": trace.extra.get("simulator"),
        "arm": assigned.arm if assigned is not None else arm,
        "served": arm,
        "user": trace.user,
        "task": trace.task.id,
        "attempt": trace.attempt,
        **_strata(found, assigned),
        **_assignment(assigned),
        "mixed": len(spoke) > 1,
        "start": min(times) if times else None,
        "outcome": None if outcome is None else _recorded(outcome.status, outcome.score),
        "status": None if outcome is None else outcome.status,
        **scored.signals,
        "signals_mean": scored.mean,
        "score": scored.score,
        **{f"n_{kind}": scored.counts.get(kind, 0) for kind in _COUNTED},
        **counted,
        "prompt_chars": None if first is None else len(first.text),
        "cost_usd": usage.cost_usd,
        "latency_s": trace.totals.wall,
        "tokens": sum(tokens) if tokens else trace.totals.extra.get("tokens"),
    }


_COUNTED = ("confirmation", "accept_implicit", "praise", "complaint", "correction", "execution_error")


def _strata(found: signals.Extraction, assigned: Assignment | None) -> dict[str, str]:
    """Task type and difficulty: recorded by the source, else by the draw (``type/difficulty``, as `Assigner` writes
    its strata), else classified from what preceded the agent's first turn."""
    out = {
        "task_type": found.task_type,
        "task_type_by": found.task_type_by,
        "difficulty": found.difficulty,
        "difficulty_by": found.difficulty_by,
    }
    drawn = (assigned.stratum or "").split("/") if assigned is not None else []
    if len(drawn) == 2:
        for name, value in zip(("task_type", "difficulty"), drawn, strict=True):
            if value not in ("", "unknown") and out[f"{name}_by"] != "recorded":
                out |= {name: value, f"{name}_by": "assignment record"}
    return out


def _assignment(assigned: Assignment | None) -> dict[str, Any]:
    if assigned is None:
        return dict.fromkeys(("epoch", "unit", "assigned_stratum", "probability", "probabilities_json"))
    return {
        "epoch": assigned.epoch,
        "unit": assigned.unit,
        "assigned_stratum": assigned.stratum,
        "probability": assigned.probability,
        "probabilities_json": canonical(assigned.probabilities).decode(),
    }


def _recorded(status: str, score: float | None) -> float | None:
    """The recorded outcome as a number: the score where there is one, else 1 for passed and 0 for other
    scored statuses; None for excluded attempts (METHODS 0.1)."""
    if status not in SCORED:
        return None
    if score is not None:
        return score
    return 1.0 if status == "passed" else 0.0


def _calls(found: signals.Extraction) -> dict[str, int]:
    """Counts behind command reliability (METHODS 3.8)."""
    out = dict.fromkeys(("calls_counted", "calls_ok", "calls_environment", "calls_rejected", "calls_interrupted"), 0)
    for call in found.calls:
        if call.outcome == "rejected":
            out["calls_rejected"] += 1
        elif call.outcome == "interrupted":
            out["calls_interrupted"] += 1
        elif call.outcome == "error" and call.cause == "environment":
            out["calls_environment"] += 1
        elif call.outcome in ("ok", "error"):
            out["calls_counted"] += 1
            out["calls_ok"] += call.outcome == "ok" or call.cause == "benign"
    return out
