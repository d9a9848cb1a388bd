"""What moves a model's place: its signals and sub-dimensions beside those of another model, and the sessions behind.

Nothing is estimated here. Values and their errors are those of the stored ranking; sessions and sentences are rows of
the store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec
import polars as pl

from seatrial.errors import SeatrialError, StoreError
from seatrial.records import Estimate, ModelRow, Ranking
from seatrial.records.tables import CALLS, OUTCOMES_TABLE, SIGNALS
from seatrial.report import numbers, words
from seatrial.report.text import clean, clip
from seatrial.server.index import Snapshot
from seatrial.server.traces import field_text
from seatrial.store import Store

_SIGNALS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "confirmed_success": ("Work confirmed by the person", 1, ("complaint", "correction")),
    "praise_over_complaint": ("Praise beats complaint", 1, ("complaint",)),
    "steerability": ("Corrections that were taken", 1, ("correction",)),
    "command_recovery": ("Failed commands put right", 1, ("execution_error", "abnormal_output")),
    "no_tool_hallucination": ("No invented tools", 1, ()),
    "any_complaint": ("Sessions with a complaint", -1, ("complaint",)),
    "any_correction": ("Sessions with a correction", -1, ("correction",)),
    "any_execution_error": ("Sessions with a failed command", -1, ("execution_error",)),
    "any_praise": ("Sessions with praise", 1, ("praise",)),
    "any_confirmation": ("Sessions with a confirmation", 1, ("confirmation",)),
}
"""Name in plain words, which way is good, and the kinds of signal that speak about it."""

_DIMENSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "command_reliability": ("Commands that succeed", ("execution_error", "abnormal_output")),
    "positivity": ("Kind words among all judging words", ("complaint", "correction")),
    "corrective_responsiveness": ("Quick to take a correction", ("correction",)),
}

WORSE: dict[str, str] = {
    "confirmed_success": "people confirmed its work less often",
    "praise_over_complaint": "praise outweighed complaints less often",
    "steerability": "it took corrections less often",
    "command_recovery": "it put failed commands right less often",
    "no_tool_hallucination": "it invented tools more often",
    "any_complaint": "more of its sessions hold a complaint",
    "any_correction": "more of its sessions hold a correction",
    "any_execution_error": "more of its sessions hold a failed command",
    "any_praise": "fewer of its sessions hold praise",
    "any_confirmation": "fewer of its sessions hold a confirmation",
    "command_reliability": "fewer of its commands succeed",
    "positivity": "fewer of people's judging words are kind",
    "corrective_responsiveness": "it is slower to take a correction",
}
"""What it means that a measure speaks against a model."""

TABLES = (OUTCOMES_TABLE.name, SIGNALS.name, CALLS.name)
"""What `behind` reads."""

_LOW: dict[str, pl.Expr] = {
    **{n: pl.col(n) < 1.0 for n in ("confirmed_success", "praise_over_complaint", "steerability")},
    **{n: pl.col(n) < 1.0 for n in ("command_recovery", "no_tool_hallucination")},
    "any_complaint": pl.col("n_complaint") > 0,
    "any_correction": pl.col("n_correction") > 0,
    "any_execution_error": pl.col("n_execution_error") > 0,
    "any_praise": pl.col("n_praise") > 0,
    "any_confirmation": pl.col("n_confirmation") > 0,
    "command_reliability": pl.col("calls_ok") < pl.col("calls_counted"),
    "positivity": (pl.col("n_complaint") + pl.col("n_correction")) > 0,
    "corrective_responsiveness": pl.col("n_correction") > 0,
}
"""The sessions in which a measure went against the model (or, for praise and confirmation, has something to show)."""


class Mover(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two models. `better` is the difference, this model minus the other, positive where this one is
    better, in the measure's unit; `error` its 95% half-width where both have standard errors. `clear`: the difference
    is larger than that."""

    key: str
    name: str
    mine: float
    other: float
    better: float
    error: float | None
    clear: bool
    share: bool


def movers(mine: ModelRow, other: ModelRow) -> list[Mover]:
    """Measures that both models have, those that speak most against this model first."""
    out = []
    for key, (title, sign, _) in _SIGNALS.items():
        a, b = mine.signals.get(key), other.signals.get(key)
        if a is not None and b is not None and a.estimate is not None and b.estimate is not None:
            out.append(_mover(key, title, sign, a.estimate, b.estimate, share=True))
    for key, (title, _) in _DIMENSIONS.items():
        c, d = mine.dimensions.get(key), other.dimensions.get(key)
        if c is not None and d is not None and c.estimate is not None and d.estimate is not None:
            share = words.dimension(key)[1] == "percent"
            out.append(_mover(key, title, 1, c.estimate, d.estimate, share=share))
    return sorted(out, key=lambda m: (not m.clear, m.better))


def _mover(key: str, title: str, sign: int, mine: Estimate, other: Estimate, *, share: bool) -> Mover:
    better = sign * (mine.value - other.value)
    error = None if mine.se is None or other.se is None else 1.96 * math.hypot(mine.se, other.se)
    return Mover(
        key=key, name=title, mine=mine.value, other=other.value, better=better, error=error,
        clear=error is not None and abs(better) > error, share=share,
    )  # fmt: skip


def against(found: Sequence[Mover], most: int = 3) -> list[Mover]:
    """Those that speak against this model, the clear ones first, then by size."""
    return [m for m in found if m.better < -1e-9][:most]


def speaks_for(found: Sequence[Mover], most: int = 3) -> list[Mover]:
    """Those that speak for this model, the clear ones first, then by size."""
    return sorted((m for m in found if m.better > 1e-9), key=lambda m: (not m.clear, -m.better))[:most]


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of evidence: where it stands, what kind it is, and its words."""

    session: str
    step: int
    kind: str
    quote: str
    confidence: float | None = None
    time: float | None = None
    left: str = ""
    right: str = ""
    start: int | None = None
    end: int | None = None
    field: str | None = None


class Behind(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions behind one measure of one model: how many speak of it, of how many, with sentences. `sessions` names
    the newest of them."""

    n: int
    of: int
    sentences: list[Sentence]
    sessions: list[str]


_AROUND = 110
_READING_S = 0.8
_NAMED = 2000


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences with the words around them; `whole`: all that could be read were. `lost` says which sessions cannot
    be, so that their words stand alone."""

    sentences: list[Sentence]
    whole: bool
    lost: list[str] = []


def in_context(store: Store, sentences: Sequence[Sentence]) -> Context:
    """The same sentences with the words around them, read from the stored sessions; for a second at most."""
    until = time.monotonic() + _READING_S
    whole = True
    blobs = store.blobs_of(sorted({s.session for s in sentences}))
    out = []
    lost: dict[str, str] = {}
    for s in sentences:
        if s.start is None or s.end is None or s.field is None or s.session not in blobs:
            out.append(s)
            continue
        if time.monotonic() > until:
            whole = False
            out.append(s)
            continue
        try:
            steps = store.trace_of(blobs[s.session]).steps
            text = field_text(next(step for step in steps if step.index == s.step), s.field)
        except StoreError:
            lost[s.session] = unread(s.session)
            out.append(s)
            continue
        except (SeatrialError, StopIteration):
            out.append(s)
            continue
        left, right = text[max(s.start - _AROUND, 0) : s.start], text[s.end : s.end + _AROUND]
        quote = text[s.start : s.end][:300]
        if s.start > _AROUND:
            left = "…" + left
        if s.end + _AROUND < len(text):
            right += "…"
        out.append(msgspec.structs.replace(s, left=left, right=right, quote=quote))
    return Context(sentences=out, whole=whole, lost=list(lost.values()))


def unread(session: str) -> str:
    """Says that a session's steps are damaged."""
    return f"session {clip(clean(session), 60)} cannot be read: see seatrial verify"


def behind(
    store: Store, snapshot: Snapshot, ranking: Ranking, model: str, key: str, *, task_type: str = "", most: int = 30
) -> Behind:
    """The sessions in which a measure shows, newest first, and the sentences in them. Only sessions that may be
    shown."""
    outcomes = store.table(OUTCOMES_TABLE.name, ordered=False).filter(pl.col("parent").is_null())
    arm = "agent" if ranking.basis.get("for") == "agent" else "arm"
    conditions = [pl.col(arm) == model]
    if task_type:
        conditions.append(pl.col("task_type") == task_type)
    where = ranking.basis.get("where")
    for column, value in where.items() if isinstance(where, dict) else ():
        if column in OUTCOMES_TABLE.names:
            conditions.append(pl.col(column).cast(pl.String) == str(value))
    wanted = _LOW.get(key, pl.lit(False)).fill_null(False)
    rows = outcomes.filter(*conditions).select("session", "start", wanted.alias("hit")).collect()
    if snapshot.may.denied:
        rows = rows.filter(~pl.col("session").is_in(pl.Series(list(snapshot.may.denied)).implode()))
    hit = rows.filter("hit").sort("start", descending=True, nulls_last=True)
    sessions = hit["session"].head(_NAMED).to_list()
    return Behind(n=hit.height, of=rows.height, sentences=_sentences(store, sessions, key, most), sessions=sessions)


def _sentences(store: Store, sessions: list[str], key: str, most: int) -> list[Sentence]:
    if key == "no_tool_hallucination":
        some = pl.Series(sessions[:_NAMED], dtype=pl.String).implode()
        calls = store.table(CALLS.name, ordered=False).filter(pl.col("session").is_in(some) & pl.col("hallucinated"))
        rows = calls.select("session", "step", "tool").head(most).collect()
        return [
            Sentence(session=s, step=step, kind="invented tool", quote=f"called {tool}, which does not exist")
            for s, step, tool in rows.iter_rows()
        ]
    return sentences_of(store, sessions, kinds_of(key), most)


def sentences_of(store: Store, sessions: Sequence[str], kinds: Sequence[str], most: int) -> list[Sentence]:
    """The surest evidence of some kinds in some sessions: one piece of each first, then the rest."""
    some = pl.Series(sessions[:_NAMED], dtype=pl.String).implode()
    signals = store.table(SIGNALS.name, ordered=False).filter(
        pl.col("session").is_in(some) & pl.col("dropped_by").is_null() & pl.col("kind").is_in(list(kinds))
    )
    columns = ["session", "step", "kind", "quote", "confidence", "time", "span_start", "span_end", "span_field"]
    rows = signals.select(*columns).collect()
    best = rows.sort(["confidence", "session", "step"], descending=[True, False, False])
    first = best.unique("session", keep="first", maintain_order=True)
    here = ["session", "step", "kind", "span_start"]
    rest = best.join(first.select(here), on=here, how="anti", nulls_equal=True)
    return [
        Sentence(
            session=r["session"], step=r["step"], kind=r["kind"], quote=r["quote"] or "", confidence=r["confidence"],
            time=r["time"], start=r["span_start"], end=r["span_end"], field=r["span_field"],
        )
        for r in pl.concat([first, rest]).head(most).iter_rows(named=True)
    ]  # fmt: skip


def kinds_of(key: str) -> list[str]:
    """The kinds of signal that speak about a measure."""
    if key in _SIGNALS:
        return list(_SIGNALS[key][2])
    return list(_DIMENSIONS.get(key, ("", ()))[1])


def value(mover: Mover, amount: float) -> str:
    """A measure's value as text."""
    return numbers.number(amount, "percent" if mover.share else "plain")
