"""Suites: runs and their pass rates, attempts by task, gates and differences of traces."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from seatrial.errors import InputError, UsageError
from seatrial.report.text import clean, clip
from seatrial.server import runs as stored_runs
from seatrial.server.pages.results import of_kinds
from seatrial.server.site import Asked, Page

MOST = 6
"""Runs that are put side by side."""


class GateLine(msgspec.Struct, frozen=True, kw_only=True):
    """A stored gate or difference, in one line."""

    id: str
    kind: str
    name: str
    time: float
    verdict: str


def suites(asked: Asked) -> Response:
    """Every run, some of them side by side, and what was decided about them."""
    every = stored_runs.runs(asked.store)
    wanted = asked.request.query_params.getlist("run")[:MOST]
    unknown = [run for run in wanted if run not in {r.run for r in every}]
    if unknown:
        raise InputError(f"there is no run {clip(clean(unknown[0]), 60)} here", hint="choose from the page itself")
    chosen = [r for r in every if r.run in wanted] or every[:2]
    parts = [s for s in (stored_runs.curves(chosen), stored_runs.metrics(asked.store, chosen)) if s is not None]
    lines = []
    for head in of_kinds(asked, ("gate", "diff"))[:40]:
        held = asked.store.result(head.id).envelope.get("result")
        verdict = str(held.get("verdict", "")) if isinstance(held, dict) else ""
        lines.append(GateLine(id=head.id, kind=head.kind, name=head.name, time=head.time, verdict=verdict))
    return asked.page(
        "suites.html",
        {
            "runs": every,
            "chosen": [r.run for r in chosen],
            "parts": parts,
            "lines": lines,
            "most": MOST,
            "lost": asked.lost("gate", "diff"),
        },
    )


def run(asked: Asked) -> Response:
    """One run: its tasks and attempts."""
    return _run(asked, asked.text("run"))


def again(asked: Asked) -> Response:
    """The page on which a refused comparison was asked for."""
    if asked.refused is not None and len(stored_runs.runs(asked.store)) < 2:
        raise asked.refused  # the page has no such form
    return _run(asked, asked.form.get("candidate", "")) if asked.form.get("task") else suites(asked)


def _run(asked: Asked, wanted: str) -> Response:
    found = next((r for r in stored_runs.runs(asked.store) if r.run == wanted), None)
    if found is None:
        raise InputError("there is no such run here", hint="choose one of the list")
    may = asked.site.index.current().may
    parts = [s for s in (stored_runs.curves([found]), stored_runs.metrics(asked.store, [found])) if s is not None]
    tasks = stored_runs.tasks_of(asked.store, found.run, may)
    asked.site.saw(asked, *(a.session for t in tasks for a in t.attempts if a.seen and a.reason))  # a reason quotes
    return asked.page(
        "run.html", {"run": found, "tasks": tasks, "parts": parts,
        "others": [r for r in stored_runs.runs(asked.store) if r.run != found.run and r.suite == found.suite],
    })  # fmt: skip


def compare(asked: Asked) -> Response:
    """Start a gate, or a difference of traces, of two stored runs."""
    known = {r.run for r in stored_runs.runs(asked.store)}
    baseline, candidate = asked.form.get("baseline", ""), asked.form.get("candidate", "")
    for named in (baseline, candidate):
        if named not in known:
            raise UsageError(f"there is no run {named[:60]!r} here")
    if baseline == candidate:
        raise UsageError("a run is not compared with itself", hint="choose two runs")
    if asked.form.get("what") == "diff":
        task = asked.form.get("task", "")
        title, arguments = f"Difference of {candidate} and {baseline}", ["diff", "--", baseline, candidate]
        if task:
            arguments = ["diff", f"--task={task}", "--", baseline, candidate]
    else:
        title = f"Gate {candidate} against {baseline}"
        arguments = ["gate", f"--baseline={baseline}", f"--candidate={candidate}"]
    asked.did("started", about=title)
    job = asked.site.jobs.start(title, arguments, asked.who.name)
    return asked.back("/jobs", {"started": job.id})


PAGES = (
    Page("/suites", suites),
    Page("/suites/run", run),
    Page("/suites/compare", compare, "admin", ("POST",), form=again),
)
