"""A store to label tasks, and answers to label files: turns, actions and outputs in one flow (METHODS 1.5, 3.4d, 5).

What is shown never names a model or an agent. The queue mixes uncertain items with a random share: each item's chance
of being drawn is recorded, so that rates stay estimable. Answers are appended to a JSONL file as they are given; a
flow that is stopped goes on where it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from seatrial import scoring, signals
from seatrial.canon import content_hash
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows.extract import extract_store
from seatrial.records import Dropped, Trace
from seatrial.signals import language, turns
from seatrial.stats import cohen_kappa
from seatrial.stats.agreement import Coefficient
from seatrial.store import Store, permission

Unit = Literal["turn", "action", "output"]

KEYS: dict[str, dict[str, str]] = {
    "turn": {
        "c": "confirmation", "i": "accept_implicit", "p": "praise", "m": "complaint", "x": "correction", "o": "other",
    },
    "action": {"r": "relevant", "e": "extraneous"},
    "output": {"p": "pass", "f": "fail"},
}  # fmt: skip
"""Key to label. A turn may get several; ``other`` stands alone."""

_CLIP, _BEFORE = 1_500, 600


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """Something to label. `shown` and `before` hold no model's name. `probability` is the chance with which this item
    was drawn; `drawn` says how: ``random`` or ``uncertain``."""

    id: str
    unit: Unit
    session: str
    step: int
    shown: str
    before: str = ""
    call: int | None = None
    uncertainty: float = 0.0
    probability: float = 1.0
    drawn: str = "random"
    criterion: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a label file: usable by `signals evaluate` (turns) and `rank` (outputs: `label` 1 or 0)."""

    id: str
    unit: Unit
    session: str
    step: int
    labels: tuple[str, ...]
    annotator: str
    probability: float
    drawn: str
    turn: str = ""
    before: str = ""
    source: str = ""  # the session: its turns are one cluster
    call: int | None = None
    label: float | None = None


def items(traces: Iterable[Trace], unit: Unit) -> Iterator[Item]:
    """Everything of a kind that can be labelled, in session order, with how unsure the detectors are of it."""
    for trace in traces:
        if trace.parent is not None:
            continue
        hide = _names(trace)
        if unit == "turn":
            yield from _turns(trace, hide)
        elif unit == "action":
            yield from _actions(trace, hide)
        else:
            yield from _outputs(trace, hide)


def _turns(trace: Trace, hide: re.Pattern[str] | None) -> Iterator[Item]:
    judged = [t for t in turns.read(trace).turns if t.worked and t.agent is not None and t.step.text.strip()]
    heard = [language.Heard(t.step.text, t.before, t.interrupted, t.refused) for t in judged]
    for turn, reading in zip(judged, language.read_many(heard), strict=True):
        odds = [abs(v) for v in language.score(reading).values()] or [4.0]
        yield Item(
            id=_id(trace, turn.step.index, None),
            unit="turn",
            session=trace.id,
            step=turn.step.index,
            shown=_blind(turn.step.text[:_CLIP], hide),
            before=_blind(turn.before[-_BEFORE:], hide),
            uncertainty=1.0 / (1.0 + min(odds)),
        )


def _actions(trace: Trace, hide: re.Pattern[str] | None) -> Iterator[Item]:
    task = next((s.text for s in trace.steps if s.event_class in ("human", "simulated_user")), "")
    for step in trace.steps:
        if step.copied:
            continue
        for position, call in enumerate(step.tool_calls):
            text = f"{call.name} {msgspec.json.encode(call.arguments).decode()[:_CLIP]}"
            yield Item(
                id=_id(trace, step.index, position), unit="action", session=trace.id, step=step.index, call=position,
                shown=_blind(text, hide), before=_blind(task[:_BEFORE], hide),
            )  # fmt: skip


def _outputs(trace: Trace, hide: re.Pattern[str] | None) -> Iterator[Item]:
    last = next((s for s in reversed(trace.steps) if s.event_class == "agent" and s.text.strip()), None)
    if last is None:
        return
    task = next((s.text for s in trace.steps if s.event_class in ("human", "simulated_user")), "")
    yield Item(
        id=_id(trace, last.index, None), unit="output", session=trace.id, step=last.index,
        shown=_blind(last.text[-_CLIP:], hide), before=_blind(task[:_BEFORE], hide),
    )  # fmt: skip


def _id(trace: Trace, step: int, call: int | None) -> str:
    return content_hash([trace.id, step, call])[:12]


def _names(trace: Trace) -> re.Pattern[str] | None:
    """Names by which a reader could tell the model: its own and those of every step, and well-known families."""
    names = {trace.model, trace.agent.name, *(s.model for s in trace.steps)} - {None, ""}
    # Whole words alone: a harness called "h" is not in "thanks".
    parts = [rf"(?<!\w){re.escape(n)}(?!\w)" for n in sorted(map(str, names), key=len, reverse=True)]
    families = r"\b(?:claude|opus|sonnet|haiku|gpt-?[\w.]*|gemini|llama|qwen|mistral|grok|deepseek|codex)(?:[-\w.]*\w)?"
    return re.compile("|".join([*parts, families]), re.IGNORECASE)


def _blind(text: str, hide: re.Pattern[str] | None) -> str:
    return hide.sub("[model]", text) if hide is not None else text


def draw(found: Sequence[Item], n: int, *, random_share: float = 0.5, seed: int = 0) -> list[Item]:
    """`n` items: each enters by an independent draw with its own, recorded probability (Poisson sampling).

    A `random_share` of the expected number is spread evenly over all items, the rest in proportion to uncertainty, so
    that no item has probability 0 and inverse probabilities give unbiased rates. The number drawn varies around `n`.

    Raises:
        UsageError: a share outside (0, 1]. EvidenceError: nothing to label.
    """
    if not 0.0 < random_share <= 1.0:
        raise UsageError("the random share must lie in (0, 1]", hint="without it rates cannot be estimated")
    if not found:
        raise EvidenceError("nothing to label", hint="read sessions first: seatrial ingest PATH")
    rng = np.random.default_rng(seed)
    even = np.full(len(found), min(1.0, random_share * n / len(found)))
    unsure = np.array([item.uncertainty for item in found])
    spread = unsure / unsure.sum() if unsure.sum() > 0 else np.full(len(found), 1 / len(found))
    aimed = np.minimum(1.0, (1 - random_share) * n * spread)
    by_chance, by_aim = rng.random(len(found)) < even, rng.random(len(found)) < aimed
    total = 1.0 - (1.0 - even) * (1.0 - aimed)
    out = [
        msgspec.structs.replace(item, probability=float(total[i]), drawn="random" if by_chance[i] else "uncertain")
        for i, item in enumerate(found)
        if by_chance[i] or by_aim[i]
    ]
    return [out[i] for i in rng.permutation(len(out))]


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for labels, and the sessions left out because nobody agreed to their being labelled."""

    items: tuple[Item, ...]
    left_out: tuple[Dropped, ...] = ()


def queue(
    store: Store,
    unit: Unit,
    n: int,
    *,
    random_share: float = 0.5,
    seed: int = 0,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> Queue:
    """The items to label from a store; the same store, seed and numbers give the same queue, so it can be resumed.

    `progress` is told how many sessions have been looked through for signals, then for items.

    Raises:
        UsageError: a share outside (0, 1]. EvidenceError: nothing to label.
    """
    extract_store(store, scoring.UNIT, progress=progress)
    ids = sorted(store.table("sessions").select("session").collect()["session"].to_list())
    allowed, refused = permission(store, "label").among(ids)
    if refused and not allowed:
        raise EvidenceError(
            "nothing may be labelled: " + "; ".join(f"{d.n} {d.what}: {d.why}" for d in refused),
            hint="'seatrial consent' records what a person agreed to",
        )
    found: list[Item] = []
    for done, session in enumerate(allowed, 1):
        found += items([store.trace(session)], unit)
        if progress is not None:
            progress(done, len(allowed), "items")
    return Queue(items=tuple(draw(found, n, random_share=random_share, seed=seed)), left_out=refused)


def by_criterion(found: Sequence[Item], criteria: Sequence[str]) -> list[Item]:
    """Each item once for each criterion of a rubric; as they are where there is none."""
    if not criteria:
        return list(found)
    return [
        msgspec.structs.replace(item, id=content_hash([item.id, criterion])[:12], criterion=criterion)
        for item in found
        for criterion in criteria
    ]


def read_answers(path: Path) -> list[Answer]:
    """Answers of a label file; none if it does not exist. A torn last line is left out.

    Raises:
        InputError: another line is no answer (file and line are named).
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    out = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            out.append(msgspec.json.decode(line, type=Answer))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines):
                break
            raise InputError(f"not an answer: {error}", file=str(path), line=number,
                             hint="written by 'seatrial label'") from error  # fmt: skip
    return out


def answer(item: Item, keys: str, annotator: str) -> Answer:
    """The answer that some pressed keys mean.

    Raises:
        UsageError: a key without meaning, no key, or ``other`` beside a kind.
    """
    known = KEYS[item.unit]
    unknown = sorted(set(keys) - set(known))
    if unknown or not keys:
        shown = ", ".join(f"{k} {v}" for k, v in known.items())
        raise UsageError(f"no label on {' '.join(unknown) or 'an empty line'}", hint=shown)
    labels = tuple(dict.fromkeys(known[k] for k in keys))
    if len(labels) > 1 and (item.unit != "turn" or "other" in labels):
        raise UsageError("these labels exclude each other", hint=", ".join(labels))
    turn = item.unit == "turn"
    return Answer(
        id=item.id, unit=item.unit, session=item.session, step=item.step, call=item.call, labels=labels,
        annotator=annotator, probability=item.probability, drawn=item.drawn, turn=item.shown if turn else "",
        before=item.before if turn else "", source=item.session if turn else "",
        label=float(labels == ("pass",)) if item.unit == "output" else None,
    )  # fmt: skip


def save(path: Path, given: Answer) -> None:
    """Append one answer, on disk before it returns. A last line that was torn by a crash is cut off first.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with path.open("ab+") as file:
            file.seek(0)
            whole = file.read()
            if whole and not whole.endswith(b"\n"):
                file.truncate(whole.rfind(b"\n") + 1)
            file.write(msgspec.json.encode(given) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        hint = "name another file with --out"
        raise InputError(f"the labels cannot be written: {error.strerror}", file=str(path), hint=hint) from error


def ask(
    waiting: Sequence[Item], path: Path, annotator: str, show: Callable[[Item, int, int], None], key: Callable[[], str],
    say: Callable[[str], None],
) -> int:  # fmt: skip
    """Show each unanswered item, read keys, save. ``s`` skips, ``q`` or the end of input stops. Returns how many
    were answered now."""
    done = {a.id for a in read_answers(path) if a.annotator == annotator}
    left = [item for item in waiting if item.id not in done]
    given = 0
    for place, item in enumerate(left, 1):
        show(item, place, len(left))
        while True:
            try:
                pressed = key().strip().lower().replace(" ", "")
            except EOFError:
                return given
            if pressed == "q":
                return given
            if pressed == "s":
                break
            try:
                save(path, answer(item, pressed, annotator))
            except UsageError as error:
                say(f"{error.message}: {error.hint}")
                continue
            given += 1
            break
    return given


def answers_of(path: Path) -> list[Answer]:
    """Answers of a label file that must be there.

    Raises:
        InputError: it is not there, holds no answers, or a line is no answer.
    """
    if not path.is_file():
        raise InputError("there is no such label file", file=str(path), hint="written by 'seatrial label'")
    found = read_answers(path)
    if not found:
        raise InputError("there are no answers in this file", file=str(path), hint="written by 'seatrial label'")
    return found


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two annotators on the items that both labelled: kappa by label (present or not), and the share of items with
    the same labels."""

    annotators: tuple[str, str]
    n: int
    same: float
    kappa: dict[str, Coefficient | None]


def agreement(first: Sequence[Answer], second: Sequence[Answer], *, level: float = 0.95) -> Agreement:
    """How two annotators agree.

    Raises:
        EvidenceError: they share no item.
    """
    a, b = ({x.id: frozenset(x.labels) for x in part} for part in (first, second))
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise EvidenceError("the annotators share no item", hint="let both label the same queue (same --seed and --n)")
    names = sorted({label for i in shared for label in a[i] | b[i]})
    kappa: dict[str, Coefficient | None] = {
        name: cohen_kappa([name in a[i] for i in shared], [name in b[i] for i in shared], level=level) for name in names
    }
    return Agreement(
        annotators=(first[0].annotator, second[0].annotator),
        n=len(shared),
        same=sum(a[i] == b[i] for i in shared) / len(shared),
        kappa=kappa,
    )


def versions() -> dict[str, str]:
    """Detector versions behind the uncertainty."""
    return signals.versions()
