"""The reader: lines in, traces out, with every byte of the file accounted for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.ingest.codex.session import Session
from seatrial.ingest.drafts import text_or_none
from seatrial.ingest.jsontext import BadJSON, kind, loads
from seatrial.ingest.lines import lines, too_long
from seatrial.records import Provenance, ReadLog, Trace

_MARK = re.compile(rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted)"')
_NAME = re.compile(r"^rollout-.*\.jsonl$")
_OLD_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


class Codex:
    """Reads one rollout file. Memory holds one thread at a time, and one line."""

    name = "codex"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when a line is an envelope of a known type with a payload; likely for the bare items of 2025."""
        for line in head.split(b"\n")[:20]:
            if _MARK.search(line[:4096]) is None or b'"payload"' not in line:
                continue
            try:
                value, _ = loads(line)
            except BadJSON:
                if line.startswith((b'{"timestamp"', b'{"type"')):
                    return 0.9
                continue
            if isinstance(value, dict) and text_or_none(value.get("type")) in _ENVELOPES and "payload" in value:
                return 0.97
        if _NAME.match(path.name) and any(f'"type":"{old}"'.encode() in head for old in _OLD_ITEMS):
            return 0.9
        return 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The thread's trace; a file of several unrelated threads gives each in turn."""
        session = Session(log, path.stem)
        digest, start, end = hashlib.sha256(), 0, 0
        with path.open("rb", buffering=1 << 18) as stream:
            for number, data, size in lines(stream, on_skipped=digest.update):
                if data is None:
                    log.skip(number, too_long(size), size)
                    end += size
                    continue
                record = self._record(number, data, log)
                if record is not None:
                    if session.ended_by(record):
                        yield from session.traces(self._provenance(path, start, end, digest.hexdigest()))
                        session, digest, start = Session(log, path.stem), hashlib.sha256(), end
                    log.kept(size, session.take(record, number))
                digest.update(data)
                end += size
        yield from session.traces(self._provenance(path, start, end, digest.hexdigest()))

    def _record(self, number: int, data: bytes, log: ReadLog) -> dict[str, Any] | None:
        """The line as an envelope with ``type`` and ``payload``; None when it was accounted for here."""
        if data.isspace():
            log.kept(len(data), "blank line")
            return None
        try:
            value, repairs = loads(data)
        except BadJSON as error:
            log.skip(number, error.why, len(data))
            return None
        if not isinstance(value, dict):
            log.skip(number, f"expected a record object, found {kind(value)}", len(data))
            return None
        for repair in repairs:
            log.note(number, repair)
        return value if "payload" in value else _enveloped(value)

    def _provenance(self, path: Path, start: int, end: int, digest: str) -> Provenance:
        return Provenance(
            format=self.name,
            reader=self.name,
            reader_version=self.version,
            file=str(path),
            byte_start=start,
            byte_end=end,
            content_hash=digest,
        )


def _enveloped(value: dict[str, Any]) -> dict[str, Any]:
    """A bare record of the first rollout files in the envelope that later ones have."""
    if text_or_none(value.get("type")) in _OLD_ITEMS:
        return {"type": "response_item", "timestamp": value.get("timestamp"), "payload": value}
    if "type" not in value and "id" in value and "timestamp" in value:
        return {"type": "session_meta", "timestamp": value.get("timestamp"), "payload": value}
    if value.get("record_type") == "state":
        return {"type": "state", "payload": {}}
    return value


READER = Codex()
