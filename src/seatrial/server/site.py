"""What every page stands on: the store, who asks, templates, and how a handler becomes an answer."""

from __future__ import annotations

import math
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
import jinja2
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from seatrial._version import __version__
from seatrial.errors import InputError, SeatrialError, StoreError, UsageError
from seatrial.server import assets, named, rendering, stored
from seatrial.server.access import Role, Who
from seatrial.server.based import Overtaken
from seatrial.server.body import Refused
from seatrial.server.index import Index
from seatrial.server.jobs import Jobs
from seatrial.server.security import SESSION_S, Gate, Rates, Visit, cookie_name, is_private
from seatrial.server.traces import Sessions
from seatrial.server.words import LONGEST_NAME, NAVIGATION
from seatrial.store import Store, StoredResult

MAX_FORM = 1024 * 1024
_AGAIN_S = 600.0
_MOST_SEEN = 10_000
Kind = Literal["page", "api"]


class Asked:
    """A request, with who asks and what they sent. `form` holds the fields of a form, `body` the object of an API
    call; both are empty for a request that only looks. `again`: a form of our own page came too late, and its fields
    may be sent once more by whoever sees them. `refused`: why what the form wanted is not done, while its page is shown
    again."""

    def __init__(self, site: Site, request: Request, visit: Visit) -> None:
        self.site = site
        self.request = request
        self.visit = visit
        self.form: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.body: dict[str, Any] = {}
        self.again = False
        self.refused: SeatrialError | None = None

    @property
    def who(self) -> Who:
        """The caller."""
        return self.visit.who

    @property
    def store(self) -> Store:
        """The store that is shown."""
        return self.site.store

    def result(self, ident: str, *, seen: bool = True) -> StoredResult:
        """A stored result as it may be shown. The audit log has every session that it names first; `seen` False where
        nothing of what it says of them is shown.

        Raises:
            InputError: there is none of that id, or it is about a session that may not be shown.
            Refused: it is a queue of items to label: who is to label must not see what is hidden there.
        """
        index = self.site.index
        kept = stored.read(self.store, ident, index.current().may)
        if not seen:
            return kept
        if kept.kind == "label" and not self.who.may("admin"):
            raise Refused(403, f"a queue is shown item by item, or needs the role admin; yours is {self.who.role}")
        self.site.saw(self, *index.derived(
            ("named", ident, kept.time), named.TABLES,
            lambda snapshot: named.sessions_in(self.store, snapshot, kept.envelope),
        ))  # fmt: skip
        return kept

    def lost(self, *kinds: str) -> list[str]:
        """Says which stored results of some kinds, or of any, cannot be read, for a page that has to pass over them."""
        names = [name for kind in kinds or (None,) for name in self.store.unreadable_results(kind)]
        return [f"result {name} cannot be read: see seatrial verify" for name in names]

    def text(self, name: str, default: str = "", *, most: int = LONGEST_NAME) -> str:
        """A parameter of the address, at most `most` characters: a name is as long as somebody made it."""
        return self.request.query_params.get(name, default)[:most]

    def number(self, name: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
        """A whole number of the address; `default` where it is absent or none, held between `least` and `most`."""
        given = self.request.query_params.get(name, "")
        try:
            value = int(given[:20])
        except ValueError:
            value = default
        return min(max(value, least), most)

    def page(self, template: str, context: Mapping[str, Any]) -> Response:
        """A page of this site."""
        return self.site.page(self, template, 200, context)

    def back(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        """See another page, after a form has been taken."""
        return RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)

    def did(self, what: str, *, session: str | None = None, about: str | None = None) -> None:
        """Note in the audit log what the caller does."""
        self.store.audit.note(self.who.name, self.who.role, what, session=session, about=about)


Handler = Callable[[Asked], Response]


class Page(msgspec.Struct, frozen=True):
    """An address: who may come (`needs`), whether a person or a program does (`kind`), and what answers. `form` shows
    the page of a form once more when it is refused, with the reason and what was typed."""

    path: str
    handler: Handler
    needs: Role = "viewer"
    methods: tuple[str, ...] = ("GET",)
    kind: Kind = "page"
    form: Handler | None = None


class Site:
    """One store, shown. `serving` False: no receiver runs here, and pages do not promise that one does."""

    def __init__(
        self,
        store: Store,
        gate: Gate,
        jobs: Jobs,
        *,
        serving: bool,
        consent: Literal["assume", "require"],
        suite: str = "suite.jsonl",
    ) -> None:
        self.store = store
        self.suite = Path(suite)
        self.gate = gate
        self.jobs = jobs
        self.serving = serving
        self.consent: Literal["assume", "require"] = consent
        self.index = Index(store, consent)
        self.sessions = Sessions(store)
        self._seen: dict[tuple[str, str], float] = {}
        self._rates = Rates(burst=240, per_second=40)
        self._writes = Rates(burst=60, per_second=4)
        self.sign_ins = Rates(burst=8, per_second=0.1)
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("seatrial.server"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(rendering.FUNCTIONS, asset=assets.address)
        self._templates.filters.update(rendering.FILTERS)

    def saw(self, asked: Asked, *sessions: str) -> None:
        """Note in the audit log that a caller is shown some sessions, before they are; each once in ten minutes."""
        now = time.monotonic()
        who = asked.who.name
        new = [s for s in dict.fromkeys(sessions) if now - self._seen.get((who, s), -math.inf) >= _AGAIN_S]
        if not new:
            return
        self.store.audit.saw(who, asked.who.role, new)
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen.update(((who, s), now) for s in new)

    def page(self, asked: Asked | None, template: str, status: int, context: Mapping[str, Any]) -> Response:
        """Render a template."""
        visit = None if asked is None else asked.visit
        shared: dict[str, Any] = {
            "version": __version__,
            "navigation": NAVIGATION,
            "path": "" if asked is None else asked.request.url.path,
            "who": None if visit is None else visit.who,
            "signed_in": not self.gate.open,
            "form_token": "" if visit is None or visit.key is None else self.gate.form_token(visit.key),
            "serving": self.serving,
            "data_version": "",
            "running": len(self.jobs.running()),
            "lost": (),
            "refused": None if asked is None else asked.refused,
            "typed": {} if asked is None or asked.refused is None else asked.form,
        }
        if asked is not None and asked.refused is not None:
            status = _status(asked.refused)
        text = self._templates.get_template(template).render({**shared, **context})
        answer = Response(text, status, media_type="text/html")
        if asked is not None and visit is not None and visit.fresh and visit.key is not None:
            set_cookie(answer, asked.request, self.gate.cookie(visit.who, visit.key))
        return answer

    def route(self, page: Page) -> Route:
        """The route that serves a page."""

        async def answer(request: Request) -> Response:
            asked: Asked | None = None
            try:
                visit = self._known(request)
                asked = Asked(self, request, visit)
                await self._admit(asked, page)
                return await anyio.to_thread.run_sync(_answer, page, asked)
            except Refused as refused:
                return self._refusal(request, page, asked, refused)
            except SeatrialError as error:
                return self._problem(page, asked, error)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                sys.stderr.write("seatrial: a page failed:\n" + "".join(traceback.format_exception(error)))
                broken = SeatrialError("something went wrong here, and it is not your doing")
                return self._error(page, asked, 500, broken)

        return Route(page.path, answer, methods=list(page.methods))

    def _known(self, request: Request) -> Visit:
        visit = self.gate.visit(request)
        if not self.gate.open and not is_private(request):
            raise Refused(403, "pages are shown only through TLS: put a proxy in front that sets X-Forwarded-Proto")
        return visit

    async def _admit(self, asked: Asked, page: Page) -> None:
        request, visit = asked.request, asked.visit
        changes = request.method not in ("GET", "HEAD")
        caller = f"{visit.who.name} {request.client.host if request.client else ''}"
        wait = (self._writes if changes else self._rates).take(caller)
        if wait:
            raise Refused(429, "too many requests", retry_after=math.ceil(wait))
        if not visit.who.may(page.needs):
            raise Refused(403, f"this needs the role {page.needs}; yours is {visit.who.role}")
        if changes:
            await self._take(asked, page)

    async def _take(self, asked: Asked, page: Page) -> None:
        request = asked.request
        data = b""
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_FORM:
                raise Refused(413, f"the form has more than {MAX_FORM} bytes")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        given: str | None = None
        try:
            if kind == "application/json" and page.kind == "api":
                body = msgspec.json.decode(data or b"{}")
                if not isinstance(body, dict):
                    raise UsageError("the body must be a JSON object")
                asked.body = body
            elif kind == "application/x-www-form-urlencoded" and page.kind == "page":
                for name, value in parse_qsl(data.decode("utf-8"), keep_blank_values=True, max_num_fields=500):
                    asked.form[name] = value
                    asked.lists.setdefault(name, []).append(value)
                given = asked.form.get("form_token", "")
            else:
                raise Refused(415, "send JSON" if page.kind == "api" else "send a form")
        except RecursionError:
            raise UsageError("the body cannot be read: it is nested too deeply") from None
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise UsageError(f"the body cannot be read: {error}") from error
        refused = self.gate.check_form(request, asked.visit, given)
        if refused is not None:
            asked.again = given is not None and self.gate.is_own(request)
            raise refused

    async def nowhere(self, request: Request) -> Response:
        """An address that leads nowhere."""

        def answer(asked: Asked) -> Response:
            raise InputError("there is nothing at this address")

        kind: Kind = "api" if request.url.path.startswith("/api/") else "page"
        made = await self.route(Page("/", answer, kind=kind)).endpoint(request)
        assert isinstance(made, Response)
        return made

    async def wrong_method(self, request: Request, error: Exception) -> Response:
        """An address that leads somewhere, but not that way."""
        kind: Kind = "api" if request.url.path.startswith("/api/") else "page"
        about = SeatrialError(f"nothing can be done by {request.method} here")
        answer = self._error(Page("/", lambda asked: Response(), kind=kind), None, 405, about)
        answer.headers.update(getattr(error, "headers", None) or {})
        return answer

    # When it does not work out

    def _refusal(self, request: Request, page: Page, asked: Asked | None, refused: Refused) -> Response:
        if refused.status == 401 and page.kind == "page" and request.method == "GET":
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?{urlencode({'to': here})}", 303)
        answer = self._error(page, asked, refused.status, SeatrialError(refused.why))
        if refused.retry_after is not None:
            answer.headers["retry-after"] = str(refused.retry_after)
        if refused.status == 401:
            answer.headers["www-authenticate"] = "Bearer"
        return answer

    def _problem(self, page: Page, asked: Asked | None, error: SeatrialError) -> Response:
        return self._error(page, asked, _status(error), error)

    def _error(self, page: Page, asked: Asked | None, status: int, error: SeatrialError) -> Response:
        if page.kind == "api":
            return JSONResponse({"error": {"code": error.code, "message": error.message, "hint": error.hint}}, status)
        again = [] if asked is None or not asked.again else [
            (name, value) for name, values in asked.lists.items() if name != "form_token" for value in values
        ]  # fmt: skip
        return self.page(
            asked,
            "error.html",
            status,
            {"status": status, "message": error.message, "hint": error.hint, "again": again},
        )


def _answer(page: Page, asked: Asked) -> Response:
    """What a page answers; the page of a form that is refused says why, and keeps what was typed."""
    try:
        return page.handler(asked)
    except RecursionError:
        raise UsageError("what is stored here is nested too deeply to be shown") from None
    except SeatrialError as error:
        if isinstance(error, StoreError):
            sys.stderr.write(f"seatrial: {error.message}\n")
        if page.form is None:
            raise
        asked.refused = error
        try:
            return page.form(asked)
        except SeatrialError:
            asked.refused = None
            raise error from None


def _status(error: SeatrialError) -> int:
    if isinstance(error, Overtaken):
        return 409
    return 404 if isinstance(error, InputError) else 400 if isinstance(error, UsageError) else 503


def set_cookie(answer: Response, request: Request, value: str) -> None:
    """Let the browser remember who it is; scripts cannot read it, and other sites cannot make it be sent."""
    secure = request.headers.get("x-forwarded-proto", "").lower().startswith("https")
    name = cookie_name(request)
    answer.set_cookie(name, value, max_age=int(SESSION_S), httponly=True, samesite="lax", secure=secure, path="/")
