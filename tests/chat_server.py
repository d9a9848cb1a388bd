"""A small OpenAI-compatible server on a real socket: answers from a script, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = dict[str, Any]
"""``text``, ``calls`` [(name, arguments)], ``usage``, ``status``, ``headers``, ``error``, ``delay``, ``raw`` bytes,
``cut`` (a stream ends before its choice)."""


class ChatServer:
    """`script` is a list of answers, used in turn (the last again and again), or a function of the request."""

    def __init__(self, script: list[Answer] | Callable[[dict[str, Any]], Answer], model: str = "toy-1") -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._script = script
        self._model = model
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append({"path": self.path, **body})
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    outer._answer(self, body)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        script = self._script
        answer = script(body) if callable(script) else script[min(len(self.requests), len(script)) - 1]
        time.sleep(answer.get("delay", 0.0))
        status = answer.get("status", 200)
        if "raw" in answer:
            self._send(handler, status, answer["raw"], "text/plain", answer)
        elif status >= 400:
            data = json.dumps({"error": {"message": answer.get("error", "no")}}).encode()
            self._send(handler, status, data, "application/json", answer)
        elif body.get("stream"):
            self._send(handler, status, self._events(answer), "text/event-stream", answer)
        else:
            self._send(handler, status, json.dumps(self._whole(answer)).encode(), "application/json", answer)

    def _send(self, handler: BaseHTTPRequestHandler, status: int, data: bytes, kind: str, answer: Answer) -> None:
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        for name, value in answer.get("headers", {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def _calls(self, answer: Answer) -> list[dict[str, Any]]:
        return [
            {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in answer.get("calls", [])
        ]

    def _whole(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.get("text", "")}
        if answer.get("calls"):
            message["tool_calls"] = self._calls(answer)
        out = {"model": self._model, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return out | ({"usage": answer["usage"]} if "usage" in answer else {})

    def _events(self, answer: Answer) -> bytes:
        """The same in pieces: text by the character, arguments in two halves."""
        chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"content": c}}]} for c in answer.get("text", "")]
        for index, call in enumerate(self._calls(answer)):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            half = len(arguments) // 2
            first = {"index": index, "id": call["id"], "function": {"name": name, "arguments": arguments[:half]}}
            second = {"index": index, "function": {"arguments": arguments[half:]}}
            chunks += [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in (first, second)]
        if not answer.get("cut"):
            chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        else:
            chunks = []
        if "usage" in answer:
            chunks.append({"choices": [], "usage": answer["usage"]})
        lines = [": ping", *("data: " + json.dumps({"model": self._model, **c}) for c in chunks), "data: [DONE]"]
        return ("\n\n".join(lines) + "\n\n").encode()
