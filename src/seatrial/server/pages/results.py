"""Stored results of the other jobs: scorecard, recovery, judges, drift, and any result by its id."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from seatrial.errors import SeatrialError
from seatrial.report.section import Section
from seatrial.server import shown, stored
from seatrial.server.site import Asked, Handler, Page
from seatrial.store import ResultHead, StoredResult


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A page of results: whose kinds it shows, and what to run where there is none yet."""

    path: str
    title: str
    kinds: tuple[str, ...]
    empty: str
    about: str
    command: str
    job: str | None = None


PLACES = (
    Place(
        path="/scorecard",
        title="Scorecard",
        kinds=("scorecard",),
        empty="No scorecard yet",
        about="Seven dimensions of deployability, side by side by agent: completion, intent fidelity, reproducibility, "
        "repair cost, replay integrity, safety gates, audit completeness.",
        command="seatrial scorecard RUNS… --store DIR",
    ),
    Place(
        path="/recovery",
        title="Recovery",
        kinds=("recover",),
        empty="No recovery contrast yet",
        about="What a recovery action rescues and what it harms, from pairs of continuations of one saved state, and "
        "when a router should use it.",
        command="seatrial recover contrast pairs.csv --store DIR",
    ),
    Place(
        path="/judges",
        title="Judges",
        kinds=("judge",),
        empty="No judge has been held to people's verdicts yet",
        about="How far a judge agrees with people, and what moves it besides quality.",
        command="seatrial judge validate labels.csv --store DIR",
    ),
    Place(
        path="/drift",
        title="Drift",
        kinds=("drift", "watch"),
        empty="Nobody has looked for drift yet",
        about="What changed between a baseline window and now, and whether that could be chance.",
        command="seatrial drift --store DIR",
        job="drift",
    ),
)
"""The pages, in the order of the navigation."""


def of_kinds(asked: Asked, kinds: tuple[str, ...]) -> list[ResultHead]:
    """Results of some kinds, newest first."""
    return [h for h in asked.store.results() if h.kind in kinds]


def _page(place: Place) -> Handler:
    def show(asked: Asked) -> Response:
        heads = of_kinds(asked, place.kinds)
        head = stored.choose(heads, asked.text("result"))
        if head is None:
            return asked.page(
                "results.html", {"place": place, "heads": heads, "head": None, "lost": asked.lost(*place.kinds)}
            )
        result = asked.result(head.id)
        more: tuple[Section, ...] = ()
        if place.path == "/drift":
            over = shown.drift_over_time([asked.result(h.id) for h in heads[:12]])
            more = () if over is None else (over,)
        return asked.page(
            "results.html",
            {
                "place": place,
                "heads": heads,
                "head": head,
                "parts": (*shown.sections(result), *more),
                "warnings": _warnings(result.envelope),
                "lost": asked.lost(*place.kinds),
                "data_version": head.data_version or "",
            },
        )

    return show


def _warnings(envelope: dict[str, object]) -> list[str]:
    held = envelope.get("warnings")
    return [str(w) for w in held] if isinstance(held, list) else []


def result(asked: Asked) -> Response:
    """Any result, by its id."""
    kept = asked.result(asked.text("id"))
    head = ResultHead(id=kept.id, kind=kept.kind, name=kept.name, time=kept.time, command=kept.command)
    place = next((p for p in PLACES if kept.kind in p.kinds), None)
    problem = ""
    try:
        parts = shown.sections(kept)
    except SeatrialError as error:
        parts, problem = (), error.message
    return asked.page(
        "result.html",
        {
            "head": head,
            "place": place,
            "parts": parts,
            "problem": problem,
            "warnings": _warnings(kept.envelope),
            "traces": _traces(kept),
        },
    )


def _traces(kept: StoredResult) -> list[tuple[str, str]]:
    """The two sessions of a difference."""
    held = kept.envelope.get("result")
    if kept.kind != "diff" or not isinstance(held, dict):
        return []
    return [(side, held[side]) for side in ("baseline", "candidate") if isinstance(held.get(side), str)]


PAGES = (*(Page(place.path, _page(place)) for place in PLACES), Page("/result", result))
