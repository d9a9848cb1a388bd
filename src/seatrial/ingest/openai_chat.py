"""OpenAI-style chat logs to traces: conversations in JSON or JSON lines.

A conversation is an object with ``messages`` (a request, a fine-tuning example, an application's own log), a
response object with ``choices``, a batch line with ``body`` or ``response.body``, or a bare array of messages.
A file holds one of them, an array of them, one per line, or one message per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import BadJSON, Item, first_keys, items, kind, line_of, loads, malformed
from seatrial.ingest.lines import BOM, lines, too_long
from seatrial.ingest.messages import Conversation, amount, role_of, total, usage_of, whole
from seatrial.ingest.times import moment
from seatrial.records import Agent, ReadLog, RecordedOutcome, Step, TaskRef, Totals, Trace

_SHAPE = "a conversation: an object with messages or choices, or an array of messages"
_ROLE = re.compile(rb'"role"\s*:\s*"(?:system|developer|user|assistant|tool|function|human)"')
_OTHERS = (b'"trajectory_format"', b'"mini_version"', b'"ATIF-v', b'"simulations"', b'"traj"', b'"sessionId"')
"""Marks of formats that keep OpenAI-style messages inside a shape of their own."""

_NOT_OURS = frozenset({"info", "events", "trajectory", "history", "eval", "samples", "type", "uuid"})
"""Keys beside `messages` that mark another format."""

_ID_FIELDS = ("id", "custom_id", "conversation_id", "session_id", "thread_id")
_VERDICTS = ("passed", "success")


class OpenAIChat:
    """Reads OpenAI-style chat logs: one trace per conversation."""

    name = "openai-chat"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Likely when there are messages with roles, and no mark of a format that only contains such messages."""
        start = head.lstrip()[:1]
        if start not in (b"{", b"[") or not _ROLE.search(head) or any(mark in head for mark in _OTHERS):
            return 0.0
        found = first_keys(head)
        if found & {"messages", "choices"} and not found & _NOT_OURS:
            return 0.7
        if "body" in found or ("response" in found and "custom_id" in found):
            return 0.6
        if "role" in found and found & {"content", "tool_calls"} and not found & {"type", "timestamp"}:
            return 0.5
        return 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation, in file order; a torn line loses that line.

        Raises:
            FormatError: the file is one JSON value (not lines) and does not parse.
        """
        ids = Ids()
        if _by_line(path):
            yield from self._lines(path, log, ids)
            return
        data = path.read_bytes()
        try:
            found = list(items(data)) if data.removeprefix(BOM).lstrip()[:1] == b"[" else [_whole_file(data)]
        except BadJSON as error:
            raise malformed(path, data, error, _SHAPE) from None
        if found and all(_is_message(item.value) for item in found):
            found = [Item(0, len(data), [item.value for item in found])]
        counted = 0
        for item in found:
            size = item.end - item.start
            counted += size
            yield from self._conversation(path, data, item, line_of(data, item.start), log, ids)
        log.kept(len(data) - counted, "framing")

    def _lines(self, path: Path, log: ReadLog, ids: Ids) -> Iterator[Trace]:
        loose: list[Any] = []
        start, loose_start, loose_bytes = 0, 0, 0
        with path.open("rb") as stream:
            for line in lines(stream):
                here, start = start, start + line.size
                if line.data is None:
                    log.skip(line.number, too_long(line.size), line.size)
                    continue
                if not line.data.strip():
                    log.kept(line.size, "blank line")
                    continue
                try:
                    value, repairs = loads(line.data)
                except BadJSON as error:
                    log.skip(line.number, error.why, line.size)
                    continue
                if _is_message(value):
                    loose_start = loose_start if loose else here
                    loose.append(value)
                    loose_bytes += line.size
                    for repair in repairs:
                        log.note(line.number, repair)
                    continue
                item = Item(0, line.size, value, repairs)
                for trace in self._conversation(path, line.data, item, line.number, log, ids, here):
                    yield trace
        if loose:
            item = Item(0, 0, loose)
            log.kept(loose_bytes, "messages, one per line")
            trace = self._trace(path, b"", item, {"messages": loose}, [], ids)
            yield _at(trace, loose_start, None)

    def _conversation(
        self, path: Path, data: bytes, item: Item, line: int, log: ReadLog, ids: Ids, offset: int = 0
    ) -> Iterator[Trace]:
        size = item.end - item.start
        why = item.broken
        body: Mapping[str, Any] = {}
        if why is None:
            body, why = _body(item.value)
        if why is not None:
            log.skip(line, why, size)
            return
        for repair in item.repairs:
            log.note(line, repair)
        lost: list[str] = []
        trace = self._trace(path, data, item, body, lost, ids)
        for why in lost:
            log.note(line, f"a message is kept in extra only: {why}")
        log.kept(size, "conversation")
        yield _at(trace, offset + item.start, offset + item.end) if item.end else trace

    def _trace(self, path: Path, data: bytes, item: Item, body: Mapping[str, Any], lost: list[str], ids: Ids) -> Trace:
        conversation = Conversation()
        unread = []
        for message in body["messages"]:
            why = conversation.add(message)
            if why is not None:
                lost.append(why)
                unread.append(message)
        steps = conversation.steps
        tools = body.get("tools", body.get("functions"))
        listed = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
        extra = {name: value for name, value in body.items() if name not in _PLACED and value is not None}
        if unread:
            extra["messages"] = unread
        if tools is not None and not listed:
            extra["tools"] = tools
        created = moment(body.get("created"))
        if created is not None:
            extra["created"] = created
        usage = usage_of(body.get("usage"), body.get("cost"))
        model = body.get("model")
        user = body.get("user")
        given = next((body[name] for name in _ID_FIELDS if isinstance(body.get(name), str) and body[name]), "chat")
        task = body.get("task_id")
        return Trace(
            id=ids(f"{given}~{content_hash(item.value)[:12]}"),
            agent=Agent(name="openai-chat", tools=tuple(tools) if listed and isinstance(tools, list) else None),
            model=model if isinstance(model, str) and model else None,
            task=TaskRef(id=str(task)) if isinstance(task, str | int) else TaskRef(),
            attempt=whole(body.get("trial")),
            user=user if isinstance(user, str) and user else None,
            steps=_timed(steps, created),
            totals=Totals(usage=usage if usage is not None else total(steps)),
            outcome=_outcome(body),
            provenance=item.provenance(self, path, data),
            extra=extra,
        )


_PLACED = frozenset({"messages", "tools", "functions", "model", "user", "usage", "task_id", "trial", "created"})


def _by_line(path: Path) -> bool:
    """Whether the file holds one value per line (its first is a whole JSON value and more follows) or nothing."""
    with path.open("rb") as stream:
        for line in lines(stream):
            if line.data is None:
                return True
            if not line.data.strip():
                continue
            try:
                loads(line.data)
            except BadJSON:
                return path.suffix.lower() in (".jsonl", ".ndjson")
            if path.suffix.lower() in (".jsonl", ".ndjson"):
                return True
            return any(later.data is None or later.data.strip() for later in lines(stream))
    return True


def _whole_file(data: bytes) -> Item:
    value, repairs = loads(data)
    return Item(0, len(data), value, repairs)


def _is_message(value: Any) -> bool:
    return role_of(value) is not None and "messages" not in value


def _body(value: Any) -> tuple[dict[str, Any], str | None]:
    """A conversation as one object with `messages`, whatever it came wrapped in; or why it is none."""
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        return {}, f"expected {_SHAPE}, found {kind(value)}"
    body = dict(value)
    for wrapper in ("body", "request"):
        inner = body.get(wrapper)
        if isinstance(inner, dict) and "messages" not in body and "messages" in inner:
            body = {name: v for name, v in body.items() if name != wrapper} | inner
    response = body.get("response")
    if isinstance(response, dict):
        answer = response.get("body") if isinstance(response.get("body"), dict) else response
        if isinstance(answer, dict) and "choices" in answer:
            del body["response"]
            status = response.get("status_code")
            body = answer | body | ({"status_code": status} if status is not None else {})
    choices = body.pop("choices", None)
    messages = body.get("messages", [] if choices is not None else None)
    if not isinstance(messages, list):
        return {}, f"expected {_SHAPE}; there is neither"
    if isinstance(choices, list) and choices:
        first, *others = choices
        if isinstance(first, dict) and isinstance(first.get("message"), dict):
            messages = [*messages, {"role": "assistant"} | first["message"]]
            rest = {name: v for name, v in first.items() if name != "message"}
            body["choice"] = rest
        else:
            others = choices
        if others:
            body["choices"] = others
    elif choices:
        body["choices"] = choices
    if not messages:
        return {}, "a conversation without messages"
    if all(role_of(message) is None for message in messages):
        return {}, f"expected {_SHAPE}; none of its {len(messages)} messages has a known role"
    return body | {"messages": messages}, None


def _timed(steps: tuple[Step, ...], created: float | None) -> tuple[Step, ...]:
    """The time of the response goes to the last agent step, when no step has a time."""
    if created is None or any(step.time is not None for step in steps) or not steps:
        return steps
    last = steps[-1]
    if last.event_class != "agent":
        return steps
    return (*steps[:-1], msgspec.structs.replace(last, time=created))


def _outcome(body: Mapping[str, Any]) -> RecordedOutcome | None:
    for name in _VERDICTS:
        verdict = body.get(name)
        if isinstance(verdict, bool):
            score = amount(body.get("score"))
            return RecordedOutcome(
                status="passed" if verdict else "failed",
                score=float(verdict) if score is None else score,
                bounded=score is None or 0.0 <= score <= 1.0,
                by=name,
            )
    return None


def _at(trace: Trace, start: int, end: int | None) -> Trace:
    return msgspec.structs.replace(
        trace, provenance=msgspec.structs.replace(trace.provenance, byte_start=start, byte_end=end)
    )


READER = OpenAIChat()
