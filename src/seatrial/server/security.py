"""Every request is met here first: who it is from, whether a form is the caller's own will, and how often they come."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.canon import canonical
from seatrial.server.access import HERE, Holder, Who, holder_of, is_loopback
from seatrial.server.body import Refused

SESSION_S = 12 * 3600.0
"""How long a sign-in lasts."""

_MOST_ENDED = 10_000
_MOST_PROVEN = 10_000

HEADERS: tuple[tuple[str, str], ...] = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)


class Headers:
    """Adds `HEADERS` to every answer, and `no-store` where an answer says nothing about caches."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name.lower() for name, _ in message["headers"]}
                extra = [(n.encode(), v.encode()) for n, v in HEADERS if n.encode() not in have]
                if b"cache-control" not in have:
                    extra.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await self._app(scope, receive, with_headers)


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A caller with what binds their forms to them: `key` names the browser's session, None for a bearer token."""

    who: Who
    key: str | None = None
    fresh: bool = False


class _Cookie(msgspec.Struct):
    key: str
    name: str
    role: str
    until: float


class Gate:
    """Tells callers apart. Without tokens only this machine is served, and everyone on it may do everything."""

    def __init__(self, holders: Sequence[Holder]) -> None:
        self._holders = tuple(holders)
        self._secret = secrets.token_bytes(32)
        self._guard = threading.Lock()
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._wrong = Rates(burst=20, per_second=0.2)
        self._proven: OrderedDict[tuple[str, Who], None] = OrderedDict()

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return not self._holders

    def sender(self, request: Request) -> Refused | None:
        """Why this caller may not send traces; None when it may. Only a bearer token counts, never a cookie."""
        if self.open:
            return _not_here(request)
        try:
            who = self._bearer(request)
        except Refused as refused:
            return refused
        if who is None:
            return Refused(401, "a bearer token is needed")
        return None if who.sends else Refused(403, f"this needs the role sender or admin; yours is {who.role}")

    def visit(self, request: Request) -> Visit:
        """Who looks at pages.

        Raises:
            Refused: nobody who may (401: sign in; 403: not on this machine).
        """
        if self.open:
            refused = _not_here(request)
            if refused is not None:
                raise refused
            kept = self._read(request)
            who = Who(name=HERE, role="admin")
            return Visit(who=who, key=kept.key if kept else secrets.token_urlsafe(18), fresh=kept is None)
        if "authorization" in request.headers:
            bearer = self._bearer(request)
            if bearer is None:
                raise Refused(401, "this token is not known")
            return Visit(who=bearer)
        kept = self._read(request)
        holder = next((h for h in self._holders if kept and (h.who.name, h.who.role) == (kept.name, kept.role)), None)
        if kept is None or holder is None or kept.key in self._ended:
            raise Refused(401, "sign in with a token")
        return Visit(who=holder.who, key=kept.key)

    def sign_in(self, token: str) -> tuple[Who, str] | None:
        """Whose token it is, and the cookie that remembers it; None for an unknown one."""
        who = holder_of(token.strip(), self._holders)
        return None if who is None else (who, self.cookie(who))

    def sign_out(self, key: str) -> None:
        """End a browser's session: its cookie, and any copy of it, is nobody's from now on."""
        now = time.time()
        with self._guard:
            for old in [k for k, until in self._ended.items() if until <= now]:
                del self._ended[old]
            if len(self._ended) >= _MOST_ENDED:
                # Every cookie ends, so that no list grows and none that has ended comes back.
                self._ended.clear()
                self._secret = secrets.token_bytes(32)
            self._ended[key] = now + SESSION_S

    def cookie(self, who: Who, key: str | None = None) -> str:
        """A signed cookie for a caller."""
        kept = _Cookie(key or secrets.token_urlsafe(18), who.name, who.role, time.time() + SESSION_S)
        body = base64.urlsafe_b64encode(canonical(kept)).decode().rstrip("=")
        return f"{body}.{self._sign('cookie', body)}"

    def form_token(self, key: str) -> str:
        """What a form of this browser session carries."""
        return self._sign("form", key)

    def is_own(self, request: Request) -> bool:
        """Whether a page of ours sent this, as the browser says; False where it does not say."""
        return urlsplit(request.headers.get("origin", "")).netloc == request.headers.get("host", "")

    def check_form(self, request: Request, visit: Visit, given: str | None) -> Refused | None:
        """Why what changes something is not accepted; None when it is the caller's own will.

        `given` is the token of a form; None for a body of JSON, which another site's page cannot send us unasked.
        """
        if visit.key is None:
            return None  # a bearer token is never sent by itself
        if "origin" in request.headers and not self.is_own(request):
            return Refused(403, "the form was sent from another site")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return Refused(403, "the form was sent from another site")
        if given is None:
            return None
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.form_token(visit.key).encode()):
            return Refused(403, "the form has expired, because the server was started anew or you signed in again")
        return None

    def _sign(self, what: str, text: str) -> str:
        return hmac.new(self._secret, f"{what}:{text}".encode(), hashlib.sha256).hexdigest()

    def _bearer(self, request: Request) -> Who | None:
        """Whose bearer token this is; None where it is nobody's, or there is none.

        Raises:
            Refused: too many wrong ones came from there: even the right one is refused then, unless it has been used
                from there before, so that whoever guesses does not learn which it is.
        """
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        who = holder_of(given.strip(), self._holders)
        caller = request.client.host if request.client is not None else ""
        if who is not None and (caller, who) in self._proven:
            return who
        wait = self._wrong.take(caller)
        if wait:
            raise Refused(429, "too many unknown tokens came from there", retry_after=math.ceil(wait))
        if who is not None:
            with self._guard:
                self._proven[caller, who] = None
                while len(self._proven) > _MOST_PROVEN:
                    self._proven.popitem(last=False)
        return who

    def _read(self, request: Request) -> _Cookie | None:
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(request.headers.get("cookie", ""))
        except CookieError:
            return None
        found = jar.get(cookie_name(request))
        if found is None:
            return None
        body, _, signed = found.value.partition(".")
        if not hmac.compare_digest(signed.encode(), self._sign("cookie", body).encode()):
            return None
        kept = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=_Cookie)
        return kept if kept.until > time.time() else None


def cookie_name(request: Request) -> str:
    """The cookie's name: browsers keep cookies by host alone, and two servers may share one."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"seatrial-{port}" if port.isascii() and port.isdigit() else "seatrial"


def _not_here(request: Request) -> Refused | None:
    # A page in a browser can reach this machine under a name of its own making, but not under ours.
    header = request.headers.get("host", "")
    name = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
    return None if is_loopback(name) else Refused(403, "the Host header does not name this machine")


def is_private(request: Request) -> bool:
    """Whether nobody between us and the caller can read along: on this machine, or TLS ended in front of us."""
    client = request.client.host if request.client is not None else ""
    if request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower() == "https":
        return True
    header = request.headers.get("host", "")
    name = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
    forwarded = any(h in request.headers for h in ("x-forwarded-for", "forwarded"))
    return is_loopback(client or "localhost") and is_loopback(name) and not forwarded


class Rates:
    """A bucket for each caller: `burst` requests at once, `per_second` more in the long run."""

    def __init__(self, burst: float, per_second: float, most: int = 10_000) -> None:
        self._burst = burst
        self._per_second = per_second
        self._most = most
        self._guard = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float | None = None) -> float:
        """Take one; 0 when it was there, else how many seconds until there is one."""
        moment = time.monotonic() if now is None else now
        with self._guard:
            left, since = self._buckets.pop(caller, (self._burst, moment))
            left = min(self._burst, left + (moment - since) * self._per_second)
            wait = 0.0 if left >= 1.0 else (1.0 - left) / self._per_second
            self._buckets[caller] = (left - 1.0 if wait == 0.0 else left, moment)
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return wait
