"""Gemini CLI session files to traces: ``session-*.json``, or ``session-*.jsonl`` of later versions.

A JSON session holds its messages; the lines of a JSONL session are a header, messages (written again with the
same id when they grow: the last version counts), updates of the header (``$set``) and rewinds (``$rewindTo``).
Rewound turns were spent and stay in the trace, marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.ingest.drafts import Draft, Thread, a_list, an_object, rest, text_or_none, totals
from seatrial.ingest.jsontext import as_text, first_keys, kind
from seatrial.ingest.messages import arguments_of, whole
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.ingest.values import by_line, digest_of, values
from seatrial.records import Agent, Provenance, ReadLog, ResultOutcome, ToolCall, ToolResult, Trace, Usage

_SHAPE = "a Gemini CLI session: an object with sessionId and messages"
_EXIT = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)
_HARNESS = {"info": "info", "error": "api_error", "warning": "warning"}
_REFUSED = re.compile(r"did not allow|denied|rejected|declined|User cancelled the operation", re.IGNORECASE)
_STOPPED = re.compile(r"\s*(?:request cancelled|user cancelled the request)", re.IGNORECASE)
_TYPES = ("user", "gemini", *_HARNESS)


class GeminiCLI:
    """Reads one session per file."""

    name = "gemini-cli"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the first object has a session id and a project hash."""
        found = first_keys(head)
        if found >= {"sessionId", "projectHash"}:
            return 0.97
        return 0.8 if "sessionId" in found and "messages" in found and b'"gemini"' in head else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The session's trace.

        Raises:
            FormatError: one JSON text that does not parse.
        """
        session = _Session(log)
        lined = path.suffix.lower() == ".jsonl"
        for value in by_line(path, log) if lined else values(path, log, _SHAPE):
            what = session.take(value.value, value.line)
            if what is None:
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
            else:
                log.kept(value.size, what)
        if session.meta or session.messages:
            yield self._trace(path, session, log)

    def _trace(self, path: Path, session: _Session, log: ReadLog) -> Trace:
        thread = Thread()
        for message, rewound in session.messages.values():
            draft = _draft(message, thread)
            draft.extra |= {"rewound": True} if rewound else {}
            draft.copied = any(log.seen(f"gemini-cli:{given}") for given in draft.source_ids)
        steps = thread.steps()
        size = path.stat().st_size
        models = [step.model for step in steps if step.model is not None]
        extra = rest(session.meta, "messages", "sessionId")
        if session.unknown:
            extra["unknown_records"] = session.unknown
        sub = session.meta.get("kind") == "subagent"
        return Trace(
            id=text_or_none(session.meta.get("sessionId")) or path.stem,
            agent=Agent(name="gemini-cli"),
            model=models[0] if models else None,
            steps=steps,
            totals=totals(steps),
            parent=path.parent.name if sub else None,
            provenance=Provenance(
                format=self.name,
                reader=self.name,
                reader_version=self.version,
                file=str(path),
                byte_end=size,
                content_hash=digest_of(path, 0, size),
            ),
            extra=extra,
        )


class _Session:
    """Header and messages, the last version of each in the place of the first."""

    def __init__(self, log: ReadLog) -> None:
        self._log = log
        self.meta: dict[str, Any] = {}
        self.messages: dict[str, tuple[dict[str, Any], bool]] = {}
        self.unknown: list[Any] = []

    def take(self, record: Any, line: int) -> str | None:
        if not isinstance(record, dict):
            return None
        if isinstance(record.get("messages"), list) or "sessionId" in record:
            self._header(record, line)
            return "session"
        if record.get("type") in _TYPES:
            self._message(record)
            return f"message:{record['type']}"
        if isinstance(record.get("$set"), dict):
            self._header(record["$set"], line)
            return "update"
        if "$rewindTo" in record:
            self._rewind(record["$rewindTo"])
            return "rewind"
        if "id" not in record and "type" not in record:
            return None
        self.unknown.append(record)
        self._log.note(line, "a record of unknown type is kept in Trace.extra['unknown_records']")
        return "unknown"

    def _header(self, record: dict[str, Any], line: int) -> None:
        self.meta |= {name: value for name, value in record.items() if name != "messages"}
        for message in a_list(record.get("messages")):
            if isinstance(message, dict) and message.get("type") in _TYPES:
                self._message(message)
            else:
                self.unknown.append(message)
                self._log.note(line, "a message of unknown type is kept in Trace.extra['unknown_records']")

    def _message(self, message: dict[str, Any]) -> None:
        given = text_or_none(message.get("id")) or f"message-{len(self.messages)}"
        self.messages[given] = (message, False)

    def _rewind(self, to: Any) -> None:
        """Mark that message and all after it; all of them when there is none of that id."""
        found = to not in self.messages if isinstance(to, str) else True
        for given, (message, rewound) in self.messages.items():
            found = found or given == to
            self.messages[given] = (message, rewound or found)


def _draft(message: dict[str, Any], thread: Thread) -> Draft:
    """The step of a message, added to the thread."""
    text, others = _text(message.get("content"))
    time = moment(message.get("timestamp"))
    what = message.get("type")
    extra = rest(message, "id", "timestamp", "type", "content", "toolCalls", "thoughts", "tokens", "model")
    if others:
        extra["content"] = others
    if what == "gemini":
        draft = _agent(message, text, time, thread)
    elif what == "user":
        said = spoken(text)
        draft = Draft(said.event_class, said.text, time=time, kind=said.kind)
        if said.injected:
            extra["injected"] = list(said.injected)
        thread.add(draft)
    elif _STOPPED.match(text):
        draft = thread.add(Draft("interrupted", text, time=time, kind="interrupted"))
    else:
        draft = thread.add(Draft("harness", text, time=time, kind=_HARNESS[str(what)]))
    draft.extra |= extra
    if (given := text_or_none(message.get("id"))) is not None:
        draft.source_ids.append(given)
    return draft


def _agent(message: dict[str, Any], text: str, time: float | None, thread: Thread) -> Draft:
    draft = thread.add(Draft("agent", text, time=time, model=text_or_none(message.get("model"))))
    for thought in a_list(message.get("thoughts")):
        said = [text_or_none(an_object(thought).get(name)) for name in ("subject", "description")]
        if passage := "\n".join(part for part in said if part):
            draft.reasoning.append(passage)
    draft.usage = _usage(message.get("tokens"))
    for n, raw in enumerate(a_list(message.get("toolCalls"))):
        if isinstance(raw, dict):
            _call(draft, raw, f"call-{len(thread.drafts) - 1}-{n}", thread)
        else:
            draft.extra.setdefault("odd_tool_calls", []).append(raw)
    return draft


def _call(draft: Draft, raw: dict[str, Any], default_id: str, thread: Thread) -> None:
    arguments, text, validity = arguments_of(raw.get("args"))
    call = ToolCall(
        id=text_or_none(raw.get("id")) or default_id,
        name=text_or_none(raw.get("name")) or "",
        arguments=arguments,
        raw_arguments=text,
        validity=validity,
        extra=rest(raw, "id", "name", "args", "result", "status", "timestamp", "resultDisplay"),
    )
    thread.call(draft, call)
    status = raw.get("status")
    if status not in ("success", "error", "cancelled") and raw.get("result") is None:
        return
    output, others = _text(raw.get("result"))
    found = _EXIT.search(output[-400:])
    exit_code = int(found.group(1)) if found else None
    extra = {"status": status} | ({"content": others} if others else {})
    display = raw.get("resultDisplay")
    if display is not None and display != output:
        extra["display"] = display
    draft.results.append(
        ToolResult(
            call_id=call.id,
            outcome=_outcome(status, exit_code, output),
            exit_code=exit_code,
            text=output,
            time=moment(raw.get("timestamp")),
            subagents=(raw["agentId"],) if isinstance(raw.get("agentId"), str) else (),
            extra=extra,
        )
    )


def _outcome(status: Any, exit_code: int | None, text: str) -> ResultOutcome:
    """What the status says; a cancelled call was refused or, once running, interrupted."""
    if status == "cancelled":
        return "rejected" if _REFUSED.search(text[:400]) else "interrupted"
    if status == "error" or (exit_code is not None and exit_code != 0):
        return "error"
    return "ok" if status == "success" else "unknown"


def _text(content: Any) -> tuple[str, list[Any]]:
    """Text of a content (text, a part, or parts; a function's response is its output), and the other parts."""
    texts: list[str] = []
    others: list[Any] = []
    for part in content if isinstance(content, list) else [] if content is None else [content]:
        response = an_object(an_object(part).get("functionResponse"))
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif response:
            answer = response.get("response")
            said = [an_object(answer).get(name) for name in ("output", "error")]
            texts.extend(value for value in said if isinstance(value, str))
            if not any(isinstance(value, str) for value in said) and answer is not None:
                texts.append(as_text(answer))
        else:
            others.append(part)
    return "\n".join(texts), others


def _usage(tokens: Any) -> Usage | None:
    """Thoughts are generated too: they are part of what was put out."""
    if not isinstance(tokens, dict):
        return None
    output, thoughts = whole(tokens.get("output")), whole(tokens.get("thoughts"))
    put_out = None if output is None and thoughts is None else (output or 0) + (thoughts or 0)
    return Usage(
        input_tokens=whole(tokens.get("input")),
        output_tokens=put_out,
        cached_tokens=whole(tokens.get("cached")),
        extra=rest(tokens, "input", "output", "cached"),
    )


READER = GeminiCLI()
