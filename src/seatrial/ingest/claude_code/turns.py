"""Turns under construction: records of one message are united, and results find the call that they answer."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

import msgspec

from seatrial.ingest.claude_code.source import Block, Tokens, ToolUse, ToolUseResult
from seatrial.ingest.claude_code.speech import REJECTED
from seatrial.records import EventClass, ResultOutcome, Step, ToolCall, ToolResult, Usage, Validity

DEPTH_LIMIT = 200
"""Arguments nested deeper than this are kept as text: other tools could not write them again."""

_EXIT = re.compile(r"(?:Error: )?Exit code (-?\d{1,10})\b")
_TRUNCATED = re.compile(r"\[(?:\d+ (?:lines|characters|chars) truncated|[Oo]utput truncated)")
_SYNTHETIC = "<synthetic>"


class Turn:
    """One step being built. An agent turn gathers all records of its message."""

    __slots__ = (
        "calls", "counted", "event_class", "extra", "ids", "kind", "model",
        "reasoning", "results", "texts", "time", "usage",
    )  # fmt: skip

    def __init__(self, event_class: EventClass, kind: str | None, time: float | None) -> None:
        self.event_class: EventClass = event_class
        self.kind = kind
        self.time = time
        self.texts: list[str] = []
        self.reasoning: list[str] = []
        self.calls: dict[str, ToolCall] = {}
        self.results: list[ToolResult] = []
        self.model: str | None = None
        self.usage: Tokens | None = None
        self.ids: list[str] = []
        self.extra: dict[str, Any] = {}
        self.counted = False

    def unite(self, blocks: str | list[Block] | None) -> list[str]:
        """Add an agent record's blocks; returns the ids of the calls. A grown copy replaces the shorter one."""
        if isinstance(blocks, str):
            _grow(self.texts, blocks)
            return []
        calls = []
        for block in blocks or ():
            if block.type == "tool_use":
                call = _call(block, len(self.calls))
                self.calls[call.id] = call
                calls.append(call.id)
            elif block.text is not None:
                _grow(self.texts, block.text)
            elif block.thinking is not None:
                _grow(self.reasoning, block.thinking)
            else:
                self.other(block)
        return calls

    def other(self, block: Block) -> None:
        """Count a block that has no place in a step, such as an image."""
        others = self.extra.setdefault("other_blocks", {})
        others[block.type or "unknown"] = others.get(block.type or "unknown", 0) + 1

    def step(self, index: int) -> Step:
        """The finished step. It is copied when every record of it was already read elsewhere."""
        return Step(
            index=index,
            event_class=self.event_class,
            text="\n".join(self.texts) if len(self.texts) != 1 else self.texts[0],
            time=self.time,
            reasoning="\n".join(self.reasoning) if self.reasoning else None,
            tool_calls=tuple(self.calls.values()),
            results=tuple(self.results),
            model=self.model,
            usage=usage(self.usage) if self.usage is not None else None,
            kind=self.kind,
            copied=not self.counted,
            source_ids=tuple(self.ids),
            extra=self.extra,
        )


def usage(tokens: Tokens) -> Usage:
    """Input counts everything read: fresh, written to the cache and read from it; the parts are in `extra`."""
    fresh, written, read = tokens.input_tokens, tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens
    extra = {}
    if written:
        extra["cache_creation_input_tokens"] = written
    if (written or read) and fresh is not None:
        extra["uncached_input_tokens"] = fresh
    if fresh is None and written is None and read is None:
        total = None
    else:
        total = (fresh or 0) + (written or 0) + (read or 0)
    return Usage(input_tokens=total, output_tokens=tokens.output_tokens, cached_tokens=read, extra=extra)


def record_id(uuid: str | None, content: str | list[Block] | None) -> str | None:
    """The id under which a record counts once: its uuid and a checksum of what it says.

    The checksum tells copies from different records whose uuids collide.
    """
    if uuid is None:
        return None
    return f"{uuid}#{_checksum(content):08x}"


def _checksum(content: str | list[Block] | None, start: int = 0) -> int:
    if content is None:
        return start
    if isinstance(content, str):
        return crc32(content.encode("utf-8", "replace"), start)
    for block in content:
        key = block.text or block.thinking or block.id or block.tool_use_id or block.type
        start = crc32(key.encode("utf-8", "replace"), start)
        if block.content is not None:
            start = _checksum(block.content, start)
    return start


def is_synthetic(model: str | None) -> bool:
    """Whether the harness wrote the turn in the model's place."""
    return model == _SYNTHETIC


def result(block: Block, detail: ToolUseResult, time: float | None) -> ToolResult:
    """A tool result, with the outcome that the log states (METHODS 1.1)."""
    text, images = flat(block.content)
    used = detail if isinstance(detail, ToolUse) else None
    word = detail if isinstance(detail, str) else ""
    extra = _detail(used, text) if used is not None else {}
    if images:
        extra["other_blocks"] = images
    outcome: ResultOutcome = "error" if block.is_error else "ok"
    exit_code = None
    if block.is_error or word:
        head = text[:2000]
        if head.startswith(REJECTED) or word.startswith(REJECTED):
            outcome = "rejected"
        elif head.startswith("[Request interrupted by user") or "Sibling tool call errored" in head[:120]:
            outcome = "interrupted"
        elif word.startswith("Error: ") and not block.is_error:
            outcome = "error"
        if (found := _EXIT.match(head)) or (found := _EXIT.match(word)):
            exit_code = int(found.group(1))
    if used is not None and used.interrupted:
        outcome = "interrupted"
    truncated = text.startswith("<persisted-output>") or (
        used is not None and bool(used.truncated or used.persistedOutputPath)
    )
    if not truncated and (at := text.find("truncated")) >= 0:
        truncated = _TRUNCATED.search(text, max(at - 40, 0)) is not None
    return ToolResult(
        call_id=block.tool_use_id,
        outcome=outcome,
        exit_code=exit_code,
        text=text,
        truncated=truncated,
        time=time,
        extra=extra,
    )


def _detail(used: ToolUse, text: str) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if used.returnCodeInterpretation:
        extra["return_code_interpretation"] = used.returnCodeInterpretation
    if used.backgroundTaskId:
        extra["background_task"] = used.backgroundTaskId
    if used.persistedOutputPath:
        extra["persisted_output"] = used.persistedOutputPath
    if used.agentId:
        extra["agent"] = used.agentId
        if used.totalTokens is not None:
            extra["agent_tokens"] = used.totalTokens
        if used.totalDurationMs is not None:
            extra["agent_ms"] = used.totalDurationMs
        if used.totalToolUseCount is not None:
            extra["agent_tool_calls"] = used.totalToolUseCount
    if used.stderr and used.stderr.strip() not in text:
        extra["stderr"] = used.stderr
    return extra


def flat(content: str | list[Block] | None) -> tuple[str, dict[str, int]]:
    """The text of a result's content, and how many blocks of other types it holds."""
    if content is None:
        return "", {}
    if isinstance(content, str):
        return content, {}
    others: dict[str, int] = {}
    texts = []
    for block in content:
        if block.text is not None:
            texts.append(block.text)
        elif block.content is not None:
            texts.append(flat(block.content)[0])
        else:
            others[block.type or "unknown"] = others.get(block.type or "unknown", 0) + 1
    return "\n".join(texts), others


def fault(text: str) -> Validity | None:
    """What a refusal by the harness says about the call: unknown tool, invalid arguments, or nothing."""
    if not text.startswith("<tool_use_error>"):
        return None
    head = text[16:400]
    if "No such tool available" in head:
        return "unknown_tool"
    return "invalid" if "InputValidationError" in head else None


def _call(block: Block, position: int) -> ToolCall:
    name = block.name or ""
    call_id = block.id or f"unnamed-{position}"
    value = block.input
    if isinstance(value, dict) and not _deep(value):
        return ToolCall(id=call_id, name=name, arguments=value)
    if value is None:
        return ToolCall(id=call_id, name=name)
    raw = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return ToolCall(
        id=call_id,
        name=name,
        raw_arguments=raw,
        validity="unknown" if isinstance(value, dict) else "invalid",
    )


def _deep(value: dict[str, Any]) -> bool:
    """Nested beyond `DEPTH_LIMIT`; level by level, so that depth costs no stack."""
    for item in value.values():
        if type(item) is dict or type(item) is list:
            break
    else:
        return False
    level: list[Any] = [v for v in value.values() if isinstance(v, (dict, list))]
    depth = 1
    while level:
        depth += 1
        if depth > DEPTH_LIMIT:
            return True
        level = [
            v
            for item in level
            for v in (item.values() if isinstance(item, dict) else item)
            if isinstance(v, (dict, list))
        ]
    return False


def _grow(parts: list[str], text: str) -> None:
    """Add a text unless it is there already; a longer version of the last replaces it."""
    if not parts:
        parts.append(text)
    elif text.startswith(parts[-1]) and parts[-1]:
        parts[-1] = text
    elif text not in parts:
        parts.append(text)
