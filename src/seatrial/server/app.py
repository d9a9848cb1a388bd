"""The web application: pages and their API over a store, and the OTLP receiver where one runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import anyio.to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from seatrial.errors import FormatError, MissingExtra, SeatrialError
from seatrial.server import assets
from seatrial.server.access import Holder
from seatrial.server.body import Budget, Refused, drain, read
from seatrial.server.jobs import Jobs
from seatrial.server.otlp import TYPES, accepted, encoding_of, failed
from seatrial.server.pages import PAGES, entry
from seatrial.server.receiver import Receiver
from seatrial.server.security import Gate, Headers
from seatrial.server.settings import ServerSettings
from seatrial.server.site import Site
from seatrial.server.spool import Encoding
from seatrial.store import Store

_BODY_TIMEOUT_S = 60.0
_RPC_CODES = {400: 3, 401: 16, 403: 7, 408: 4, 413: 8, 415: 3, 429: 8, 501: 12, 503: 14}
"""``google.rpc.Code`` of what we answer; anything else is INTERNAL (13)."""


def make(
    store: Store,
    settings: ServerSettings,
    holders: Sequence[Holder] = (),
    *,
    receiver: Receiver | None = None,
    consent: Literal["assume", "require"] = "assume",
    ready: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda text: None,
) -> Starlette:
    """The application. Without `holders` it is for callers on this machine, who must name it as such in ``Host``;
    without a `receiver` it only shows. `ready` is called when it begins to answer."""
    gate = Gate(holders)
    jobs = Jobs(store.path, say=say)
    site = Site(store, gate, jobs, serving=receiver is not None, consent=consent, suite=settings.suite)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        ready()
        threading.Thread(target=site.index.warm, name="index", daemon=True).start()
        yield
        await anyio.to_thread.run_sync(jobs.close)
        if receiver is not None:
            await anyio.to_thread.run_sync(receiver.close)

    routes: list[BaseRoute] = [*assets.routes(), *entry.routes(site), *(site.route(page) for page in PAGES)]
    if receiver is not None:
        routes += _receiving(receiver, settings, gate)
    routes.append(Route("/{rest:path}", site.nowhere, methods=["GET"]))
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Headers)],
        exception_handlers={405: site.wrong_method},
    )


def _receiving(receiver: Receiver, settings: ServerSettings, gate: Gate) -> list[BaseRoute]:
    traces = _Traces(receiver, settings, gate)

    async def health(request: Request) -> Response:
        refused = gate.sender(request)
        if refused is not None:
            return JSONResponse({"error": refused.why}, refused.status)
        return JSONResponse(await anyio.to_thread.run_sync(receiver.status))

    return [Route("/v1/traces", traces.post, methods=["POST"]), Route("/healthz", health, methods=["GET"])]


class _Traces:
    def __init__(self, receiver: Receiver, settings: ServerSettings, gate: Gate) -> None:
        self._receiver = receiver
        self._settings = settings
        self._gate = gate
        self._budget = Budget(settings.max_in_flight)

    async def post(self, request: Request) -> Response:
        encoding: Encoding = "json"
        chunks = request.stream()
        try:
            refused = self._gate.sender(request)
            if refused is not None:
                raise refused
            encoding = encoding_of(request.headers.get("content-type", ""))
            rejected = await self._keep(request, chunks, encoding)
        except Refused as error:
            await _let_finish(request, chunks, error)
            return _error(encoding, error)
        except ClientDisconnect:
            return _error(encoding, Refused(400, "the request was cut short"))
        except TimeoutError:
            return _error(encoding, Refused(408, "the request took too long to arrive"))
        except FormatError as error:
            return _error(encoding, Refused(400, error.message))
        except MissingExtra as error:
            return _error(encoding, Refused(501, f"{error.message}; send JSON, or {error.hint}"))
        except (OSError, SeatrialError):
            return _error(encoding, Refused(503, "the request could not be kept", retry_after=5))
        return Response(accepted(encoding, rejected), 200, media_type=TYPES[encoding])

    async def _keep(self, request: Request, chunks: AsyncIterator[bytes], encoding: Encoding) -> int:
        length = request.headers.get("content-length", "")
        limit = self._settings.max_body
        if length.isascii() and length.isdigit() and int(length[:20]) > limit:
            raise Refused(413, f"the request has more than {limit} bytes")
        coding = request.headers.get("content-encoding", "")
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            body, held = await read(chunks, coding, limit, self._budget)
        try:
            return await anyio.to_thread.run_sync(self._receiver.receive, body, encoding)
        finally:
            self._budget.give(held)


_CLOSING = (401, 403, 413, 429)
"""Statuses after which the connection is closed."""


async def _let_finish(request: Request, chunks: AsyncIterator[bytes], error: Refused) -> None:
    """Let a client that sends on regardless finish, within limits, so that it sees the answer before we close."""
    if error.status in _CLOSING and "expect" not in request.headers:
        with contextlib.suppress(ClientDisconnect):
            await drain(chunks)


def _error(encoding: Encoding, error: Refused) -> Response:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in _CLOSING:
        headers["Connection"] = "close"
    body = failed(encoding, _RPC_CODES.get(error.status, 13), error.why)
    return Response(body, error.status, headers=headers, media_type=TYPES[encoding])
