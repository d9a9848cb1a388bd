"""What makes a read relevant: above all that something which it alone returned is used later (METHODS 5, D2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from seatrial.dimensions.actions import Action
from seatrial.dimensions.observation import parsed

LEAST = 4
"""Characters of a value that says something by itself; ids may be shorter."""

_DISTINCT = re.compile(r"[^\s\"'`<>()\[\]{},;|=]{4,}")
_MARKED = re.compile(r"[\d@/_\\.:-]|(?<=[a-z])[A-Z]")
_ID = re.compile(r"(?:^|_)(?:id|key|number|ref)$|^ids$|[a-z]Id$", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:[.'-]\w+)*")
_PHRASE = 4
_ENDS = " \t.,:;!?*-\u2022#>"


class Use(NamedTuple):
    """Why a read is relevant. `value` is what ties it to the rest, `by` the position of the action that it serves
    (None: the final answer, or the request).

    `how`: ``used`` (what it returned is used), ``asked`` (it looks at what the request names), ``change`` (it looks at
    what a relevant write changes, before or after), ``expected`` (the task expects a call of this tool).
    """

    value: str
    by: int | None
    how: str = "used"


class Reading(NamedTuple):
    """What the relevance of reads is judged from.

    `candidates` are the positions of reads, `asked` the request, `answer` the last words, `named` further words that
    name what the request is about (of the intent specification), `around` maps a read to the write that changes what
    it shows. `expected` are the tools that the task expects to be called, as often as it names them.
    """

    actions: Sequence[Action]
    candidates: Collection[int]
    asked: str
    answer: str
    named: str = ""
    around: Mapping[int, int] = {}
    expected: Sequence[str] = ()


def relevant_reads(reading: Reading, relevant: Collection[int]) -> dict[int, Use]:
    """The reads that are relevant given the `relevant` writes, each with the reason, to a fixed point (METHODS 5).

    *Used*: a value that the read returned, absent from the request and from every earlier result, occurs in the
    arguments of a later relevant action or in the final answer; a read that feeds a relevant read is relevant, too.

    Beyond METHODS, because people call these relevant and no value of them is used: a read *asked* for, whose arguments
    name what the request names; and one that shows what a relevant write *changes*, to see it before or to check it
    after; and, where the task *expects* a tool more often than a read of it is relevant so far, the last calls of that
    tool, since a look on which a decision rests leaves no other mark. The same call with the same result once more is
    none of these. A look that would only repeat what such a read
    returned before the use is not needed for it. A value counts as returned only if the agent had not itself said it.
    """
    again = _repeats(reading.actions)
    found: dict[int, Use] = {}
    words = text_of(reading.asked + "\n" + reading.named)
    for a in reading.actions:
        if a.position not in reading.candidates or a.position in again:
            continue
        value = None if a.failed else _names(a.call.arguments, words)
        write = reading.around.get(a.position)
        if value is not None:
            found[a.position] = Use(value, None, "asked")
        elif write is not None and write in relevant:
            found[a.position] = Use(reading.actions[write].call.name, write, "change")
    found = _used(reading, relevant, found)
    wanted = _expected(reading, again, found)
    return _used(reading, relevant, {**found, **wanted}) if wanted else found


def _expected(reading: Reading, again: Collection[int], found: Mapping[int, Use]) -> dict[int, Use]:
    """Looks that the task expects and that nothing else makes relevant: the last ones, because agents look around
    first and at what they need last."""
    out: dict[int, Use] = {}
    for tool in dict.fromkeys(reading.expected):
        calls = [a.position for a in reading.actions if a.call.name == tool and a.position in reading.candidates]
        short = reading.expected.count(tool) - sum(p in found for p in calls)
        open_ = [p for p in calls if p not in found and p not in again and not reading.actions[p].failed]
        out.update({p: Use(tool, None, "expected") for p in open_[::-1][: max(0, short)]})
    return out


def _used(reading: Reading, relevant: Collection[int], found: dict[int, Use]) -> dict[int, Use]:
    fresh = _fresh_values(reading)
    texts = {a.position: text_of(a.text) for a in reading.actions}
    said = {a.position: text_of(_said(a)) for a in reading.actions}
    answer = text_of(reading.answer)
    while True:
        grown = False
        users = [(p, said[p]) for p in said if p in relevant or p in found]
        users.append((len(reading.actions), answer))
        for position, values in fresh.items():
            if position in found:
                continue
            for user, text in users:
                if user <= position:
                    continue
                kept = [texts[p] for p in found if position < p < user]
                value = next((v for v in values if occurs(v, text) and not any(occurs(v, k) for k in kept)), None)
                if value is not None:
                    found[position] = Use(value, user if user < len(reading.actions) else None)
                    grown = True
                    break
        if not grown:
            return found


def _repeats(actions: Sequence[Action]) -> set[int]:
    """Positions of calls that were made before and had the same result."""
    seen: set[tuple[bytes, str]] = set()
    out = set()
    for a in actions:
        one = (a.key, a.text)
        if one in seen:
            out.add(a.position)
        seen.add(one)
    return out


def _names(arguments: Mapping[str, Any], words: Text) -> str | None:
    """A value of the arguments that the request names; None where it names none."""
    for name, value in arguments.items():
        if isinstance(value, bool) or value is None:
            continue
        for text in _texts(value):
            whole = " ".join(text.split())
            if (len(whole) >= LEAST or (whole and _ID.search(name))) and _stands(whole.casefold(), words.folded):
                return whole
            for word in _DISTINCT.findall(text):
                plain: str = word.strip(_ENDS)
                if len(plain) >= LEAST and _MARKED.search(plain) and occurs(plain, words):
                    return plain
    return None


def _fresh_values(reading: Reading) -> dict[int, tuple[str, ...]]:
    """By position, what each candidate returned that is said later and that nobody had said or returned before, the
    agent included. What is said later is short, so it is looked at first: most values end there."""
    later = text_of(reading.answer)
    said_later: dict[int, list[str]] = {}
    for a in reversed(reading.actions):
        if a.executed and a.position in reading.candidates:
            said_later[a.position] = [v for v in values_of(a.text) if occurs(v, later)]
        later += text_of(_said(a))
    known = text_of(reading.asked)
    out: dict[int, tuple[str, ...]] = {}
    for a in reading.actions:
        known += text_of(_said(a))
        if said_later.get(a.position):
            new = [v for v in said_later[a.position] if not occurs(v, known)]
            out[a.position] = tuple(sorted(new, key=lambda v: (-len(v), v)))
        known += text_of(a.text)
    return out


def values_of(text: str) -> set[str]:
    """The values in a result: leaves where it is JSON (whole or by line), else its lines; in either, marked words
    (with a digit, an @, a path's signs or an inner capital) and phrases of four words. Runs of space become one, and
    case is kept: it matters for single words (see `occurs`)."""
    found: set[str] = set()
    whole = parsed(text)
    if whole is not None:
        _leaves(whole, "", found)
        return found
    for line in text.split("\n"):
        value = parsed(line)
        if value is not None:
            _leaves(value, "", found)
        else:
            _prose(line, found)
    return found


def _leaves(value: Any, name: str, found: set[str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _leaves(item, str(key), found)
    elif isinstance(value, list):
        for item in value:
            _leaves(item, name, found)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, str):
        if _ID.search(name) and value.strip():
            found.add(" ".join(value.split()))
        for line in value.split("\n"):
            _prose(line, found)
    else:
        plain = f"{value}"
        if len(plain) >= LEAST or _ID.search(name):
            found.add(plain)


def _prose(line: str, found: set[str]) -> None:
    whole = " ".join(line.split()).strip(_ENDS)
    if len(whole) >= LEAST:
        found.add(whole)
    for match in _DISTINCT.findall(line):
        word = match.strip(_ENDS)
        if len(word) >= LEAST and _MARKED.search(word):
            found.add(word)
    words = _WORD.findall(whole)
    for i in range(len(words) - _PHRASE + 1):
        found.add(" ".join(words[i : i + _PHRASE]))


class Text(NamedTuple):
    """A text in which values are looked for: with its runs of space made one, and the same with case folded."""

    plain: str
    folded: str

    def __add__(self, other: object) -> Text:
        assert isinstance(other, Text)
        return Text(self.plain + " \n " + other.plain, self.folded + " \n " + other.folded)


def text_of(text: str) -> Text:
    """The text, prepared."""
    plain = " ".join(text.split())
    return Text(plain, plain.casefold())


def occurs(value: str, text: Text) -> bool:
    """Whether `value` stands in `text`, not as a part of a longer word. Runs of space do not matter, and case only for
    a single plain word: "Newsletter" in a list of subjects is not what "a newsletter" was taken from."""
    if value.isalpha():
        return _stands(value, text.plain)
    return _stands(value.casefold(), text.folded)


def _stands(value: str, text: str) -> bool:
    at = text.find(value)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not (_joins(before, value[0]) or _joins(after, value[-1])):
            return True
        at = text.find(value, at + 1)
    return False


def _joins(beside: str, edge: str) -> bool:
    return bool(beside) and (beside.isalnum() or beside == "_") and (edge.isalnum() or edge == "_")


def _said(action: Action) -> str:
    return "\n".join(_texts(action.call.arguments))


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [t for item in value.values() for t in _texts(item)]
    if isinstance(value, list | tuple):
        return [t for item in value for t in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
