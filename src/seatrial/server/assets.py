"""The few files that pages load: style sheet, script, icon. In memory, each under a name that changes with its content,
so that a browser asks for it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seatrial.canon import digest
from seatrial.report.style import CSS

_TYPES = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


@cache
def _bodies() -> dict[str, bytes]:
    """Every file. The style sheet begins with the report's, so that charts and tables look the same."""
    folder = files("seatrial.server") / "static"
    texts = {name: (folder / name).read_text("utf-8") for name in _TYPES}
    texts["app.css"] = CSS + texts["app.css"]
    return {name: text.encode() for name, text in texts.items()}


@cache
def address(name: str) -> str:
    """Where a file is found, with the digest of its content in the name."""
    stem, _, kind = name.partition(".")
    return f"/static/{stem}-{digest(_bodies()[name])[:16]}.{kind}"


def routes() -> list[Route]:
    """Two routes per file: the one that pages name, which never changes, and the plain one, which is asked for anew."""
    out = []
    for name, kind in _TYPES.items():
        body = _bodies()[name]
        out.append(Route(address(name), _serve(body, kind, _FOREVER), methods=["GET"]))
        out.append(Route(f"/static/{name}", _serve(body, kind, "no-cache"), methods=["GET"]))
    return out


def _serve(body: bytes, kind: str, cached: str) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{digest(body)[:20]}"'
    headers = {"etag": tag, "cache-control": cached}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return answer
