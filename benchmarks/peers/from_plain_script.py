"""What a plain script does: every line as JSON, user is the person, assistant is the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from running import main


def show(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        with file.open(encoding="utf-8", newline="\n") as stream:
            for line in stream:
                record = json.loads(line)
                if record["type"] in ("user", "assistant"):
                    yield _turn(record)


def _turn(record: dict[str, Any]) -> dict[str, Any]:
    message = record["message"]
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    turn: dict[str, Any] = {
        "event": "human" if record["type"] == "user" else "agent",
        "trace": record["sessionId"],
        "text": "".join(block.get("text", "") for block in blocks),
        "model": message.get("model"),
        "tool_calls": [{"id": b["id"], "name": b["name"]} for b in blocks if b["type"] == "tool_use"],
        "results": [
            {"call_id": b["tool_use_id"], "outcome": "error" if b.get("is_error") else "ok"}
            for b in blocks
            if b["type"] == "tool_result"
        ],
    }
    if "usage" in message:
        turn["usage"] = {name: message["usage"][name] for name in ("input_tokens", "output_tokens")}
    return turn


def read(file: Path) -> int:
    n = 0
    with file.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            try:
                n += json.loads(line).get("type") in ("user", "assistant")
            except ValueError:
                continue
    return n


if __name__ == "__main__":
    main(show, read)
