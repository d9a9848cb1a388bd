"""OpenCode sessions to traces: exports (``opencode export``), one JSON object with ``info`` and ``messages``, and the
folder that OpenCode itself keeps (`opencode_storage`).

A message has its own ``info`` and ``parts``: text, reasoning, tool calls with their state, the tokens of each
model request (``step-finish``). Built to the public specification (``packages/opencode/src/session/message-v2.ts``
of anomalyco/opencode); no real export was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.ingest.drafts import Draft, Thread, added, an_object, rest, text_or_none, totals
from seatrial.ingest.jsontext import as_text, first_keys, kind
from seatrial.ingest.log import BESIDE
from seatrial.ingest.messages import amount, arguments_of, whole
from seatrial.ingest.opencode_storage import Kind, gather, kind_of, session_of
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.ingest.values import Value, values
from seatrial.records import Agent, ReadLog, ResultOutcome, ToolCall, ToolResult, Trace, Usage

_SHAPE = "an OpenCode export: an object with info and messages, each with info and parts"
_STORED = "a session of OpenCode's storage: an object"
_REFUSED = re.compile(
    r"(?:the )?user (?:has )?(?:rejected|denied|dismissed)|permission .{0,80}(?:rejected|denied)", re.I
)
_STOPPED = re.compile(r"\s*(?:tool execution )?abort", re.IGNORECASE)


class OpenCode:
    """Reads one session per file, or an array of them."""

    name = "opencode"
    version = "2"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the first object has info and messages and OpenCode's ids are in it."""
        if kind_of(path) is not None and head.lstrip()[:1] in (b"{", b"["):
            return 0.97
        found = first_keys(head)
        if found and found <= {"info", "messages", "todos", "diffs"} and "info" in found:
            return 0.96 if b'"ses_' in head or b'"sessionID"' in head else 0.0
        return 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per session. Files that are read with another one give none.

        Raises:
            FormatError: not JSON.
        """
        if (what := kind_of(path)) is not None:
            yield from self._stored(path, what, log)
            return
        for value in values(path, log, _SHAPE):
            raw = value.value
            if not isinstance(raw, dict) or not isinstance(raw.get("messages"), list):
                log.skip(value.line, f"expected {_SHAPE}, found {kind(raw)}", value.size)
                continue
            trace = self._trace(path, value, raw, log)
            log.kept(value.size, "session")
            yield trace

    def _stored(self, path: Path, what: Kind, log: ReadLog) -> Iterator[Trace]:
        if what != "session":
            size = path.stat().st_size
            session = session_of(path)
            if session is None:
                log.skip(None, f"a {what} of OpenCode's storage without its session's file", size)
            else:
                log.kept(size, BESIDE)
            return
        for value in values(path, log, _STORED, whole=True):
            if not isinstance(value.value, dict):
                log.skip(value.line, f"expected {_STORED}, found {kind(value.value)}", value.size)
                continue
            found = gather(path, value.hash)
            for problem in found.problems:
                log.skip(None, problem)
            raw = {"info": value.value, "messages": found.messages}
            trace = self._trace(path, value._replace(hash=found.hash), raw, log)
            log.kept(value.size, "session")
            yield trace

    def _trace(self, path: Path, value: Value, raw: dict[str, Any], log: ReadLog) -> Trace:
        thread = Thread()
        unread = []
        for message in raw["messages"]:
            parts = message.get("parts") if isinstance(message, dict) else None
            if isinstance(parts, list) and an_object(message.get("info")).get("role") in ("user", "assistant"):
                _message(message["info"], parts, thread)
            else:
                log.note(value.line, "a message of no known role is kept in extra only")
                unread.append(message)
        steps = thread.steps()
        info = an_object(raw.get("info"))
        models = [step.model for step in steps if step.model is not None]
        extra = rest(raw, "messages")
        if unread:
            extra["messages"] = unread
        return Trace(
            id=text_or_none(info.get("id")) or f"{path.stem}~{value.hash[:12]}",
            agent=Agent(name="opencode", version=text_or_none(info.get("version"))),
            model=models[0] if models else None,
            steps=steps,
            totals=totals(steps),
            parent=text_or_none(info.get("parentID")),
            provenance=value.provenance(self, path),
            extra=extra,
        )


def _message(info: dict[str, Any], parts: list[Any], thread: Thread) -> None:
    time = moment(an_object(info.get("time")).get("created"))
    extra = rest(info, "role", "tokens", "cost", "error", "modelID")
    if info["role"] == "user":
        _person(info, parts, time, extra, thread)
        return
    summary = info.get("summary") is True
    draft = thread.add(
        Draft(
            "harness" if summary else "agent",
            time=time,
            kind="compact_summary" if summary else None,
            model=text_or_none(info.get("modelID")),
            extra=extra,
        )
    )
    others: list[Any] = []
    spent: Usage | None = None
    for n, part in enumerate(parts):
        what = an_object(part).get("type")
        if what == "text" and isinstance(part.get("text"), str):
            draft.say(part["text"])
        elif what == "reasoning" and (thought := text_or_none(part.get("text"))):
            draft.reasoning.append(thought)
        elif what == "tool":
            _tool(draft, part, f"call-{len(thread.drafts) - 1}-{n}", thread)
        elif what == "step-finish":
            usage = _usage(part)
            spent = usage if spent is None else added(spent, usage)
        elif what not in ("step-start", "text", "reasoning"):
            others.append(part)
    if others:
        draft.extra["parts"] = others
    draft.usage = spent if spent is not None else _usage(info) if "tokens" in info or "cost" in info else None
    if (given := text_or_none(info.get("id"))) is not None:
        draft.source_ids.append(given)
    _ended(an_object(info.get("error")), moment(an_object(info.get("time")).get("completed")), thread)


def _ended(error: dict[str, Any], time: float | None, thread: Thread) -> None:
    """What stopped a message: the user, or the provider."""
    if not error:
        return
    text = text_or_none(an_object(error.get("data")).get("message")) or ""
    if error.get("name") == "MessageAbortedError":
        thread.add(Draft("interrupted", text, time=time, kind="interrupted", extra={"error": error}))
    else:
        thread.add(Draft("harness", text, time=time, kind="api_error", extra={"error": error}))


def _person(info: dict[str, Any], parts: list[Any], time: float | None, extra: dict[str, Any], thread: Thread) -> None:
    """A user message: its typed texts; what the harness put beside them (`synthetic`) is kept apart."""
    typed: list[str] = []
    injected: list[str] = []
    others: list[Any] = []
    for part in parts:
        text = an_object(part).get("text")
        if an_object(part).get("type") == "text" and isinstance(text, str):
            (injected if part.get("synthetic") or part.get("ignored") else typed).append(text)
        else:
            others.append(part)
    if others:
        extra["parts"] = others
    compaction = any(an_object(part).get("type") == "compaction" for part in others)
    if typed:
        said = spoken("\n".join(typed))
        draft = Draft(said.event_class, said.text, time=time, kind=said.kind, extra=extra)
        injected = [*injected, *said.injected]
    else:
        kind = "compaction" if compaction else "synthetic" if injected else None
        draft = Draft("harness" if kind else "human", "\n".join(injected), time=time, kind=kind, extra=extra)
        injected = []
    if injected:
        draft.extra["injected"] = injected
    if (given := text_or_none(info.get("id"))) is not None:
        draft.source_ids.append(given)
    thread.add(draft)


def _tool(draft: Draft, part: dict[str, Any], default_id: str, thread: Thread) -> None:
    state = an_object(part.get("state"))
    arguments, raw, validity = arguments_of(state.get("input"))
    name = text_or_none(part.get("tool")) or ""
    call = ToolCall(
        id=text_or_none(part.get("callID")) or default_id,
        name=name,
        arguments=arguments,
        raw_arguments=raw,
        validity="invalid" if name == "invalid" else validity,
        extra=rest(part, "type", "callID", "tool", "state", "messageID", "sessionID"),
    )
    thread.call(draft, call)
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    meta = an_object(state.get("metadata"))
    code = meta.get("exit")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else None
    output = state.get("output") if status == "completed" else state.get("error")
    text = output if isinstance(output, str) else "" if output is None else as_text(output)
    child = text_or_none(meta.get("sessionId")) or text_or_none(meta.get("sessionID"))
    draft.results.append(
        ToolResult(
            call_id=call.id,
            outcome=_outcome(status, exit_code, text),
            exit_code=exit_code,
            text=text,
            truncated=meta.get("truncated") is True,
            time=moment(an_object(state.get("time")).get("end")),
            subagents=(child,) if child is not None else (),
            extra=rest(state, "status", "input", "output", "error"),
        )
    )


def _outcome(status: str, exit_code: int | None, text: str) -> ResultOutcome:
    if status == "error":
        if _REFUSED.search(text[:400]):
            return "rejected"
        return "interrupted" if _STOPPED.match(text) else "error"
    return "error" if exit_code is not None and exit_code != 0 else "ok"


def _usage(source: dict[str, Any]) -> Usage:
    """Input and cache are recorded apart and both were read. Reasoning is in `output` unless the total says not."""
    tokens, cache = an_object(source.get("tokens")), an_object(an_object(source.get("tokens")).get("cache"))
    read, written, new = whole(cache.get("read")), whole(cache.get("write")), whole(tokens.get("input"))
    output, thought, total = (whole(tokens.get(name)) for name in ("output", "reasoning", "total"))
    if output is not None and thought and total == (new or 0) + (read or 0) + (written or 0) + output + thought:
        output += thought
    known = [n for n in (new, read, written) if n is not None]
    return Usage(
        input_tokens=sum(known) if known else None,
        output_tokens=output,
        cached_tokens=read,
        cost_usd=amount(source.get("cost")),
        extra=rest({"reasoning": thought, "cache_write": written}),
    )


READER = OpenCode()
