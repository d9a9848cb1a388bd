"""One thread: its records in order, and the trace that they come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.ingest.codex.copies import Copies, Origin
from seatrial.ingest.codex.outputs import end_of, output_of
from seatrial.ingest.codex.tokens import Tokens
from seatrial.ingest.drafts import Draft, Thread, a_list, added, an_object, rest, text_or_none, totals
from seatrial.ingest.jsontext import as_text
from seatrial.ingest.messages import arguments_of
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.records import Agent, EventClass, Provenance, ReadLog, ToolCall, ToolResult, Trace, Usage

_KEPT_WHOLE = 1000
"""Records of unknown types kept whole in `Trace.extra`, per thread."""

_WRAPPED = re.compile(r"<([a-z][a-z0-9_]*)(?:\s[^>]*)?>.*</\1>\s*\Z", re.DOTALL)
_ALWAYS_HARNESS = frozenset({"skill", "user_shell_command", "subagent_notification", "environment_context"})
_BOOKKEEPING = frozenset(
    {
        *("task_started", "turn_started", "task_complete", "turn_complete", "context_compacted", "web_search_end"),
        *("exec_command_begin", "exec_command_output_delta", "patch_apply_begin", "mcp_tool_call_begin"),
        *("web_search_begin", "agent_message_delta", "agent_reasoning_section_break", "session_configured"),
    }
)
_ENDS = frozenset({"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "dynamic_tool_call_response"})
_TROUBLE = frozenset({"error", "stream_error", "warning"})


class Session:
    """Takes the records of one thread."""

    def __init__(self, log: ReadLog, named: str) -> None:
        self._log = log
        self._named = named
        self._id: str | None = None
        self._meta: dict[str, Any] = {}
        self._ancestors: list[dict[str, Any]] = []
        self._contexts: list[dict[str, Any]] = []
        self._context: dict[str, Any] = {}
        self._unknown: list[dict[str, Any]] = []
        self._thread = Thread()
        self._copies = Copies(log)
        self._tokens = Tokens()
        self._open: Draft | None = None
        self._counted = False
        self._items = 0
        self._records = 0
        self._unplaced: Usage | None = None
        self._ended: dict[str, dict[str, Any]] = {}
        self._typed: dict[int, bool] = {}
        self._noted: set[str] = set()

    def ended_by(self, record: dict[str, Any]) -> bool:
        """Whether this record begins another, unrelated thread."""
        if record.get("type") != "session_meta" or self._id is None or not self._thread.drafts:
            return False
        new = an_object(record.get("payload")).get("id")
        return new != self._id and not self._copies.replaying and not self._ancestors and self._parent() is None

    def take(self, record: dict[str, Any], line: int) -> str:
        """Take a record in; what kind of record it was."""
        self._records += 1
        payload = an_object(record.get("payload"))
        time = moment(record.get("timestamp"))
        envelope = record.get("type")
        sub = payload.get("type")
        if envelope == "session_meta":
            self._header(payload)
        elif envelope == "turn_context":
            self._turn_context(payload)
        elif envelope == "response_item" and isinstance(sub, str):
            self._items += 1
            if not self._item(sub, payload, time):
                self._keep(record, f"response_item:{sub}", line)
        elif envelope == "event_msg" and isinstance(sub, str):
            if not self._event(sub, payload, time):
                self._keep(record, f"event_msg:{sub}", line)
        elif envelope == "compacted":
            self._compacted(payload, time)
        elif envelope != "state":
            self._keep(record, as_text(envelope)[:40], line)
        return f"{envelope}:{sub}"[:60] if isinstance(sub, str) else str(envelope)[:60]

    def traces(self, provenance: Provenance) -> Iterator[Trace]:
        """The thread's trace; none when no record was one of a thread."""
        if not self._records or (self._id is None and not self._thread.drafts):
            return
        self._settle()
        steps = self._thread.steps()
        extra: dict[str, Any] = {"session_meta": self._meta}
        for name, kept in (
            ("ancestors", self._ancestors),
            ("turn_contexts", self._contexts),
            ("unknown_records", self._unknown),
        ):
            if kept:
                extra[name] = kept
        total = totals(steps)
        if self._unplaced is not None:
            total = totals(steps, added(total.usage, self._unplaced))
        parent = self._parent()
        forked = text_or_none(self._meta.get("forked_from_id"))
        models = [step.model for step in steps if step.model is not None and not step.copied]
        yield Trace(
            id=self._id or self._named,
            agent=Agent(
                name="codex",
                version=text_or_none(self._meta.get("cli_version")),
                extra=rest({"originator": self._meta.get("originator")}),
            ),
            model=models[0] if models else text_or_none(self._context.get("model")),
            steps=steps,
            totals=total,
            provenance=provenance,
            parent=parent,
            continues=forked if forked != parent else None,
            extra=extra,
        )

    def _parent(self) -> str | None:
        source = an_object(an_object(self._meta.get("source")).get("subagent"))
        spawned = an_object(source.get("thread_spawn")).get("parent_thread_id")
        return text_or_none(spawned) or text_or_none(self._meta.get("parent_thread_id"))

    def _header(self, payload: dict[str, Any]) -> None:
        own = text_or_none(payload.get("id")) or text_or_none(payload.get("session_id"))
        if self._id is None and own is not None:
            self._id, self._meta = own, payload
            self._copies.thread(own, text_or_none(payload.get("forked_from_id")) or self._parent())
        elif own is not None and own != self._id:
            self._ancestors.append({name: value for name, value in payload.items() if name != "base_instructions"})
            self._copies.ancestor(own)

    def _turn_context(self, payload: dict[str, Any]) -> None:
        self._copies.turn(payload.get("turn_id"))
        changed = {name: value for name, value in payload.items() if self._context.get(name) != value}
        if changed.keys() - {"turn_id"}:
            self._contexts.append(changed)
        self._context = payload

    def _keep(self, record: dict[str, Any], what: str, line: int) -> None:
        if len(self._unknown) >= _KEPT_WHOLE:
            self._log.note(line, f"a record of unknown type {what!r}, and too many such records to keep")
            return
        self._unknown.append(record)
        if what not in self._noted and len(self._noted) < 100:
            self._noted.add(what)
            self._log.note(line, f"records of unknown type {what!r}: kept in Trace.extra['unknown_records']")

    # Items of the conversation

    def _item(self, sub: str, payload: dict[str, Any], time: float | None) -> bool:
        if sub == "message":
            return self._message(payload, time)
        if sub == "reasoning":
            draft = self._agent(payload, time, fresh=True)
            for part in (*a_list(payload.get("summary")), *a_list(payload.get("content"))):
                if text := text_or_none(an_object(part).get("text")):
                    draft.reasoning.append(text)
            if payload.get("encrypted_content") and "encrypted" not in self._noted:
                self._noted.add("encrypted")
                self._log.note(None, "encrypted reasoning is opaque and is not kept")
            return True
        if sub.endswith("_output"):
            self._output(payload, time)
            return True
        if sub.endswith("_call"):
            self._call(sub, payload, time)
            return True
        return sub == "ghost_snapshot"

    def _message(self, payload: dict[str, Any], time: float | None) -> bool:
        role = payload.get("role")
        parts = a_list(payload.get("content"))
        texts = [text for part in parts if (text := an_object(part).get("text")) and isinstance(text, str)]
        others = [part for part in parts if not isinstance(an_object(part).get("text"), str)]
        text = "\n".join(texts) if parts else text_or_none(payload.get("content")) or ""
        extra = rest(payload, "type", "role", "content", "id")
        if others:
            extra["content"] = others
        if role == "assistant":
            draft = self._agent(payload, time, fresh=True)
            draft.say(text)
            draft.extra.update(extra)
        elif role == "user":
            if spoken(text).event_class == "human" and not _WRAPPED.match(text.strip()):
                self._copies.prompted()
            self._person(text, extra, self._copies.origin(payload), time)
        elif isinstance(role, str):
            self._add(
                Draft("harness", text, time=time, kind="system_prompt", extra=extra), self._copies.origin(payload)
            )
        else:
            return False
        return True

    def _person(self, text: str, extra: dict[str, Any], origin: Origin, time: float | None) -> None:
        bare = text.strip()
        if bare.startswith("<turn_aborted>"):
            self._interrupted(text, extra, origin, time)
            return
        waiting = self._matching(text, typed=True)
        if waiting is not None:
            waiting.extra.update(extra)
            waiting.source_ids.append(origin.record)
            self._typed.pop(id(waiting), None)
            return
        said = spoken(text)
        draft = Draft(said.event_class, said.text, time=time, kind=said.kind, extra=extra)
        if said.injected:
            draft.extra["injected"] = list(said.injected)
        self._typed[id(draft)] = False
        self._add(draft, origin)

    def _matching(self, text: str, *, typed: bool) -> Draft | None:
        """A user turn of this text among the last ones: typed (known from its event alone), or not yet confirmed."""
        wanted = " ".join(text.split())
        for draft in reversed(self._thread.drafts[-8:]):
            if self._typed.get(id(draft)) is not typed:
                continue
            have = " ".join(draft.text.split())
            if have == wanted or (wanted and have and (wanted in have or have in wanted)):
                return draft
        return None

    def _call(self, sub: str, payload: dict[str, Any], time: float | None) -> None:
        draft = self._agent(payload, time, fresh=False)
        name = text_or_none(payload.get("name")) or sub.removesuffix("_call")
        given = payload.get("arguments", payload.get("action"))
        arguments, raw, validity = arguments_of(given)
        if sub == "custom_tool_call":
            arguments, raw, validity = {"input": payload.get("input")}, None, "unknown"
        call_id = text_or_none(payload.get("call_id")) or text_or_none(payload.get("id"))
        call = ToolCall(
            id=call_id or f"call-{len(self._thread.drafts) - 1}-{len(draft.calls)}",
            name=name,
            arguments=arguments,
            raw_arguments=raw,
            validity=validity,
            extra=rest(payload, "type", "name", "arguments", "action", "input", "call_id"),
        )
        self._thread.call(draft, call)
        if sub == "web_search_call" and payload.get("status") in ("completed", "failed"):
            done = payload["status"] == "completed"
            self._thread.answer(ToolResult(call_id=call.id, outcome="ok" if done else "error", time=time))

    def _output(self, payload: dict[str, Any], time: float | None) -> None:
        call_id = text_or_none(payload.get("call_id"))
        ended = self._ended.pop(call_id, {}) if call_id is not None else {}
        output = output_of(payload.get("output", payload.get("tools")), ended)
        outcome = output.outcome
        if outcome == "unknown" and payload.get("status") in ("completed", "failed"):
            outcome = "ok" if payload["status"] == "completed" else "error"
        self._copies.origin(payload)
        self._thread.answer(
            ToolResult(
                call_id=call_id,
                outcome=outcome,
                exit_code=output.exit_code,
                text=output.text,
                truncated=output.truncated,
                time=time,
                extra=rest(payload, "type", "call_id", "output", "tools") | output.extra | ended.get("kept", {}),
            )
        )

    def _agent(self, payload: dict[str, Any], time: float | None, *, fresh: bool) -> Draft:
        """The agent step that this item belongs to. One response ends where tokens are counted.

        Where none are, it ends with the first result: what follows answers it. `fresh`: the item opens a
        response rather than adding a parallel call.
        """
        record, copied = self._copies.origin(payload)
        draft = self._open
        if (
            draft is None
            or draft.copied != copied
            or self._thread.drafts[-1] is not draft
            or (draft.results and (fresh or not self._counted))
        ):
            draft = Draft("agent", time=time, model=text_or_none(self._context.get("model")), copied=copied)
            if effort := text_or_none(self._context.get("effort")):
                draft.extra["effort"] = effort
            self._open = self._thread.add(draft)
        draft.source_ids.append(record)
        return draft

    def _add(self, draft: Draft, origin: Origin) -> Draft:
        self._open = None
        draft.source_ids.append(origin.record)
        draft.copied = origin.copied
        return self._thread.add(draft)

    # Events beside the conversation

    def _event(self, sub: str, payload: dict[str, Any], time: float | None) -> bool:
        handler: Callable[[dict[str, Any], float | None], None] | None = {
            "user_message": self._user_message,
            "token_count": self._token_count,
            "turn_aborted": self._turn_aborted,
            "agent_message": self._spoken_only,
            "agent_reasoning": self._thought_only,
        }.get(sub)
        if handler is not None:
            handler(payload, time)
        elif sub in _ENDS:
            if (call_id := text_or_none(payload.get("call_id"))) is not None:
                self._ended[call_id] = end_of(payload)
        elif sub in _TROUBLE:
            text = text_or_none(payload.get("message")) or ""
            kind = "warning" if sub == "warning" else "api_error"
            origin = self._copies.origin({"type": sub, "content": text})
            self._add(Draft("harness", text, time=time, kind=kind, extra=rest(payload, "message")), origin)
        elif sub not in _BOOKKEEPING:
            return False
        if sub in ("task_started", "turn_started"):
            self._copies.turn(payload.get("turn_id"))
        elif sub in ("task_complete", "turn_complete", "turn_aborted"):
            self._copies.turn_ended()
        return True

    def _user_message(self, payload: dict[str, Any], time: float | None) -> None:
        text = text_or_none(payload.get("message")) or ""
        plain = payload.get("kind") in (None, "plain")
        known = self._matching(text, typed=False)
        if known is not None:
            del self._typed[id(known)]
            return
        if any(self._typed.get(id(draft)) is None and draft.text == text for draft in self._thread.drafts[-2:]):
            return
        said = spoken(text)
        who: EventClass = said.event_class if plain else "harness"
        origin = self._copies.origin({"type": "message", "role": "user", "content": text})
        kind = said.kind if plain else text_or_none(payload.get("kind"))
        draft = self._add(Draft(who, said.text, time=time, kind=kind), origin)
        draft.extra.update(rest({name: payload.get(name) or None for name in ("images", "local_images")}))
        self._typed[id(draft)] = True

    def _spoken_only(self, payload: dict[str, Any], time: float | None) -> None:
        """What the agent said, in a file that has events only; elsewhere the item says it again."""
        if not self._items:
            self._agent(payload, time, fresh=True).say(text_or_none(payload.get("message")) or "")

    def _thought_only(self, payload: dict[str, Any], time: float | None) -> None:
        if not self._items and (text := text_or_none(payload.get("text"))):
            self._agent(payload, time, fresh=True).reasoning.append(text)

    def _token_count(self, payload: dict[str, Any], time: float | None) -> None:
        if not isinstance(payload.get("info"), dict):
            return
        forked = bool(self._ancestors) or self._meta.get("forked_from_id") is not None or self._parent() is not None
        usage = self._tokens.take(payload["info"], forked=forked)
        self._counted = True
        home = self._open or self._thread.last_agent()
        self._open = None
        if usage is None:
            return
        if home is None:
            self._unplaced = usage
        else:
            home.spend(usage)

    def _turn_aborted(self, payload: dict[str, Any], time: float | None) -> None:
        extra = rest(payload, "type")
        last = self._thread.drafts[-1] if self._thread.drafts else None
        origin = self._copies.origin({"type": "turn_aborted", "content": payload.get("turn_id")})
        if payload.get("reason") not in (None, "interrupted", "replaced"):
            self._add(Draft("harness", time=time, kind="turn_aborted", extra=extra), origin)
        elif last is not None and last.kind == "turn_aborted":
            last.extra.update(extra)
        else:
            self._add(Draft("interrupted", time=time, kind="turn_aborted", extra=extra), origin)

    def _interrupted(self, text: str, extra: dict[str, Any], origin: Origin, time: float | None) -> None:
        last = self._thread.drafts[-1] if self._thread.drafts else None
        if last is not None and last.kind == "turn_aborted" and not last.text:
            last.text = text
            last.extra.update(extra)
        else:
            self._add(Draft("interrupted", text, time=time, kind="turn_aborted", extra=extra), origin)

    def _compacted(self, payload: dict[str, Any], time: float | None) -> None:
        history = [
            {name: value for name, value in item.items() if name != "encrypted_content"}
            for item in a_list(payload.get("replacement_history"))
            if isinstance(item, dict)
        ]
        extra = rest(payload, "message", "replacement_history")
        if history:
            extra["replacement_history"] = history
        text = text_or_none(payload.get("message")) or ""
        origin = self._copies.origin({"type": "compacted", "content": text, "summary": len(history)})
        self._add(Draft("harness", text, time=time, kind="compact_summary", extra=extra), origin)

    def _settle(self) -> None:
        """Decide on user turns that no event confirmed: wrapped in a tag, they are the harness's."""
        confirming = any(self._typed.get(id(d)) is None for d in self._thread.drafts if d.event_class == "human")
        for draft in self._thread.drafts:
            if draft.event_class != "human" or self._typed.get(id(draft)) is not False:
                continue
            wrapped = _WRAPPED.match(draft.text.strip())
            if wrapped and (confirming or wrapped.group(1) in _ALWAYS_HARNESS):
                draft.event_class, draft.kind = "harness", wrapped.group(1)
