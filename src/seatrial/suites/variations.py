"""One task to many: other entities, other words, another order of information; the expected end is computed again.

A variation says what changes and checks itself: entities are replaced everywhere in the task, the expected state
included, so the end that counts as right follows from the task. What must not change (the metamorphic relation) is
that a right run of the task stays right under the same replacement.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seatrial.errors import UsageError
from seatrial.records import Task


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """How a task may be varied. `entities` maps words of the task to what may stand in their place; `phrasings` are
    templates of the input with ``{input}``; `shuffle` True: sentences of the input in another order."""

    entities: dict[str, list[str]] = {}
    phrasings: tuple[str, ...] = ("{input}",)
    shuffle: bool = False


def variations(task: Task, how: Variation, n: int, seed: int = 0) -> tuple[Task, ...]:
    """Up to `n` different variations of a task, the same for the same seed.

    Raises:
        UsageError: a word to replace does not occur in the task, a phrasing lacks ``{input}``, or the task's start
            or final check is a function, which no replacement of words can follow.
    """
    _check(task, how)
    draws = random.Random(f"variations:{seed}:{task.id}")
    out: dict[str, Task] = {}
    for _ in range(20 * n):
        if len(out) >= n:
            break
        swap = {old: draws.choice(new) for old, new in how.entities.items()}
        if len(set(swap.values())) < len(swap):
            continue  # two entities must stay two
        made = replaced(task, swap)
        text = _shuffled(made.input, draws) if how.shuffle else made.input
        text = draws.choice(how.phrasings).replace("{input}", text)
        if text == task.input and made.check_final == task.check_final:
            continue
        marker = msgspec.json.encode([text, made.setup, made.check_final]).decode()
        if marker not in out:
            extra = {**made.extra, "template": task.extra.get("template", task.id)}
            out[marker] = msgspec.structs.replace(
                made, id=f"{task.id}~{len(out) + 1}", input=text, source="synthetic", must_pass=False, extra=extra
            )
    return tuple(out.values())


def replaced(task: Task, swap: Mapping[str, str]) -> Task:
    """The task with words replaced everywhere: input, start state, reference, expected end. All at once, so that two
    entities can change places."""
    if not swap:
        return task
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(old)}(?!\w)" for old in sorted(swap, key=len, reverse=True)))

    def text(value: str) -> str:
        return pattern.sub(lambda m: swap[m.group()], value)

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, dict):
            return {text(k): walk(v) for k, v in value.items()}
        return [walk(v) for v in value] if isinstance(value, list) else value

    names = ("input", "setup", "check_final", "reference", "intent", "gates", "rubric")
    changed = {name: walk(getattr(task, name)) for name in names}
    history = ("from_session", "added", "approved_by", "template", "draft", "part")
    extra = {k: v if k in history else walk(v) for k, v in task.extra.items()}
    return msgspec.structs.replace(task, **changed, extra=extra)


def _check(task: Task, how: Variation) -> None:
    for name in ("setup", "check_final"):
        if how.entities and (callable(getattr(task, name)) or isinstance(getattr(task, name), str)):
            raise UsageError(
                f"{name} of task {task.id} is a function, and its expected end would not follow the new words",
                hint="give it as data, or vary the phrasing alone",
            )
    for old, new in how.entities.items():
        if not re.search(rf"(?<!\w){re.escape(old)}(?!\w)", task.input):
            raise UsageError(
                f"the input of task {task.id} does not mention {old!r} as a word",
                hint="words are replaced whole and as they are written; an agent that is not told of a change cannot "
                "follow it",
            )
        if not new:
            raise UsageError(f"there is nothing to put in the place of {old!r}")
    for phrasing in how.phrasings:
        if "{input}" not in phrasing:
            raise UsageError(f"the phrasing {phrasing!r} has no {{input}}")


def _shuffled(text: str, draws: random.Random) -> str:
    sentences: Sequence[str] = re.split(r"(?<=[.!?])\s+", text.strip())
    order = list(sentences)
    draws.shuffle(order)
    return " ".join(order)
