"""Who was assigned what: the assignment file, and its join to traces (METHODS 3.6b)."""

from __future__ import annotations

import bisect
import csv
import math
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl

from seatrial.errors import InputError
from seatrial.privacy import Pseudonyms
from seatrial.records import Assignment
from seatrial.store import Store

COLUMNS = "unit, arm and p_<arm> for every arm; optional: stratum, epoch, time, user"
LISTED = 50
"""Unmatched units that are listed one by one."""

READ = ("session", "user", "task", "start", "parent", "unit", "assigned_arm")
"""The columns of stored sessions that tell which units are here."""


class AssignmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the assignment file met the traces.

    `units` are those of the file. `unmatched_units` lists units that no session of the store belongs to, whenever it
    was read (the first 50; `n_unmatched_units` counts all): the attrition. `n_unjoined` counts sessions of the store
    that belong to a unit, but were read without the file and carry no assignment. The rest is of this ingest:
    `matched_by` counts sessions by what the unit was (session, user, task), `unmatched_sessions` counts sessions,
    sub-agents aside, without an assignment, and `other_arm` sessions that another model served than the assigned arm.
    """

    units: int
    matched_by: dict[str, int]
    unmatched_units: tuple[str, ...]
    n_unmatched_units: int
    unmatched_sessions: int
    other_arm: int
    n_unjoined: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever assigned should know."""
        found = []
        if self.n_unmatched_units:
            found.append(f"{self.n_unmatched_units} of {self.units} assigned units have no session here")
        if self.n_unjoined:
            found.append(
                f"{self.n_unjoined} stored sessions belong to assigned units but were read without the assignments: "
                "read their files again with --assignments"
            )
        return tuple(found)


class Drawn(msgspec.Struct, frozen=True):
    """One line of the file."""

    assignment: Assignment
    user: str | None


class Assignments:
    """The assignments of one file, by unit. A unit drawn again (by epoch or time) has several lines."""

    def __init__(self, path: Path) -> None:
        """Read the CSV.

        Raises:
            InputError: it cannot be read, lacks columns, or a line of it cannot mean anything.
        """
        self.path = path
        self._by_unit: dict[str, list[Drawn]] = {}
        try:
            with open(path, encoding="utf-8-sig", newline="") as stream:
                self._read(csv.DictReader(stream))
        except OSError as error:
            raise InputError(f"the assignments cannot be read: {error.strerror}", file=str(path)) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"not a CSV file in UTF-8: {error}", file=str(path), hint=COLUMNS) from error
        for drawn in self._by_unit.values():
            drawn.sort(key=lambda d: d.assignment.time or -math.inf)

    def _read(self, rows: csv.DictReader[str]) -> None:
        names = rows.fieldnames or []
        arms = [n[2:] for n in names if n.startswith("p_")]
        missing = [n for n in ("unit", "arm") if n not in names]
        if missing or not arms:
            raise InputError(
                f"the assignments lack {' and '.join(missing or ['p_<arm> columns'])}",
                file=str(self.path),
                line=1,
                hint=f"columns are {COLUMNS}",
            )
        for row in rows:
            drawn = self._line(row, arms, rows.line_num)
            unit = drawn.assignment.unit or ""
            others = self._by_unit.setdefault(unit, [])
            if any(o.assignment.time == drawn.assignment.time for o in others):
                raise InputError(
                    f"unit {unit!r} was assigned before",
                    file=str(self.path),
                    line=rows.line_num,
                    hint="a unit that is drawn again needs a time column",
                )
            others.append(drawn)

    def _line(self, row: dict[str, str], arms: list[str], line: int) -> Drawn:
        def wrong(what: str, hint: str) -> InputError:
            return InputError(what, file=str(self.path), line=line, hint=hint)

        unit, arm = (row.get("unit") or "").strip(), (row.get("arm") or "").strip()
        if not unit or not arm:
            raise wrong("a line without unit or arm", "give both")
        probabilities = {}
        for name in arms:
            text = (row.get(f"p_{name}") or "").strip()
            try:
                p = float(text) if text else 0.0
            except ValueError:
                raise wrong(f"p_{name} is {text!r}, not a number", "give a probability in [0, 1]") from None
            if not 0.0 <= p <= 1.0:
                raise wrong(f"p_{name} is {text}, not a probability", "give a probability in [0, 1]")
            probabilities[name] = p
        if not math.isclose(sum(probabilities.values()), 1.0, abs_tol=1e-6):
            raise wrong(f"the probabilities add up to {sum(probabilities.values()):.6g}", "they must add up to 1")
        if not probabilities.get(arm):
            raise wrong(f"arm {arm!r} has no probability above 0", f"arms with a p_ column: {', '.join(arms)}")
        try:
            time = _time(row.get("time"))
        except ValueError as error:
            raise wrong(f"time {row.get('time')!r} cannot be read: {error}", "seconds or ISO 8601") from None
        return Drawn(
            Assignment(
                arm=arm,
                probability=probabilities[arm],
                probabilities=probabilities,
                stratum=(row.get("stratum") or "").strip() or None,
                epoch=(row.get("epoch") or "").strip() or None,
                unit=unit,
                time=time,
            ),
            (row.get("user") or "").strip() or None,
        )

    def __len__(self) -> int:
        return len(self._by_unit)

    def units(self) -> list[str]:
        """Every unit, in the file's order."""
        return list(self._by_unit)

    def find(self, unit: str, start: float | None) -> Drawn | None:
        """The draw that was in force for a unit when its session began (`start`, seconds; None: its last).

        None when the unit is not in the file, or was first drawn after the session began.
        """
        drawn = self._by_unit.get(unit)
        if drawn is None:
            return None
        if start is None or (len(drawn) == 1 and drawn[0].assignment.time is None):
            return drawn[-1]
        at = bisect.bisect_right([d.assignment.time or -math.inf for d in drawn], start)
        return drawn[at - 1] if at else None


def _time(text: str | None) -> float | None:
    text = (text or "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def own_ids(session: str) -> list[str]:
    """What a source may have called the session, the likeliest first: the id itself, and without its marks.

    Readers make ids unique by a mark behind ``~`` or ``@`` (``s0000~0e14508c7bda``), or a format's name before ``~``.
    """
    cuts = [m.start() for m in re.finditer("[~@]", session)]
    shorter = [session[:cut] for cut in reversed(cuts) if cut]
    return [session, *shorter, *(session[cut + 1 :] for cut in cuts[:1] if session[cut] == "~")]


def stored(store: Store) -> pl.DataFrame:
    """What `Join.report` reads of a store's sessions."""
    return store.table("sessions", ordered=False).select(READ).collect()


class Join:
    """Joins a file to traces as they come in, and keeps the account."""

    def __init__(self, assignments: Assignments, pseudonyms: Pseudonyms) -> None:
        self._assignments = assignments
        # Users arrive as pseudonyms: so are units that are users.
        self._users = {pseudonyms.of(unit): unit for unit in assignments.units()}
        self._pseudonyms = pseudonyms
        self._matched_by: dict[str, int] = {}
        self._unmatched = 0
        self._other_arm = 0

    def find(
        self,
        *,
        session: str,
        user: str | None,
        task: str | None,
        start: float | None,
        served: str | None,
        sub_agent: bool,
    ) -> tuple[Assignment, str | None] | None:
        """The assignment of a session (unit: its id, else its user, else its task) and its user's pseudonym.

        Its id is that of the trace, or the source's own id, which the trace's may carry a mark behind.
        """
        found = self._drawn(session=session, user=user, task=task, start=start, sub_agent=sub_agent)
        if found is None:
            self._unmatched += not sub_agent
            return None
        kind, _, drawn = found
        self._matched_by[kind] = self._matched_by.get(kind, 0) + 1
        self._other_arm += served is not None and served != drawn.assignment.arm
        named = None if drawn.user is None else self._pseudonyms.of(drawn.user)
        if kind == "user":
            return msgspec.structs.replace(drawn.assignment, unit=user), named
        return drawn.assignment, named

    def _drawn(
        self, *, session: str, user: str | None, task: str | None, start: float | None, sub_agent: bool
    ) -> tuple[str, str, Drawn] | None:
        """What the unit is, its name in the file, and its draw."""
        named_as = [session] if sub_agent else own_ids(session)
        candidates: list[tuple[str, str | None]] = [("session", name) for name in named_as]
        candidates += [("user", self._users.get(user or "")), ("task", task)]
        for kind, unit in candidates:
            drawn = None if unit is None else self._assignments.find(unit, start)
            if drawn is not None and unit is not None:
                return kind, unit, drawn
        return None

    def report(self, sessions: pl.DataFrame) -> AssignmentReport:
        """The account so far. `sessions` are all of the store (columns `READ`): its units are counted by them, whatever
        was read just now."""
        met: set[str] = set()
        unjoined = 0
        for session, user, task, start, parent, unit, arm in sessions.select(READ).iter_rows():
            known = self._users.get(unit or "", unit)
            if arm is not None and known is not None and self._assignments.find(known, start) is not None:
                met.add(known)
                continue
            found = self._drawn(session=session, user=user, task=task, start=start, sub_agent=parent is not None)
            if found is not None:
                met.add(found[1])
                unjoined += arm is None
        unmatched = [u for u in self._assignments.units() if u not in met]
        return AssignmentReport(
            units=len(self._assignments),
            matched_by=dict(sorted(self._matched_by.items())),
            unmatched_units=tuple(unmatched[:LISTED]),
            n_unmatched_units=len(unmatched),
            unmatched_sessions=self._unmatched,
            other_arm=self._other_arm,
            n_unjoined=unjoined,
        )
