"""Labelled human turns to the detectors' precision, recall and F1, with intervals (METHODS 1.5)."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import EvidenceError, InputError
from seatrial.records import Estimate
from seatrial.signals import curves as shapes
from seatrial.signals import language
from seatrial.signals.settings import SignalSettings
from seatrial.stats import clustered_proportion, wilson

KINDS = language.HUMAN_KINDS
COMMON = 4
"""Turns of no more words may be the same by chance."""
_LABELS = frozenset({*KINDS, "other"})


class LabelledTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One labelled human turn. `before` is the end of the agent's words before it; `disputed` are labels that only
    one annotator gave; `harness` marks text that no person typed."""

    turn: str
    labels: tuple[str, ...]
    before: str = ""
    id: str = ""
    source: str = ""
    model: str | None = None
    disputed: tuple[str, ...] = ()
    harness: bool = False
    interrupted: bool = False
    stratum: str = ""
    conf: int | None = None


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """How well the detectors do on labelled turns.

    `kinds` maps a kind to ``n_positive`` and the estimates ``precision``, ``recall`` and ``f1`` (None: nothing was
    found, or nothing was there); `by_source` the same per source. `false_alarm` is the share of turns labelled
    only `other` that a complaint or correction falls on. Turns typed by no person are left out, and disputed ones
    unless asked for; both are counted. `with_disputed` is `kinds` over all rows; `by_model` is by the model whose
    turn is judged (turns without one: ``unknown``). `curves` and `calibration` are by kind, `confusion` lists
    mistakes with examples.
    """

    kinds: dict[str, dict[str, Any]]
    by_source: dict[str, dict[str, dict[str, Any]]]
    by_model: dict[str, dict[str, dict[str, Any]]]
    with_disputed: dict[str, dict[str, Any]]
    curves: dict[str, tuple[shapes.Point, ...]]
    calibration: dict[str, shapes.Calibration]
    confusion: tuple[shapes.Confusion, ...]
    false_alarm: Estimate | None
    n_turns: int
    n_disputed: int
    n_harness: int
    versions: dict[str, str]
    warnings: tuple[str, ...] = ()


def read_labels(path: Path) -> list[LabelledTurn]:
    """Read a label file: one JSON object a line, with at least ``turn`` and ``labels``.

    Raises:
        InputError: the file cannot be read, or a line is not a labelled turn (file and line are named).
    """
    decoder = msgspec.json.Decoder(LabelledTurn)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the labels: {error.strerror}", file=str(path)) from error
    rows = []
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"not a labelled turn: {error}",
                hint='expected {"turn": ..., "labels": [...]}',
                file=str(path),
                line=number,
            ) from error
        if "other" in row.labels and len(set(row.labels)) > 1:
            raise InputError(f"these labels exclude each other: {', '.join(row.labels)}", file=str(path), line=number,
                             hint="'other' stands alone")  # fmt: skip
        if not row.turn.strip():
            raise InputError("the labelled turn is empty: there is no text to judge", file=str(path), line=number,
                             hint="an exported queue comes back by 'seatrial label --import'")  # fmt: skip
        unknown = {*row.labels, *row.disputed} - _LABELS
        if unknown:
            raise InputError(
                f"unknown labels {', '.join(sorted(unknown))}",
                hint=f"labels are {', '.join((*KINDS, 'other'))}",
                file=str(path),
                line=number,
            )
        rows.append(row)
    return rows


Judge = Callable[[LabelledTurn], Iterable[language.Verdict]]


def by_rules(row: LabelledTurn) -> list[language.Verdict]:
    """The shipped detector on one labelled turn."""
    return language.judge(row.turn, row.before, interrupted=row.interrupted)


def evaluate(
    labels: Path | Sequence[LabelledTurn],
    *,
    level: float = 0.95,
    disputed: bool = False,
    settings: SignalSettings = SignalSettings(),
    judge: Judge | None = None,
) -> Accuracy:
    """Precision, recall and F1 by kind, overall and by source, of the shipped detectors or of `judge`.

    Overall intervals are cluster-robust over sources (turns of one project resemble each other), Wilson inside one
    source. F1 = 2J/(1 + J) of the Jaccard share J = TP/(TP + FP + FN), so its interval is that of J, mapped.

    Raises:
        InputError: a bad label file.
        EvidenceError: no usable row.
    """
    given = read_labels(labels) if isinstance(labels, Path) else list(labels)
    rows = _once(given)
    people = [row for row in rows if not row.harness]
    used = [row for row in people if disputed or not row.disputed]
    if not used:
        raise EvidenceError("no labelled turn to score", hint="label turns, or count disputed ones with --disputed")
    judged = {id(row): list((judge or by_rules)(row)) for row in people}
    found = [_kinds(judged[id(row)], settings) for row in used]
    read = [
        shapes.Judged(
            id=row.id,
            turn=row.turn,
            labels=frozenset(row.labels),
            confidence={v.kind: v.confidence for v in judged[id(row)] if v.kind in KINDS},
        )
        for row in used
    ]
    other = [i for i, row in enumerate(used) if row.labels == ("other",)]
    alarms = [bool(found[i] & {"complaint", "correction"}) for i in other]
    return Accuracy(
        kinds=_table(used, found, level),
        by_source=_split(used, found, [row.source for row in used], level),
        by_model=_split(used, found, [row.model or "unknown" for row in used], level),
        with_disputed=_table(people, [_kinds(judged[id(row)], settings) for row in people], level),
        curves={kind: shapes.curve(read, kind) for kind in KINDS},
        calibration={kind: shapes.calibration(read, kind) for kind in KINDS},
        confusion=shapes.confusion(read, {kind: _threshold(kind, settings) for kind in KINDS}),
        false_alarm=_share(alarms, [used[i].source for i in other], level),
        n_turns=len(used),
        n_disputed=sum(bool(row.disputed) for row in people),
        n_harness=len(rows) - len(people),
        versions={language.NAME: language.version()},
        warnings=(
            *_repeated(len(given) - len(rows)),
            *_contradictions(used),
            *(_learned(used) if judge is None else ()),
        ),
    )


def mark(turn: str) -> bytes:
    """Eight bytes that tell one turn from others, whatever its white space; its text cannot be read from them."""
    return hashlib.blake2b(" ".join(turn.split()).encode("utf-8", "replace"), digest_size=8).digest()


@lru_cache(maxsize=1)
def learned() -> frozenset[bytes]:
    """Marks of the turns that the shipped points and weights were fitted on."""
    held = resources.files("seatrial.signals").joinpath("learned.bin").read_bytes()
    return frozenset(held[i : i + 8] for i in range(0, len(held), 8))


def _learned(rows: Sequence[LabelledTurn]) -> tuple[str, ...]:
    """Said where figures flatter: the detectors have seen the turns, of more than a word or two, that they judge."""
    seen = sum(mark(row.turn) in learned() for row in rows if len(row.turn.split()) > COMMON)
    if not seen:
        return ()
    return (
        f"{seen} of {len(rows)} turns were used to fit the shipped detectors, and figures on them flatter: "
        "--leave-sources-out fits anew without the source that is scored",
    )


def _once(rows: Sequence[LabelledTurn]) -> list[LabelledTurn]:
    """The rows without those that say again what an earlier one said of the same item: a second annotator, or a file
    added to itself, makes no second case. Rows without an id are all kept: people type the same word twice."""
    seen = set[tuple[str, str, str, frozenset[str], frozenset[str]]]()
    out = []
    for row in rows:
        key = (row.id, row.source, row.turn, frozenset(row.labels), frozenset(row.disputed))
        if row.id and key in seen:
            continue
        seen.add(key)
        out.append(row)
    return out


def _repeated(n: int) -> tuple[str, ...]:
    if not n:
        return ()
    return (f"{n} {'line says' if n == 1 else 'lines say'} again what another line of the same id says: counted once",)


def _contradictions(rows: Sequence[LabelledTurn]) -> tuple[str, ...]:
    """Turns that were labelled several times, and not with the same labels: counted, one of them named."""
    said: dict[tuple[str, ...], list[frozenset[str]]] = {}
    for row in rows:
        said.setdefault((row.id,) if row.id else (row.source, row.before, row.turn), []).append(frozenset(row.labels))
    apart = {key: sets for key, sets in said.items() if len(set(sets)) > 1}
    if not apart:
        return ()
    key, sets = next(iter(apart.items()))
    shown = " and ".join(dict.fromkeys(", ".join(sorted(labels)) for labels in sets))
    told = key[-1] if len(key[-1]) <= 60 else key[-1][:59] + "…"
    turns = "turn is" if len(apart) == 1 else "turns are"
    return (
        f"{len(apart)} {turns} labelled several times and not alike, such as {told!r} ({shown}): every line counts",
    )


def _threshold(kind: str, settings: SignalSettings) -> float:
    return settings.correction_threshold if kind == "correction" else settings.threshold


def _kinds(verdicts: Iterable[language.Verdict], settings: SignalSettings) -> frozenset[str]:
    return frozenset(v.kind for v in verdicts if v.confidence >= _threshold(v.kind, settings))


def _split(
    rows: Sequence[LabelledTurn], found: Sequence[frozenset[str]], names: Sequence[str], level: float
) -> dict[str, dict[str, dict[str, Any]]]:
    out = {}
    for name in sorted(set(names)):
        at = [i for i, other in enumerate(names) if other == name]
        out[name] = _table([rows[i] for i in at], [found[i] for i in at], level)
    return out


def _table(rows: Sequence[LabelledTurn], found: Sequence[frozenset[str]], level: float) -> dict[str, dict[str, Any]]:
    return {kind: _row(kind, rows, found, level) for kind in KINDS}


def _row(kind: str, rows: Sequence[LabelledTurn], found: Sequence[frozenset[str]], level: float) -> dict[str, Any]:
    truth = [kind in row.labels for row in rows]
    said = [kind in kinds for kinds in found]
    source = [row.source for row in rows]

    def share(at: list[int], hits: Sequence[bool]) -> Estimate | None:
        return _share([hits[i] for i in at], [source[i] for i in at], level)

    both = [t and s for t, s in zip(truth, said, strict=True)]
    either = [i for i in range(len(rows)) if truth[i] or said[i]]
    return {
        "n_positive": sum(truth),
        "precision": share([i for i in either if said[i]], both),
        "recall": share([i for i in either if truth[i]], both),
        "f1": _f1(share(either, both)),
    }


def _share(hits: Sequence[bool], clusters: Sequence[str], level: float) -> Estimate | None:
    if len(set(clusters)) > 1:
        return clustered_proportion([float(h) for h in hits], list(clusters), level)
    return wilson(sum(hits), len(hits), level)


def _f1(jaccard: Estimate | None) -> Estimate | None:
    if jaccard is None:
        return None

    def mapped(share: float | None) -> float | None:
        return None if share is None else 2 * share / (1 + share)

    return Estimate(
        value=2 * jaccard.value / (1 + jaccard.value),
        low=mapped(jaccard.low),
        high=mapped(jaccard.high),
        level=jaccard.level,
        n=jaccard.n,
        n_clusters=jaccard.n_clusters,
        method=f"2J/(1 + J); J: {jaccard.method}",
        why=jaccard.why,
    )
