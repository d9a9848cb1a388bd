"""Spans as OTLP requests, and a server in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.store import Store

SECOND = 10**9
START = 1_700_000_000


def attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def chat(trace: int, number: int, said: str = "done", user: str | None = "jane", session: str | None = None) -> Any:
    """One model call of a conversation: its messages are the whole conversation so far, as clients send it."""
    given: list[dict[str, Any]] = []
    for n in range(number + 1):
        given.append({"role": "user", "parts": [{"type": "text", "content": f"question {trace}.{n}"}]})
        if n < number:
            given.append({"role": "assistant", "parts": [{"type": "text", "content": f"{said} {trace}.{n}"}]})
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": f"{said} {trace}.{number}"}]}]
    named = {"user.id": user, "gen_ai.conversation.id": session}
    return {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{trace * 1000 + number + 1:016x}",
        "name": "chat m-1",
        "startTimeUnixNano": str((START + trace * 1000 + number) * SECOND),
        "endTimeUnixNano": str((START + trace * 1000 + number) * SECOND + SECOND // 2),
        "attributes": [
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.request.model", "m-1"),
            attribute("gen_ai.usage.input_tokens", 10),
            attribute("gen_ai.input.messages", json.dumps(given)),
            attribute("gen_ai.output.messages", json.dumps(answer)),
            *(attribute(name, value) for name, value in named.items() if value is not None),
        ],
    }


def request(*spans: Any) -> dict[str, Any]:
    resource = {"attributes": [attribute("service.name", "bot")]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def body(*spans: Any) -> bytes:
    return json.dumps(request(*spans)).encode()


class Serving:
    """`seatrial serve` on a free port; `address` is None if it ended before it listened."""

    def __init__(self, folder: Path, *options: str, environ: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-c", "from seatrial.cli import main; main()", "serve", "--port", "0"]
        command += ["--store", str(folder / "store")]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environ or {}),
        )
        self.said: list[str] = []

    def listen(self) -> str | None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"receiving on (http://\S+)/v1/traces", line)
            if found:
                # What else it says must not fill the pipe.
                threading.Thread(target=self._rest, daemon=True).start()
                return found.group(1)
        return None

    def _rest(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.printed = self.process.stdout.read()
        self.process.stdout.close()
        return status


@pytest.fixture
def serving() -> Iterator[Callable[..., Serving]]:
    made: list[Serving] = []

    def make(folder: Path, *options: str, environ: dict[str, str] | None = None) -> Serving:
        made.append(Serving(folder, *options, environ=environ))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.kill()
        for pipe in (one.process.stderr, one.process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)
