"""The JSON API behind the pages, and the OpenAPI document that describes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response

from seatrial.canon import canonical
from seatrial.errors import InputError, UsageError
from seatrial.server import state
from seatrial.server.index import FACETS, ORDERS, SIGNS
from seatrial.server.jobs import Job
from seatrial.server.openapi import document
from seatrial.server.pages.jobs import begin, told
from seatrial.server.pages.sessions import query_of
from seatrial.server.site import Asked, Page
from seatrial.server.traces import CHUNK
from seatrial.server.words import LONGEST_NAME

_MOST = 10**9


def _json(value: Any, status: int = 200) -> Response:
    return Response(canonical(value), status, media_type="application/json")


def _whole(asked: Asked, name: str, default: int, *, least: int = 0, most: int = _MOST) -> int:
    """A whole number of the address: a program that sends something else wants to know.

    Raises:
        UsageError: it is none, or out of bounds.
    """
    given = asked.request.query_params.get(name)
    if given is None:
        return default
    value = int(given) if given.isascii() and given.isdigit() and len(given) <= 20 else -1
    if not least <= value <= most:
        raise UsageError(f"{name} must be a whole number from {least} to {most}")
    return value


def _within(asked: Asked, names: Iterable[str], most: int, often: int = 1) -> None:
    """Make sure that nothing of what is asked for would be cut off.

    Raises:
        UsageError: a text is too long, or there are too many.
    """
    for name in names:
        given = asked.request.query_params.getlist(name)
        if any(len(value) > most for value in given) or len(given) > often:
            raise UsageError(f"{name} may have at most {most} characters, and stand {often} times in the address")


def _checked(asked: Asked) -> None:
    """Make sure that what is chosen from a list is in it, and that nothing is too long.

    Raises:
        UsageError: it is not.
    """
    _within(asked, ["q"], 200)
    _within(asked, FACETS, LONGEST_NAME, 50)
    _within(asked, ["with", "agents", "order"], 40, len(SIGNS))
    for name, known in (("with", SIGNS), ("agents", ("main", "sub", "all")), ("order", ORDERS)):
        for value in asked.request.query_params.getlist(name):
            if value not in known:
                raise UsageError(f"there is no {name} {value[:40]!r}", hint=f"one of: {', '.join(known)}")


def _ident(asked: Asked) -> str:
    _within(asked, ["id"], LONGEST_NAME)
    ident = asked.text("id")
    if not ident:
        raise UsageError("id is missing")
    return ident


def about(asked: Asked) -> Response:
    """The page that tells about the API."""
    return asked.page("api.html", {"document": document(), "serving": asked.site.serving})


def openapi(asked: Asked) -> Response:
    """The OpenAPI document."""
    return JSONResponse(document())


def version(asked: Asked) -> Response:
    """Which state of the store is shown; cheap to ask often, with its tag."""
    head = asked.store.versions.head()
    tag = f'"{head.stamp}"'
    if asked.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    answer = _json({"data_version": head.stamp, "sessions": state.sessions(head)})
    answer.headers["etag"] = tag
    return answer


def sessions(asked: Asked) -> Response:
    """Sessions that fit, one page of them, and the counts of each facet."""
    _checked(asked)
    snapshot = asked.site.index.current()
    offset = _whole(asked, "offset", 0)
    limit = _whole(asked, "limit", 50, least=1, most=500)
    found = snapshot.find(query_of(asked), offset, limit)
    facets = {name: {value: n for value, n, _ in found.facets[name]} for name in FACETS}
    return _json(
        {
            "data_version": snapshot.data_version,
            "total": found.total,
            "offset": offset,
            "sessions": found.rows,
            "facets": facets,
            "withheld": snapshot.withheld,
        }
    )


def session(asked: Asked) -> Response:
    """A session without its steps, with its signals."""
    ident = _ident(asked)
    asked.site.index.shown(ident)
    asked.site.saw(asked, ident)
    shown = asked.site.sessions.get(ident)
    trace = msgspec.to_builtins(msgspec.structs.replace(shown.trace, steps=()))
    return _json({"session": trace, "n_steps": len(shown.trace.steps), "signals": shown.signals})


def steps(asked: Asked) -> Response:
    """Steps of a session by position."""
    ident = _ident(asked)
    asked.site.index.shown(ident)
    asked.site.saw(asked, ident)
    shown = asked.site.sessions.get(ident)
    first = _whole(asked, "from", 0)
    last = min(_whole(asked, "to", first + CHUNK), first + 500)
    return _json({"total": len(shown.trace.steps), "from": first, "steps": shown.trace.steps[first:last]})


def results(asked: Asked) -> Response:
    """Stored results, newest first, and the names of those that are damaged."""
    _within(asked, ["kind"], 2000)
    kind = asked.text("kind") or None
    return _json({"results": asked.store.results(kind), "unreadable": asked.store.unreadable_results(kind)})


def result(asked: Asked) -> Response:
    """One stored result with the envelope that its command printed."""
    return _json(asked.result(_ident(asked)))


def jobs(asked: Asked) -> Response:
    """Every job, newest first."""
    return _json({"jobs": [_job(job) for job in told(asked)]})


def _job(job: Job) -> dict[str, Any]:
    """A job without what its command printed: that may be large, and may quote sessions. Results are kept in the
    store, and `/api/result` gives what of them may be shown."""
    plain: dict[str, Any] = msgspec.to_builtins(job)
    del plain["printed"]
    return plain


def start(asked: Asked) -> Response:
    """Start a job."""
    return _json(_job(begin(asked, asked.body.get("what", ""), asked.body)), 202)


def cancel(asked: Asked) -> Response:
    """Stop a job."""
    ident = asked.body.get("job")
    if not isinstance(ident, str):
        raise UsageError("'job' must be a text: a job's id")
    job = asked.site.jobs.get(ident)
    if job is None:
        raise InputError("there is no such job")
    stopped = asked.site.jobs.cancel(job.id)
    if stopped:
        asked.did("cancelled", about=job.title)
    return _json({"cancelled": stopped})


PAGES = (
    Page("/api", about),
    Page("/api/openapi.json", openapi, kind="api"),
    Page("/api/version", version, kind="api"),
    Page("/api/sessions", sessions, kind="api"),
    Page("/api/session", session, kind="api"),
    Page("/api/session/steps", steps, kind="api"),
    Page("/api/results", results, kind="api"),
    Page("/api/result", result, kind="api"),
    Page("/api/jobs", jobs, kind="api"),
    Page("/api/jobs/start", start, "admin", ("POST",), "api"),
    Page("/api/jobs/cancel", cancel, "admin", ("POST",), "api"),
)
