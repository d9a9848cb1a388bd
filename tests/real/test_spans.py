"""Real span exports of twelve agent runs: what comes out of the traces is what plain JSON says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.ingest import read, read_file
from seatrial.ingest.otlp_write import write_file
from seatrial.records import Step, Trace

pytestmark = pytest.mark.real

EXPORTS = {
    # file: (what the person said, steps of the agent, tools called, how the last answer begins), read by eye
    "agno-2025-06-11": (["What is currently trending on Twitter?"], 2, ["duckduckgo_search"], "To find out what's"),
    "beeai-2025-08-01": (["Message: I'm planning a trip"], 3, ["Wikipedia"], "Barcelona is a vibrant city"),
    "claude-agent-2025-12-22": (
        ["What's the weather like in Berlin and New York?"],
        4,
        ["mcp__weather__get_weather", "mcp__weather__get_weather"],
        "Great! Here's the current weather",
    ),
    "crewai-2025-07-11": (["\nCurrent Task: Define the HTML"], 1, [], "I now can give a great answer"),
    "google-adk-2025-08-28": (["hi"], 2, ["say_hello"], "Hello Langfuse"),
    "langgraph-python-2025-08-22": (
        ["Search the web for 'example' and summarize."],
        2,
        ["Web-Search"],
        'The search for "example"',
    ),
    "microsoft-agent-2025-12-17": (["What's the weather in Tokyo?"], 2, ["get_weather"], "Current conditions in Tokyo"),
    "openai-agents-2025-09-30": (["What's the weather in Tokyo?"], 2, ["get_weather"], "The weather in Tokyo"),
    "pydantic-ai-tools-2025-12-04": (
        ["Select and call THREE of the available tools"],
        4,
        ["get_pun_suggestion", "get_dad_joke_suggestion", "get_one_liner_suggestion", "final_result"],
        "",
    ),
    "vercel-aisdk-2025-11-17": (["What is the weather like today in San Francisco?"], 1, ["getWeather"], ""),
}


def one(path: Path) -> Trace:
    reading = read_file(path)
    (trace,) = reading
    report = reading.report
    assert report.status == "kept"
    assert report.n_bytes == report.kept_bytes == path.stat().st_size
    assert report.skipped == ()
    return trace


def bare(trace: Trace) -> list[Step]:
    """The steps without what only says which spans they came from."""
    return [
        msgspec.structs.replace(
            step,
            extra={},
            source_ids=(),
            results=tuple(msgspec.structs.replace(result, extra={}) for result in step.results),
        )
        for step in trace.steps
    ]


def leaves(observations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Generations without a generation inside; BeeAI's spans for the end of a call are none."""
    ends = ("backend.openai.chat.finish", "backend.openai.chat.success")
    models = [o for o in observations if o["type"] == "GENERATION" and not o["name"].startswith(ends)]
    return [o for o in models if not any(other["parentObservationId"] == o["id"] for other in models)]


@pytest.mark.parametrize("name", EXPORTS)
def test_what_was_said_and_done_in_ten_frameworks(data: Path, name: str) -> None:
    trace = one(data / "otel" / "langfuse-export" / f"{name}.trace.json")
    said, n_agent, tools, end = EXPORTS[name]
    human = [step.text for step in trace.steps if step.event_class == "human"]
    agent = [step for step in trace.steps if step.event_class == "agent"]
    assert len(human) == len(said)
    assert all(text.startswith(start) for text, start in zip(human, said, strict=True))
    assert len(agent) == n_agent
    assert sorted(call.name for step in agent for call in step.tool_calls) == sorted(tools)
    assert agent[-1].text.startswith(end)
    answered = [result for step in agent for result in step.results]
    assert len(answered) == len(tools) - (name.startswith("pydantic"))
    assert all(result.outcome == "ok" and result.text and result.call_id for result in answered)
    assert not any(step.copied for step in trace.steps)


@pytest.mark.parametrize("name", EXPORTS)
def test_tokens_and_money_are_those_of_the_innermost_generations(data: Path, name: str) -> None:
    path = data / "otel" / "langfuse-export" / f"{name}.trace.json"
    trace = one(path)
    raw = json.loads(path.read_bytes())
    found = leaves(raw["observations"])
    usage = trace.totals.usage
    assert (usage.input_tokens or 0) == sum(o["usageDetails"].get("input", 0) for o in found)
    assert (usage.output_tokens or 0) == sum(o["usageDetails"].get("output", 0) for o in found)
    assert usage.cost_usd == pytest.approx(sum(o.get("totalCost") or 0 for o in found), abs=1e-6)
    assert len([s for s in trace.steps if s.event_class == "agent"]) == len(found)
    assert {s.model for s in trace.steps if s.event_class == "agent"} <= {
        *(o["model"] for o in found),
        "gpt-5-2025-08-07",
    }
    assert trace.id == raw["trace"]["id"]


def test_the_scores_of_a_judge_are_kept_and_are_no_feedback(data: Path) -> None:
    found = {}
    for path in sorted((data / "otel" / "langfuse-export").glob("*.json")):
        trace = one(path)
        raw = json.loads(path.read_bytes())["trace"]["scores"]
        kept = [*trace.extra.get("scores", ()), *(s for step in trace.steps for s in step.extra.get("scores", ()))]
        assert sorted(s["id"] for s in kept) == sorted(s["id"] for s in raw)
        assert "feedback" not in trace.extra
        found[path.name] = len(raw)
    assert sum(found.values()) > 0


@pytest.mark.parametrize("name", ["helm", "k8s"])
def test_jaeger_exports(data: Path, name: str) -> None:
    path = data / "otel" / "jaeger-genai" / f"{name}.json"
    trace = one(path)
    spans = json.loads(path.read_bytes())["data"][0]["spans"]
    tags = [{tag["key"]: tag["value"] for tag in span["tags"]} for span in spans]
    calls = [t for t in tags if "gen_ai.usage.prompt_tokens" in t]
    tools = [t for t in tags if t.get("gen_ai.operation.name") == "execute_tool"]
    agent = [step for step in trace.steps if step.event_class == "agent"]
    assert len(agent) == len(calls)
    assert trace.totals.usage.input_tokens == sum(t["gen_ai.usage.prompt_tokens"] for t in calls)
    assert trace.totals.usage.output_tokens == sum(t["gen_ai.usage.completion_tokens"] for t in calls)
    assert trace.totals.usage.cached_tokens == sum(t["gen_ai.usage.cache_read_input_tokens"] for t in calls)
    made = [call for step in agent for call in step.tool_calls]
    assert [call.id for call in made] == [t["gen_ai.tool.call.id"] for t in tools]
    assert [step.text for step in trace.steps if step.event_class == "human"] == ["list all Helm releases"]
    words = [t["gen_ai.completion.0.content"] for t in calls if "gen_ai.completion.0.content" in t]
    assert [step.text for step in agent if step.text] == words
    kept = {span["id"] for span in trace.extra["spans"]} | {s.extra["span"]["id"] for s in agent}
    kept |= {r.extra["span"]["id"] for s in agent for r in s.results}
    assert kept == {span["spanID"] for span in spans}


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def test_a_run_that_jaeger_and_an_otlp_exporter_saw_has_the_same_steps(data: Path, tmp_path: Path) -> None:
    for path in sorted((data / "otel" / "jaeger-genai").glob("*.json")):
        export = json.loads(path.read_bytes())["data"][0]
        groups: dict[str, list[Any]] = {}
        for span in export["spans"]:
            tags = {tag["key"]: tag["value"] for tag in span["tags"]}
            named = [{"key": k, "value": _typed(v)} for k, v in tags.items() if not k.startswith("otel.")]
            groups.setdefault(tags.get("otel.scope.name", ""), []).append(
                {
                    "traceId": span["traceID"],
                    "spanId": span["spanID"],
                    "parentSpanId": next((r["spanID"] for r in span["references"]), ""),
                    "name": span["operationName"],
                    "startTimeUnixNano": str(span["startTime"] * 1000),
                    "endTimeUnixNano": str((span["startTime"] + span["duration"]) * 1000),
                    "attributes": named,
                    "status": {"code": 2} if tags.get("error") is True else {},
                }
            )
        other = tmp_path / path.name
        scopes = [{"scope": {"name": name}, "spans": spans} for name, spans in groups.items()]
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "helm_agent"}}]}
        other.write_text(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}))
        reading = read_file(other)
        (again,) = reading
        assert reading.report.format == "otlp"
        assert bare(again) == bare(one(path))
        assert again.id == one(path).id


def test_a_run_in_langfuse_and_as_langfuse_sends_it_has_the_same_steps(data: Path, tmp_path: Path) -> None:
    for path in sorted((data / "otel" / "langfuse-export").glob("*.json")):
        spans = []
        for o in json.loads(path.read_bytes())["observations"]:
            metadata = json.loads(o["metadata"]) if isinstance(o["metadata"], str) else o["metadata"]
            attributes = dict(metadata.get("attributes", {}))
            attributes["langfuse.observation.type"] = o["type"].lower()
            for name, value in (
                ("input", o["input"]),
                ("output", o["output"]),
                ("usage_details", o["usageDetails"]),
                ("cost_details", o["costDetails"]),
                ("model.name", o["model"]),
            ):
                if value not in (None, {}):
                    attributes[f"langfuse.observation.{name}"] = value
            spans.append(
                {
                    "context": {"trace_id": o["traceId"], "span_id": o["id"]},
                    "parent_id": o["parentObservationId"],
                    "name": o["name"],
                    "start_time": o["startTime"],
                    "end_time": o["endTime"],
                    "attributes": attributes,
                }
            )
        other = tmp_path / path.name
        other.write_text(json.dumps(spans))
        (again,) = read_file(other)
        assert bare(again) == bare(one(path)), path.name


def test_what_is_written_as_otlp_comes_back(data: Path, tmp_path: Path) -> None:
    for path in sorted((data / "otel").glob("*/*.json")):
        trace = one(path)
        losses = write_file(tmp_path / path.name, trace)
        (again,) = read(tmp_path / path.name)
        kinds = {loss.where for loss in losses if "kind" in loss.fields}
        for step, other in zip(bare(trace), bare(again), strict=True):
            if f"steps[{step.index}]" in kinds:
                step, other = (msgspec.structs.replace(s, kind=None) for s in (step, other))
            assert step == other
        named = {field for loss in losses for field in loss.fields}
        assert named <= {"extra", "source_ids", "results.extra", "kind", "totals"}


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9, 0.999])
def test_torn_and_corrupted_exports_are_refused_or_read_and_never_break(data: Path, tmp_path: Path, at: float) -> None:
    for path in sorted((data / "otel").glob("*/*.json")):
        whole = path.read_bytes()
        cut = int(len(whole) * at)
        for n, hurt in enumerate((whole[:cut], whole[:cut] + b"\0\xff" + whole[cut + 2 :])):
            other = tmp_path / f"{n}.json"
            other.write_bytes(hurt)
            reading = read_file(other)
            list(reading)
            assert reading.report.n_bytes == len(hurt)
            assert not any(" broke: " in skip.why for skip in reading.report.skipped)
