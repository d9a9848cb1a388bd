"""Redaction: personal data and secrets give way to typed placeholders such as ``<EMAIL_1>``.

A placeholder's number is that of the value's first appearance in the trace, so equal values stay
recognisably equal. Ids, model and tool names, times and numbers are never altered. What this finds, and how
often it errs, is measured in ``tests/quality/privacy``; METHODS has no section on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import canonical
from seatrial.privacy.patterns import GATE, PLACEHOLDER, RULES, Rule
from seatrial.records.trace import Step, ToolCall, ToolResult, Trace, Usage

VERSION = "1"
"""Bumped when the same text would be redacted differently."""

_SHORTEST = 6
_SECRET_KEY = re.compile(
    r"(?i)(?:^|[_-]|[a-z](?=[A-Z]))(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token"
    r"|refresh[_-]?token|client[_-]?secret|private[_-]?key)$"
)
_PHONE_KEY = re.compile(r"(?i)(?:^|[_-])(?:phone|mobile|tel|telephone|fax)(?:[_-]?(?:number|no))?$")
_PHONE_VALUE = re.compile(r"\+?[0-9][0-9 ().-]{5,18}[0-9]")
_SETTLED = re.compile(r"<[A-Z]+_[0-9]+>")
_PERSONAL_KEYS: dict[str, str] = {}
_BATCH_BYTES = 8192
SEPARATOR = b"\0"
_NOT_A_SECRET = frozenset({"null", "none", "true", "false", "string", "password", "secret", "redacted", "required"})


class Redactor:
    """Redacts the texts of one trace; `counts` says how many of each type were replaced.

    `reserved` maps a type to the highest number that stands in the source as a literal placeholder, so that
    no new placeholder takes a literal's name.
    """

    def __init__(self, reserved: dict[str, int] | None = None) -> None:
        self.counts: dict[str, int] = {}
        self._next = dict(reserved or {})
        self._names: dict[tuple[str, bytes], bytes] = {}

    def text(self, text: str) -> str:
        """The text with placeholders; the same object when there is nothing to replace."""
        return self.all({text: 1}).get(text, text)

    def value(self, value: Any, key: str = "") -> Any:
        """A JSON value with its strings and keys redacted. `key` is the name that it stands under."""
        texts: dict[str, int] = {}
        _Walk(lambda text: _note(texts, text), lambda kind, text: text).value(value, key)
        changed = self.all(texts)
        return _Walk(lambda text: changed.get(text, text), self.whole).value(value, key)

    def whole(self, kind: str, text: str) -> str:
        """The placeholder for a text that is personal as a whole."""
        return self._name(kind, text.encode("utf-8", "surrogatepass")).decode()

    def all(self, texts: Mapping[str, int]) -> dict[str, str]:
        """Of texts and how often each occurs, those that change and what they become."""
        changed: dict[str, str] = {}
        for batch in _batches(texts):
            spans, left_out = _spans(SEPARATOR.join(data for _, data in batch))
            at = begin = 0
            for text, data in batch:
                own = []
                while at < len(spans) and spans[at][0] < begin + len(data):
                    start, end, kind = spans[at]
                    own.append((start - begin, end - begin, kind))
                    at += 1
                if own:
                    out = self._settle(data, own, left_out, texts[text])
                    changed[text] = out.decode("utf-8", "surrogatepass")
                begin += len(data) + len(SEPARATOR)
        return changed

    def _settle(self, buf: bytes, spans: list[tuple[int, int, str]], again: bool, times: int) -> bytes:
        buf = self._replace(buf, spans, times)
        # A replacement can make room for a candidate that its neighbour kept out: then look once more.
        while again:
            spans, left_out = _spans(buf)
            if spans:
                buf = self._replace(buf, spans, times)
            again = bool(spans) and left_out
        return buf

    def _name(self, kind: str, found: bytes, times: int = 1) -> bytes:
        self.counts[kind] = self.counts.get(kind, 0) + times
        name = self._names.get((kind, found))
        if name is None:
            self._next[kind] = number = self._next.get(kind, 0) + 1
            name = self._names[kind, found] = b"<%s_%d>" % (kind.encode(), number)
        return name

    def _replace(self, buf: bytes, spans: list[tuple[int, int, str]], times: int) -> bytes:
        out, last = [], 0
        for start, end, kind in spans:
            out += [buf[last:start], self._name(kind, buf[start:end], times)]
            last = end
        return b"".join([*out, buf[last:]])


def _note(texts: dict[str, int], text: str) -> str:
    if len(text) >= _SHORTEST:
        texts[text] = texts.get(text, 0) + 1
    return text


def _batches(texts: Mapping[str, int]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    size = 0
    for text in texts:
        if len(text) < _SHORTEST:
            continue
        data = text.encode("utf-8", "surrogatepass")
        batch.append((text, data))
        size += len(data)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Walk:
    """Goes through JSON values: `visit` gets every text and key, `whole` the texts that their key gives away."""

    def __init__(self, visit: Callable[[str], str], whole: Callable[[str, str], str]) -> None:
        self.visit = visit
        self._whole = whole

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            kind = _kind_by_key(key, value) if key else None
            return self.visit(value) if kind is None else self._whole(kind, value)
        if isinstance(value, dict):
            return {
                self.visit(k) if isinstance(k, str) else k: self.value(v, k if isinstance(k, str) else "")
                for k, v in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(v, key) for v in value]
        return value


def _kind_by_key(key: str, value: str) -> str | None:
    personal = _PERSONAL_KEYS.get(key)
    if personal is None:
        personal = "SECRET" if _SECRET_KEY.search(key) else "PHONE" if _PHONE_KEY.search(key) else ""
        if len(_PERSONAL_KEYS) < 10_000:
            _PERSONAL_KEYS[key] = personal
    if personal == "SECRET" and _is_secret_value(value):
        return "SECRET"
    return "PHONE" if personal == "PHONE" and _PHONE_VALUE.fullmatch(value.strip()) else None


def _is_secret_value(value: str) -> bool:
    bare = value.strip()
    if len(bare) < 4 or "\n" in bare or " " in bare or bare.lower() in _NOT_A_SECRET or _SETTLED.search(bare):
        return False
    return not bare.startswith(("$", "%", "{", "process.env", "os.environ"))


def _spans(buf: bytes) -> tuple[list[tuple[int, int, str]], bool]:
    """What to replace, in order, none overlapping (an earlier rule wins); and whether a candidate was left out
    or cut, so that what is around the placeholders must be looked at again."""
    taken: list[tuple[int, int, str]] = []
    left_out = False
    open_gate = GATE.search(buf) is not None
    for rule in RULES:
        if not any(n in buf for n in rule.needs) if rule.needs else rule.gated and not open_gate:
            continue
        found, cut = _of_rule(buf, rule)
        if found:
            together = _merge(taken, found)
            cut = cut or len(together) < len(taken) + len(found)
            taken = together
        left_out = left_out or cut
    return taken, left_out


def _merge(taken: list[tuple[int, int, str]], found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Both lists, each sorted and free of overlaps, as one; what overlaps `taken` is left out of `found`."""
    if not taken:
        return found
    out: list[tuple[int, int, str]] = []
    at = 0
    for span in found:
        while at < len(taken) and taken[at][1] <= span[0]:
            out.append(taken[at])
            at += 1
        if at == len(taken) or span[1] <= taken[at][0]:
            out.append(span)
    return out + taken[at:]


def _of_rule(buf: bytes, rule: Rule) -> tuple[list[tuple[int, int, str]], bool]:
    out, cut = [], False
    for match in rule.pattern.finditer(buf):
        span = rule.check(buf, match)
        if span is not None:
            out.append((*span, rule.type))
        cut = cut or span != match.span()
    return out, cut


def reserved(data: bytes) -> dict[str, int]:
    """The highest number of each type among literal placeholders in `data`."""
    out: dict[str, int] = {}
    if b"_" in data and b"<" in data:
        for match in PLACEHOLDER.finditer(data):
            kind = match.group(1).decode()
            out[kind] = max(out.get(kind, 0), int(match.group(2)))
    return out


def redact_text(text: str) -> tuple[str, dict[str, int]]:
    """One text on its own, redacted, and how many of each type were replaced."""
    redactor = Redactor(reserved(text.encode("utf-8", "surrogatepass")))
    return redactor.text(text), redactor.counts


def redact(trace: Trace) -> tuple[Trace, dict[str, int]]:
    """The trace redacted, and how many of each type were replaced.

    Every text is covered: step texts, reasoning, arguments (keys too), results, tool descriptions and all
    `extra`. Structural fields (ids, names, models, times, the task, the assignment, provenance but for its
    `extra`) and the user, who is pseudonymised instead, are the same as before. Idempotent.

    Raises:
        TypeError, OverflowError, UnicodeEncodeError: the trace holds something that JSON cannot.
    """
    work = Redactor(reserved(canonical(trace)))
    texts: dict[str, int] = {}
    found: list[str] = []

    def given_away(kind: str, text: str) -> str:
        found.append(kind)
        return text

    _rebuild(trace, _Walk(lambda text: _note(texts, text), given_away))
    changed = work.all(texts)
    if not changed and not found:
        return trace, {}
    return _rebuild(trace, _Walk(lambda text: changed.get(text, text), work.whole)), work.counts


def _rebuild(trace: Trace, walk: _Walk) -> Trace:
    agent, outcome, value = trace.agent, trace.outcome, walk.value
    tools = None if agent.tools is None else tuple(_tool(walk, t) for t in agent.tools)
    return msgspec.structs.replace(
        trace,
        agent=msgspec.structs.replace(agent, tools=tools, extra=value(agent.extra)),
        provenance=msgspec.structs.replace(trace.provenance, extra=value(trace.provenance.extra)),
        steps=tuple(_step(walk, s) for s in trace.steps),
        totals=msgspec.structs.replace(
            trace.totals, usage=_usage(walk, trace.totals.usage), extra=value(trace.totals.extra)
        ),
        outcome=None if outcome is None else msgspec.structs.replace(outcome, extra=value(outcome.extra)),
        extra=value(trace.extra),
    )


def _tool(walk: _Walk, tool: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = walk.value(tool)
    if "name" in tool:
        out["name"] = tool["name"]
    return out


def _step(walk: _Walk, step: Step) -> Step:
    return msgspec.structs.replace(
        step,
        text=walk.visit(step.text),
        reasoning=None if step.reasoning is None else walk.visit(step.reasoning),
        tool_calls=tuple(_call(walk, c) for c in step.tool_calls),
        results=tuple(_result(walk, r) for r in step.results),
        usage=None if step.usage is None else _usage(walk, step.usage),
        extra=walk.value(step.extra),
    )


def _call(walk: _Walk, call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(
        call,
        arguments=walk.value(call.arguments),
        raw_arguments=None if call.raw_arguments is None else walk.visit(call.raw_arguments),
        extra=walk.value(call.extra),
    )


def _result(walk: _Walk, result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(result, text=walk.visit(result.text), extra=walk.value(result.extra))


def _usage(walk: _Walk, usage: Usage) -> Usage:
    return msgspec.structs.replace(usage, extra=walk.value(usage.extra)) if usage.extra else usage


def mask_home(path: str) -> str:
    """A file's path as given, with the home folder masked: ``~/...`` for one's own, ``<HOME>/...`` for others'."""
    home = str(Path.home())
    if home not in ("/", "") and (path == home or path.startswith((home + "/", home + "\\"))):
        path = "~" + path[len(home) :]
    buf = path.encode("utf-8", "surrogatepass")
    spans = [s for rule in RULES if rule.type == "HOME" for s in _of_rule(buf, rule)[0]]
    out, last = [], 0
    for start, end, _ in sorted(spans):
        if start >= last:
            out += [buf[last:start], b"<HOME>"]
            last = end
    return b"".join([*out, buf[last:]]).decode("utf-8", "surrogatepass")


__all__ = ["VERSION", "Redactor", "mask_home", "redact", "redact_text", "reserved"]
