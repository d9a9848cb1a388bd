"""What a Claude Code line holds, as far as a trace needs it: typed, so that bulk is skipped unparsed.

The format has no public schema. Unknown fields are passed over; a field of another type than expected sends
the line through `lenient`, which keeps everything else and hands the odd values back.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec


class Block(msgspec.Struct, gc=False):
    """A content block: text, thinking, tool_use, tool_result, image, ..."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None


class Tokens(msgspec.Struct, gc=False):
    """`message.usage`: the three parts of the input are disjoint."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class Message(msgspec.Struct, gc=False):
    """A message of the model's interface."""

    role: str | None = None
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Tokens | None = None
    stop_reason: str | None = None


class ToolUse(msgspec.Struct, gc=False):
    """`toolUseResult` of a call that ran: facts that the result's text lacks. Copies of files are passed over."""

    interrupted: bool | None = None
    stderr: str | None = None
    returnCodeInterpretation: str | None = None
    backgroundTaskId: str | None = None
    persistedOutputPath: str | None = None
    truncated: bool | None = None
    agentId: str | None = None
    totalTokens: int | None = None
    totalDurationMs: float | None = None
    totalToolUseCount: int | None = None


ToolUseResult = ToolUse | str | list[msgspec.Raw] | None


class AgentMessage(msgspec.Struct, gc=False):
    """A sub-agent's message inside a progress record."""

    type: str = ""
    uuid: str | None = None
    timestamp: str | None = None
    message: Message | None = None
    toolUseResult: ToolUseResult = None


class Progress(msgspec.Struct, gc=False):
    """`data` of a progress record."""

    type: str = ""
    agentId: str | None = None
    message: AgentMessage | None = None


class Attachment(msgspec.Struct, gc=False):
    """`attachment` of an attachment record; a queued command's prompt may be typed by a human."""

    type: str = ""
    prompt: str | list[Block] | None = None
    commandMode: str | None = None


class Record(msgspec.Struct, gc=False):
    """One line."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    agentId: str | None = None
    timestamp: str | None = None
    version: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isVisibleInTranscriptOnly: bool | None = None
    isApiErrorMessage: bool | None = None
    message: Message | None = None
    toolUseResult: ToolUseResult = None
    data: Progress | None = None
    attachment: Attachment | None = None
    parentToolUseID: str | None = None
    content: str | list[Block] | None = None
    operation: str | None = None
    summary: str | None = None
    prUrl: str | None = None
    planContent: str | None = None
    origin: Any = None
    hookErrors: list[Any] | None = None
    durationMs: float | None = None


_STRUCTS: dict[tuple[type[msgspec.Struct], str], type[msgspec.Struct]] = {
    (Record, "message"): Message,
    (Record, "toolUseResult"): ToolUse,
    (Record, "data"): Progress,
    (Record, "attachment"): Attachment,
    (Record, "content"): Block,
    (Message, "content"): Block,
    (Message, "usage"): Tokens,
    (Block, "content"): Block,
    (Progress, "message"): AgentMessage,
    (AgentMessage, "message"): Message,
    (AgentMessage, "toolUseResult"): ToolUse,
    (Attachment, "prompt"): Block,
}


class Part(NamedTuple):
    """A piece of a line: a record, or None with the reason; the odd values by field path; size in bytes."""

    record: Record | None
    size: int
    why: str | None = None
    odd: dict[str, Any] | None = None
    note: str | None = None
    whole: dict[str, Any] | None = None


decode = msgspec.json.Decoder(Record).decode
"""The fast path: raises on anything unexpected, and `dissect` then looks closer."""

DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
KNOWN_TYPES = frozenset(
    {
        *("user", "assistant", "system", "progress", "attachment", "summary", "queue-operation"),
        *("file-history-snapshot", "pr-link", "mode", "permission-mode", "custom-title", "ai-title", "agent-name"),
        *("agent-color", "agent-setting", "last-prompt", "tag", "todos", "worktree-state", "attribution-snapshot"),
        *("content-replacement", "speculation-accept", "task-summary", "started", "result", "marble-origami-commit"),
        *("marble-origami-snapshot", "file-history-delta", "bridge-session", "context-collapse"),
    }
)
TOO_DEEP = "nested too deeply"
OBJECTS_LIMIT = 10_000
"""Objects kept of one line."""

_DECODER = json.JSONDecoder()
_TRIES = 8
_STARTS = ('{"parentUuid"', '{"type"', '{"uuid"', '{"sessionId"')


def dissect(data: bytes) -> list[Part]:
    """A line that the fast path refused: the records on it, and what could not be read, byte for byte."""
    try:
        text = data.decode("utf-8")
        note = None
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        note = "bytes that are not UTF-8 were replaced"
    found: list[tuple[dict[str, Any], int]] = []
    lost: list[tuple[int, str]] = []
    position = 0
    while (start := _skip_space(text, position)) < len(text):
        value, position, why = _object(text, start)
        if value is not None and len(found) == OBJECTS_LIMIT:
            value, position, why = None, len(text), f"more than {OBJECTS_LIMIT:,} objects on one line"
        if value is not None:
            found.append((value, start))
        else:
            lost.append((start, why))
    if not found:
        return [Part(None, len(data), lost[0][1] if lost else "an empty line")]
    if len(found) > 1:
        note = "; ".join(filter(None, (note, f"{len(found)} JSON objects on one line: all kept")))
    return _parts(data, text, found, lost, note)


def _object(text: str, start: int) -> tuple[dict[str, Any] | None, int, str]:
    """The object at `start`, or None; where to go on; why there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        return None, _next_record(text, start + 1), TOO_DEEP
    except json.JSONDecodeError as error:
        why = f"not a whole JSON object: {error.msg}, character {error.pos + 1} of the line"
        return None, _next_record(text, start + 1), why
    except ValueError as error:
        return None, _next_record(text, start + 1), f"not JSON that can be read: {error}"
    if isinstance(value, dict):
        return value, end, ""
    return None, _next_record(text, end), f"a JSON {type(value).__name__} where an object was expected"


def _skip_space(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    return start


def _parts(
    data: bytes,
    text: str,
    found: list[tuple[dict[str, Any], int]],
    lost: list[tuple[int, str]],
    note: str | None,
) -> list[Part]:
    """Pieces in order, with sizes that add up to the line's: white space goes to the piece before it."""
    pieces: list[tuple[int, dict[str, Any] | None, str | None]] = [(start, value, None) for value, start in found]
    pieces += [(start, None, why) for start, why in lost]
    pieces.sort(key=lambda piece: piece[0])
    # With replaced bytes, offsets in the text are not offsets in the data: sizes follow the text, the last takes
    # the difference, so that they still add up.
    parts, done = [], 0
    for i, (_, value, why) in enumerate(pieces):
        last = i + 1 == len(pieces)
        end = len(data) if last else min(len(text[: pieces[i + 1][0]].encode("utf-8", "replace")), len(data))
        size, done = max(end - done, 0), max(end, done)
        if value is None:
            parts.append(Part(None, size, why))
        else:
            value = _clean(value)
            record, odd = lenient(value)
            parts.append(Part(record, size, None, odd, note, value))
            note = None
    return parts


def lenient(value: dict[str, Any]) -> tuple[Record, dict[str, Any]]:
    """A record from a decoded object, field by field; odd values come back by path instead of failing it."""
    odd: dict[str, Any] = {}
    return _build(Record, value, "", odd), odd


def _build(cls: Any, value: dict[str, Any], path: str, odd: dict[str, Any]) -> Any:
    fields = {}
    for field in msgspec.structs.fields(cls):
        raw = value.get(field.name)
        if raw is None:
            continue
        where = f"{path}{field.name}"
        inner = _STRUCTS.get((cls, field.name))
        if inner is not None and isinstance(raw, dict):
            fields[field.name] = _wrap(cls, field.name, _build(inner, raw, f"{where}.", odd))
        elif inner is Block and isinstance(raw, list):
            fields[field.name] = [_block(item, f"{where}[{i}]", odd) for i, item in enumerate(raw)]
        else:
            try:
                fields[field.name] = msgspec.convert(raw, field.type, strict=False)
            except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
                odd[where] = raw
    return cls(**fields)


def _wrap(cls: Any, name: str, built: Any) -> Any:
    """A lone block where a list of blocks belongs."""
    return [built] if _STRUCTS[cls, name] is Block else built


def _block(item: Any, where: str, odd: dict[str, Any]) -> Block:
    if isinstance(item, dict):
        block: Block = _build(Block, item, f"{where}.", odd)
        return block
    if isinstance(item, str):
        return Block(type="text", text=item)
    odd[where] = item
    return Block()


def _next_record(text: str, start: int) -> int:
    """Where, after a torn record, a whole one begins on the same line; the end of the text if nowhere."""
    candidates = sorted({at for mark in _STARTS for at in _occurrences(text, mark, start)})
    for at in candidates[:_TRIES]:
        try:
            value, _ = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("type") in KNOWN_TYPES and ("uuid" in value or "sessionId" in value):
            return at
    return len(text)


def _occurrences(text: str, mark: str, start: int) -> list[int]:
    found: list[int] = []
    while len(found) < _TRIES and (start := text.find(mark, start)) >= 0:
        found.append(start)
        start += 1
    return found


def _clean(value: Any) -> Any:
    """The value with lone surrogates replaced, which UTF-8 cannot hold, and integers beyond 64 bits as text."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
