"""GitHub Copilot CLI session files (``events.jsonl``) to traces.

One event per line: ``{"type", "data", "id", "timestamp", "parentId"}``. What a sub-agent did carries the id of
the tool call that started it and becomes a trace of its own. Input tokens are recorded once per session, at its
end; output tokens with every message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from seatrial.ingest.drafts import Draft, Thread, a_list, added, an_object, rest, text_or_none, totals
from seatrial.ingest.jsontext import BadJSON, as_text, kind, loads
from seatrial.ingest.messages import arguments_of, whole
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.ingest.values import by_line, digest_of
from seatrial.records import Agent, Provenance, ReadLog, ResultOutcome, ToolCall, ToolResult, Totals, Trace, Usage

_EXIT = re.compile(
    r"<(?:shellId: \S+ completed|exited|command .{0,80}?(?:exited|completed)) with exit code (-?\d{1,10})>\s*\Z"
)
_RUNNING = re.compile(r"<command with shellId: \S+ is still running")
_CUT = re.compile(r"(?:Output too large|output truncated|<truncated|\[truncated)", re.IGNORECASE)
_BOOKKEEPING = frozenset(
    {
        *("assistant.turn_start", "assistant.turn_end", "hook.start", "hook.end", "permission.requested"),
        *("session.permissions_changed", "assistant.intent", "assistant.message_delta", "session.idle"),
        *("assistant.reasoning_delta", "tool.execution_progress", "tool.execution_partial_result"),
        *("session.compaction_start", "session.usage_info", "subagent.started", "subagent.completed"),
        *("subagent.selected", "pending_messages.modified", "session.title_changed"),
    }
)
_KEPT_WHOLE = 1000


class CopilotCLI:
    """Reads one session file. Memory holds one session at a time, and one line."""

    name = "copilot-cli"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the first whole line is an event with ``data`` and ``parentId``."""
        first = head.lstrip().split(b"\n", 1)[0]
        if b'"parentId"' not in first and b'"copilotVersion"' not in first:
            return 0.96 if first.startswith(b'{"type":"session.start","data":{') else 0.0
        try:
            value, _ = loads(first)
        except BadJSON:
            return 0.0
        known = isinstance(value, dict) and isinstance(value.get("data"), dict) and "." in str(value.get("type"))
        return 0.97 if known and "parentId" in value else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The session's trace, then its sub-agents'; a file of several sessions gives each in turn."""
        session, start, end = _Session(log, path), 0, 0
        for value in by_line(path, log):
            record = value.value
            if not isinstance(record, dict) or not isinstance(record.get("type"), str):
                log.skip(value.line, f"expected an event object with a type, found {kind(record)}", value.size)
                continue
            if record["type"] == "session.start" and session.started:
                yield from session.traces(self, start, end)
                session, start = _Session(log, path), value.start
            log.kept(value.size, session.take(record, value.line))
            end = value.end
        yield from session.traces(self, start, end)


class _Session:
    def __init__(self, log: ReadLog, path: Path) -> None:
        self._log = log
        self._path = path
        self.started = False
        self._id: str | None = None
        self._meta: dict[str, Any] = {}
        self._model: str | None = None
        self._threads: dict[str | None, Thread] = {None: Thread()}
        self._refused: set[str] = set()
        self._shutdowns: list[dict[str, Any]] = []
        self._unknown: list[dict[str, Any]] = []
        self._noted: set[str] = set()
        self._records = 0
        self._handlers: dict[str, Callable[[dict[str, Any], float | None, Thread], Draft | None]] = {
            "user.message": self._person,
            "system.message": self._system,
            "system.notification": self._notified,
            "assistant.message": self._message,
            "assistant.reasoning": self._thought,
            "assistant.usage": self._usage,
            "tool.execution_start": self._call,
            "tool.user_requested": self._call,
            "tool.execution_complete": self._result,
            "permission.completed": self._permission,
            "abort": self._abort,
            "session.error": self._trouble,
            "session.warning": self._trouble,
            "session.compaction_complete": self._compacted,
            "session.model_change": self._model_change,
        }

    def take(self, record: dict[str, Any], line: int) -> str:
        what: str = record["type"]
        data = an_object(record.get("data"))
        self._records += 1
        time = moment(record.get("timestamp"))
        parent = text_or_none(data.get("parentToolCallId"))
        thread = self._threads.setdefault(parent, Thread())
        handler = self._handlers.get(what)
        if what in ("session.start", "session.resume"):
            self._begin(data)
        elif what == "session.shutdown":
            self._shutdowns.append(data)
        elif handler is not None:
            copied = isinstance(record.get("id"), str) and self._log.seen(f"copilot-cli:{record['id']}")
            draft = handler(data, time, thread)
            if draft is not None:
                draft.copied = copied
                if (given := text_or_none(record.get("id"))) is not None:
                    draft.source_ids.append(given)
        elif what not in _BOOKKEEPING:
            self._keep(record, what, line)
        return what[:60]

    def _begin(self, data: dict[str, Any]) -> None:
        self.started = True
        self._meta |= data
        self._id = self._id or text_or_none(data.get("sessionId"))
        self._model = self._model or text_or_none(data.get("selectedModel"))

    def _model_change(self, data: dict[str, Any], time: float | None, thread: Thread) -> None:
        self._model = text_or_none(data.get("newModel")) or self._model

    def _keep(self, record: dict[str, Any], what: str, line: int) -> None:
        if len(self._unknown) >= _KEPT_WHOLE:
            self._log.note(line, f"an event of unknown type {what[:40]!r}, and too many such events to keep")
            return
        self._unknown.append(record)
        if what not in self._noted and len(self._noted) < 100:
            self._noted.add(what)
            self._log.note(line, f"events of unknown type {what[:40]!r}: kept in Trace.extra['unknown_records']")

    def _person(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        """A user message as typed; `transformedContent` adds what the harness put around it."""
        source = data.get("source")
        extra = rest(data, "content", "supportedNativeDocumentMimeTypes", "parentToolCallId")
        said = spoken(text_or_none(data.get("content")) or "")
        draft = Draft(said.event_class, said.text, time=time, kind=said.kind, extra=extra)
        if said.injected:
            draft.extra["injected"] = list(said.injected)
        if isinstance(source, str) and source not in ("user", "command"):
            draft.event_class, draft.kind = "harness", source[:60]
        return thread.add(draft)

    def _system(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        text = text_or_none(data.get("content")) or ""
        return thread.add(Draft("harness", text, time=time, kind="system_prompt", extra=rest(data, "content", "role")))

    def _notified(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        text = text_or_none(data.get("content")) or ""
        return thread.add(Draft("harness", text, time=time, kind="task_notification", extra=rest(data, "content")))

    def _trouble(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        text = text_or_none(data.get("message")) or ""
        return thread.add(Draft("harness", text, time=time, kind="api_error", extra=rest(data, "message")))

    def _compacted(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        text = text_or_none(data.get("summaryContent")) or ""
        extra = rest(data, "summaryContent")
        return thread.add(Draft("harness", text, time=time, kind="compact_summary", extra=extra))

    def _abort(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        return thread.add(Draft("interrupted", time=time, kind="interrupted", extra=rest(data)))

    def _message(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft:
        model = text_or_none(data.get("model")) or self._model
        draft = thread.add(Draft("agent", text_or_none(data.get("content")) or "", time=time, model=model))
        placed = ("content", "model", "toolRequests", "reasoningText", "reasoningOpaque", "outputTokens")
        draft.extra = rest(data, *placed, "parentToolCallId")
        if thought := text_or_none(data.get("reasoningText")):
            draft.reasoning.append(thought)
        if data.get("reasoningOpaque") and "opaque" not in self._noted:
            self._noted.add("opaque")
            self._log.note(None, "encrypted reasoning is opaque and is not kept")
        if (n := whole(data.get("outputTokens"))) is not None:
            draft.usage = Usage(output_tokens=n)
        for request in a_list(data.get("toolRequests")):
            if isinstance(request, dict):
                self._request(draft, request, thread)
        return draft

    def _request(self, draft: Draft, request: dict[str, Any], thread: Thread) -> None:
        arguments, raw, validity = arguments_of(request.get("arguments"))
        call_id = text_or_none(request.get("toolCallId"))
        call = ToolCall(
            id=call_id or f"call-{len(thread.drafts) - 1}-{len(draft.calls)}",
            name=text_or_none(request.get("name")) or text_or_none(request.get("toolName")) or "",
            arguments=arguments,
            raw_arguments=raw,
            validity=validity,
            extra=rest(request, "toolCallId", "name", "toolName", "arguments", "type", "model", "parentToolCallId"),
        )
        thread.call(draft, call)

    def _thought(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft | None:
        text = text_or_none(data.get("content"))
        last = thread.last_agent()
        if text is None or (last is not None and text in last.reasoning):
            return None
        draft = thread.add(Draft("agent", time=time, model=self._model))
        draft.reasoning.append(text)
        return draft

    def _usage(self, data: dict[str, Any], time: float | None, thread: Thread) -> None:
        """A request's full usage: it wins over the output count of the message before it."""
        last = thread.last_agent()
        if last is not None:
            last.usage = _usage(data)

    def _call(self, data: dict[str, Any], time: float | None, thread: Thread) -> Draft | None:
        """The start of a call; the message before it has usually requested it already."""
        call_id = text_or_none(data.get("toolCallId"))
        if call_id is not None and thread.made(call_id) is not None:
            return None
        last = thread.drafts[-1] if thread.drafts else None
        if last is not None and last.event_class == "agent":
            self._request(last, data, thread)
            return None
        draft = thread.add(Draft("agent", time=time, model=text_or_none(data.get("model")) or self._model))
        self._request(draft, data, thread)
        return draft

    def _permission(self, data: dict[str, Any], time: float | None, thread: Thread) -> None:
        decision = an_object(data.get("result")).get("kind")
        call_id = text_or_none(data.get("toolCallId"))
        if call_id is not None and isinstance(decision, str) and decision.startswith("denied") and "user" in decision:
            self._refused.add(call_id)

    def _result(self, data: dict[str, Any], time: float | None, thread: Thread) -> None:
        call_id = text_or_none(data.get("toolCallId"))
        result, error = data.get("result"), an_object(data.get("error"))
        text = text_or_none(an_object(result).get("content")) or text_or_none(error.get("message"))
        if text is None:
            text = "" if result is None or isinstance(result, dict) else as_text(result)
        found = _EXIT.search(text[-200:])
        exit_code = int(found.group(1)) if found else None
        extra = rest(data, "toolCallId", "result", "model", "parentToolCallId")
        extra |= {"result": more} if (more := _more(result, text)) else {}
        thread.answer(
            ToolResult(
                call_id=call_id,
                outcome=self._outcome(data.get("success"), error, exit_code, call_id, text),
                exit_code=exit_code,
                text=text,
                truncated=_CUT.search(text[-500:]) is not None,
                time=time,
                subagents=(self._child(call_id),) if call_id is not None and call_id in self._threads else (),
                extra=extra,
            )
        )

    def _outcome(
        self, success: Any, error: dict[str, Any], exit_code: int | None, call_id: str | None, text: str
    ) -> ResultOutcome:
        code = error.get("code")
        if call_id in self._refused or (isinstance(code, str) and code in ("rejected", "denied")):
            return "rejected"
        if code in ("aborted", "cancelled"):
            return "interrupted"
        if success is False or (exit_code is not None and exit_code != 0):
            return "error"
        if _RUNNING.search(text[-400:]):
            return "unknown"
        return "ok" if success is True else "unknown"

    def _child(self, call_id: str) -> str:
        return f"{self._id or self._path.stem}~{call_id}"

    def traces(self, reader: CopilotCLI, start: int, end: int) -> Iterator[Trace]:
        """The session, then each sub-agent that did something."""
        if not self.started and not any(thread.drafts for thread in self._threads.values()):
            return
        own = self._id or self._path.stem
        provenance = Provenance(
            format=reader.name,
            reader=reader.name,
            reader_version=reader.version,
            file=str(self._path),
            byte_start=start,
            byte_end=end,
            content_hash=digest_of(self._path, start, end),
        )
        agent = Agent(name="copilot-cli", version=text_or_none(self._meta.get("copilotVersion")))
        for parent, thread in self._threads.items():
            if parent is not None and not thread.drafts:
                continue
            steps = thread.steps()
            models = [step.model for step in steps if step.model is not None]
            extra: dict[str, Any] = {}
            if parent is None:
                extra = {"session": self._meta}
                extra |= {"shutdowns": self._shutdowns} if self._shutdowns else {}
                extra |= {"unknown_records": self._unknown} if self._unknown else {}
            yield Trace(
                id=own if parent is None else self._child(parent),
                agent=agent,
                model=models[0] if models else self._model,
                steps=steps,
                totals=totals(steps) if parent is not None else self._totals(totals(steps)),
                provenance=provenance,
                parent=own if parent is not None else None,
                parent_call=parent,
                extra=extra,
            )

    def _totals(self, summed: Totals) -> Totals:
        """The session's own total, where its end recorded one of at least the messages' output.

        Its end counts sub-agents too; with sub-agents in the file, the messages' sum stands.
        """
        if len(self._shutdowns) != 1 or len(self._threads) > 1:
            return summed
        recorded = Usage()
        for metrics in an_object(self._shutdowns[0].get("modelMetrics")).values():
            recorded = added(recorded, _usage(an_object(an_object(metrics).get("usage"))))
        if (recorded.output_tokens or 0) < (summed.usage.output_tokens or 0) or not recorded.input_tokens:
            return summed
        return msgspec.structs.replace(summed, usage=recorded)


_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens")


def _usage(data: dict[str, Any]) -> Usage:
    counts = {name: whole(data.get(name)) for name in _COUNTS}
    extra = {name: n for name in ("cacheWriteTokens", "reasoningTokens") if (n := whole(data.get(name))) is not None}
    return Usage(
        input_tokens=counts["inputTokens"],
        output_tokens=counts["outputTokens"],
        cached_tokens=counts["cacheReadTokens"],
        extra=extra,
    )


def _more(result: Any, text: str) -> Any:
    """What a result has beside its text; the detailed form is left out where it only repeats it."""
    if not isinstance(result, dict):
        return None
    more = rest(result, "content")
    if more.get("detailedContent") == text:
        del more["detailedContent"]
    return more


READER = CopilotCLI()
