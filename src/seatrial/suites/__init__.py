"""Task files to attempts: load and check a suite, run every task k times, resume, and grow the suite from failures."""

from seatrial.suites.attempt import Episode, Limits, run_attempt, unfinished
from seatrial.suites.hashing import task_hash
from seatrial.suites.load import load
from seatrial.suites.schema import file_schema, task_schema
from seatrial.suites.suite import Suite, part_of

__all__ = [
    "Episode",
    "Limits",
    "Suite",
    "file_schema",
    "load",
    "part_of",
    "run_attempt",
    "task_hash",
    "task_schema",
    "unfinished",
]
