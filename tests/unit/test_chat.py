"""The chat client against a real server: whole and streamed replies, retries, limits, money."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.chat import ChatClient, ChatError, Patience, Sampling
from seatrial.errors import UsageError
from seatrial.records import ToolSpec
from seatrial.records.price import Price

TOOL = ToolSpec(name="look", description="Look.", parameters={"type": "object"})
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
ASK = [{"role": "user", "content": "hello"}]


def client(url: str, waits: list[float] | None = None, **options: Any) -> ChatClient:
    waits = waits if waits is not None else []
    return ChatClient("toy", url, sleep=waits.append, **options)


@pytest.mark.parametrize("stream", [False, True])
def test_text_calls_usage_and_the_model_as_served(chat_server: Any, stream: bool) -> None:
    server = chat_server([{"text": "hi there", "calls": [("look", '{"at": "é"}'), ("look", "{}")], "usage": USAGE}])
    asked = client(server.url, stream=stream, sampling=Sampling(temperature=0.0, seed=4))
    reply = asked.complete(ASK, [TOOL])
    asked.close()
    assert reply.text == "hi there"
    assert [(c.name, c.arguments) for c in reply.calls] == [("look", {"at": "é"}), ("look", {})]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens) == (1_000, 100, 400)
    assert (reply.model, reply.finish, reply.tries) == ("toy-1", "stop", 1)
    sent = server.requests[0]
    assert sent["path"] == "/v1/chat/completions"
    assert (sent["temperature"], sent["seed"], "top_p" in sent) == (0.0, 4, False)
    assert sent["tools"][0]["function"]["name"] == "look"


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_that_are_no_object_are_kept_as_text(chat_server: Any, stream: bool) -> None:
    server = chat_server([{"calls": [("look", '{"at": '), ("look", "[1]")]}])
    asked = client(server.url, stream=stream)
    reply = asked.complete(ASK)
    asked.close()
    assert [(c.validity, c.raw_arguments, c.arguments) for c in reply.calls] == [
        ("invalid", '{"at": ', {}),
        ("invalid", "[1]", {}),
    ]


def test_an_unknown_price_is_unknown_and_a_known_one_counts_cached_tokens(chat_server: Any) -> None:
    server = chat_server([{"text": "x", "usage": USAGE}, {"text": "x"}])
    asked = client(server.url, prices={"toy-1": Price(input=2.0, output=10.0, cached=0.5)})
    known = asked.complete(ASK).usage
    assert known is not None
    assert known.cost_usd == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    assert asked.complete(ASK).usage is None
    asked.close()
    other = client(server.url, prices={"another": Price(input=1.0, output=1.0)})
    other.complete(ASK)
    other.close()
    again = client(chat_server([{"text": "x", "usage": USAGE}]).url)
    unknown = again.complete(ASK).usage
    again.close()
    assert unknown is not None
    assert unknown.cost_usd is None


@pytest.mark.parametrize("stream", [False, True])
def test_it_waits_as_long_as_the_server_asks(chat_server: Any, stream: bool) -> None:
    waits: list[float] = []
    limited = {"status": 429, "headers": {"Retry-After": "7"}}
    server = chat_server([limited, {"status": 503}, {"status": 500}, {"text": "at last"}])
    asked = client(server.url, waits, stream=stream, patience=Patience(backoff=1.0))
    reply = asked.complete(ASK)
    asked.close()
    assert (reply.text, reply.tries) == ("at last", 4)
    assert waits[0] == 7.0
    assert 2.0 <= waits[1] <= 2.5
    assert 4.0 <= waits[2] <= 5.0


def test_it_gives_up_and_says_why(chat_server: Any) -> None:
    server = chat_server([{"status": 429, "error": "slow down"}])
    asked = client(server.url, patience=Patience(tries=3))
    with pytest.raises(ChatError, match="slow down") as caught:
        asked.complete(ASK)
    asked.close()
    assert (caught.value.kind, caught.value.status, len(server.requests)) == ("rate_limited", 429, 3)


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        ({"status": 401, "error": "bad key"}, "rejected", 1),
        ({"status": 400, "error": "maximum context length is 8"}, "too_long", 1),
        ({"raw": b"<html>"}, "malformed", 1),
        ({"raw": b"{}"}, "malformed", 1),
        ({"delay": 0.6, "text": "late"}, "timeout", 1),
    ],
)
def test_failures_that_another_try_would_not_mend(
    chat_server: Any, answer: dict[str, Any], kind: str, requests: int
) -> None:
    server = chat_server([answer])
    asked = client(server.url, patience=Patience(read=0.2))
    with pytest.raises(ChatError) as caught:
        asked.complete(ASK)
    asked.close()
    assert (caught.value.kind, len(server.requests)) == (kind, requests)


def test_a_stream_without_a_choice_is_no_reply(chat_server: Any) -> None:
    asked = client(chat_server([{"cut": True}]).url, stream=True)
    with pytest.raises(ChatError, match="no choice"):
        asked.complete(ASK)
    asked.close()


def test_nobody_there_is_tried_again_and_named(chat_server: Any) -> None:
    waits: list[float] = []
    asked = client("http://127.0.0.1:9/v1", waits, patience=Patience(tries=2))
    with pytest.raises(ChatError, match="cannot be reached") as caught:
        asked.complete(ASK)
    asked.close()
    assert caught.value.kind == "unreachable"
    assert len(waits) == 1


def test_a_key_meant_for_one_host_goes_nowhere_else(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEATRIAL_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    server = chat_server([{"text": "x"}])
    asked = client(server.url)
    asked.complete(ASK)
    asked.close()
    assert "authorization" not in server.headers[0]
    monkeypatch.setenv("SEATRIAL_API_KEY", "ours")
    asked = client(server.url)
    asked.complete(ASK)
    asked.close()
    assert server.headers[1]["authorization"] == "Bearer ours"


def test_requests_are_paced(chat_server: Any) -> None:
    waits: list[float] = []
    asked = client(chat_server([{"text": "x"}]).url, waits, patience=Patience(per_minute=60.0))
    for _ in range(3):
        asked.complete(ASK)
    asked.close()
    assert len(waits) == 2
    assert all(0.0 < w <= 2.0 for w in waits)


def test_an_address_must_be_one() -> None:
    with pytest.raises(UsageError, match="http"):
        ChatClient("m", "localhost:8080")
