"""A session under construction: its own conversation, its sub-agents', and what belongs to neither."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial.ingest.claude_code.conversation import Conversation, seconds, totals
from seatrial.ingest.claude_code.siblings import Siblings
from seatrial.ingest.claude_code.source import AgentMessage, Message, Record
from seatrial.ingest.claude_code.turns import flat, record_id
from seatrial.records import Agent, Provenance, ReadLog, Step, Trace

KEPT_WHOLE = 1000
"""Records of unknown type, and values of unexpected type, kept whole per session."""

_WHOLE = {"unknown_records", "odd_values"}


class Chain(msgspec.Struct):
    """A sub-agent's conversation. `agent` is its id where the source names it, `anchor` the record it hangs on."""

    talk: Conversation
    agent: str | None = None
    root: str | None = None
    anchor: str | None = None
    call: str | None = None
    extra: dict[str, Any] = {}


class Session:
    """Takes records one by one; `traces` hands out the result.

    `stem` is the file's name without its suffix: the session's id, unless someone renamed the file.
    """

    def __init__(self, log: ReadLog, stem: str, siblings: Siblings) -> None:
        self.id: str | None = None
        self._continues: str | None = None
        self._stem = stem
        self._siblings = siblings
        self.main = Conversation(subagent=False)
        self._log = log
        self._chains: dict[str, Chain] = {}
        self._chain_of: dict[str, str] = {}
        self._own: set[str] = set()
        self._version: str | None = None
        self._versions: dict[str, None] = {}
        self._extra: dict[str, Any] = {}
        self._turn_ms = 0.0

    def take(self, record: Record, line: int) -> str:
        """Add a record; returns the name under which its bytes are accounted for."""
        kind = record.type
        if record.sessionId != self.id and record.sessionId is not None:
            self._opened(record)
        if kind in ("assistant", "user"):
            return self._message(record, line)
        if kind == "progress":
            return self._progress(record)
        if kind == "system":
            return self._system(record)
        if kind == "attachment":
            return self._attachment(record)
        if kind == "queue-operation":
            self._queue(record)
        elif kind == "summary" and record.summary:
            self._extra.setdefault("summaries", []).append(record.summary)
        elif kind == "pr-link" and record.prUrl:
            links = self._extra.setdefault("pr_links", [])
            if record.prUrl not in links:
                links.append(record.prUrl)
        return kind

    def keep_whole(self, line: int, what: str, value: Any) -> bool:
        """Keep something that no field takes, as JSON text; False when there is no room left."""
        kept = self._extra.setdefault(what, [])
        if len(kept) >= KEPT_WHOLE:
            return False
        try:
            kept.append({"line": line, "json": json.dumps(value, ensure_ascii=False)})
        except (RecursionError, ValueError):
            return False
        return True

    def _opened(self, record: Record) -> None:
        if self.id is None:
            self.id = record.sessionId
            if record.cwd:
                self._extra["cwd"] = record.cwd
            if record.gitBranch:
                self._extra["git_branch"] = record.gitBranch
        elif record.sessionId == self._stem:
            self._continues, self.id = self.id, record.sessionId

    def _counts(self, rid: str | None) -> bool | None:
        """True if the record counts, False if another file had it, None if this file did."""
        if rid is None:
            return True
        if not self._log.seen(rid):
            self._own.add(rid)
            return True
        if rid in self._own:
            return None
        self._own.add(rid)
        return False

    def _message(self, record: Record, line: int) -> str:
        message = record.message
        if message is None:
            self._log.note(line, f"a record of type {record.type} without a message")
            return f"{record.type} without a message"
        rid = record_id(record.uuid, message.content)
        counted = self._counts(rid)
        time = seconds(record.timestamp)
        if counted is None:
            if record.type == "assistant":
                self._talk(record).agent(message, time, uuid=None, rid=None, counted=False)
            return "duplicate"
        if record.version is not None and record.version != self._version:
            self._version = record.version
            self._versions[record.version] = None
        talk = self._talk(record) if record.isSidechain else self.main
        if record.type == "assistant":
            talk.agent(
                message,
                time,
                uuid=record.uuid,
                rid=rid,
                counted=counted,
                api_error=bool(record.isApiErrorMessage),
            )
        else:
            talk.user(
                message.content,
                record.toolUseResult,
                time,
                rid=rid,
                counted=counted,
                kind=_written_by_harness(record),
            )
        return record.type

    def _talk(self, record: Record) -> Conversation:
        """The conversation that the record belongs to."""
        if not record.isSidechain:
            return self.main
        key = record.agentId or (self._chain_of.get(record.parentUuid) if record.parentUuid else None)
        if key is None:
            key = f"root {record.uuid}"
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = Chain(
                Conversation(subagent=True), record.agentId, record.uuid, record.parentUuid
            )
        if record.uuid is not None:
            self._chain_of[record.uuid] = key
        return chain.talk

    def _progress(self, record: Record) -> str:
        data = record.data
        if data is None:
            return "progress"
        if data.type != "agent_progress" or data.message is None or data.message.message is None:
            return f"progress:{data.type}"
        if data.agentId is not None and self._siblings.has_agent(data.agentId):
            return "progress:agent_progress, in the agent's own file"
        key = data.agentId or f"call {record.parentToolUseID}"
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = Chain(
                Conversation(subagent=True), data.agentId, record.uuid, None, record.parentToolUseID
            )
        return self._inner(chain, data.message, data.message.message)

    def _inner(self, chain: Chain, outer: AgentMessage, message: Message) -> str:
        rid = record_id(outer.uuid, message.content)
        counted = self._counts(rid)
        if counted is None:
            return "duplicate"
        time = seconds(outer.timestamp)
        if outer.type == "assistant":
            chain.talk.agent(message, time, uuid=outer.uuid, rid=rid, counted=counted)
        else:
            chain.talk.user(message.content, outer.toolUseResult, time, rid=rid, counted=counted)
        return "progress:agent_progress"

    def _system(self, record: Record) -> str:
        name = f"system:{record.subtype or 'other'}"
        if record.subtype == "turn_duration":
            self._turn_ms += record.durationMs or 0.0
            return name
        text = flat(record.content)[0]
        if not text and not record.hookErrors:
            return name
        rid = record_id(record.uuid, text)
        counted = self._counts(rid)
        if counted is None:
            return "duplicate"
        kind = {"stop_hook_summary": "hook", "local_command": "command"}.get(record.subtype or "", record.subtype)
        turn = self._talk(record).harness(kind or "system", text, seconds(record.timestamp), rid=rid, counted=counted)
        if record.hookErrors:
            turn.extra["hook_errors"] = [json.dumps(error, ensure_ascii=False) for error in record.hookErrors]
        return name

    def _attachment(self, record: Record) -> str:
        item = record.attachment
        if item is None:
            return "attachment"
        if item.type == "queued_command" and item.prompt is not None:
            rid = record_id(record.uuid, item.prompt)
            counted = self._counts(rid)
            if counted is None:
                return "duplicate"
            by_harness = _origin(record) or (item.commandMode if item.commandMode not in (None, "prompt") else None)
            self._talk(record).user(
                item.prompt,
                None,
                seconds(record.timestamp),
                rid=rid,
                counted=counted,
                kind=by_harness.replace("-", "_") if by_harness else None,
            )
        return f"attachment:{item.type}"

    def _queue(self, record: Record) -> None:
        text = flat(record.content)[0]
        if not text:
            return
        if record.operation == "enqueue":
            self.main.enqueue(text, seconds(record.timestamp))
        else:
            self.main.unqueue(text)

    def traces(self, provenance: Provenance, taken: set[str]) -> Iterator[Trace]:
        """The session's trace, if it has a conversation, then those of its sub-agents.

        A renamed file (a copy, a snapshot) adds its name to the id, so that two files of one session do not
        replace each other. `taken` holds the ids that this file already gave, and takes the new ones.
        """
        name = self.id or self._stem
        own = name if name == self._stem else f"{name}@{self._stem}"
        if self.main.turns:
            own = _fresh(own, taken)
        parent = own if self.main.turns else name
        links = {}
        children = []
        for chain in self._chains.values():
            self._place(chain, name)
            child = _fresh(f"{parent}:{chain.agent or chain.root}", taken)
            if chain.call is not None:
                links[chain.call] = child
            children.append((chain, child))
        if self.main.turns or (not children and _WHOLE & self._extra.keys()):
            own = own if self.main.turns else _fresh(own, taken)
            self._link(self.main, links, name)
            extra = {"turn_ms": self._turn_ms} if self._turn_ms else {}
            yield self._trace(own, self.main, provenance, extra, self._extra, continues=self._continues)
        elif self._extra and children:
            children[0][0].extra = self._extra
        for chain, child in children:
            yield self._trace(child, chain.talk, provenance, {}, chain.extra, parent=parent, call=chain.call)

    def _place(self, chain: Chain, name: str) -> None:
        """Find the call that started a sub-agent, and the name that the call's result gave it."""
        if chain.call is None and chain.anchor is not None:
            calls = self.main.calls_of.get(chain.anchor, [])
            if len(calls) == 1:
                chain.call = calls[0]
        if chain.call is None and chain.agent is not None and not self.main.turns:
            chain.call = self._siblings.starter(name, chain.agent)
        if chain.call is None and chain.agent is None:
            prompt = "\n".join(chain.talk.turns[0].texts) if chain.talk.turns else ""
            matching = [
                call
                for call, turn in self.main.calls.items()
                if turn.calls[call].arguments.get("prompt") == prompt and prompt
            ]
            chain.call = matching[0] if len(matching) == 1 else None
        for turn in self.main.turns if chain.call is None else [self.main.calls.get(chain.call)]:
            for result in turn.results if turn is not None else ():
                named = result.extra.get("agent")
                if chain.call is None and named is not None and named == chain.agent:
                    chain.call = result.call_id
                elif chain.agent is None and named is not None and result.call_id == chain.call:
                    chain.agent = named

    def _link(self, talk: Conversation, links: dict[str, str], name: str) -> None:
        """Results name the sub-agents' traces: those of this file, else those that a file of their own holds."""
        for turn in talk.turns:
            for i, result in enumerate(turn.results):
                child = links.get(result.call_id) if result.call_id else None
                if child is None and "agent" in result.extra:
                    child = f"{name}:{result.extra['agent']}"
                if child is not None:
                    turn.results[i] = msgspec.structs.replace(result, subagents=(child,))

    def _trace(
        self,
        trace_id: str,
        talk: Conversation,
        provenance: Provenance,
        measured: dict[str, Any],
        extra: dict[str, Any],
        *,
        parent: str | None = None,
        call: str | None = None,
        continues: str | None = None,
    ) -> Trace:
        steps = talk.steps()
        versions = list(self._versions)
        return Trace(
            id=trace_id,
            agent=Agent(
                name="claude-code",
                version=versions[0] if versions else None,
                extra={"versions": versions} if len(versions) > 1 else {},
            ),
            provenance=provenance,
            model=_first_model(steps),
            steps=steps,
            totals=totals(steps, measured),
            parent=parent,
            parent_call=call,
            continues=continues,
            extra=extra,
        )


def _fresh(trace_id: str, taken: set[str]) -> str:
    """The id, with a count behind it if it is taken."""
    fresh, n = trace_id, 1
    while fresh in taken:
        n += 1
        fresh = f"{trace_id}~{n}"
    taken.add(fresh)
    return fresh


def _first_model(steps: tuple[Step, ...]) -> str | None:
    return next((step.model for step in steps if step.model is not None), None)


def _written_by_harness(record: Record) -> str | None:
    """The kind of a user record whose fields say that no human typed it; None if they do not."""
    if record.isCompactSummary:
        return "compact_summary"
    if record.isMeta:
        return "meta"
    if record.planContent is not None:
        return "plan"
    if record.isVisibleInTranscriptOnly:
        return "transcript_only"
    return _origin(record)


def _origin(record: Record) -> str | None:
    kind = record.origin.get("kind") if isinstance(record.origin, dict) else None
    if not isinstance(kind, str) or kind == "human":
        return None
    return kind.replace("-", "_")
