"""The reviewed lexicon as records: cues, context weights and biases, checked as they are read."""

from __future__ import annotations

import math
import re
import tomllib
from functools import lru_cache
from importlib import resources
from typing import Literal, get_args

import msgspec

from seatrial.errors import InputError

Where = Literal["any", "start", "sentence", "whole", "end"]
KINDS = ("confirmation", "accept_implicit", "praise", "complaint", "correction", "retry_request", "escalation")
CONTEXTS = (
    "agent-asks",
    "agent-reports",
    "agrees-to-ship",
    "interrupted",
    "refused",
    "answers-no",
    "is-question",
    "short",
    "long",
    "shouting",
    "pasted",
    "exclaims",
)
_CLASSES = {"w": r"0-9a-z_\x80-\U0010ffff", "s": r" \t\n\r\f\v", "d": "0-9"}
r"""What ``\w``, ``\s`` and ``\d`` mean. `matching.normalise` leaves no other letters, and no other non-ASCII
characters than letters and digits, so one range stands for all of Unicode: the automata stay small, and RE2 (whose
own classes are ASCII) and `re` agree."""


def portable(pattern: str, *, for_re2: bool) -> str:
    """A pattern whose ``\\w``, ``\\s``, ``\\d`` and ``$`` (the very end) mean the same in RE2 and in `re`.

    Raises:
        re.error: an escape that the two read differently, such as ``\\b``.
    """
    out = []
    inside = False
    i = 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\" and i + 1 < len(pattern):
            name = pattern[i + 1]
            if name in _CLASSES:
                body = _CLASSES[name]
                if for_re2:
                    body = body.replace(r"\U0010ffff", r"\x{10ffff}")
                out.append(body if inside else f"[{body}]")
            elif name.isalnum() and name not in "ntrfvx":
                raise re.error(f"\\{name} is not portable", pattern, i)
            else:
                out.append(pattern[i : i + 2])
            i += 2
            continue
        inside = char == "[" or (inside and char != "]")
        out.append(r"\Z" if char == "$" and not inside and not for_re2 else char)
        i += 1
    return "".join(out)


class Cue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family of phrases with its points of log-odds by kind (positive for, negative against)."""

    id: str
    patterns: tuple[str, ...]
    weights: dict[str, float]
    where: Where = "any"
    text: Literal["said", "raw"] = "said"
    bound: bool = True

    def alternation(self) -> str:
        """All phrases as one group, in the syntax that RE2 and `re` share."""
        return "(?:" + "|".join(self.patterns) + ")"


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact about the turn or the agent's turn before it, with its points."""

    id: str
    weights: dict[str, float]


class Lexicon(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole reviewed file. `openers` is skipped before ``start``, ``sentence`` and ``whole`` cues."""

    version: str
    openers: str
    bias: dict[str, float]
    cue: tuple[Cue, ...]
    context: tuple[Context, ...] = ()

    def context_weights(self, name: str) -> dict[str, float]:
        """A context's points by kind; empty if the lexicon does not name it."""
        return next((c.weights for c in self.context if c.id == name), {})

    def re2_pattern(self, cue: Cue) -> str:
        """The cue with its position and letter boundaries, for RE2 (whose own word boundary is ASCII-only)."""
        return portable(self.searched(cue), for_re2=True)

    def searched(self, cue: Cue) -> str:
        """The cue with its position and letter boundaries, in the lexicon's own syntax."""
        left, right = (r"(?:^|[^\w])", r"(?:$|[^\w])") if cue.bound else ("", "")
        return self._placed(cue, left, right)

    def python_pattern(self, cue: Cue) -> re.Pattern[str]:
        """The same for `re`: the oracle, and what finds the place of the evidence (group 1)."""
        left, right = (r"(?<!\w)", r"(?!\w)") if cue.bound else ("", "")
        return re.compile(portable(self._placed(cue, left, right), for_re2=False))

    def _placed(self, cue: Cue, left: str, right: str) -> str:
        body = "(" + cue.alternation() + ")"
        lead = r"\s*" + self.openers
        match cue.where:
            case "start":
                return f"^{lead}{body}{right}"
            case "sentence":
                return rf"(?:^|[.!?\n;:]|\s-)[\s*\x1a)-]*{self.openers}{body}{right}"
            case "whole":
                return rf"^{lead}{body}[\s.!?\x01\x1a]*$"
            case "end":
                return rf"{left}{body}[\s.!?\x01\x1a]*$"
            case _:
                return f"{left}{body}{right}"


def parse(text: str, *, file: str | None = None) -> Lexicon:
    """Read a lexicon.

    Raises:
        InputError: not TOML, an unknown key, kind, place or context, or a pattern that does not compile.
    """
    lexicon = _read(text, file)
    for cue in lexicon.cue:
        try:
            lexicon.python_pattern(cue)
        except re.error as error:
            raise InputError(f"cue {cue.id!r}: {error}", hint="use syntax that RE2 and re share", file=file) from error
    return lexicon


def _read(text: str, file: str | None) -> Lexicon:
    """`parse` without compiling the patterns, which takes seconds."""
    try:
        raw = tomllib.loads(text)
        openers = raw.pop("openers", None) or ""
        lexicon = msgspec.convert({**raw, "openers": openers}, Lexicon)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"the lexicon cannot be read: {error}", hint="see signals/lexicon.toml", file=file) from error
    seen: set[str] = set()
    parts: list[Cue | Context] = [*lexicon.cue, *lexicon.context]
    for part in parts:
        unknown = set(part.weights) - set(KINDS)
        if unknown or part.id in seen or not all(math.isfinite(w) for w in part.weights.values()):
            what = f"unknown kinds {sorted(unknown)}" if unknown else "a repeated id or a weight that is not finite"
            raise InputError(f"lexicon entry {part.id!r}: {what}", hint=f"kinds are {', '.join(KINDS)}", file=file)
        seen.add(part.id)
    for context in lexicon.context:
        if context.id not in CONTEXTS:
            raise InputError(f"unknown context {context.id!r}", hint=f"contexts are {', '.join(CONTEXTS)}", file=file)
    return lexicon


@lru_cache(maxsize=1)
def builtin() -> Lexicon:
    """The lexicon that ships with seatrial."""
    return _read(resources.files("seatrial.signals").joinpath("lexicon.toml").read_text("utf-8"), "lexicon.toml")


WHERES: tuple[str, ...] = get_args(Where)
