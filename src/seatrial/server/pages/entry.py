"""Signing in and out with a token."""

from __future__ import annotations

import math
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from seatrial.server.security import cookie_name, is_private
from seatrial.server.site import Asked, Page, Site, set_cookie

_MOST = 8192


def routes(site: Site) -> list[Route]:
    """These are met before anybody is known, so they check for themselves."""

    async def show(request: Request) -> Response:
        if site.gate.open:
            return RedirectResponse("/", 303)
        return _form(site, request, _inside(request.query_params.get("to", "/")))

    async def take(request: Request) -> Response:
        if site.gate.open:
            return RedirectResponse("/", 303)
        if not is_private(request):
            return _form(site, request, "/", "a token that was typed here could be read on its way", 403)
        data = b""
        async for chunk in request.stream():
            data += chunk
            if len(data) > _MOST:
                return _form(site, request, "/", "that is no token", 413)
        try:
            fields = dict(parse_qsl(data.decode("utf-8", "replace"), max_num_fields=10))
        except ValueError:
            return _form(site, request, "/", "that is no token", 400)
        to = _inside(fields.get("to", "/"))
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host", ""):
            return _form(site, request, to, "the form was sent from another site", 403)
        wait = site.sign_ins.take(request.client.host if request.client is not None else "")
        if wait:
            answer = _form(site, request, to, "too many attempts: wait a little", 429)
            answer.headers["retry-after"] = str(math.ceil(wait))
            return answer
        found = site.gate.sign_in(fields.get("token", ""))
        if found is None or not found[0].may("viewer"):
            return _form(site, request, to, "this token is not known here, or is one that only sends traces", 401)
        who, cookie = found
        await anyio.to_thread.run_sync(lambda: site.store.audit.note(who.name, who.role, "signed in"))
        gone = RedirectResponse(to, 303)
        set_cookie(gone, request, cookie)
        return gone

    return [Route("/sign-in", show, methods=["GET"]), Route("/sign-in", take, methods=["POST"])]


def _form(site: Site, request: Request, to: str, problem: str = "", status: int = 200) -> Response:
    return site.page(None, "sign_in.html", status, {"to": to, "problem": problem, "private": is_private(request)})


def _inside(to: str) -> str:
    """An address of this site; anything else becomes the first page."""
    fine = to.startswith("/") and not to.startswith(("//", "/\\")) and "\n" not in to and "\r" not in to
    return to if fine and to.isprintable() else "/"


def sign_out(asked: Asked) -> Response:
    """End the browser's session, and let it forget."""
    if asked.visit.key is not None and not asked.site.gate.open:
        asked.site.gate.sign_out(asked.visit.key)
        asked.did("signed out")
    answer = asked.back("/sign-in")
    answer.delete_cookie(cookie_name(asked.request), path="/")
    return answer


PAGES = (Page("/sign-out", sign_out, "viewer", ("POST",)),)
