"""The chat server as a fixture: tests are not a package, so they are not imported from one another."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def chat_server() -> Iterator[Callable[..., Any]]:
    """``chat_server(script)`` starts a `ChatServer` (tests/chat_server.py) that ends with the test."""
    path = Path(__file__).resolve().parent.parent / "chat_server.py"
    spec = importlib.util.spec_from_file_location("chat_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    started: list[Any] = []

    def start(script: Any, **options: Any) -> Any:
        started.append(module.ChatServer(script, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()
