"""A judge's model behind an OpenAI-compatible endpoint: messages in, the reply's text and usage out."""

from __future__ import annotations

import os

from msgspec.structs import replace

from seatrial.chat import ChatClient, Patience, Sampling
from seatrial.errors import UsageError
from seatrial.records.judge import Complete, JudgeSpec, Message, Reply
from seatrial.records.price import Price, Prices


def endpoint(
    spec: JudgeSpec, url: str | None, key_variable: str | None, *, patience: Patience = Patience()
) -> Complete:
    """A function that asks `spec.model` at `url` (None: the judge's own).

    The key is read from the environment variable `key_variable` and may be absent. Where none is named it is
    SEATRIAL_API_KEY; OPENAI_API_KEY goes to its own host alone, since `url` may come from a file that others wrote.
    Prices are the judge's (`priced_judge`).

    Raises:
        UsageError: no endpoint is known, or it is no http(s) address.
    """
    base = url or spec.url
    if not base:
        raise UsageError("no endpoint is known", hint="--url, or url in the judge's file")
    prices = None
    if spec.usd_per_million_input is not None and spec.usd_per_million_output is not None:
        prices = {spec.model: Price(input=spec.usd_per_million_input, output=spec.usd_per_million_output)}
    client = ChatClient(
        spec.model,
        base,
        key=(os.environ.get(key_variable) or None) if key_variable else None,
        sampling=Sampling(temperature=spec.temperature, max_tokens=spec.max_tokens),
        patience=patience,
        prices=prices,
    )

    def complete(messages: tuple[Message, ...]) -> Reply:
        reply = client.complete([{"role": m.role, "content": m.content} for m in messages])
        return Reply(text=reply.text, usage=reply.usage)

    return complete


def priced_judge(spec: JudgeSpec, prices: Prices) -> JudgeSpec:
    """The judge with the prices of the settings, where its own file has none. Its identity does not change."""
    known = prices.get(spec.model)
    if known is None or spec.usd_per_million_input is not None or spec.usd_per_million_output is not None:
        return spec
    return replace(spec, usd_per_million_input=known.input, usd_per_million_output=known.output)
