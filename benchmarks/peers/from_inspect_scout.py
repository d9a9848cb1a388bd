"""inspect_scout's Claude Code source as an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspect_scout.sources._claude_code import claude_code
from running import main

EVENTS = {"user": "human", "assistant": "agent"}


async def _transcripts(file: Path) -> list[Any]:
    return [transcript async for transcript in claude_code(str(file))]


def show(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for transcript in asyncio.run(_transcripts(file)):
            yield from _turns(transcript)


def _turns(transcript: Any) -> Iterator[dict[str, Any]]:
    used = {e.output.message.id: e.output.usage for e in transcript.events if e.event == "model" and e.output.choices}
    for message in transcript.messages:
        turn: dict[str, Any] = {
            "event": EVENTS.get(message.role, "harness"),
            "trace": transcript.transcript_id,
            "text": message.text,
        }
        if message.role == "assistant":
            turn["model"] = message.model
            turn["tool_calls"] = [{"id": call.id, "name": call.function} for call in message.tool_calls or []]
            if (usage := used.get(message.id)) is not None:
                read = (usage.input_tokens_cache_write or 0) + (usage.input_tokens_cache_read or 0)
                turn["usage"] = {"input_tokens": usage.input_tokens + read, "output_tokens": usage.output_tokens}
        if message.role == "tool":
            outcome = "error" if message.error is not None else "ok"
            turn["text"] = ""
            turn["results"] = [{"call_id": message.tool_call_id, "outcome": outcome, "text": message.text}]
        yield turn


def read(file: Path) -> int:
    return sum(len(transcript.messages) for transcript in asyncio.run(_transcripts(file)))


if __name__ == "__main__":
    main(show, read)
