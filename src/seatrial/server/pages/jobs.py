"""Long work: starting it, watching it, stopping it; and the log of who saw what."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from seatrial.errors import InputError, UsageError
from seatrial.server import again, stored
from seatrial.server.drafted import Written
from seatrial.server.jobs import Job
from seatrial.server.pages.drafts import written
from seatrial.server.site import Asked, Page
from seatrial.server.withheld import Names
from seatrial.server.words import RANKINGS

_ENTRIES = 100

OUTCOMES = {
    "auto": "what is there (outcomes first)",
    "outcome": "recorded outcomes",
    "signals": "all signals together",
}
"""Outcomes whose name does not say what it is."""

_UNTOLD = "about a session that may not be shown"

THEN = {"rank": "/", "drift": "/drift", "signals": "/sessions", "label": "/label", "gate": "/suites", "diff": "/suites"}
"""Where a job's result is shown."""


def jobs(asked: Asked) -> Response:
    """The table of jobs."""
    every = told(asked)
    busy = any(j.state in ("waiting", "running") for j in every)
    mine = next((j for j in every if j.id == asked.text("started")), None)
    torn = asked.site.jobs.torn
    return asked.page(
        "jobs.html",
        {
            "jobs": every,
            "busy": busy,
            "outcomes": RANKINGS,
            "outcome_names": OUTCOMES,
            "then": then,
            "mine": mine,
            "lost": [f"{torn} lines of the log of jobs cannot be read"] if torn else (),
        },
    )


def told(asked: Asked) -> list[Job]:
    """Every job, newest first, as it may be shown: what a job was told and what it said may name a session whose person
    has taken their consent back since."""
    every = asked.site.jobs.all()
    may = asked.site.index.current().may
    if not may.denied:
        return every
    names = Names(may)
    suite = written(asked) if any(_about_task(job) for job in every) else Written()
    return [_told(job, names, suite) for job in every]


def _told(job: Job, names: Names, suite: Written) -> Job:
    task = _about_task(job)
    if any(names.within(word) for word in (job.title, *job.arguments)) or (task and suite.find(task) is None):
        words = job.arguments[: 2 if job.arguments[0] == "task" else 1]
        return msgspec.structs.replace(job, title=_UNTOLD, arguments=words, said=[], printed="")
    said = [_UNTOLD if names.within(line) else line for line in job.said]
    return msgspec.structs.replace(job, said=said)


def _about_task(job: Job) -> str:
    """The task that a job changes: its id may be made of its session's."""
    return job.arguments[-1] if job.arguments[:2] in (["task", "edit"], ["task", "approve"]) else ""


def then(job: Job) -> str:
    """Where to look at what a job made."""
    return THEN.get(job.arguments[0], "") if job.state in ("done", "unseen") else ""


def start(asked: Asked) -> Response:
    """Start one of the jobs that the forms offer: nothing else can be started from a page."""
    job = begin(asked, asked.form.get("what", ""), asked.form)
    return asked.back("/jobs", {"started": job.id})


def begin(asked: Asked, what: object, given: Mapping[str, object]) -> Job:
    """Put a command into the queue, by its name and a few checked values.

    Raises:
        UsageError: there is no such job, or a value does not fit.
    """
    for name, value in (("what", what), *given.items()):
        if not isinstance(value, str):
            raise UsageError(f"{name[:40]!r} must be a text")
    outcome = str(given.get("outcome", "auto"))
    if outcome not in RANKINGS:
        raise UsageError(f"there is no outcome {outcome[:40]!r}", hint=f"one of: {', '.join(RANKINGS)}")
    if what == "rank":
        same = str(given.get("again", ""))
        title, arguments = "Rank the models", ["rank", *(_again(asked, same) if same else ["--outcome", outcome])]
    elif what == "drift":
        title, arguments = "Look for drift", ["drift"]
    elif what == "signals":
        title, arguments = "Find signals", ["signals"]
    elif what == "verify":
        title, arguments = "Verify the store", ["verify"]
    else:
        raise UsageError(f"there is no job {str(what)[:40]!r}", hint="one of: rank, signals, drift, verify")
    asked.did("started", about=title)
    return asked.site.jobs.start(title, arguments, asked.who.name)


def _again(asked: Asked, ident: str) -> list[str]:
    kept = asked.result(ident, seen=False)
    return again.options(stored.ranking(kept), kept.name)


def cancel(asked: Asked) -> Response:
    """Stop a job."""
    ident = asked.form.get("job", "")
    job = asked.site.jobs.get(ident)
    if job is None:
        raise InputError("there is no such job")
    if asked.site.jobs.cancel(ident):
        asked.did("cancelled", about=job.title)
    return asked.back("/jobs")


def audit(asked: Asked) -> Response:
    """Who saw and did what."""
    page = asked.number("page", 1, least=1, most=100)
    some = asked.store.audit.newest(page * _ENTRIES + 1)[(page - 1) * _ENTRIES :]
    torn = asked.store.audit.torn()
    return asked.page(
        "audit.html",
        {
            "entries": some[:_ENTRIES],
            "page": page,
            "more": len(some) > _ENTRIES,
            "lost": [f"{torn} lines of the audit log cannot be read"] if torn else (),
        },
    )


PAGES = (
    Page("/jobs", jobs),
    Page("/jobs/start", start, "admin", ("POST",), form=jobs),
    Page("/jobs/cancel", cancel, "admin", ("POST",), form=jobs),
    Page("/audit", audit, "admin"),
)
