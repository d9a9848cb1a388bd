"""Results of tool calls on tape: recorded once from the real thing, replayed by tool and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from seatrial import canon
from seatrial.errors import FormatError, InputError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.records.protocols import World
from seatrial.world.difference import Path as StatePath
from seatrial.world.difference import differences, mask
from seatrial.world.toolbox import check_origin


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded call: what was asked, what came back, the state after it, and the gate that it triggered."""

    tool: str
    arguments: dict[str, Any]
    result: ToolResult
    state: dict[str, Any] = {}
    gate: Gate | None = None


class Tape(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded session with a world. Its file has one JSON object a line: the head, then the entries."""

    world: str
    version: str
    tools: tuple[ToolSpec, ...]
    volatile: tuple[StatePath, ...]
    start: dict[str, Any]
    entries: tuple[Entry, ...] = ()

    def save(self, path: Path) -> None:
        """Write the tape; equal tapes give equal bytes."""
        head = msgspec.structs.replace(self, entries=())
        lines = [canon.canonical(head), *(canon.canonical(e) for e in self.entries)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\n".join(lines) + b"\n")


def load_tape(path: Path) -> Tape:
    """Read a tape.

    Raises:
        InputError: there is no such file.
        FormatError: a line is no part of a tape; names the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"tape cannot be read: {error.strerror}", file=str(path), hint="record it first") from error
    number = 1
    try:
        head = msgspec.json.decode(lines[0], type=Tape)
        entries = []
        for line in lines[1:]:
            number += 1
            if line.strip():
                entries.append(msgspec.json.decode(line, type=Entry))
    except msgspec.DecodeError as error:
        hint = "record the tape again"
        raise FormatError(f"not a tape: {error}", file=str(path), line=number, hint=hint) from error
    return msgspec.structs.replace(head, entries=tuple(entries))


class RecordingWorld:
    """A world whose calls are recorded; `tape()` is what came so far. Restoring forgets what came after."""

    def __init__(self, inner: World) -> None:
        self.inner = inner
        self._start: dict[str, Any] = inner.state()
        self._entries: list[Entry] = []

    @property
    def name(self) -> str:
        """The inner world's name."""
        return self.inner.name

    @property
    def version(self) -> str:
        """The inner world's version."""
        return self.inner.version

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The inner world's tools."""
        return self.inner.tools

    @property
    def volatile(self) -> tuple[StatePath, ...]:
        """The inner world's volatile paths."""
        return self.inner.volatile

    def reset(self, start: WorldStart) -> None:
        """Begin again with an empty tape."""
        self.inner.reset(start)
        self._start = self.inner.state()
        self._entries = []

    def tape(self) -> Tape:
        """The calls so far."""
        return Tape(
            world=self.name,
            version=self.version,
            tools=self.tools,
            volatile=self.volatile,
            start=self._start,
            entries=tuple(self._entries),
        )

    def gate(self, call: ToolCall) -> Gate | None:
        """The inner world's gate."""
        return self.inner.gate(call)

    def call(self, call: ToolCall) -> ToolResult:
        """The inner world's result, written down."""
        gate = self.inner.gate(call)
        result = self.inner.call(call)
        kept = msgspec.structs.replace(result, call_id=None)
        state = self.inner.state()
        self._entries.append(Entry(tool=call.name, arguments=call.arguments, result=kept, state=state, gate=gate))
        return result

    def state(self) -> dict[str, Any]:
        """The inner world's state."""
        return self.inner.state()

    def state_hash(self) -> str:
        """The inner world's hash."""
        return self.inner.state_hash()

    def snapshot(self) -> Snapshot:
        """The inner snapshot and the length of the tape."""
        inner = self.inner.snapshot()
        data = msgspec.msgpack.encode((self._start, self._entries, inner))
        return msgspec.structs.replace(inner, world="recording " + inner.world, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`.

        Raises:
            InputError: the snapshot is of another world.
        """
        check_origin(snapshot, "recording " + self.name, self.version)
        kind = tuple[dict[str, Any], list[Entry], Snapshot]
        self._start, self._entries, inner = msgspec.msgpack.decode(snapshot.data, type=kind)
        self.inner.restore(inner)

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """The inner world's difference."""
        return self.inner.difference(before, after)


class _Position(msgspec.Struct, frozen=True):
    used: dict[str, int]
    state: dict[str, Any]
    missed: int


class CassetteWorld:
    """Implements `records.World` from a tape alone.

    A call is looked up by tool and arguments (canonical, so the order of keys is nothing). The same call again gives
    the next result recorded for it, and after the last the last. A call that was never recorded is an error with
    ``extra["refused"]`` ``cassette``: the tape does not know, and `missed` counts it. The state is the one recorded
    after the call that was found.
    """

    def __init__(self, tape: Tape) -> None:
        self.name = tape.world
        self.version = tape.version
        self.tools = tape.tools
        self.volatile = tape.volatile
        self._tape = tape
        self._entries: dict[str, list[Entry]] = {}
        for entry in tape.entries:
            self._entries.setdefault(_key(entry.tool, entry.arguments), []).append(entry)
        self._at = _Position({}, tape.start, 0)

    @property
    def missed(self) -> int:
        """Calls so far that the tape does not know."""
        return self._at.missed

    def reset(self, start: WorldStart) -> None:
        """Rewind.

        Raises:
            InputError: the tape was recorded from another start.
        """
        if canon.content_hash(mask(start.state, self.volatile)) != canon.content_hash(
            mask(self._tape.start, self.volatile)
        ):
            hint = "record it again from this start"
            raise InputError(f"the tape of {self.name} begins with another state", hint=hint)
        self._at = _Position({}, self._tape.start, 0)

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that the call triggered when it was recorded."""
        found = self._found(call)
        return found.gate if found is not None else None

    def call(self, call: ToolCall) -> ToolResult:
        """The recorded result."""
        found = self._found(call)
        if found is None:
            self._at = msgspec.structs.replace(self._at, missed=self._at.missed + 1)
            text = f"this call of {call.name} is not on the tape"
            extra = {"refused": "cassette", "cause": "environment", "seconds": 0.0}
            return ToolResult(call_id=call.id, outcome="error", text=text, extra=extra)
        key = _key(call.name, call.arguments)
        used = {**self._at.used, key: self._at.used.get(key, 0) + 1}
        self._at = _Position(used, found.state, self._at.missed)
        return msgspec.structs.replace(found.result, call_id=call.id)

    def state(self) -> dict[str, Any]:
        """The state after the last call that was found."""
        copy: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(self._at.state))
        return copy

    def state_hash(self) -> str:
        """Hash of that state without its volatile fields."""
        return canon.content_hash(mask(self._at.state, self.volatile))

    def snapshot(self) -> Snapshot:
        """The place on the tape."""
        data = msgspec.msgpack.encode(self._at)
        return Snapshot(world="tape of " + self.name, version=self.version, state_hash=self.state_hash(), data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`.

        Raises:
            InputError: the snapshot is of another world.
        """
        check_origin(snapshot, "tape of " + self.name, self.version)
        self._at = msgspec.msgpack.decode(snapshot.data, type=_Position)

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """Leaves that differ, volatile fields left out."""
        return differences(before, after, self.volatile)

    def _found(self, call: ToolCall) -> Entry | None:
        key = _key(call.name, call.arguments)
        entries: Sequence[Entry] = self._entries.get(key, ())
        return entries[min(self._at.used.get(key, 0), len(entries) - 1)] if entries else None


def _key(tool: str, arguments: dict[str, Any]) -> str:
    return canon.content_hash([tool, arguments])
