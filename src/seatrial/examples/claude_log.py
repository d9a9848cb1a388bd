"""Transcripts to Claude Code logs: the JSON lines that this program leaves in its projects folder."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from seatrial.records import Step, ToolResult

CLIENT = "2.1.22"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a log says about its session besides the steps. `cwd` is the project folder on the user's machine."""

    id: str
    cwd: str
    branch: str = "main"


def project_folder(cwd: str) -> str:
    """The folder name under ``projects/`` that Claude Code gives to a project."""
    return cwd.replace("/", "-").replace(".", "-")


def write(folder: Path, session: Session, steps: tuple[Step, ...]) -> Path:
    """Write one session as ``<folder>/<project>/<session>.jsonl``; returns the path."""
    path = folder / project_folder(session.cwd) / f"{session.id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(render(session, steps))
    return path


def render(session: Session, steps: tuple[Step, ...]) -> bytes:
    """The log's bytes. One response is several records with one message id, as it was streamed; ids follow
    from the session's id, so that equal transcripts give equal bytes."""
    log = _Log(session)
    for step in steps:
        if step.event_class == "agent":
            log.agent(step)
        else:
            log.user(step)
    return b"\n".join(log.lines) + b"\n"


class _Log:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self._n = 0

    def user(self, step: Step) -> None:
        record = self._record("user", step.time or 0.0)
        snapshot = {"messageId": record["uuid"], "trackedFileBackups": {}, "timestamp": record["timestamp"]}
        self._write(
            {
                "type": "file-history-snapshot",
                "messageId": record["uuid"],
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )
        self._write(
            {**record, "message": {"role": "user", "content": step.text}, "todos": [], "permissionMode": "default"}
        )

    def agent(self, step: Step) -> None:
        usage = step.usage
        cached = (usage.cached_tokens if usage else None) or 0
        counts = {
            "input_tokens": ((usage.input_tokens if usage else None) or 0) - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": (usage.output_tokens if usage else None) or 0,
            "service_tier": "standard",
        }
        blocks: list[dict[str, Any]] = (
            [{"type": "thinking", "thinking": step.reasoning, "signature": ""}] if step.reasoning else []
        )
        blocks += [{"type": "text", "text": step.text}] if step.text or not step.tool_calls else []
        names = {call.id: "toolu_" + self._token(f"{step.index}:{call.id}", 24) for call in step.tool_calls}
        blocks += [
            {"type": "tool_use", "id": names[call.id], "name": call.name, "input": call.arguments}
            for call in step.tool_calls
        ]
        reason = "tool_use" if step.tool_calls else "end_turn"
        message = {
            "model": step.model or "",
            "id": "msg_" + self._token(f"message {step.index}", 24),
            "type": "message",
            "role": "assistant",
        }
        request = "req_" + self._token(f"request {step.index}", 24)
        for i, block in enumerate(blocks):
            last = i == len(blocks) - 1
            record = self._record("assistant", (step.time or 0.0) + 0.001 * i)
            tail = {"content": [block], "stop_reason": reason if last else None, "stop_sequence": None, "usage": counts}
            self._write({**record, "message": {**message, **tail}, "requestId": request})
        for result in step.results:
            self._result(result, names.get(result.call_id or "", ""), step.time or 0.0)

    def _result(self, result: ToolResult, name: str, time: float) -> None:
        failed = result.outcome in ("error", "rejected")
        text = result.text
        if failed and result.exit_code is not None:
            text = f"Exit code {result.exit_code}\n{text}".rstrip("\n")
        block: dict[str, Any] = {"tool_use_id": name, "type": "tool_result", "content": text, "is_error": failed}
        record = self._record("user", result.time or time)
        detail: Any = f"Error: {text}" if failed else {"stdout": text, "stderr": "", "interrupted": False}
        self._write({**record, "message": {"role": "user", "content": [block]}, "toolUseResult": detail})

    def _record(self, kind: str, time: float) -> dict[str, Any]:
        self._n += 1
        record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.session.cwd,
            "sessionId": self.session.id,
            "version": CLIENT,
            "gitBranch": self.session.branch,
            "type": kind,
            "uuid": str(uuid.UUID(hex=self._token(f"record {self._n}", 32))),
            "timestamp": datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.parent = str(record["uuid"])
        return record

    def _token(self, what: str, length: int) -> str:
        return hashlib.sha256(f"{self.session.id}/{what}".encode()).hexdigest()[:length]

    def _write(self, record: dict[str, Any]) -> None:
        self.lines.append(msgspec.json.encode(record))
