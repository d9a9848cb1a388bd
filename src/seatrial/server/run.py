"""Listening: a socket, a receiver behind it, and an orderly end."""

from __future__ import annotations

import importlib.util
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from seatrial.errors import InfrastructureError, MissingExtra
from seatrial.intake.assignments import Assignments
from seatrial.server.receiver import Receiver
from seatrial.server.settings import ServerSettings
from seatrial.store import Store


def serve(
    store: Store,
    *,
    host: str,
    port: int,
    token: str | None,
    settings: ServerSettings = ServerSettings(),
    redact: bool = True,
    assignments: Assignments | None = None,
    user: str | None = None,
    retention_days: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, object]:
    """Receive until SIGINT or SIGTERM; then commit what was received, and return what was done (`Counts`).

    `port` 0: any free one; `say` is told the address. Must be called from the main thread.

    Raises:
        InfrastructureError: the address cannot be listened on.
        MissingExtra: the extra ``[web]`` is not installed.
        StoreError: another receiver runs on this store.
    """
    for module in ("starlette", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra("web", "seatrial serve")
    import uvicorn

    from seatrial.server import app

    listening = _listen(host, port)
    where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/v1/traces"
    with listening:
        receiver = Receiver(
            store, settings, redact=redact, assignments=assignments, user=user, retention_days=retention_days, say=say
        )
        web = app.make(receiver, settings, token, ready=lambda: say(f"receiving on {where}"))
        config = uvicorn.Config(
            web,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            http="h11",
            limit_concurrency=256,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(int(settings.grace), 1),
        )
        # uvicorn hands the signal on when it has stopped; by then there is nothing left to do.
        before: dict[int, Any] = {n: signal.signal(n, _ignore) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            receiver.close()
    return receiver.status()


def _ignore(number: int, frame: FrameType | None) -> None:
    return None


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, proto)
    except OSError as error:
        raise InfrastructureError(f"{host} cannot be listened on: {error}") from error
    try:
        if sys.platform != "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(256)
    except OSError as error:
        made.close()
        raise InfrastructureError(
            f"{host} port {port} cannot be listened on: {error.strerror}", hint="choose another --port"
        ) from error
    return made
