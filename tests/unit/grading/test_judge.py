"""Judges: identity, cache, both orders, cost, family, lint; and a real server behind the endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from seatrial.chat import Patience
from seatrial.errors import InfrastructureError, UsageError
from seatrial.flows.judge_endpoint import endpoint
from seatrial.grading.judge import Judge, cost, estimate, family, key, refuse_own_family
from seatrial.grading.judge_cache import Cache
from seatrial.grading.lint import lint
from seatrial.records import Usage
from seatrial.records.judge import Criterion, JudgeSpec, Message, Reply

SPEC = JudgeSpec(name="j", model="judge-1", criteria=(Criterion(id="c", statement="The agent calls refund once."),))


def answer(messages: tuple[Message, ...], met: bool = True) -> str:
    nonce = messages[1].content.rpartition('{"id": "')[2][:16]
    return json.dumps({"id": nonce, "verdicts": [{"criterion": "c", "met": met, "because": "step 3"}]})


def choose(messages: tuple[Message, ...], better: str) -> str:
    text = messages[1].content
    nonce = text.rpartition('{"id": "')[2][:16]
    first = text.partition(f"<<<first record {nonce}\n")[2].partition("\n")[0]
    return json.dumps({"id": nonce, "choice": "first" if better in first else "second"})


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    asked = []

    def model(messages: tuple[Message, ...]) -> Reply:
        asked.append(messages)
        return Reply(text=answer(messages), usage=Usage(input_tokens=10, output_tokens=5))

    first = Judge(SPEC, model, Cache(tmp_path)).judge("called refund")
    again = Judge(SPEC, model, Cache(tmp_path)).judge("called refund")
    assert (len(asked), first.cached, again.cached) == (1, False, True)
    assert first.verdicts == again.verdicts
    Judge(SPEC, model, Cache(tmp_path)).judge("called refund twice")
    other = msgspec.structs.replace(SPEC, model="judge-2")
    Judge(other, model, Cache(tmp_path)).judge("called refund")
    assert len(asked) == 3
    for file in tmp_path.rglob("*.json"):
        file.write_text("{damaged")
    Judge(SPEC, model, Cache(tmp_path)).judge("called refund")
    assert len(asked) == 4


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"instructions": "Be strict."}, {"temperature": 1.0}, {"scope": "final"},
     {"criteria": (Criterion(id="c", statement="The agent calls refund twice."),)}],
)  # fmt: skip
def test_identity_changes_with_model_prompt_and_rubric(change: dict[str, object]) -> None:
    assert key(msgspec.structs.replace(SPEC, **change)) != key(SPEC)
    renamed = msgspec.structs.replace(SPEC, name="other", usd_per_million_input=3.0)
    assert key(renamed) == key(SPEC)


def test_pairs_are_judged_in_both_orders() -> None:
    spec = msgspec.structs.replace(SPEC, kind="pairwise")
    fair = Judge(spec, lambda m: Reply(text=choose(m, "good"))).prefer("a good one", "a bad one")
    assert (fair.winner, fair.orders) == ("a", ("a", "a"))
    swapped = Judge(spec, lambda m: Reply(text=choose(m, "good"))).prefer("a bad one", "a good one")
    assert swapped.winner == "b"

    def first_always(messages: tuple[Message, ...]) -> Reply:
        return Reply(text=choose(messages, ""))

    biased = Judge(spec, first_always).prefer("one", "two")
    assert (biased.winner, biased.orders) == (None, ("a", "b"))
    assert "position" in biased.reason


def test_an_overlong_record_is_unscored_and_not_asked() -> None:
    spec = msgspec.structs.replace(SPEC, max_characters=5)

    def never(messages: tuple[Message, ...]) -> Reply:
        raise AssertionError

    (verdict,) = Judge(spec, never).judge("too long for it").verdicts
    assert verdict.passed is None


def test_cost_is_unknown_without_prices() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000)
    assert cost(SPEC, usage) is None
    priced = msgspec.structs.replace(SPEC, usd_per_million_input=2.0, usd_per_million_output=8.0)
    assert cost(priced, usage) == pytest.approx(6.0)
    assert cost(priced, msgspec.structs.replace(usage, cost_usd=1.5)) == 1.5
    planned = estimate(priced, ["x" * 4000])
    assert planned.input_tokens is not None
    assert planned.input_tokens > 1000
    assert planned.cost_usd is not None


@pytest.mark.parametrize(
    ("model", "maker"),
    [("gpt-4o", "openai"), ("openai/o3-mini", "openai"), ("claude-sonnet-4-5", "anthropic"), ("qwen2.5-7b", "alibaba"),
     ("meta-llama/Llama-3-8B", "meta"), ("my-own", None)],
)  # fmt: skip
def test_family(model: str, maker: str | None) -> None:
    assert family(model) == maker


def test_a_judge_of_the_agents_family_is_refused_without_a_flag() -> None:
    spec = msgspec.structs.replace(SPEC, model="gpt-4o")
    with pytest.raises(UsageError, match="one family"):
        refuse_own_family(spec, ["claude-x", "gpt-4o-mini"])
    refuse_own_family(spec, ["gpt-4o-mini"], allowed=True)
    refuse_own_family(spec, ["claude-x", None])


def test_lint_wants_something_to_look_for() -> None:
    def rules(statement: str, passes: str = "", fails: str = "") -> set[str]:
        return {f.rule for f in lint([Criterion(id="c", statement=statement, passes=passes, fails=fails)])}

    assert rules("The answer is good.") == {"vague word"}
    assert rules("The reply is good.") == {"no observable"}
    assert rules("The reply is high quality.") == {"no observable"}
    assert rules("The agent is polite and helpful.") == {"no observable", "several things"}
    assert rules("Rate helpfulness on a scale of 1 to 5.") >= {"a scale"}
    assert rules("The agent calls `refund` exactly once.") == set()
    assert rules("The agent is clear.", "It names the amount", "It names no amount") == set()
    twice = [Criterion(id=i, statement="The agent calls refund once.") for i in ("a", "b")]
    assert [f.rule for f in lint(twice)] == ["twice"]


class _Server(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint; `script` says what each request gets."""

    script: list[tuple[int, str | None]] = []
    seen: list[dict[str, object]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).seen.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
        status, text = type(self).script.pop(0) if type(self).script else (200, None)
        if text is None:
            messages = tuple(Message(role=m["role"], content=m["content"]) for m in body["messages"])
            reply = {"choices": [{"message": {"role": "assistant", "content": answer(messages)}}],
                     "usage": {"prompt_tokens": 120, "completion_tokens": 30}}  # fmt: skip
            text = json.dumps(reply)
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    _Server.script, _Server.seen = [], []
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_address[1]}/v1"
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_judge_over_http(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "secret")
    judged = Judge(SPEC, endpoint(SPEC, server, "JUDGE_KEY")).judge("called refund")
    assert [v.passed for v in judged.verdicts] == [True]
    assert judged.usage is not None
    assert (judged.usage.input_tokens, judged.usage.output_tokens, judged.usage.cost_usd) == (120, 30, None)
    (request,) = _Server.seen
    assert (request["path"], request["key"], request["model"]) == ("/v1/chat/completions", "Bearer secret", "judge-1")


def test_an_overloaded_server_is_tried_again_and_a_refusal_is_not(server: str) -> None:
    complete = endpoint(SPEC, server, "NO_KEY", patience=Patience(tries=3, backoff=0.01))
    _Server.script = [(503, "busy"), (429, "slow down"), (200, None)]
    assert Judge(SPEC, complete).judge("x").verdicts[0].passed is True
    _Server.script = [(401, "who are you")]
    with pytest.raises(InfrastructureError, match="401"):
        Judge(SPEC, complete).judge("x")
    assert len(_Server.seen) == 4
    for body in ("not json", '{"choices": []}'):
        _Server.script = [(200, body)]
        with pytest.raises(InfrastructureError):
            Judge(SPEC, complete).judge("x")


def test_a_server_that_is_not_there() -> None:
    quick = Patience(tries=2, backoff=0.0)
    with pytest.raises(InfrastructureError):
        Judge(SPEC, endpoint(SPEC, "http://127.0.0.1:9", "NO_KEY", patience=quick)).judge("x")
    with pytest.raises(UsageError, match="endpoint"):
        endpoint(SPEC, None, "NO_KEY")
