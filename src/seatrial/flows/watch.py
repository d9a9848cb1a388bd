"""A store to what changed in it: drift against a baseline, deploy marks, a baseline that is redrawn, and a board that
may be looked at as often as one likes (METHODS 3.4, 3.10)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec
import polars as pl

from seatrial import causal, scoring
from seatrial._version import __version__
from seatrial.engine.choice import Engine
from seatrial.errors import EvidenceError, SeatrialError, StoreError, UsageError
from seatrial.flows.extract import extract_store
from seatrial.records import Dropped
from seatrial.records.drift import Baseline, DeployMark, Drift, Watched
from seatrial.store import Store, permission

T = TypeVar("T")

DAY = 86_400.0
DETECT = 0.02
"""The difference, in outcome units, at which a board's limits are tightest unless another is asked for at first."""
USER_WINDOW_DAYS = 7.0
MOST_DAYS = 36_525.0
"""A window of `days` is at most a century long."""
EVALUATION = 200
"""Sessions of an evaluation set unless another number is asked for."""


class Span(NamedTuple):
    """Sessions that began in [start, end), seconds UTC."""

    start: float
    end: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a board froze before its first look."""

    detect: float
    v_target: float
    user_window_days: float
    outcome: str
    made: float


def span(text: str) -> Span:
    """``2026-11-01..2026-11-08``: from the first day (or time, UTC) up to, not including, the second.

    Raises:
        UsageError: it is no such range, or it is empty.
    """
    first, dots, second = text.partition("..")
    if not dots:
        raise UsageError(f"{text!r} is no range of dates", hint="write 2026-11-01..2026-11-08")
    found = Span(moment(first), moment(second))
    if found.end <= found.start:
        raise UsageError(f"the range {text!r} is empty", hint="the second date must be later than the first")
    return found


def moment(text: str) -> float:
    """Seconds UTC of a date or time in ISO form; UTC where it names no zone.

    Raises:
        UsageError: it is none.
    """
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is no date", hint="write it as 2026-11-30 or 2026-11-30T14:00") from None
    try:
        return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except OverflowError:
        raise UsageError(f"{text!r} is outside the years 1 to 9999 in UTC", hint="name a date inside them") from None


def mark(store: Store, text: str, at: float | None = None) -> DeployMark:
    """Put a deploy on record.

    Raises:
        UsageError: it has no name.
    """
    if not text.strip():
        raise UsageError("a mark needs a name", hint="such as: seatrial mark 'prompt v12'")
    made = DeployMark(text=" ".join(text.split()), time=time.time() if at is None else at, by="user")
    store.save_result("mark", made.text, {"seatrial": __version__, "command": "mark", "result": made})
    return made


def marks(store: Store) -> list[DeployMark]:
    """Every deploy known: the user's marks, and agent versions that the traces show for the first time."""
    given = [_decoded(store, head.id, DeployMark) for head in store.results("mark")]
    seen = causal.new_versions(store.table("sessions").select("agent", "agent_version", "start").collect())
    return sorted([*given, *seen], key=lambda m: (m.time, m.text))


def drift(
    store: Store,
    *,
    before: Span | None = None,
    now: Span | None = None,
    days: float = 7.0,
    outcome: str = "auto",
    max_age_days: float = 30.0,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 1_999,
    engine: Engine | None = None,
    progress: Callable[[int, int | None, str], None] = lambda done, total, what: None,
) -> Drift:
    """What changed between two windows of a store.

    `now` None: the last `days` up to the store's newest session, as far as they lie after the stored baseline. `before`
    None: the stored baseline's window, or, where there is none, the `days` before `now`.

    Raises:
        EvidenceError: a window holds no session, or no session has a time.
        UsageError: the windows overlap, or the baseline comes after the window.
    """
    extract_store(store, scoring.UNIT, engine=engine, progress=progress)
    rows, refused = _rows(store)
    future = _future(rows)
    before, now, notes = _windows(store, rows, before, now, days)
    name, value = scoring.headline(rows, outcome)
    inside = [
        rows.select(keep=(pl.col("start") >= w.start) & (pl.col("start") < w.end)).to_series().fill_null(value=False)
        for w in (before, now)
    ]
    undated = rows["start"].null_count()
    found = causal.drift(
        rows.filter(inside[0]),
        rows.filter(inside[1]),
        windows=((before.start, before.end), (now.start, now.end)),
        outcome=name,
        values=(value.filter(inside[0]), value.filter(inside[1])),
        marks=marks(store),
        max_age_days=max_age_days,
        level=level,
        seed=seed,
        draws=draws,
        progress=progress,
    )
    lost = [Dropped(what="sessions", n=undated, why="without a time")] if undated else []
    outside = rows.height - undated - sum(int(w.sum()) for w in inside)
    if outside:
        lost.append(Dropped(what="sessions", n=outside, why="in neither window"))
    return msgspec.structs.replace(
        found, dropped=(*refused, *lost, *found.dropped), warnings=(*notes, *future, *found.warnings)
    )


def _windows(
    store: Store, rows: pl.DataFrame, before: Span | None, now: Span | None, days: float
) -> tuple[Span, Span, list[str]]:
    """Both windows, and what to say about how they were chosen. Dates that were asked for are kept or refused."""
    last = _now(rows, days) if now is None else now
    kept = baseline(store) if before is None else None
    stored = None if kept is None else Span(kept.start, kept.end)
    notes: list[str] = []
    if now is None and stored is not None and stored.end >= last.end:
        notes = ["no session came after the stored baseline: the window is compared with the time before it instead"]
        stored = None
    elif now is None and stored is not None and stored.end > last.start:
        last = Span(stored.end, last.end)
        notes = [f"the window begins where the stored baseline ends: {(last.end - last.start) / DAY:.1f} days"]
    first = before or stored or Span(last.start - (last.end - last.start), last.start)
    named = f"the stored baseline ({_dates(first)})" if first is stored else "the baseline"
    hint = "compare with other dates: --baseline FROM..TO" if first is stored else "name two that follow each other"
    if first.start >= last.end:
        raise UsageError(f"the window ends before {named} begins", hint=hint)
    if first.end > last.start:
        raise UsageError(f"the windows overlap: {named} and {_dates(last)}", hint=hint)
    return first, last, notes


def _dates(of: Span) -> str:
    return " to ".join(datetime.fromtimestamp(t, UTC).isoformat(sep=" ")[:16] for t in of)


def _now(rows: pl.DataFrame, days: float) -> Span:
    """The last `days` up to the newest session that is not of the future."""
    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"the days of a window must be a positive number of at most {MOST_DAYS:,.0f}, not {days:g}")
    newest = _newest(rows)
    if newest is None:
        raise EvidenceError("no session has a time, so there is no last week", hint="give sources with times")
    return Span(newest - days * DAY, math.nextafter(newest, math.inf))


def _newest(rows: pl.DataFrame) -> float | None:
    """When the newest session began that is not of the future by this machine's clock (of any, where all are)."""
    past = rows.filter(pl.col("start") <= time.time() + DAY)["start"].max()
    newest = past if past is not None else rows["start"].max()
    return float(newest) if isinstance(newest, int | float) else None


def _future(rows: pl.DataFrame) -> list[str]:
    n = rows.filter(pl.col("start") > time.time() + DAY).height
    return [f"{n} sessions are of the future by this machine's clock and do not set the window"] if n else []


def watch(
    store: Store,
    *,
    days: float = 7.0,
    detect: float | None = None,
    user_window_days: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 1_999,
    engine: Engine | None = None,
    progress: Callable[[int, int | None, str], None] = lambda done, total, what: None,
) -> Drift:
    """`drift` of the last `days`, and a board whose limits hold however often it is looked at (METHODS 3.4).

    At the first look the board's plan is frozen in the store: `detect` (outcome units; None: .02) sets where its limits
    are tightest, `user_window_days` (None: 7) how long a user is followed before they enter, once.

    Raises:
        EvidenceError: as `drift`. UsageError: another plan was frozen before, or this one cannot be kept.
    """
    if not all(wanted is None or 0 < wanted < math.inf for wanted in (detect, user_window_days)):
        raise UsageError("--detect and --user-window must be positive numbers", hint="such as 0.02 and 7")
    found = drift(store, days=days, level=level, seed=seed, draws=draws, engine=engine, progress=progress)
    rows, _ = _rows(store)
    plan = _plan(store, rows, detect, user_window_days)
    try:
        return msgspec.structs.replace(found, board=_board(rows, plan, level, seed))
    except SeatrialError as error:
        return msgspec.structs.replace(found, warnings=(*found.warnings, f"no board yet: {error.message}"))


def _board(rows: pl.DataFrame, plan: Plan, level: float, seed: int) -> tuple[Watched, ...]:
    """Users whose window has closed, each with the sessions inside their window."""
    newest = _newest(rows)
    reach = plan.user_window_days * DAY
    own = pl.col("user").fill_null(pl.concat_str(pl.lit("session:"), pl.col("session")))
    first = pl.col("start").min().over(own)
    kept = rows.filter((first + reach <= newest) & (pl.col("start") < first + reach))
    if kept.is_empty():
        raise EvidenceError("no user's window has closed")
    name, value = scoring.headline(kept, plan.outcome)
    ranking = causal.rank(kept, outcome=name, value=value, by=(), level=level, seed=seed, draws=999)
    return causal.monitor(ranking, plan.v_target, alpha=1 - level)


def _plan(store: Store, rows: pl.DataFrame, detect: float | None, user_window_days: float | None) -> Plan:
    heads = store.results("watchplan")
    if heads:
        kept = _decoded(store, heads[-1].id, Plan)
        for wanted, frozen, what in (
            (detect, kept.detect, "--detect"), (user_window_days, kept.user_window_days, "--user-window"),
        ):  # fmt: skip
            if wanted is not None and wanted != frozen:
                raise UsageError(
                    f"{what} was frozen at {frozen:g} before the first look", hint="limits hold only for one plan"
                )
        return kept
    size = DETECT if detect is None else detect
    window = USER_WINDOW_DAYS if user_window_days is None else user_window_days
    # The information at which a fixed-sample test at 95% sees `size` with 80% power.
    target = ((1.959964 + 0.841621) / size) ** 2
    name, _ = scoring.headline(rows, "auto")
    plan = Plan(detect=size, v_target=target, user_window_days=window, outcome=name, made=time.time())
    store.save_result("watchplan", "board", {"seatrial": __version__, "command": "watch", "result": plan})
    return plan


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline as it was (None: the first one) and as it is now, with the evaluation set drawn from it."""

    old: Baseline | None
    new: Baseline
    sample: tuple[Mapping[str, Any], ...] = ()


def refresh(
    store: Store,
    window: Span | None = None,
    *,
    days: float = 30.0,
    n: int | None = None,
    strata: tuple[str, ...] = ("task_type", "difficulty"),
    outcome: str = "auto",
    level: float = 0.95,
    seed: int = 0,
    first: Callable[[Sequence[Mapping[str, Any]]], None] | None = None,
) -> Refreshed:
    """Draw the evaluation set anew from a window, recompute every model there, and keep the old baseline beside it.

    `window` None: the last `days` up to the store's newest session. `n` None: `EVALUATION`, or every session of a
    smaller window. `first` is given the set before the baseline is in force; if it fails, the old one stays so.

    Raises:
        EvidenceError: the window holds no session.
        UsageError: it holds fewer than `n`.
    """
    extract_store(store, scoring.UNIT)
    rows, _ = _rows(store)
    window = _now(rows, days) if window is None else window
    rows = rows.filter((pl.col("start") >= window.start) & (pl.col("start") < window.end))
    if rows.is_empty():
        raise EvidenceError("the window holds no session", hint="choose other dates, or ingest newer sessions")
    n = min(EVALUATION, rows.height) if n is None else n
    drawn = causal.sample(rows.select(list(dict.fromkeys(["session", "arm", *strata]))), n, strata=strata, seed=seed)
    name, value = scoring.headline(rows, outcome)
    ranking = causal.rank(rows, outcome=name, value=value, by=(), level=level, seed=seed, draws=999)
    new = Baseline(
        start=window.start, end=window.end, made=time.time(), data_version=store.data_version, outcome=name,
        n_sessions=rows.height, n_sampled=drawn.height, seed=seed, strata=strata,
        models={m.model: m.net_improvement for m in ranking.models}, means={m.model: m.mean for m in ranking.models},
    )  # fmt: skip
    sample = tuple(drawn.iter_rows(named=True))
    if first is not None:
        first(sample)
    old = baseline(store)
    envelope = {
        "seatrial": __version__, "command": "baseline refresh", "data_version": store.data_version, "result": new,
    }  # fmt: skip
    store.save_result("baseline", datetime.fromtimestamp(new.made, UTC).isoformat(timespec="seconds"), envelope)
    return Refreshed(old=old, new=new, sample=sample)


def baselines(store: Store) -> list[Baseline]:
    """Every baseline kept, newest first."""
    return [_decoded(store, head.id, Baseline) for head in store.results("baseline")]


def baseline(store: Store) -> Baseline | None:
    """The baseline in force: the newest."""
    return next(iter(baselines(store)), None)


def _rows(store: Store) -> tuple[pl.DataFrame, tuple[Dropped, ...]]:
    """Outcome rows of whole sessions that may be ranked and name a model, with escalations counted beside them."""
    rows = store.table("outcomes").filter(pl.col("parent").is_null() & pl.col("arm").is_not_null()).collect()
    allowed, refused = permission(store, "rank").among(rows["session"].to_list())
    rows = rows.filter(pl.col("session").is_in(allowed)) if refused else rows
    if rows.is_empty():
        raise EvidenceError("no session names a model, so nothing can be compared", hint="seatrial ingest PATH")
    handed = (
        store.table("signals")
        .filter((pl.col("kind") == "escalation") & pl.col("dropped_by").is_null())
        .group_by("session")
        .agg(n_escalation=pl.len().cast(pl.Int64))
        .collect()
    )
    return rows.join(handed, on="session", how="left").with_columns(pl.col("n_escalation").fill_null(0)), refused


def _decoded(store: Store, ident: str, type: type[T]) -> T:
    result = store.result(ident).envelope["result"]
    try:
        return msgspec.convert(result, type)
    except msgspec.ValidationError as error:
        raise StoreError(f"the stored result {ident} is not what its kind says: {error}") from error
