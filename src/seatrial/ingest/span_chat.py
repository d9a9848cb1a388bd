"""Messages inside spans to one shape, whichever vendor's shape they have.

Known shapes: OpenAI chat messages and Responses items, Anthropic blocks, Gemini contents, the parts of the GenAI
conventions, LangChain's serialised messages, the Vercel AI SDK's. What is in no known shape stays text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from seatrial.ingest.drafts import a_list, an_object, text_or_none
from seatrial.ingest.jsontext import BadJSON, as_text, loads
from seatrial.ingest.messages import arguments_of
from seatrial.records import ToolCall

Speaker = Literal["system", "user", "agent", "tool"]
_SPEAKERS: Mapping[str, Speaker] = {
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("user", "human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("assistant", "model", "ai", "agent", "AIMessage", "AIMessageChunk", "AssistantMessage"), "agent"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage", "toolResult"), "tool"),
}
_DEPTH = 12
_LISTS = ("messages", "input_messages", "output_messages", "contents", "choices", "candidates", "generations", "output")


class Said(msgspec.Struct, kw_only=True):
    """One message: who, words, thoughts, calls; of a `tool` message also the call it answers and how it ended.

    `item`: a piece that its API gives apart from the rest of its message.
    """

    who: Speaker
    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = []
    call_id: str | None = None
    name: str | None = None
    failed: bool | None = None
    item: bool = False
    extra: dict[str, Any] = {}


class Talk(msgspec.Struct, kw_only=True):
    """Messages found in one value. `shaped` False: a text or value that is in no known shape, given as one."""

    said: list[Said]
    shaped: bool = True
    tools: list[dict[str, Any]] = []


def parsed(value: Any) -> Any:
    """The value of JSON text that holds an object, an array or a string; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return loads(value.encode(errors="replace"))[0]
        except BadJSON:
            return value
    return value


def talk_of(value: Any, who: Speaker) -> Talk | None:
    """The messages of a value; a message that does not say who speaks is by `who`. None for nothing."""
    value = parsed(value)
    if value in (None, "", [], {}):
        return None
    tools: list[dict[str, Any]] = []
    said = list(_messages(value, who, tools, 0))
    if said or tools:
        return Talk(said=_united(said, whole=who == "agent"), tools=tools)
    return Talk(said=[Said(who=who, text=as_text(value))], shaped=False)


def _messages(value: Any, who: Speaker, tools: list[dict[str, Any]], depth: int) -> Iterator[Said]:
    """The messages of a value in a known shape; nothing for one that is in none."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for entry in value:
            yield from _messages(parsed(entry) if isinstance(entry, str) else entry, who, tools, depth + 1)
    elif isinstance(value, dict):
        if (message := _message(value, who, tools)) is not None:
            yield from message
            return
        yield from _container(value, who, tools, depth)


def _container(value: dict[str, Any], who: Speaker, tools: list[dict[str, Any]], depth: int) -> Iterator[Said]:
    """The messages inside an object that holds some: a request, a response, a graph's state."""
    system = value.get("system") or an_object(value.get("config")).get("system_instruction")
    if system and isinstance(system, str | list | dict):
        yield Said(who="system", text=_plain(system))
    for name in _LISTS:
        inner = value.get(name)
        if isinstance(inner, list):
            yield from _messages(
                inner, "agent" if name in ("choices", "candidates", "generations") else who, tools, depth + 1
            )
            return
        if isinstance(inner, dict):
            yield from _messages(inner, who, tools, depth + 1)
            return
    for name in ("message", "delta"):
        if isinstance(value.get(name), dict):
            yield from _messages(value[name], who, tools, depth + 1)
            return
    content = value.get("content")
    if isinstance(content, dict) and "parts" in content:
        yield from _messages(content, who, tools, depth + 1)
        return
    for name in ("prompt", "input", "question", "query", "user_input", "text", "completion", "answer"):
        inner = value.get(name)
        if isinstance(inner, str) and inner and len(value) <= 4:
            yield Said(who=who, text=inner)
            return
        if isinstance(inner, list | dict) and name in ("prompt", "input"):
            yield from _messages(inner, who, tools, depth + 1)
            return


def _message(value: dict[str, Any], default: Speaker, tools: list[dict[str, Any]]) -> list[Said] | None:
    """The message or messages that an object is; None when it is none."""
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        value = {"type": str(a_list(value.get("id"))[-1:] and value["id"][-1]), **value["kwargs"]}
    elif isinstance(value.get("data"), dict) and text_or_none(value.get("type")) in _SPEAKERS:
        value = {"type": value["type"], **value["data"]}
    if (item := _item(value)) is not None:
        return [item]
    role = value.get("role")
    kind = value.get("type")
    named = role if isinstance(role, str) and role in _SPEAKERS else kind if isinstance(kind, str) else None
    who = _SPEAKERS.get(named or "")
    if who is None:
        if isinstance(value.get("parts"), list) and not isinstance(role, str):
            who = default
        else:
            return None
    content = value.get("content", value.get("parts"))
    if who == "tool" and isinstance(content, dict) and content.get("type") == "function" and "function" in content:
        tools.append(content)  # Langfuse lists a model's tools among its messages
        return []
    return _spoken(value, who, content)


def _spoken(value: dict[str, Any], who: Speaker, content: Any) -> list[Said]:
    said = Said(who=who, calls=[], extra={})
    others: list[Said] = []
    if isinstance(content, list):
        for part in content:
            _part(parsed(part) if isinstance(part, str) and part[:1] == "{" else part, said, others)
    elif content is not None:
        said.text = content if isinstance(content, str) else as_text(content)
    if isinstance(value.get("parts"), list) and value["parts"] is not content:
        for part in value["parts"]:
            _part(part, said, others)
    for raw in (*a_list(value.get("tool_calls")), *a_list(an_object(value.get("additional_kwargs")).get("tool_calls"))):
        call = _call(raw)
        if all(call.id != other.id or not call.id for other in said.calls):
            said.calls.append(call)
    for raw in a_list(value.get("invalid_tool_calls")):
        said.calls.append(_call(raw))
    if isinstance(value.get("function_call"), dict):
        said.calls.append(_call(value["function_call"]))
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(value.get(name), str) and value[name] and not said.reasoning:
            said.reasoning = value[name]
    if not said.text and isinstance(value.get("refusal"), str):
        said.text = value["refusal"]
    if isinstance(value.get("finish_reason"), str):
        said.extra["finish_reason"] = value["finish_reason"]
    if who == "tool":
        call_id = value.get("tool_call_id", value.get("id"))
        said.call_id = call_id if isinstance(call_id, str) and call_id else None
        said.name = value["name"] if isinstance(value.get("name"), str) else None
        if value.get("status") in ("error", "success"):
            said.failed = value["status"] == "error"
        if others and not said.text:
            return others
    empty = not (said.text or said.calls or said.reasoning or said.extra)
    return others if others and empty else [*others, said]


def _item(value: dict[str, Any]) -> Said | None:
    """An item of the Responses API, or a call of the Vercel AI SDK, standing alone."""
    kind = value.get("type")
    if kind == "function_call" and "call_id" in value:
        return Said(who="agent", calls=[_call({**value, "id": value["call_id"]})], item=True)
    if kind == "function_call_output":
        return Said(who="tool", call_id=_id(value.get("call_id")), text=_plain(value.get("output")))
    if kind == "reasoning" and "role" not in value:
        thoughts = [an_object(part).get("text") for part in a_list(value.get("summary"))]
        return Said(who="agent", reasoning="\n\n".join(t for t in thoughts if isinstance(t, str)), item=True)
    if "toolCallId" in value and kind in (None, "tool-call"):
        return Said(who="agent", calls=[_call(_vercel(value))], item=True)
    if "role" not in value and kind in ("tool_use", "tool_call", "toolCall"):
        return Said(who="agent", calls=[_call(value)], item=True)
    return None


def _part(part: Any, said: Said, others: list[Said]) -> None:
    """Put one part of a message's content where it belongs; results of tools are messages of their own."""
    if isinstance(part, str):
        _say(said, part)
        return
    if not isinstance(part, dict):
        return
    kind = part.get("type")
    for name in ("function_call", "functionCall"):
        if isinstance(part.get(name), dict):
            said.calls.append(_call({"arguments": part[name].get("args"), **part[name]}))
            return
    for name in ("function_response", "functionResponse"):
        if isinstance(part.get(name), dict):
            others.append(_response(part[name].get("id"), part[name].get("name"), part[name].get("response")))
            return
    if kind in ("tool_call", "tool_use", "server_tool_use"):
        said.calls.append(_call(part))
    elif kind == "tool-call":
        said.calls.append(_call(_vercel(part)))
    elif kind in ("tool_call_response", "tool_result", "tool-result", "server_tool_call_response"):
        call_id = part.get("id", part.get("tool_use_id", part.get("toolCallId")))
        body = next((part[n] for n in ("response", "result", "content", "output") if part.get(n) is not None), None)
        tool = part.get("name", part.get("toolName"))
        others.append(_response(call_id, tool, body, part.get("is_error", part.get("isError"))))
    elif kind in ("reasoning", "thinking"):
        thoughts = (part.get(name) for name in ("content", "reasoning", "thinking", "text"))
        thought = next((t for t in thoughts if isinstance(t, str)), "")
        said.reasoning = "\n\n".join(filter(None, (said.reasoning, thought)))
    elif kind == "thought" or part.get("thought") is True:
        said.reasoning = said.reasoning or str(part.get("text", ""))
    else:
        text = next((part[n] for n in ("text", "content", "refusal") if isinstance(part.get(n), str)), None)
        if text is not None and kind in (None, "text", "output_text", "input_text", "refusal"):
            _say(said, text)
        else:
            said.extra.setdefault("parts", []).append(part)


def _response(call_id: Any, name: Any, body: Any, failed: Any = None) -> Said:
    value = parsed(body)
    inner = an_object(value)
    if isinstance(inner.get("isError"), bool) and failed is None:
        failed = inner["isError"]
    return Said(
        who="tool",
        call_id=_id(call_id),
        name=name if isinstance(name, str) else None,
        text=result_text(body),
        failed=failed if isinstance(failed, bool) else None,
    )


def result_text(body: Any) -> str:
    """What a tool gave back, as text: the text parts of a result in the shape of MCP or Anthropic, else the whole."""
    value = parsed(body)
    if isinstance(value, dict):
        content = value.get("content")
        if isinstance(content, list) and set(value) <= {"content", "isError", "structuredContent", "_meta"}:
            return _plain(content)
        if value.get("type") in ("text", "json") and "value" in value:
            return _plain(value["value"])
        if value.get("type") == "tool" and "content" in value:
            return _plain(value["content"])
        if value.get("type") == "function_result" and "result" in value:
            return _plain(value["result"])
        if value.get("lc") and isinstance(value.get("kwargs"), dict):
            return _plain(value["kwargs"].get("content"))
        if set(value) == {"output"}:
            return result_text(value["output"])
        return body if isinstance(body, str) else as_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(an_object(part).get("type") == "text" for part in value):
        return _plain(value)
    return body if isinstance(body, str) else "" if value is None else as_text(value)


def words_of(value: Any) -> str:
    """The text of instructions: plain, or of their parts."""
    return _plain(parsed(value))


def _plain(value: Any) -> str:
    """The text of a value: of its text parts, where it is made of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if isinstance(value.get("parts"), list):
            return _plain(value["parts"])
        text = value.get("text", value.get("content"))
        return text if isinstance(text, str) else as_text(value)
    if isinstance(value, list):
        texts = [_plain(part) if isinstance(part, dict | str) else as_text(part) for part in value]
        return "\n".join(texts) if all(isinstance(part, dict | str) for part in value) else as_text(value)
    return "" if value is None else as_text(value)


def _vercel(value: dict[str, Any]) -> dict[str, Any]:
    given = value.get("input", value.get("args"))
    return {"id": value.get("toolCallId"), "name": value.get("toolName"), "arguments": given}


def _call(raw: Any) -> ToolCall:
    """A call in any shape; without an id where the source gives none."""
    if not isinstance(raw, dict):
        return ToolCall(id="", name="", raw_arguments=as_text(raw), validity="invalid")
    body = raw["function"] if isinstance(raw.get("function"), dict) else raw
    given = next((body[n] for n in ("arguments", "args", "input") if body.get(n) is not None), None)
    arguments, text, validity = arguments_of(given)
    name = body.get("name")
    return ToolCall(
        id=_id(raw.get("id")) or _id(raw.get("call_id")) or "",
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        raw_arguments=text,
        validity=validity,
    )


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _say(said: Said, text: str) -> None:
    said.text = f"{said.text}\n{text}" if said.text and text else said.text or text


def _united(said: list[Said], *, whole: bool) -> list[Said]:
    """Neighbouring pieces of one agent turn as one message; `whole`: all of them are one response."""
    out: list[Said] = []
    for one in said:
        last = out[-1] if out else None
        pieces = last is not None and (whole or last.item or one.item)
        if one.who == "agent" and last is not None and last.who == "agent" and pieces and not (last.text and one.text):
            last.calls = [*last.calls, *one.calls]
            last.reasoning = "\n\n".join(filter(None, (last.reasoning, one.reasoning)))
            last.text = last.text or one.text
            last.item = one.item
            last.extra = {**last.extra, **one.extra}
        else:
            out.append(one)
    return out
