"""Anthropic Messages logs to traces: requests with their responses, in JSON or JSON lines.

An entry is a request (``model``, ``system``, ``messages``), a response (``"type": "message"``), both together
(``request`` and ``response``, or ``body``), or a bare array of messages. Each request repeats the conversation
so far: entries that go on with one are united with it, so that no turn is there twice. Built to the public
specification of the Messages API; no real log was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.canon import content_hash
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none, totals
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import first_keys, kind
from seatrial.ingest.messages import Conversation, role_of, whole
from seatrial.ingest.values import Value, digest_of, values
from seatrial.records import Agent, ReadLog, Totals, Trace

_SHAPE = "Anthropic messages: a request with messages, a response, or both"
_ROLE = re.compile(rb'"role"\s*:\s*"(?:user|assistant)"')
_MARKS = (
    re.compile(rb'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking|server_tool_use)"'),
    re.compile(rb'"(?:stop_reason|input_schema|cache_control|anthropic_version|cache_read_input_tokens)"'),
)
_OTHERS = (b'"parentUuid"', b'"sessionId"', b'"mini_version"', b'"ATIF-v', b'"simulations"', b'"trajectory_format"')
_ENTRY_KEYS = frozenset({"messages", "request", "response", "body", "role"})
_OPEN = 64
"""Conversations that may go on, at a time: the one that was quiet longest is given out first."""


class AnthropicMessages:
    """Reads Anthropic Messages logs: one trace per conversation."""

    name = "anthropic-messages"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Likely when there are messages with roles, and blocks or fields that only this API has."""
        start = head.lstrip()[:1]
        if start not in (b"{", b"[") or not _ROLE.search(head) or any(mark in head for mark in _OTHERS):
            return 0.0
        found = first_keys(head)
        if not found & _ENTRY_KEYS or "choices" in found or (b'"tool_calls"' in head and b'"function"' in head):
            return 0.0
        if found & {"uuid", "data", "payload", "info", "history"}:
            return 0.0
        marks = sum(mark.search(head) is not None for mark in _MARKS)
        return 0.8 if marks or ("system" in found and "max_tokens" in found) else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation, in the order in which they end.

        Raises:
            FormatError: one JSON text that does not parse.
        """
        ids, open_ones = Ids(), dict[str, _Talk]()
        for value in self._entries(path, log):
            entry = _entry(value.value)
            if entry is None:
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            log.kept(value.size, "entry")
            talk = _continued(entry, open_ones) or _Talk(value)
            talk.take(entry, value, log)
            open_ones[talk.mark] = talk
            if len(open_ones) > _OPEN:
                yield self._trace(path, open_ones.pop(next(iter(open_ones))), ids)
        for talk in open_ones.values():
            yield self._trace(path, talk, ids)

    def _entries(self, path: Path, log: ReadLog) -> Iterator[Value]:
        """The entries of a file; an array or lines of bare messages are one entry."""
        loose: list[Any] = []
        first: Value | None = None
        for value in values(path, log, _SHAPE):
            if role_of(value.value) is not None and not _is_response(value.value):
                first = first or value
                loose.append(value.value)
                log.kept(value.size, "message")
            else:
                yield value
        if first is not None:
            size = path.stat().st_size
            yield Value(loose, 0, 0, first.line, digest_of(path, 0, size))

    def _trace(self, path: Path, talk: _Talk, ids: Ids) -> Trace:
        steps = talk.conversation.steps
        provenance = talk.first.provenance(self, path)
        models = [step.model for step in steps if step.model is not None]
        tools = talk.extra.get("tools")
        listed = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
        return Trace(
            id=ids(f"messages~{talk.first.hash[:16]}"),
            agent=Agent(name="anthropic-messages", tools=tuple(tools) if listed and tools else None),
            model=models[0] if models else text_or_none(talk.extra.get("model")),
            user=text_or_none(an_object(talk.extra.get("metadata")).get("user_id")),
            steps=steps,
            totals=Totals(usage=totals(steps).usage),
            provenance=provenance,
            extra=rest(talk.extra, "model", *(("tools",) if listed else ())),
        )


class _Entry(NamedTuple):
    """One entry: the messages before the response, the response, and what else the entry has."""

    messages: list[Any]
    response: dict[str, Any] | None
    extra: dict[str, Any]


class _Talk:
    """A conversation as far as it has gone. `mark` is the hash of all its messages."""

    def __init__(self, first: Value) -> None:
        self.first = first
        self.conversation = Conversation()
        self.mark = ""
        self.taken = 0
        self.extra: dict[str, Any] = {}

    def take(self, entry: _Entry, value: Value, log: ReadLog) -> None:
        """Take in the messages that are new, and the response."""
        system = entry.extra.get("system")
        if not self.taken and system:
            self.conversation.add({"role": "system", "content": system})
        for message in entry.messages[self.taken :]:
            self._add(message, value, log)
        if entry.response is not None:
            self._add(entry.response, value, log)
        self.extra |= rest(entry.extra, "system")

    def _add(self, message: Any, value: Value, log: ReadLog) -> None:
        self.mark = _after(self.mark, message)
        self.taken += 1
        why = self.conversation.add(_as_chat(message) if isinstance(message, dict) else message)
        if why is not None:
            log.note(value.line, f"a message is kept in extra only: {why}")
            self.extra.setdefault("unread", []).append(message)


def _continued(entry: _Entry, open_ones: dict[str, _Talk]) -> _Talk | None:
    """The open conversation that this entry's messages begin with: the longest one. It is taken out."""
    mark, found = "", None
    for message in entry.messages:
        mark = _after(mark, message)
        if mark in open_ones:
            found = mark
    return open_ones.pop(found) if found is not None else None


def _after(mark: str, message: Any) -> str:
    """The hash of a conversation with one more message, whatever else than role and words it carries."""
    body = an_object(message)
    content = body.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if isinstance(blocks, list):
        blocks = [rest(b, "cache_control", "citations") if isinstance(b, dict) else b for b in blocks]
    return content_hash([mark, body.get("role"), blocks])


def _is_response(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "message" and value.get("role") == "assistant"


def _entry(value: Any) -> _Entry | None:
    """An entry as request and response, whatever it came wrapped in; None when it is neither."""
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        return None
    if _is_response(value):
        return _Entry([], value, {})
    body = dict(value)
    for wrapper in ("request", "body", "params"):
        inner = body.get(wrapper)
        if isinstance(inner, dict) and "messages" not in body:
            inner = inner["body"] if isinstance(inner.get("body"), dict) else inner
            if "messages" in inner:
                body = {name: member for name, member in body.items() if name != wrapper} | inner
    response = body.get("response")
    for name in ("body", "message"):
        inner = an_object(response).get(name)
        if _is_response(inner):
            response = inner
    if _is_response(response):
        body.pop("response")
    else:
        response = None
    messages = body.get("messages")
    if not isinstance(messages, list) or (all(role_of(m) is None for m in messages) and response is None):
        return None
    return _Entry(messages, response, rest(body, "messages"))


def _as_chat(message: dict[str, Any]) -> dict[str, Any]:
    """A message with its thinking and usage where the shared reader of chat messages looks for them."""
    made = rest(message, "usage")
    if made.get("type") == "message":
        del made["type"]
    blocks = message.get("content")
    thoughts = [
        block["thinking"]
        for block in a_list(blocks)
        if isinstance(block, dict) and block.get("type") == "thinking" and isinstance(block.get("thinking"), str)
    ]
    if thoughts:
        made["reasoning_content"] = "\n\n".join(thoughts)
        made["content"] = [b for b in a_list(blocks) if an_object(b).get("type") != "thinking"]
    usage = message.get("usage")
    if isinstance(usage, dict):
        made["usage"] = _usage(usage)
    return made


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Usage with all that was read as input: what came from and went into the cache is recorded apart."""
    counts = [whole(usage.get(f"{name}input_tokens")) for name in ("", "cache_read_", "cache_creation_")]
    known = [n for n in counts if n is not None]
    made = rest(usage, "input_tokens", "cache_read_input_tokens")
    if known:
        made["input_tokens"] = sum(known)
    if counts[1] is not None:
        made["input_tokens_details"] = {"cached_tokens": counts[1]}
    return made


READER = AnthropicMessages()
