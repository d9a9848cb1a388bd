"""The web application: ``POST /v1/traces`` and ``GET /healthz``, behind a token where one is set."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from seatrial.errors import FormatError, MissingExtra, SeatrialError
from seatrial.server.access import is_loopback
from seatrial.server.body import Budget, Refused, read
from seatrial.server.otlp import TYPES, accepted, encoding_of, failed
from seatrial.server.receiver import Receiver
from seatrial.server.settings import ServerSettings
from seatrial.server.spool import Encoding

_BODY_TIMEOUT_S = 60.0
_RPC_CODES = {400: 3, 401: 16, 403: 7, 408: 4, 413: 8, 415: 3, 501: 12, 503: 14}
"""``google.rpc.Code`` of what we answer; anything else is INTERNAL (13)."""


def make(
    receiver: Receiver, settings: ServerSettings, token: str | None, ready: Callable[[], None] = lambda: None
) -> Starlette:
    """The application. `token` None: for callers on this machine, who must also name it as such in ``Host``."""
    gate = _Gate(token)
    traces = _Traces(receiver, settings, gate)

    async def health(request: Request) -> Response:
        refused = gate.check(request)
        if refused is not None:
            return JSONResponse({"error": refused.why}, refused.status)
        return JSONResponse(await anyio.to_thread.run_sync(receiver.status))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        ready()
        yield
        await anyio.to_thread.run_sync(receiver.close)

    routes = [Route("/v1/traces", traces.post, methods=["POST"]), Route("/healthz", health, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan)


class _Gate:
    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else token.encode()

    def check(self, request: Request) -> Refused | None:
        """Why this caller may not; None when it may."""
        if self._token is None:
            # A page in a browser can reach this machine under a name of its own making, but not under ours.
            name = request.headers.get("host", "")
            return None if is_loopback(_host_of(name)) else Refused(403, "the Host header does not name this machine")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._token)
        return None if same and scheme.lower() == "bearer" else Refused(401, "a bearer token is needed")


def _host_of(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


class _Traces:
    def __init__(self, receiver: Receiver, settings: ServerSettings, gate: _Gate) -> None:
        self._receiver = receiver
        self._settings = settings
        self._gate = gate
        self._budget = Budget(settings.max_in_flight)

    async def post(self, request: Request) -> Response:
        encoding: Encoding = "json"
        try:
            refused = self._gate.check(request)
            if refused is not None:
                raise refused
            encoding = encoding_of(request.headers.get("content-type", ""))
            rejected = await self._keep(request, encoding)
        except Refused as error:
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

    async def _keep(self, request: Request, encoding: Encoding) -> int:
        length = request.headers.get("content-length", "")
        limit = self._settings.max_body
        if length.isascii() and length.isdigit() and int(length[:20]) > limit:
            raise Refused(413, f"the request has more than {limit} bytes")
        coding = request.headers.get("content-encoding", "")
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            body, held = await read(request.stream(), coding, limit, self._budget)
        try:
            return await anyio.to_thread.run_sync(self._receiver.receive, body, encoding)
        finally:
            self._budget.give(held)


def _error(encoding: Encoding, error: Refused) -> Response:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (401, 403, 413):
        headers["Connection"] = "close"
    body = failed(encoding, _RPC_CODES.get(error.status, 13), error.why)
    return Response(body, error.status, headers=headers, media_type=TYPES[encoding])
