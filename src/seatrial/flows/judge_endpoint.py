"""A judge's model behind an OpenAI-compatible endpoint: messages in, the reply's text and usage out."""

from __future__ import annotations

import os
import time
from typing import Any

from seatrial.errors import InfrastructureError, UsageError
from seatrial.records import Usage
from seatrial.records.judge import Complete, JudgeSpec, Message, Reply

TIMEOUT_S = 120.0
TRIES = 3
_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})


def endpoint(spec: JudgeSpec, url: str | None, key_variable: str, *, pause: float = 1.0) -> Complete:
    """A function that asks `spec.model` at `url` (None: the judge's own).

    The key is read from the environment variable `key_variable` and may be absent. Overload and faults of the server
    are tried three times, `pause` seconds apart and then longer.

    Raises:
        UsageError: no endpoint is known.
    """
    base = url or spec.url
    if not base:
        raise UsageError("no endpoint is known", hint="--url, or url in the judge's file")
    if not base.startswith(("http://", "https://")):
        raise UsageError(f"{base!r} is no http(s) URL")
    target = base.rstrip("/") + "/chat/completions"
    key = os.environ.get(key_variable)

    def complete(messages: tuple[Message, ...]) -> Reply:
        body: dict[str, Any] = {
            "model": spec.model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "max_tokens": spec.max_tokens,
        }
        if spec.temperature is not None:
            body["temperature"] = spec.temperature
        return _reply(_post(target, body, key, pause), target)

    return complete


def _post(target: str, body: dict[str, Any], key: str | None, pause: float) -> Any:
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    why = "no answer"
    for attempt in range(TRIES):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            answer = httpx.post(target, json=body, headers=headers, timeout=TIMEOUT_S)
        except httpx.HTTPError as error:
            why = f"{type(error).__name__}: {error}"
            continue
        if answer.status_code in _AGAIN:
            why = f"status {answer.status_code}"
            continue
        if answer.status_code != 200:
            raise InfrastructureError(
                f"the judge's endpoint {target} answered {answer.status_code}: {answer.text[:200]}"
            )
        try:
            return answer.json()
        except ValueError:
            raise InfrastructureError(f"the judge's endpoint {target} answered something that is no JSON") from None
    raise InfrastructureError(
        f"the judge's endpoint {target} gave no answer in {TRIES} tries: {why}",
        hint="what was answered before is kept; run it again",
    )


def _reply(body: Any, target: str) -> Reply:
    try:
        text = body["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise InfrastructureError(
            f"the judge's endpoint {target} answered without choices[0].message.content"
        ) from None
    return Reply(text=text if isinstance(text, str) else "", usage=_usage(body.get("usage")))


def _usage(counted: Any) -> Usage | None:
    if not isinstance(counted, dict):
        return None

    def whole(name: str) -> int | None:
        value = counted.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    money = counted.get("cost")
    return Usage(
        input_tokens=whole("prompt_tokens"),
        output_tokens=whole("completion_tokens"),
        cost_usd=float(money) if isinstance(money, int | float) and not isinstance(money, bool) else None,
    )
