"""Requests to pages: one file for each group, each with a tuple ``PAGES``; this one puts them together."""

from seatrial.server.pages import api, drafts, entry, jobs, label, leaderboard, results, sessions, suites, triage
from seatrial.server.site import Page

PAGES: tuple[Page, ...] = (
    *leaderboard.PAGES,
    *sessions.PAGES,
    *results.PAGES,
    *suites.PAGES,
    *triage.PAGES,
    *drafts.PAGES,
    *label.PAGES,
    *jobs.PAGES,
    *api.PAGES,
    *entry.PAGES,
)
