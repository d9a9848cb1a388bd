"""Spans to traces: every convention's messages, one count of every token, and sub-agents where the spans say so."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.ingest import read, read_file
from seatrial.ingest.otlp_spans import spans_of
from seatrial.ingest.otlp_write import write, write_file
from seatrial.ingest.span_traces import assemble
from seatrial.ingest.spans import Span, SpanEvent, role_of
from seatrial.records import Agent, Provenance, RecordedOutcome, Step, ToolCall, ToolResult, Trace, Usage

ORIGIN = Provenance(format="x", reader="x", reader_version="1")
SECOND = 10**9


def span(span_id: str, start: float, attributes: dict[str, Any], **rest: Any) -> Span:
    rest.setdefault("end", round((start + 1) * SECOND))
    return Span(trace_id="t", span_id=span_id, start=round(start * SECOND), attributes=attributes, **rest)


def chat(span_id: str, start: float, given: Any, said: Any, **rest: Any) -> Span:
    """A model call in the conventions with parts."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m-1",
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps(said),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
    }
    return span(span_id, start, attributes | rest.pop("more", {}), **rest)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def agent(text: str, *calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    parts.extend({"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls)
    return {"role": "assistant", "parts": parts}


def tool(span_id: str, start: float, call_id: str | None = None, name: str = "find", **rest: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.result": "found"}
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    return span(span_id, start, attributes | rest.pop("more", {}), **rest)


def one(*spans: Span) -> Trace:
    (trace,) = assemble(spans, ORIGIN).traces
    return trace


def said(trace: Trace) -> list[tuple[str, str]]:
    return [(step.event_class, step.text) for step in trace.steps]


CONVENTIONS: dict[str, dict[str, Any]] = {
    "parts": {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps([user("hello")]),
        "gen_ai.output.messages": json.dumps([agent("hi", ("c1", "find", {"q": "x"}))]),
    },
    "numbered": {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "hello",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "hi",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "find",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"q": "x"}',
        "llm.request.type": "chat",
    },
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": "hello",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "hi",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "find",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"q": "x"}',
    },
    "openai": {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
        },
        "langfuse.observation.output": {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "hi",
                        "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"q": "x"}'}}],
                    }
                }
            ]
        },
    },
    "responses": {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]),
        "output.value": json.dumps(
            {
                "object": "response",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
                    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": "x"}'},
                ],
            }
        ),
    },
    "anthropic": {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt": json.dumps({"system": "Be brief.", "messages": [{"role": "user", "content": "hello"}]}),
        "gen_ai.completion": json.dumps(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "hi"},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "x"}},
                ],
            }
        ),
    },
    "gemini": {
        "gen_ai.request.model": "g",
        "gcp.vertex.agent.llm_request": json.dumps(
            {
                "config": {"system_instruction": "Be brief."},
                "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            }
        ),
        "gcp.vertex.agent.llm_response": json.dumps(
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "hi"}, {"function_call": {"id": "c1", "name": "find", "args": {"q": "x"}}}],
                }
            }
        ),
    },
    "vercel": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps(
            [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            ]
        ),
        "ai.response.text": "hi",
        "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "find", "input": '{"q": "x"}'}]),
    },
    "langchain": {
        "langsmith.span.kind": "llm",
        "langsmith.inputs": {
            "messages": [
                [
                    {"lc": 1, "id": ["langchain", "SystemMessage"], "kwargs": {"content": "Be brief."}},
                    {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hello"}},
                ]
            ]
        },
        "langsmith.outputs": {
            "generations": [
                [
                    {
                        "text": "hi",
                        "message": {
                            "lc": 1,
                            "id": ["langchain", "AIMessage"],
                            "kwargs": {
                                "content": "hi",
                                "tool_calls": [{"id": "c1", "name": "find", "args": {"q": "x"}}],
                            },
                        },
                    }
                ]
            ]
        },
    },
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_one_exchange_in_every_convention(name: str) -> None:
    trace = one(span("a", 1, CONVENTIONS[name]), tool("b", 3, "c1"))
    assert said(trace) == [("harness", "Be brief."), ("human", "hello"), ("agent", "hi")]
    (step,) = [s for s in trace.steps if s.event_class == "agent"]
    assert [(c.id, c.name, c.arguments) for c in step.tool_calls] == [("c1", "find", {"q": "x"})]
    assert [(r.call_id, r.outcome, r.text) for r in step.results] == [("c1", "ok", "found")]


def test_messages_as_events_of_a_span_and_as_log_records(tmp_path: Path) -> None:
    events = (
        SpanEvent(name="gen_ai.user.message", attributes={"content": "hello"}),
        SpanEvent(name="gen_ai.choice", attributes={"index": 0, "message": json.dumps({"content": "hi"})}),
    )
    trace = one(span("a", 1, {"gen_ai.operation.name": "chat"}, events=events))
    assert said(trace) == [("human", "hello"), ("agent", "hi")]
    ids = {"traceId": "a" * 32, "spanId": "b" * 16}
    call = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    records = [
        {**ids, "eventName": "gen_ai.user.message", "body": {"kvlistValue": {"values": [_pair("content", "hello")]}}},
        {
            **ids,
            "attributes": [_pair("event.name", "gen_ai.choice")],
            "body": {
                "kvlistValue": {
                    "values": [{"key": "message", "value": {"kvlistValue": {"values": [_pair("content", "hi")]}}}]
                }
            },
        },
        {"traceId": "c" * 32, "spanId": "d" * 16, "eventName": "gen_ai.choice"},
    ]
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps(
            {
                "resourceSpans": [{"scopeSpans": [{"spans": [{**ids, "name": "chat", "attributes": [call]}]}]}],
                "resourceLogs": [{"scopeLogs": [{"logRecords": records}]}],
            }
        )
    )
    reading = read_file(path)
    (read_trace,) = reading
    assert said(read_trace) == [("human", "hello"), ("agent", "hi")]
    assert any("1 log records name no span" in note.why for note in reading.report.skipped)


def _pair(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def test_a_conversation_that_each_call_repeats_is_there_once() -> None:
    hello, hi, more = user("hello"), agent("hi", ("c1", "find", {})), user("hello")
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]}
    trace = one(
        chat("a", 1, [hello], [hi]),
        chat("b", 5, [hello, hi, result], [agent("there")]),
        chat("c", 60, [hello, hi, result, agent("there"), more], [agent("again")]),
    )
    words = [("human", "hello"), ("agent", "hi"), ("agent", "there"), ("human", "hello"), ("agent", "again")]
    assert said(trace) == words
    assert [len(step.results) for step in trace.steps] == [0, 1, 0, 0, 0]
    assert trace.totals.usage == Usage(input_tokens=30, output_tokens=6)


def test_words_that_the_program_sends_on_are_not_a_persons() -> None:
    first = chat("a", 1, [user("hello")], [agent("hi")])
    at_once = chat("b", 2.01, [user("hello"), agent("hi"), user("Now criticise it.")], [agent("bad")])
    later = chat("b", 9, [user("hello"), agent("hi"), user("and now?")], [agent("ok")])
    assert said(one(first, at_once))[2] == ("harness", "Now criticise it.")
    assert said(one(first, later))[2] == ("human", "and now?")


def test_what_the_root_was_asked_tells_the_person_from_the_prompt() -> None:
    root = span("r", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([user("hello")])})
    call = chat("a", 1, [user("You are a helper."), user("hello")], [agent("hi")], parent_id="r")
    trace = one(root, call)
    assert said(trace)[:2] == [("harness", "You are a helper."), ("human", "hello")]
    assert trace.steps[0].kind == "prompt"


def test_the_last_words_of_a_person_are_kept_though_no_call_follows() -> None:
    asked = json.dumps([user("hello"), user("thanks")])
    root = span("r", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": asked})
    trace = one(root, chat("a", 1, [user("hello")], [agent("hi")], parent_id="r"))
    assert said(trace)[-1] == ("human", "thanks")


def test_history_before_the_first_answer_is_copied_and_never_counted() -> None:
    history = [user("one"), agent("1"), user("two")]
    trace = one(chat("a", 1, history, [agent("2")]))
    assert [(s.text, s.copied) for s in trace.steps] == [("one", True), ("1", True), ("two", False), ("2", False)]
    assert trace.totals.usage.input_tokens == 10


def test_leaves_are_summed_and_aggregates_are_not() -> None:
    usage = {"gen_ai.usage.input_tokens": 999, "gen_ai.usage.output_tokens": 99}
    agent_span = span("r", 0, {"gen_ai.operation.name": "invoke_agent", **usage})
    outer = chat("o", 1, [user("hello")], [agent("hi")], parent_id="r", more=usage)
    inner = chat("i", 1, [user("hello")], [agent("hi")], parent_id="o")
    trace = one(agent_span, outer, inner)
    assert said(trace) == [("human", "hello"), ("agent", "hi")]
    assert trace.totals.usage == Usage(input_tokens=10, output_tokens=2)
    assert trace.steps[1].source_ids == ("o", "i")


def test_a_span_around_several_calls_is_no_call() -> None:
    usage = {"gen_ai.usage.input_tokens": 999, "gen_ai.usage.output_tokens": 99}
    outer = chat("o", 1, [user("hello")], [agent("hi")], more=usage)
    first = chat("a", 1, [user("hello")], [agent("", ("c1", "find", {}))], parent_id="o")
    second = chat("b", 3, [user("hello")], [agent("hi")], parent_id="o")
    trace = one(outer, first, tool("x", 2, "c1", parent_id="o"), second)
    assert trace.totals.usage == Usage(input_tokens=20, output_tokens=4)
    assert [s.event_class for s in trace.steps] == ["human", "agent", "agent"]


def test_where_no_call_has_tokens_the_agents_sum_is_the_total() -> None:
    root = span("r", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 7})
    call = span("a", 1, CONVENTIONS["numbered"], parent_id="r")
    trace = one(root, call)
    assert trace.totals.usage == Usage(input_tokens=7)
    assert trace.totals.extra == {"usage_of_span": "r"}


def test_two_instruments_that_record_one_response_count_it_once() -> None:
    more = {"gen_ai.response.id": "resp-1"}
    trace = one(
        chat("a", 1, [user("hello")], [agent("hi")], more=more), chat("b", 1, [user("hello")], [agent("hi")], more=more)
    )
    assert trace.totals.usage.input_tokens == 10
    assert said(trace) == [("human", "hello"), ("agent", "hi")]


def test_spans_of_equal_start_keep_the_order_of_the_source() -> None:
    spans = [chat(f"s{n}", 1, [user("hello")], [agent(f"answer {n}")]) for n in range(9)]
    assert [s.text for s in one(*spans).steps[1:]] == [f"answer {n}" for n in range(9)]


def test_a_tool_that_is_listed_before_its_call_at_the_same_time_stays_one_call() -> None:
    call = chat("a", 1, [user("hello")], [agent("", ("c1", "find", {}))])
    trace = one(tool("x", 1, "c1", parent_id="a"), call)
    (step,) = [s for s in trace.steps if s.event_class == "agent"]
    assert [c.id for c in step.tool_calls] == ["c1"]
    assert [r.call_id for r in step.results] == ["c1"]


def test_spans_in_any_order_and_twice_give_the_same_trace() -> None:
    spans = [
        chat("a", 1, [user("hello")], [agent("", ("c1", "find", {}))]),
        tool("x", 2, "c1"),
        chat("b", 4, [], [agent("ok")]),
    ]
    forth, back = one(*spans), one(*reversed(spans), spans[0])
    assert forth.steps == back.steps
    assert assemble([*spans, spans[1]], ORIGIN).repeated == 1


def test_an_agent_that_a_tool_starts_is_a_trace_of_its_own() -> None:
    root = span("r", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "boss"})
    ask = chat("a", 1, [user("hello")], [agent("", ("c1", "delegate", {}))], parent_id="r")
    run = tool("x", 2, "c1", "delegate", parent_id="r")
    sub = span("s", 3, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}, parent_id="x")
    work = chat("b", 4, [user("do it")], [agent("done")], parent_id="s")
    end = chat("c", 9, [user("hello"), agent("", ("c1", "delegate", {}))], [agent("ready")], parent_id="r")
    main, helper = assemble([root, ask, run, sub, work, end], ORIGIN).traces
    assert (main.agent.name, helper.agent.name) == ("boss", "helper")
    assert (helper.parent, helper.parent_call) == (main.id, "c1")
    assert main.steps[1].results[0].subagents == (helper.id,)
    assert said(helper) == [("harness", "do it"), ("agent", "done")]
    assert main.totals.usage.input_tokens == 20
    assert helper.totals.usage.input_tokens == 10


def test_an_agent_around_an_agent_is_no_sub_agent() -> None:
    outer = span("r", 0, {"openinference.span.kind": "AGENT"})
    inner = span("s", 0, {"openinference.span.kind": "AGENT"}, parent_id="r")
    assert len(assemble([outer, inner, chat("a", 1, [user("x")], [agent("y")], parent_id="s")], ORIGIN).traces) == 1


def test_invocations_of_one_session_are_one_trace_in_order_of_time() -> None:
    session = {"session.id": "s-1"}
    late = msgspec.structs.replace(
        chat("b", 90, [user("a"), agent("b"), user("c")], [agent("d")], more=session), trace_id="u"
    )
    early = chat("a", 1, [user("a")], [agent("b")], more=session)
    trace = one(late, early)
    assert said(trace) == [("human", "a"), ("agent", "b"), ("human", "c"), ("agent", "d")]
    assert trace.id == "t"
    assert trace.extra["trace_ids"] == ["t", "u"]
    assert trace.extra["session"] == "s-1"
    assert not any(step.copied for step in trace.steps)


def test_an_error_is_on_the_result_or_the_call_that_failed() -> None:
    failed = tool("x", 2, "c1", status="error", status_message="no such file", more={"gen_ai.tool.call.result": ""})
    broken = span("b", 4, {"gen_ai.operation.name": "chat"}, status="error", status_message="overloaded")
    trace = one(chat("a", 1, [user("hello")], [agent("", ("c1", "find", {}))]), failed, broken)
    assert [(r.outcome, r.text) for r in trace.steps[1].results] == [("error", "no such file")]
    assert (trace.steps[2].kind, trace.steps[2].extra["error"]) == ("api_error", "overloaded")


def test_a_circle_of_parents_ends() -> None:
    a = chat("a", 1, [user("x")], [agent("y")], parent_id="b")
    b = span("b", 0, {}, parent_id="a")
    assert said(one(a, b)) == [("human", "x"), ("agent", "y")]


def test_embeddings_and_plain_spans_make_no_trace() -> None:
    embed = span("a", 1, {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"})
    assert role_of(embed) == "other"
    assert assemble([embed, span("b", 1, {"http.method": "GET"})], ORIGIN).traces == []


def _trace() -> Trace:
    call = ToolCall(id="c1", name="find", arguments={"q": "x"})
    return Trace(
        id="a" * 32,
        agent=Agent(name="helper", version="2", tools=({"name": "find"},)),
        provenance=ORIGIN,
        model="m-1",
        user="u-1",
        steps=(
            Step(index=0, event_class="human", text="hello", time=1.0),
            Step(
                index=1,
                event_class="agent",
                text="let me look",
                reasoning="hm",
                time=3.0,
                model="m-1",
                usage=Usage(input_tokens=10, output_tokens=2, cached_tokens=4, cost_usd=0.5),
                tool_calls=(call,),
                results=(ToolResult(call_id="c1", outcome="error", text="no", time=4.0),),
            ),
            Step(index=2, event_class="agent", text="sorry", time=6.0, model="m-1"),
            Step(index=3, event_class="human", text="thanks", time=6.0),
        ),
    )


def test_a_written_trace_comes_back_and_the_losses_are_named(tmp_path: Path) -> None:
    trace = _trace()
    losses = write_file(tmp_path / "a.json", trace)
    (again,) = read(tmp_path / "a.json")
    strip = [msgspec.structs.replace(s, extra={}, source_ids=(), results=()) for s in again.steps]
    assert strip == [msgspec.structs.replace(s, results=()) for s in trace.steps]
    assert [(r.outcome, r.text, r.time) for r in again.steps[1].results] == [("error", "no", 4.0)]
    assert (again.id, again.agent.name, again.agent.version, again.agent.tools, again.user) == (
        trace.id,
        "helper",
        "2",
        ({"name": "find"},),
        "u-1",
    )
    assert [(loss.where, loss.fields) for loss in losses] == [("trace", ("totals",))]
    scored = msgspec.structs.replace(trace, outcome=RecordedOutcome(status="passed"))
    assert "outcome" in write(scored).losses[0].fields


def test_sub_agents_are_written_and_read(tmp_path: Path) -> None:
    trace = _trace()
    child = msgspec.structs.replace(trace, id="helper-1", parent=trace.id, parent_call="c1")
    written = write(trace, [child])
    main, sub = assemble(spans_of(written.document), ORIGIN).traces
    assert (sub.parent, sub.parent_call) == (main.id, "c1")
    assert any("event_class" in loss.fields for loss in written.losses if "helper-1" in loss.where)


def test_protobuf_and_json_give_the_same_steps(tmp_path: Path) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    document = write(_trace()).document
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(document))
    for body in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in body:
                body[name] = base64.b64encode(bytes.fromhex(body[name])).decode()
    data = ParseDict(document, ExportTraceServiceRequest()).SerializeToString()
    (tmp_path / "a.pb").write_bytes(data)
    (tmp_path / "b.pb").write_bytes(len(data).to_bytes(4, "big") + data)
    steps = [[trace.steps for trace in read(tmp_path / name)] for name in ("a.json", "a.pb", "b.pb")]
    assert steps[0] == steps[1] == steps[2]
    assert len(steps[0][0]) == 4


def test_protobuf_without_the_extra_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    path = tmp_path / "a.pb"
    path.write_bytes(b"\n\x00")
    reading = read_file(path)
    assert list(reading) == []
    assert "[otel]" in str(reading.report.why)
    assert "pip install 'seatrial[otel]'" in str(reading.report.why)


def test_langsmith_runs_sum_the_model_runs_alone(tmp_path: Path) -> None:
    def run(run_id: str, kind: str, parent: str | None, **rest: Any) -> dict[str, Any]:
        start = rest.pop("start")
        return {
            "id": run_id,
            "trace_id": "r",
            "parent_run_id": parent,
            "run_type": kind,
            "name": rest.pop("name", run_id),
            "start_time": f"2025-01-01T00:00:0{start}",
            "end_time": f"2025-01-01T00:00:0{start + 1}",
            "prompt_tokens": rest.pop("prompt", 0),
            **rest,
        }

    runs = [
        run("r", "chain", None, start=0, prompt=30, inputs={"input": "hello"}, outputs={"output": "hi"}),
        run(
            "l",
            "llm",
            "r",
            start=1,
            prompt=30,
            inputs={"messages": [{"role": "user", "content": "hello"}]},
            outputs={
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "name": "find", "args": {"q": "x"}}],
            },
            feedback_stats={"user_score": {"n": 1, "avg": 1.0}},
        ),
        run("x", "tool", "r", start=3, name="find", inputs={"input": "{'q': 'x'}"}, outputs={"output": "found"}),
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in runs))
    reading = read_file(path)
    (trace,) = reading
    assert reading.report.format == "langsmith"
    assert trace.totals.usage.input_tokens == 30
    assert said(trace) == [("human", "hello"), ("agent", "")]
    assert [(r.call_id, r.text) for r in trace.steps[1].results] == [("c1", "found")]
    assert trace.steps[1].extra["feedback"][0]["value"] == 1.0


def test_phoenix_spans_and_console_spans(tmp_path: Path) -> None:
    spans = [
        {
            "name": "ChatCompletion",
            "context": {"trace_id": "0xaa", "span_id": "0xbb"},
            "span_kind": "LLM",
            "parent_id": None,
            "start_time": "2025-01-01T00:00:00Z",
            "end_time": "2025-01-01T00:00:01Z",
            "status_code": "OK",
            "attributes": {
                "llm": {
                    "input_messages": [{"message": {"role": "user", "content": "hello"}}],
                    "output_messages": [{"message": {"role": "assistant", "content": "hi"}}],
                    "token_count": {"prompt": 5, "completion": 1},
                    "model_name": "m-1",
                }
            },
        },
        {"span_id": "bb", "name": "quality", "annotator_kind": "HUMAN", "result": {"label": "thumbs_up"}},
    ]
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(spans))
    reading = read_file(path)
    (trace,) = reading
    assert reading.report.format == "phoenix"
    assert said(trace) == [("human", "hello"), ("agent", "hi")]
    assert trace.totals.usage == Usage(input_tokens=5, output_tokens=1)
    assert trace.steps[1].extra["feedback"] == [
        {
            "value": "thumbs_up",
            "name": "quality",
            "span_id": "bb",
            "annotator_kind": "HUMAN",
            "result": {"label": "thumbs_up"},
        }
    ]
