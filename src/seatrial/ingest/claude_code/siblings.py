"""Files beside a session's: sub-agents in files of their own, and the session that started them."""

from __future__ import annotations

import functools
from pathlib import Path

from seatrial.ingest.claude_code.source import DECODE_ERRORS, ToolUse, decode
from seatrial.ingest.lines import lines


class Siblings:
    """What lies beside one file: ``<session>/subagents/agent-<id>.jsonl``, or ``agent-<id>.jsonl`` in the folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, bool] = {}

    def has_agent(self, agent: str) -> bool:
        """Whether a sub-agent has a file of its own, which tells its story better than progress records do."""
        known = self._known.get(agent)
        if known is None:
            name = f"agent-{agent}.jsonl"
            places = (self._path.with_suffix("") / "subagents" / name, self._path.parent / name)
            safe = "/" not in agent and "\0" not in agent and len(name) < 200
            known = self._known[agent] = safe and any(place.is_file() for place in places)
        return known

    def starter(self, session: str, agent: str) -> str | None:
        """The call of session `session` that started this file's sub-agent; None where its file is not at hand."""
        if self._path.stem != f"agent-{agent}":
            return None
        if self._path.parent.name == "subagents":
            parent = self._path.parent.parent.with_suffix(".jsonl")
        elif "/" not in session and "\0" not in session and len(session) < 200:
            parent = self._path.parent / f"{session}.jsonl"
        else:
            return None
        try:
            stat = parent.stat()
            return _calls(parent, stat.st_mtime_ns, stat.st_size).get(agent)
        except OSError:
            return None


@functools.lru_cache(maxsize=8)
def _calls(session: Path, mtime_ns: int, size: int) -> dict[str, str]:
    """Sub-agent to call, from the results of a session's file. Cached, as one session may have many sub-agents."""
    found = {}
    with session.open("rb") as stream:
        for _, data, _ in lines(stream):
            if data is None or b'"agentId"' not in data or b'"tool_result"' not in data:
                continue
            try:
                record = decode(data)
            except DECODE_ERRORS:
                continue
            used, content = record.toolUseResult, record.message.content if record.message else None
            if isinstance(used, ToolUse) and used.agentId and isinstance(content, list):
                calls = [block.tool_use_id for block in content if block.tool_use_id]
                if len(calls) == 1:
                    found[used.agentId] = calls[0]
    return found
