"""A judge's reply to verdicts, or to the reason why it is none: strict, because agents write into what judges read.

A reply counts only when the whole of it is one JSON object of exactly the expected shape with the id of this very
question. Anything else is unparseable, and unparseable is unscored: never a pass, never a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

MOST_CHARACTERS = 100_000
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.S)


class Answer(NamedTuple):
    """One criterion's verdict with the judge's reason."""

    met: bool
    because: str


class Choice(NamedTuple):
    """A pair's verdict in terms of the order in which it was shown."""

    choice: Literal["first", "second", "tie"]
    because: str


class Unparseable(NamedTuple):
    """Why a reply is no verdict."""

    why: str


class _Refused(Exception):
    """The reply is no verdict; the message says why."""


def parse_verdicts(text: str, nonce: str, criteria: Sequence[str]) -> dict[str, Answer] | Unparseable:
    """One answer per criterion: all of them, each once, and no other."""
    try:
        body = _object(text, nonce, {"id", "verdicts"})
        listed = body["verdicts"]
        if not isinstance(listed, list):
            raise _Refused("verdicts is no list")
        found: dict[str, Answer] = {}
        for entry in listed:
            if not isinstance(entry, dict) or not {"criterion", "met"} <= entry.keys() <= {
                "criterion",
                "met",
                "because",
            }:
                raise _Refused("an entry has other fields than criterion, met and because")
            name = entry["criterion"]
            if not isinstance(name, str) or name not in criteria:
                raise _Refused("an entry names no criterion of the rubric")
            if name in found:
                raise _Refused(f"criterion {name} is answered twice")
            if not isinstance(entry["met"], bool):
                raise _Refused(f"criterion {name}: met is neither true nor false")
            found[name] = Answer(entry["met"], _reason(entry))
        absent = [c for c in criteria if c not in found]
        if absent:
            raise _Refused(f"criterion {absent[0]} is not answered")
    except _Refused as refused:
        return Unparseable(str(refused))
    return found


def parse_choice(text: str, nonce: str) -> Choice | Unparseable:
    """The choice between two outputs."""
    try:
        body = _object(text, nonce, {"id", "choice"})
        choice = body["choice"]
        if choice not in ("first", "second", "tie"):
            raise _Refused("choice is neither first, second nor tie")
        return Choice(choice, _reason(body))
    except _Refused as refused:
        return Unparseable(str(refused))


def _reason(body: dict[str, Any]) -> str:
    because = body.get("because", "")
    if not isinstance(because, str):
        raise _Refused("because is no text")
    return because


def _object(text: str, nonce: str, needed: set[str]) -> dict[str, Any]:
    if len(text) > MOST_CHARACTERS:
        raise _Refused(f"the reply has {len(text)} characters")
    stripped = text.strip(" \t\r\n")
    fenced = _FENCE.match(stripped)
    try:
        body = json.loads(fenced.group(1) if fenced else stripped, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _Refused("the reply is not one JSON object and nothing else") from None
    if not isinstance(body, dict):
        raise _Refused("the reply is no JSON object")
    if not needed <= body.keys() <= needed | ({"because"} if "choice" in needed else set()):
        raise _Refused(f"the object has other fields than {', '.join(sorted(needed))}")
    if body["id"] != nonce:
        raise _Refused("the id is not that of this question")
    return body


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Refused("a field occurs twice")
    return made


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is no JSON")
