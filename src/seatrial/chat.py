"""One OpenAI-compatible chat client, for agents and judges: messages and tools in, one reply with usage out."""

from __future__ import annotations

import email.utils
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import msgspec

from seatrial.errors import InfrastructureError, UsageError
from seatrial.records import ToolCall, ToolSpec, Usage
from seatrial.records.price import Prices

Message = dict[str, Any]
Kind = Literal["timeout", "unreachable", "rate_limited", "rejected", "too_long", "malformed"]
RETRIED = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))


class ChatError(InfrastructureError):
    """No reply. `kind` is why; `status` the HTTP status, None without one."""

    code = "chat"

    def __init__(self, message: str, kind: Kind, *, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sent beside the messages; None: left to the server."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One model response. `seconds` is wall time of the request that succeeded; `tries` counts every request.

    `model` is the name that the server gave. `usage.cost_usd` is None where the price or the tokens are not known.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    usage: Usage | None = None
    model: str | None = None
    finish: str | None = None
    seconds: float = 0.0
    tries: int = 1


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait and how often to try. Seconds; `tries` includes the first; `per_minute` paces requests."""

    connect: float = 10.0
    read: float = 120.0
    tries: int = 5
    backoff: float = 0.5
    longest: float = 60.0
    per_minute: float | None = None


class ChatClient:
    """Talks to ``<url>/chat/completions``. Safe to close twice; not shared between threads.

    `url` is the base (``https://host/v1``). The key is `key`, else the environment's SEATRIAL_API_KEY, else, for
    api.openai.com alone, OPENAI_API_KEY. `sleep` and `transport` are for tests.

    Raises:
        UsageError: `url` is no http(s) address.
    """

    def __init__(
        self,
        model: str,
        url: str,
        *,
        key: str | None = None,
        sampling: Sampling = Sampling(),
        patience: Patience = Patience(),
        prices: Prices | None = None,
        stream: bool = False,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"{url!r} is no http(s) address", hint="give the base address, e.g. http://host:8080/v1")
        self.model = model
        self.url = url.rstrip("/").removesuffix("/chat/completions")
        self.sampling = sampling
        self._patience = patience
        self._prices = prices or {}
        self._stream = stream
        self._sleep = sleep
        self._next = 0.0
        self.trouble: ChatError | None = None
        """Why the last try failed, while another is made; None once the server answers. For whoever gives up first."""
        self._jitter = random.Random(f"chat:{model}")
        key = key or os.environ.get("SEATRIAL_API_KEY")
        if key is None and parts.hostname == "api.openai.com":
            key = os.environ.get("OPENAI_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(patience.read, connect=patience.connect)
        self._http = httpx.Client(headers=headers, timeout=timeout, transport=transport)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, extra: Mapping[str, Any] | None = None
    ) -> Reply:
        """One reply to these messages; `extra` is added to the request as it is.

        Raises:
            ChatError: no reply after every try, or a request that the server refuses.
        """
        body = self._body(messages, tools, extra or {})
        for number in range(1, self._patience.tries + 1):
            self._pace()
            begun = time.monotonic()
            try:
                raw = self._streamed(body) if self._stream else self._whole(body)
            except _Again as again:
                if number == self._patience.tries:
                    raise again.error from again
                self.trouble = again.error
                self._sleep(self._wait(number, again.after))
                continue
            return self._reply(raw, time.monotonic() - begun, number)
        raise UsageError("a chat client needs at least one try")

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], extra: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        body |= {k: v for k, v in msgspec.to_builtins(self.sampling).items() if v not in (None, [])}
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
                }
                for t in tools
            ]
        if self._stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body | dict(extra)

    def _pace(self) -> None:
        if self._patience.per_minute:
            now = time.monotonic()
            if self._next > now:
                self._sleep(self._next - now)
            self._next = max(now, self._next) + 60.0 / self._patience.per_minute

    def _wait(self, number: int, after: float | None) -> float:
        """Seconds before the next try: what the server asks for, else doubling with up to a quarter of jitter."""
        if after is not None:
            return min(after, self._patience.longest)
        wait = self._patience.backoff * 2.0 ** (number - 1)
        return min(wait * (1.0 + 0.25 * self._jitter.random()), self._patience.longest)

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            response = self._http.post(self.url + "/chat/completions", json=body)
        except httpx.HTTPError as error:
            raise self._failed(error) from error
        self._check(response)
        try:
            raw = response.json()
        except ValueError as error:
            raise ChatError(f"{self.url} did not answer with JSON", "malformed", hint="is it a chat API?") from error
        return _choice(raw, self.url)

    def _streamed(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            with self._http.stream("POST", self.url + "/chat/completions", json=body) as response:
                if response.status_code >= 400:
                    response.read()
                self._check(response)
                return _assemble(_events(response.iter_lines(), self.url), self.url)
        except httpx.HTTPError as error:
            raise self._failed(error) from error

    def _failed(self, error: httpx.HTTPError) -> Exception:
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            # Asked again, it would take as long again: the caller decides.
            return ChatError(f"{self.url}: no answer within {self._patience.read:g} s", "timeout")
        said = str(error) or type(error).__name__
        hint = "is the server running, and the address right?"
        return _Again(ChatError(f"{self.url} cannot be reached: {said}", "unreachable", hint=hint), None)

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status < 400:
            self.trouble = None
            return
        said = _said(response)
        text = f"{self.url} answered {status}: {said}"
        if status in RETRIED:
            kind: Kind = "rate_limited" if status == 429 else "unreachable"
            raise _Again(ChatError(text, kind, status=status), _after(response.headers.get("retry-after")))
        if status in (400, 413, 422) and ("context" in said.lower() or "too long" in said.lower()):
            raise ChatError(text, "too_long", status=status)
        hint = "set SEATRIAL_API_KEY" if status in (401, 403) else "check the model's name and the address"
        raise ChatError(text, "rejected", status=status, hint=hint)

    def _reply(self, raw: dict[str, Any], seconds: float, tries: int) -> Reply:
        message = raw["message"]
        served = raw.get("model")
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        return Reply(
            text=_text(message.get("content")),
            calls=tuple(_call(c, i) for i, c in enumerate(message.get("tool_calls") or [])),
            reasoning=reasoning if isinstance(reasoning, str) else None,
            usage=self._usage(raw.get("usage"), served),
            model=served if isinstance(served, str) else None,
            finish=raw.get("finish_reason"),
            seconds=round(seconds, 6),
            tries=tries,
        )

    def _usage(self, raw: Any, served: Any) -> Usage | None:
        if not isinstance(raw, dict):
            return None
        read, made = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
        details = raw.get("prompt_tokens_details")
        cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        price = self._prices.get(served) if isinstance(served, str) else None
        price = price or self._prices.get(self.model)
        usage = Usage(input_tokens=read, output_tokens=made, cached_tokens=cached)
        return usage if price is None else msgspec.structs.replace(usage, cost_usd=price.cost(usage))


class _Again(Exception):
    """This try failed; another may not. `after`: seconds that the server asks to wait."""

    def __init__(self, error: ChatError, after: float | None) -> None:
        self.error = error
        self.after = after


def _events(lines: Iterator[str], url: str) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        try:
            event = json.loads(data)
        except ValueError as error:
            raise ChatError(f"{url} streamed something that is not JSON", "malformed") from error
        if isinstance(event, dict) and event.get("error"):
            raise ChatError(f"{url} broke off: {event['error']}", "malformed")
        if isinstance(event, dict):
            yield event


def _assemble(events: Iterator[dict[str, Any]], url: str) -> dict[str, Any]:
    """The pieces of a stream as one choice."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    out: dict[str, Any] = {"finish_reason": None}
    seen = False
    for event in events:
        out["model"] = event.get("model") or out.get("model")
        out["usage"] = event.get("usage") or out.get("usage")
        for choice in (event.get("choices") or [])[:1]:
            seen = True
            out["finish_reason"] = choice.get("finish_reason") or out["finish_reason"]
            delta = choice.get("delta") or {}
            texts.append(_text(delta.get("content")))
            thoughts.append(_text(delta.get("reasoning_content") or delta.get("reasoning")))
            for piece in delta.get("tool_calls") or []:
                call = calls.setdefault(piece.get("index", len(calls)), {"function": {"name": "", "arguments": ""}})
                call["id"] = piece.get("id") or call.get("id")
                function = piece.get("function") or {}
                call["function"]["name"] += function.get("name") or ""
                call["function"]["arguments"] += function.get("arguments") or ""
    if not seen:
        raise ChatError(f"{url} streamed no choice", "malformed")
    ordered = [calls[i] for i in sorted(calls)]
    return out | {"message": {"content": "".join(texts), "reasoning": "".join(thoughts) or None, "tool_calls": ordered}}


def _choice(raw: Any, url: str) -> dict[str, Any]:
    choices = raw.get("choices") if isinstance(raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        raise ChatError(f"{url} answered without a choice", "malformed", hint="is it a chat API?")
    return {
        "message": first["message"],
        "finish_reason": first.get("finish_reason"),
        "model": raw.get("model"),
        "usage": raw.get("usage"),
    }


def _call(raw: Any, position: int) -> ToolCall:
    function = raw.get("function") if isinstance(raw, dict) else None
    function = function if isinstance(function, dict) else {}
    id = str((raw.get("id") if isinstance(raw, dict) else None) or f"call-{position + 1}")
    name, given = str(function.get("name") or ""), function.get("arguments")
    if isinstance(given, dict):
        return ToolCall(id=id, name=name, arguments=given)
    text = given if isinstance(given, str) else ""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return ToolCall(id=id, name=name, arguments=arguments)
    return ToolCall(id=id, name=name, raw_arguments=text, validity="invalid")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(p.get("text", "") for p in content if isinstance(p, dict) and p.get("type") == "text")
    return content if isinstance(content, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _said(response: httpx.Response) -> str:
    try:
        error = response.json().get("error")
        said = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        said = None
    return str(said or response.text[:200] or response.reason_phrase)[:300]


def _after(header: str | None) -> float | None:
    """Seconds of a Retry-After header: a number, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
