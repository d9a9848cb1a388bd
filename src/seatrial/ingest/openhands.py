"""OpenHands event logs to traces: a JSON array of events, or ``output.jsonl`` with one attempt per line.

An action and its observation are two events; the observation names its action (``cause``) or follows it. In an
attempt of an evaluation the first message is the task, and its recorded verdict (``success``, or ``resolved`` of
a test report) is the trace's outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seatrial.ingest.drafts import Draft, Thread, a_list, an_object, rest, text_or_none, totals, with_cost
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import as_text, first_keys, kind
from seatrial.ingest.messages import amount, arguments_of, usage_of
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.ingest.values import Value, digest_of, values
from seatrial.records import (
    Agent,
    ReadLog,
    RecordedOutcome,
    ResultOutcome,
    TaskRef,
    ToolCall,
    ToolResult,
    Trace,
    Usage,
)

_SHAPE = "OpenHands events: an array of actions and observations, or an attempt with a history of them"
_ENVELOPE = ("id", "timestamp", "source", "message", "cause", "tool_call_metadata", "llm_metrics", "action")
_QUIET = ("null", "agent_state_changed", "recall")
_SILENT = ("null", "recall", "change_agent_state", "send_prompt")


class OpenHands:
    """Reads event arrays and evaluation outputs: one trace per attempt."""

    name = "openhands"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the first objects are events, or an attempt with instruction and history."""
        start = head.lstrip()[:1]
        found = first_keys(head)
        if start == b"{" and "history" in found and found & {"instruction", "git_patch", "test_result", "metrics"}:
            return 0.96
        if start == b"{" and found & {"instruction"} and found & {"instance_id", "issue", "test_result"}:
            return 0.9
        if start == b"[" and found & {"action", "observation"} and found & {"args", "extras", "source", "thought"}:
            return 0.95
        if start == b"{" and found >= {"action", "args", "source"} and found & {"timestamp", "id"}:
            return 0.9
        return 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per attempt, in file order; a file of bare events is one attempt.

        Raises:
            FormatError: the file is one JSON text and does not parse.
        """
        ids = Ids()
        events: list[Any] = []
        first: Value | None = None
        for value in values(path, log, _SHAPE):
            raw = value.value
            if isinstance(raw, dict) and isinstance(raw.get("history"), list):
                log.kept(value.size, "attempt")
                yield self._trace(path, value, raw["history"], raw, log, ids)
            elif isinstance(raw, dict) and ("action" in raw or "observation" in raw):
                first = first or value
                events.append(raw)
                log.kept(value.size, "event")
            else:
                log.skip(value.line, f"expected {_SHAPE}, found {kind(raw)}", value.size)
        if first is not None:
            size = path.stat().st_size
            whole = first._replace(start=0, end=size, hash=digest_of(path, 0, size))
            yield self._trace(path, whole, events, {}, log, ids)

    def _trace(
        self, path: Path, value: Value, history: list[Any], raw: dict[str, Any], log: ReadLog, ids: Ids
    ) -> Trace:
        attempt = _Attempt(evaluation=bool(raw))
        for event in _flat(history):
            if isinstance(event, dict) and ("action" in event or "observation" in event):
                attempt.take(event)
            else:
                log.note(value.line, f"an event is neither action nor observation, but {kind(event)}")
                attempt.unread.append(event)
        steps = attempt.thread.steps()
        summed = totals(steps)
        cost = amount(an_object(raw.get("metrics")).get("accumulated_cost"))
        named = text_or_none(raw.get("instance_id")) or _issue(raw.get("issue"))
        extra = rest(raw, "history")
        if attempt.aside:
            extra["events"] = attempt.aside
        if attempt.unread:
            extra["unread"] = attempt.unread
        meta = an_object(raw.get("metadata"))
        model = text_or_none(an_object(meta.get("llm_config")).get("model"))
        models = [step.model for step in steps if step.model is not None]
        return Trace(
            id=ids(f"{named or path.stem}~{value.hash[:12]}"),
            agent=Agent(name="openhands", version=attempt.version, tools=attempt.tools, extra=attempt.agent),
            model=models[0] if models else model,
            task=TaskRef(id=named, suite=text_or_none(meta.get("dataset"))),
            steps=steps,
            totals=totals(steps, with_cost(summed.usage, cost)) if cost is not None else summed,
            outcome=_verdict(raw),
            provenance=value.provenance(self, path),
            extra=extra,
        )


class _Attempt:
    def __init__(self, *, evaluation: bool) -> None:
        self.thread = Thread()
        self.unread: list[Any] = []
        self.aside: list[dict[str, Any]] = []
        self.version: str | None = None
        self.tools: tuple[dict[str, Any], ...] | None = None
        self.agent: dict[str, Any] = {}
        self._evaluation = evaluation
        self._asked = False
        self._responses: dict[str, Draft] = {}
        self._calls: dict[Any, str] = {}
        self._cost = 0.0

    def take(self, event: dict[str, Any]) -> None:
        time = moment(event.get("timestamp"))
        if "observation" in event:
            self._observation(event, time)
            return
        action = event.get("action")
        args = an_object(event.get("args")) if "args" in event else rest(event, "action")
        source = event.get("source")
        if action == "system":
            self._system(event, args, time)
        elif action == "message" and self._from_user(source, args):
            self._person(args, event, time)
        elif action == "change_agent_state" and source == "user" and args.get("agent_state") in ("paused", "stopped"):
            self.thread.add(Draft("interrupted", time=time, kind="interrupted", extra=rest(event)))
        elif action in _SILENT or (source in ("user", "environment") and action != "message"):
            self.aside.append(event)
        elif action in ("condensation", "condensation_request"):
            text = text_or_none(args.get("summary")) or ""
            self.thread.add(Draft("harness", text, time=time, kind="compact_summary", extra=rest(event, "message")))
        else:
            self._act(event, str(action), args, time)

    def _from_user(self, source: Any, args: dict[str, Any]) -> bool:
        """Whether a message is the user's: as recorded; older logs tell only the first and the agent's questions."""
        if source is not None:
            return bool(source == "user")
        return not self._asked or not args.get("wait_for_response")

    def _system(self, event: dict[str, Any], args: dict[str, Any], time: float | None) -> None:
        self.version = text_or_none(args.get("openhands_version")) or self.version
        tools = args.get("tools")
        if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
            self.tools = tuple(tools)
        self.agent |= rest({"agent_class": args.get("agent_class")})
        text = text_or_none(args.get("content")) or text_or_none(event.get("message")) or ""
        extra = rest(args, "content", "tools", "openhands_version", "agent_class")
        self.thread.add(Draft("harness", text, time=time, kind="system_prompt", extra=extra))

    def _person(self, args: dict[str, Any], event: dict[str, Any], time: float | None) -> None:
        """A message in the user's name: in an evaluation the task, then the harness's fixed replies."""
        text = text_or_none(args.get("content")) or text_or_none(event.get("message")) or ""
        extra = rest(args, "content") | rest(event, *_ENVELOPE, "args", *args)
        if self._evaluation:
            what = "scripted_reply" if self._asked else "task_prompt"
            draft = Draft("harness", text, time=time, kind=what, extra=extra)
        else:
            said = spoken(text)
            draft = Draft(said.event_class, said.text, time=time, kind=said.kind, extra=extra)
            if said.injected:
                draft.extra["injected"] = list(said.injected)
        self._asked = True
        self.thread.add(draft)

    def _act(self, event: dict[str, Any], action: str, args: dict[str, Any], time: float | None) -> None:
        meta = an_object(event.get("tool_call_metadata"))
        response = an_object(meta.get("model_response"))
        draft = self._draft(response, time)
        thought = text_or_none(args.get("thought"))
        if thought is not None and thought not in draft.text:
            draft.say(thought)
        draft.extra |= rest(event, *_ENVELOPE, "args", *args)
        self._spend(draft, event)
        if action in ("message", "finish", "think") and not meta:
            said = text_or_none(args.get("content")) or text_or_none(args.get("final_thought"))
            if said is not None and said not in draft.text:
                draft.say(said)
            draft.extra |= rest(args, "thought", "content", "final_thought") | {"action": action}
            return
        call_id = text_or_none(meta.get("tool_call_id")) or f"call-{len(self.thread.drafts) - 1}-{len(draft.calls)}"
        asked = _asked_for(response, call_id)
        arguments, raw, validity = (
            arguments_of(asked) if asked is not None else (rest(args, "thought"), None, "unknown")
        )
        call = ToolCall(
            id=call_id,
            name=text_or_none(meta.get("function_name")) or action,
            arguments=arguments,
            raw_arguments=raw,
            validity=validity,
            extra={"action": action} | ({"args": rest(args, "thought")} if asked is not None else {}),
        )
        self.thread.call(draft, call)
        if isinstance(event.get("id"), int | str):
            self._calls[event["id"]] = call_id

    def _draft(self, response: dict[str, Any], time: float | None) -> Draft:
        """One step per model response: its calls are events of their own, its usage is counted once."""
        given = text_or_none(response.get("id"))
        if given is not None and given in self._responses:
            return self._responses[given]
        draft = self.thread.add(Draft("agent", time=time, model=text_or_none(response.get("model"))))
        if given is not None:
            self._responses[given] = draft
            draft.source_ids.append(given)
        draft.usage = usage_of(response.get("usage"))
        choices = a_list(response.get("choices"))
        message = an_object(an_object(choices[0] if choices else None).get("message"))
        if (said := text_or_none(message.get("content"))) is not None:
            draft.say(said)
        if (thought := text_or_none(message.get("reasoning_content"))) is not None:
            draft.reasoning.append(thought)
        return draft

    def _spend(self, draft: Draft, event: dict[str, Any]) -> None:
        """Cost is a running total: the step costs what it adds."""
        total = amount(an_object(event.get("llm_metrics")).get("accumulated_cost"))
        if total is not None and total > self._cost:
            draft.spend(Usage(cost_usd=total - self._cost))
            self._cost = total

    def _observation(self, event: dict[str, Any], time: float | None) -> None:
        what = event.get("observation")
        extras = an_object(event.get("extras")) or rest(event, "observation", "content", *_ENVELOPE)
        if what in _QUIET:
            self.aside.append(event)
            return
        call_id = text_or_none(an_object(event.get("tool_call_metadata")).get("tool_call_id"))
        cause = event.get("cause")
        if call_id is None and isinstance(cause, int | str):
            call_id = self._calls.get(cause)
        if call_id is None and cause is None:
            call_id = self._last_open()
        code = an_object(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
        exit_code = code if isinstance(code, int) and not isinstance(code, bool) and 0 <= code < 2**31 else None
        text = event.get("content")
        self.thread.answer(
            ToolResult(
                call_id=call_id,
                outcome=_outcome(what, exit_code, event.get("success")),
                exit_code=exit_code,
                text=text if isinstance(text, str) else "" if text is None else as_text(text),
                time=time,
                extra={"observation": what} | rest(extras),
            )
        )

    def _last_open(self) -> str | None:
        draft = self.thread.last_agent()
        if draft is None:
            return None
        answered = {result.call_id for result in draft.results}
        return next((call.id for call in draft.calls if call.id not in answered), None)


def _outcome(what: Any, exit_code: int | None, success: Any) -> ResultOutcome:
    """What the log says: a refusal, an error observation, an exit code; `success` alone where there is no code."""
    if what == "user_rejected":
        return "rejected"
    if what == "error":
        return "error"
    if exit_code is not None:
        return "ok" if exit_code == 0 else "error"
    if isinstance(success, bool):
        return "ok" if success else "error"
    return "unknown"


def _asked_for(response: dict[str, Any], call_id: str) -> Any:
    """The arguments of that call as the model wrote them; None when the response is not recorded."""
    for choice in a_list(response.get("choices")):
        for call in a_list(an_object(an_object(choice).get("message")).get("tool_calls")):
            if an_object(call).get("id") == call_id:
                return an_object(an_object(call).get("function")).get("arguments")
    return None


def _flat(history: list[Any]) -> Iterator[Any]:
    """Events in order; the oldest logs keep each action in a pair with its observation."""
    for event in history:
        if isinstance(event, list):
            yield from event
        else:
            yield event


def _issue(issue: Any) -> str | None:
    given = an_object(issue)
    parts = [given.get(name) for name in ("owner", "repo", "number")]
    return "{}/{}#{}".format(*parts) if all(isinstance(part, str | int) for part in parts) else None


def _verdict(raw: Mapping[str, Any]) -> RecordedOutcome | None:
    """The attempt's recorded verdict: a test report's before the resolver's own judgement; None without either."""
    tests = an_object(raw.get("test_result"))
    for verdict, by in (
        (an_object(tests.get("report")).get("resolved"), "test_result.report.resolved"),
        (tests.get("resolved"), "test_result.resolved"),
        (an_object(raw.get("report")).get("resolved"), "report.resolved"),
        (raw.get("success"), "success"),
    ):
        if isinstance(verdict, bool):
            return RecordedOutcome(status="passed" if verdict else "failed", score=float(verdict), by=by)
    return None


READER = OpenHands()
