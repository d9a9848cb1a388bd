"""The few files that pages load: style sheet, script, icon. In memory, with a tag by content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seatrial.canon import digest
from seatrial.report.style import CSS

_TYPES = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}


def routes() -> list[Route]:
    """One route per file. The style sheet begins with the report's, so that charts and tables look the same."""
    folder = files("seatrial.server") / "static"
    out = []
    for name, kind in _TYPES.items():
        text = (folder / name).read_text("utf-8")
        body = ((CSS + text) if name == "app.css" else text).encode()
        out.append(Route(f"/static/{name}", _serve(body, kind), methods=["GET"]))
    return out


def _serve(body: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{digest(body)[:20]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return answer
