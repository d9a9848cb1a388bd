"""Lines of an exported queue with labels beside them to answers: everything is checked before anything is kept."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.errors import InputError
from seatrial.flows.label import KEYS, Answer, Item, Unit, items, read_answers, save
from seatrial.store import Store, permission

HINT = 'a line of the exported queue with "labels": [...] added; see docs/how-to/label.md'


class _Given(msgspec.Struct, kw_only=True):
    """A line as another tool may return it: the queue's own fields, or an answer of `seatrial label`."""

    id: str
    labels: list[str]
    annotator: str | None = None
    unit: Unit | None = None
    session: str | None = None
    step: int | None = None
    call: int | None = None
    shown: str = ""
    turn: str = ""
    before: str = ""
    source: str = ""
    probability: float | None = None
    drawn: str = "random"
    label: float | None = None


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did: `imported` answers taken in, `held` that were there before, `unknown` whose item no store
    holds, and `warnings` that say so."""

    imported: int
    held: int
    unknown: int
    file: str
    warnings: tuple[str, ...] = ()


class _Line(NamedTuple):
    number: int
    given: _Given


def take(path: Path, out: Path, *, annotator: str, unit: Unit = "turn", store: Store | None = None) -> Imported:
    """Append the answers of a file to the label file `out`; nothing is kept where any line is wrong.

    `annotator` and `unit` stand in where a line names none. Text, session and step come from the line, else from the
    store by the item's id.

    Raises:
        InputError: the file cannot be read; a line is no answer, has labels that are unknown, missing or exclude each
            other, a probability outside (0, 1], or contradicts another answer of its annotator (file and line).
    """
    lines = _read(path)
    found = _Found(store, [line.given.unit or unit for line in lines])
    known: dict[tuple[str, str], tuple[frozenset[str], str]] = {
        (a.id, a.annotator): (frozenset(a.labels), str(out)) for a in read_answers(out)
    }
    fresh, held, strange = list[Answer](), 0, list[_Line]()
    for line in lines:
        made = _answer(line, found, str(path), annotator, unit)
        if found.checks and made.id not in found.items:
            strange.append(line)
        key, said = (made.id, made.annotator), frozenset(made.labels)
        before = known.get(key)
        if before is None:
            known[key] = said, f"line {line.number}"
            fresh.append(made)
        elif before[0] == said:
            held += 1
        else:
            raise InputError(
                f"{made.annotator} gave item {made.id} other labels in {before[1]}: "
                f"{', '.join(sorted(before[0]))}, here {', '.join(sorted(said))}",
                file=str(path), line=line.number, hint="keep one of them, or name two annotators",
            )  # fmt: skip
    for answer in fresh:
        save(out, answer)
    told: tuple[str, ...] = ()
    if strange:
        first = strange[0]
        told = (f"{len(strange)} of {len(lines)} answers are of items that the store does not hold, the first "
                f"{first.given.id} in line {first.number}",)  # fmt: skip
    return Imported(imported=len(fresh), held=held, unknown=len(strange), file=str(out), warnings=told)


def _read(path: Path) -> list[_Line]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"the answers cannot be read: {error.strerror or error}", file=str(path)) from error
    out = []
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            out.append(_Line(number, msgspec.json.decode(line, type=_Given)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"not an answer: {error}", file=str(path), line=number, hint=HINT) from error
    if not out:
        raise InputError("there are no answers in this file", file=str(path), hint=HINT)
    return out


class _Found:
    """Items of the store by id, read once and only if there is a store."""

    def __init__(self, store: Store | None, units: Sequence[Unit]) -> None:
        self.checks = store is not None
        self.items: dict[str, Item] = {}
        if store is None:
            return
        allowed, _ = permission(store, "label").among(store.session_ids())
        for unit in sorted(set(units)):
            self.items |= {item.id: item for item in items((store.trace(i) for i in allowed), unit)}


def _answer(line: _Line, found: _Found, file: str, annotator: str, unit: Unit) -> Answer:
    given = line.given

    def refuse(message: str, hint: str = HINT) -> InputError:
        return InputError(message, file=file, line=line.number, hint=hint)

    kind = given.unit or unit
    _check(given, kind, refuse)
    item = found.items.get(given.id)
    session, step = (given.session, given.step) if item is None else (item.session, item.step)
    if session is None or step is None:
        raise refuse("the line names no session and step, and the store holds no item of this id")
    text = given.turn or given.shown or (item.shown if item is not None else "")
    if kind == "turn" and not text.strip():
        raise refuse("the labelled turn has no text (shown or turn), and the store holds no item of this id")
    assert given.probability is not None
    turn = kind == "turn"
    return Answer(
        id=given.id, unit=kind, session=session, step=step, labels=tuple(dict.fromkeys(given.labels)),
        call=item.call if item is not None else given.call, annotator=given.annotator or annotator,
        probability=given.probability, drawn=given.drawn, turn=text if turn else "",
        before=(given.before or (item.before if item is not None else "")) if turn else "",
        source=(given.source or session) if turn else "",
        label=float("pass" in given.labels) if kind == "output" else None,
    )  # fmt: skip


def _check(given: _Given, unit: Unit, refuse: Callable[..., InputError]) -> None:
    known = tuple(KEYS[unit].values())
    if not given.labels:
        raise refuse("no label is given", f"labels of a {unit}: {', '.join(known)}; leave out lines without an answer")
    unknown = sorted(set(given.labels) - set(known))
    if unknown:
        raise refuse(f"unknown labels {', '.join(map(repr, unknown))}", f"labels of a {unit}: {', '.join(known)}")
    if len(set(given.labels)) > 1 and (unit != "turn" or "other" in given.labels):
        raise refuse(f"these labels exclude each other: {', '.join(given.labels)}", "'other' stands alone")
    chance = given.probability
    if chance is None or not (math.isfinite(chance) and 0.0 < chance <= 1.0):
        told = "is missing" if chance is None else f"must lie in (0, 1], got {chance:g}"
        raise refuse(f"the probability of being drawn {told}", "keep the fields of the exported queue")
    if unit == "output" and given.label is not None and given.label != float("pass" in given.labels):
        raise refuse(f"label {given.label:g} contradicts labels {', '.join(given.labels)}")


__all__ = ["Imported", "take"]
