"""Listening: a socket, the application and a receiver behind it, and an orderly end."""

from __future__ import annotations

import importlib.util
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Literal

from seatrial.errors import InfrastructureError, MissingExtra
from seatrial.intake.assignments import Assignments
from seatrial.server.access import Holder
from seatrial.server.receiver import Receiver
from seatrial.server.settings import ServerSettings
from seatrial.server.words import LONGEST_HEAD
from seatrial.store import Store


def serve(
    store: Store,
    *,
    host: str,
    port: int,
    holders: Sequence[Holder],
    settings: ServerSettings = ServerSettings(),
    consent: Literal["assume", "require"] = "assume",
    redact: bool = True,
    assignments: Assignments | None = None,
    user: str | None = None,
    retention_days: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, object]:
    """Receive and show until SIGINT or SIGTERM; then commit what was received, and return what was done (`Counts`).

    `port` 0: any free one; `say` is told the address. Must be called from the main thread.

    Raises:
        InfrastructureError: the address cannot be listened on.
        MissingExtra: the extra ``[web]`` is not installed.
        StoreError: another receiver runs on this store.
    """
    need()
    from seatrial.server import app

    listening = _listen(host, port)
    where = _address(host, listening)
    with listening:
        receiver = Receiver(
            store, settings, redact=redact, assignments=assignments, user=user, retention_days=retention_days, say=say
        )

        def ready() -> None:
            say(f"receiving on {where}/v1/traces")
            say(f"look at {where}/")

        web = app.make(store, settings, holders, receiver=receiver, consent=consent, ready=ready, say=say)
        try:
            _run(web, listening, settings)
        finally:
            receiver.close()
    return receiver.status()


def view(
    store: Store,
    *,
    port: int,
    settings: ServerSettings = ServerSettings(),
    consent: Literal["assume", "require"] = "assume",
    opened: Callable[[str], None] = lambda address: None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Show a store on this machine until SIGINT or SIGTERM, without receiving anything; `opened` gets the address.

    Raises:
        InfrastructureError: the port cannot be listened on.
        MissingExtra: the extra ``[web]`` is not installed.
    """
    need()
    from seatrial.server import app

    listening = _listen("127.0.0.1", port)
    where = _address("127.0.0.1", listening)
    with listening:

        def ready() -> None:
            say(f"look at {where}/")
            opened(f"{where}/")

        _run(app.make(store, settings, consent=consent, ready=ready, say=say), listening, settings)


def need() -> None:
    """Make sure that the extra is there.

    Raises:
        MissingExtra: it is not.
    """
    for module in ("starlette", "uvicorn", "jinja2"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra("web", "seatrial serve")


def configured(web: Any, settings: ServerSettings) -> Any:
    """How an application is served: what every request is held to before it is looked at."""
    import uvicorn

    return uvicorn.Config(
        web,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        http="h11",
        h11_max_incomplete_event_size=LONGEST_HEAD,
        proxy_headers=False,
        limit_concurrency=256,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(int(settings.grace), 1),
    )


def _run(web: Any, listening: socket.socket, settings: ServerSettings) -> None:
    import uvicorn

    # uvicorn hands the signal on when it has stopped; by then there is nothing left to do.
    before: dict[int, Any] = {n: signal.signal(n, _ignore) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        uvicorn.Server(configured(web, settings)).run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _address(host: str, listening: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


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
