"""Spans, Inspect logs and other programs' results: no crash whatever the bytes, and writers that name their losses."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.canon import canonical
from seatrial.errors import InputError
from seatrial.ingest import inspect_write, otlp_write, parquet_write, read_file
from seatrial.ingest.catalogue import named
from seatrial.ingest.log import Log
from seatrial.ingest.losses import Loss
from seatrial.records import Step, Trace

fuzz = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

keys = st.sampled_from(
    [
        *(
            "role",
            "content",
            "parts",
            "type",
            "text",
            "tool_calls",
            "id",
            "name",
            "arguments",
            "function",
            "kwargs",
            "lc",
        ),
        *("messages", "choices", "message", "generations", "contents", "output", "input", "call_id", "toolCallId"),
        *("functionCall", "functionResponse", "tool_call_response", "data", "response", "args", "value", "isError"),
        *("id", "epoch", "scores", "score", "limit", "error", "events", "event", "output", "usage", "input_refs"),
        *("model_usage", "message_pool", "attachments", "uuid", "completed", "timestamp", "metadata", "config"),
    ]
)
words = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "tool",
            "system",
            "model",
            "ai",
            "human",
            "text",
            "tool_call",
            "tool_use",
            "function_call",
        ),
        *(
            "reasoning",
            "tool_result",
            "model",
            "[{}]",
            '{"role": "user", "content": "x"}',
            "{'a': 'b'}",
            "C",
            "NaN",
            "1",
        ),
        *("attachment://00000000000000000000000000000000", "2025-01-01T00:00:00Z", "time", "operator", "AIMessage"),
    ]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=8)
objects = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)
attributes = st.dictionaries(
    st.sampled_from(
        [
            *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.request.model"),
            *(
                "gen_ai.prompt.0.role",
                "gen_ai.prompt.0.content",
                "gen_ai.prompt.x.y",
                "gen_ai.completion.0.tool_calls.0",
            ),
            *("gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.result", "gen_ai.usage.input_tokens"),
            *("openinference.span.kind", "llm.input_messages.0.message.role", "llm.input_messages.0.message.contents"),
            *("input.value", "output.value", "langfuse.observation.type", "langfuse.observation.usage_details"),
            *(
                "langfuse.observation.input",
                "session.id",
                "user.id",
                "gen_ai.response.id",
                "gen_ai.agent.name",
                "events",
            ),
            *("ai.operationId", "target", "tools", "gen_ai.tool.definitions", "llm.tools.0.tool.json_schema"),
        ]
    ),
    st.sampled_from(["chat", "execute_tool", "invoke_agent", "LLM", "TOOL", "AGENT", "generation", "ai.toolCall"])
    | objects
    | objects.map(lambda v: json.dumps(v)),
    max_size=6,
)
ids = st.sampled_from(["a" * 16, "b" * 16, "c" * 16, "d" * 16])
times = st.none() | st.integers(0, 3) | st.integers() | st.sampled_from(["1", "x", "2025-01-01T00:00:00Z", "9" * 30])
spans = st.lists(st.tuples(ids, st.none() | ids, times, times, attributes), min_size=1, max_size=6)


def _otlp(rows: list[Any]) -> Any:
    made = [
        {
            "traceId": "1" * 32,
            "spanId": span,
            "parentSpanId": parent,
            "startTimeUnixNano": start,
            "endTimeUnixNano": end,
            "attributes": values,
        }
        for span, parent, start, end, values in rows
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


def _jaeger(rows: list[Any]) -> Any:
    made = [
        {
            "traceID": "t",
            "spanID": span,
            "references": [{"refType": "CHILD_OF", "spanID": parent}],
            "startTime": start,
            "duration": end,
            "tags": [{"key": k, "value": v} for k, v in values.items()],
        }
        for span, parent, start, end, values in rows
    ]
    return {"data": [{"spans": made, "processes": {}}]}


def _langfuse(rows: list[Any]) -> Any:
    made = [
        {
            "id": span,
            "traceId": "t",
            "parentObservationId": parent,
            "startTime": start,
            "endTime": end,
            "type": "GENERATION",
            "metadata": {"attributes": values},
            "input": values.get("input.value"),
            "usageDetails": values.get("events"),
        }
        for span, parent, start, end, values in rows
    ]
    return {"trace": {"id": "t", "scores": [v for *_, v in rows]}, "observations": made}


def _langsmith(rows: list[Any]) -> Any:
    return [
        {
            "id": span,
            "trace_id": "t",
            "parent_run_id": parent,
            "start_time": start,
            "end_time": end,
            "run_type": values.get("gen_ai.operation.name", "llm"),
            "inputs": values.get("input.value"),
            "outputs": values,
            "extra": {"metadata": values, "invocation_params": values},
            "feedback_stats": values,
        }
        for span, parent, start, end, values in rows
    ]


def _phoenix(rows: list[Any]) -> Any:
    return [
        {
            "context": {"trace_id": "t", "span_id": span},
            "parent_id": parent,
            "start_time": start,
            "end_time": end,
            "attributes": values,
        }
        for span, parent, start, end, values in rows
    ]


SHAPES: dict[str, Any] = {
    "otlp": _otlp,
    "jaeger": _jaeger,
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "phoenix": _phoenix,
}
OUTLINES: dict[str, Any] = {
    "inspect": lambda v: {
        "version": 2,
        "eval": {"task": "t", "dataset": v, "config": v},
        "results": v,
        "samples": [{"id": "1", "epoch": 1, "messages": v if isinstance(v, list) else [v]}, v],
    },
    "harbor": lambda v: {"trial_name": "t__1", "task_name": "t", "verifier_result": v, "agent_result": v, "config": v},
    "promptfoo": lambda v: {"results": {"results": [v, {"success": True, "provider": v, "prompt": v}]}, "config": v},
}
SUFFIX = {"junit": ".xml", "inspect": ".eval"}
NAMES = (*SHAPES, *OUTLINES, "junit")


def check(name: str, data: bytes, suffix: str) -> None:
    """The reader raises nothing but InputError, accounts for every byte, and reads the same twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(data)
        log = Log(str(path))
        try:
            traces = list(named(name).read(path, log))
        except InputError:
            pass
        else:
            assert log.accounted == len(data)
            assert len({trace.id for trace in traces}) == len(traces)
            again = list(named(name).read(path, Log(str(path))))
            assert [canonical(trace) for trace in again] == [canonical(trace) for trace in traces]
        reading = read_file(path, format=name)
        for trace in reading:
            assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
            for step in trace.steps:
                made = [call.id for call in step.tool_calls]
                assert all(r.call_id is None or r.call_id in made for r in step.results)
        assert reading.report.n_bytes == len(data)
        assert not any(" broke: " in skip.why for skip in reading.report.skipped)


@pytest.mark.parametrize("name", NAMES)
@fuzz
@given(data=st.binary(max_size=120))
def test_any_bytes(name: str, data: bytes) -> None:
    check(name, data, SUFFIX.get(name, ".json"))
    if name == "otlp":
        check(name, data, ".pb")


@pytest.mark.parametrize("name", SHAPES)
@fuzz
@given(rows=spans, cut=st.just(1.0) | st.floats(0, 1))
def test_any_spans(name: str, rows: list[Any], cut: float) -> None:
    data = json.dumps(SHAPES[name](rows)).encode(errors="replace")
    check(name, data[: int(len(data) * cut)], ".json")


@pytest.mark.parametrize("name", OUTLINES)
@fuzz
@given(value=objects, cut=st.just(1.0) | st.floats(0, 1))
def test_any_json_of_the_right_outline(name: str, value: Any, cut: float) -> None:
    data = json.dumps(OUTLINES[name](value)).encode(errors="replace")
    check(name, data[: int(len(data) * cut)], ".json")


@fuzz
@given(value=objects, at=st.floats(0, 1), byte=st.integers(0, 255), cut=st.just(1.0) | st.floats(0, 1))
def test_any_archive(value: Any, at: float, byte: int, cut: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps({"version": 2, "eval": {"task": "t"}}))
            archive.writestr("samples/1_epoch_1.json", json.dumps(value).encode(errors="replace"))
            archive.writestr("samples/2_epoch_1.json", "{}")
        data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] = byte
    check("inspect", bytes(data[: int(len(data) * cut)]), ".eval")


tags = st.sampled_from(
    [
        *('<testsuite name="s">', "</testsuite>", '<testcase name="a" time="1,000.5">', "</testcase>", "<failure>"),
        *(
            "</failure>",
            "<skipped/>",
            '<error type="Timeout"/>',
            "<flakyFailure/>",
            '<property name="model" value="m"/>',
        ),
        *("<!DOCTYPE x>", "&amp;", "&x;", "text", "<testcase/>", "<rerunFailure/>", "<?x y?>", "<![CDATA[<a>]]>"),
    ]
)


@fuzz
@given(pieces=st.lists(tags, max_size=15))
def test_any_report(pieces: list[str]) -> None:
    check("junit", ("<testsuites>" + "".join(pieces) + "</testsuites>").encode(), ".xml")


def _agrees(name: str, trace: Trace, again: Trace, lost: dict[str, set[str]], where: str, loose: set[str]) -> None:
    """Every field that the losses do not name is what it was."""
    if "steps" in lost.get(where, set()):
        return
    assert len(trace.steps) == len(again.steps), name
    for step, other in zip(trace.steps, again.steps, strict=True):
        gone = loose | set().union(*(f for w, f in lost.items() if w.endswith(f"steps[{step.index}]")))
        for field in Step.__struct_fields__:
            a, b = getattr(step, field), getattr(other, field)
            if field == "results":
                a, b = (tuple(msgspec.structs.replace(r, extra={}) for r in v) for v in (a, b))
            if field not in gone:
                assert a == b, (name, field)


def _lost(losses: tuple[Loss, ...]) -> dict[str, set[str]]:
    out: dict[str, set[str]] = {}
    for loss in losses:
        out.setdefault(loss.where, set()).update(loss.fields)
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_otlp_comes_back_but_for_its_losses(strategies: ModuleType, data: st.DataObject) -> None:
    trace = data.draw(strategies.traces())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        lost = _lost(otlp_write.write_file(path, trace))
        again = list(read_file(path, format="otlp"))
    if not again:
        assert "steps" in lost["trace"]
        return
    _agrees("otlp", trace, again[0], lost, "trace", {"extra", "source_ids"})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_parquet_comes_back_but_for_its_losses(strategies: ModuleType, data: st.DataObject) -> None:
    traces = [data.draw(strategies.traces(id=f"t{n}")) for n in range(data.draw(st.integers(0, 2)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        lost = _lost(parquet_write.write(path, traces))
        again = parquet_write.read(path)
    assert [trace.id for trace in again] == [trace.id for trace in traces]
    for trace, other in zip(traces, again, strict=True):
        assert len(trace.steps) == len(other.steps)
        mine = {w: f for w, f in lost.items() if w.startswith(f"{trace.id} ")}
        _agrees("parquet", trace, other, mine, trace.id, set())
        gone = lost[trace.id]
        for field in ("model", "task", "attempt", "user", "outcome", "parent", "parent_call", "continues"):
            if not {field, "texts"} & gone:
                assert getattr(trace, field) == getattr(other, field), field


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_inspect_logs_come_back_but_for_their_losses(strategies: ModuleType, data: st.DataObject) -> None:
    trace = data.draw(strategies.traces())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        lost = _lost(inspect_write.write_file(path, [trace], task="t"))
        (again,) = read_file(path, format="inspect")
    mine = {w: f for w, f in lost.items() if w != trace.id}
    if "steps" not in lost.get(trace.id, set()):
        _agrees("inspect", trace, again, mine, "", {"extra"})
    if "outcome" not in lost.get(trace.id, set()):
        assert (trace.outcome is None) == (again.outcome is None)
        if trace.outcome is not None and again.outcome is not None:
            assert (trace.outcome.status, trace.outcome.score) == (again.outcome.status, again.outcome.score)
