"""JUnit XML to attempts: one attempt per test case, and one per recorded rerun.

The XML is parsed by expat with a document type refused, so that no entity is ever expanded or fetched. A failure is
`failed`, an error (the test itself broke) `error_infra`, a skipped test `skipped`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from seatrial.errors import FormatError
from seatrial.ingest.attempts import trace_of
from seatrial.ingest.identity import Ids
from seatrial.records import Attempt, ReadLog, Status, Trace

_PIECE = 1 << 16
_DEPTH = 100
_TEXT = 1 << 20
_RERUNS = frozenset({"flakyFailure", "flakyError", "rerunFailure", "rerunError"})
_NOTED = _RERUNS | {"failure", "error", "skipped", "system-out", "system-err"}


class JUnit:
    """Reads JUnit XML: one trace without steps per test case and rerun."""

    name = "junit"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when a test suite is opened."""
        return 0.95 if b"<testsuite" in head.replace(b"\0", b"") else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per test case, in document order; of a broken document those before the break.

        Raises:
            FormatError: a document type is declared, or no test case precedes the break.
        """
        document = _Document()
        number: dict[tuple[str, str], int] = defaultdict(int)
        ids = Ids()
        size = path.stat().st_size
        given = 0
        broke: expat.ExpatError | None = None
        with path.open("rb") as stream:
            while broke is None:
                piece = stream.read(_PIECE)
                try:
                    document.feed(piece)
                except expat.ExpatError as error:
                    broke = error
                except _Refused as error:
                    raise FormatError(str(error), hint="write the report without it", file=str(path)) from None
                for case in document.taken():
                    given += 1
                    yield from self._case(path, case, number, ids)
                if not piece:
                    break
        if broke is None:
            log.kept(size, "document")
            return
        why = f"line {broke.lineno}: {expat.ErrorString(broke.code)}"
        if not given:
            raise FormatError(
                f"{why}; expected a JUnit report", hint="write it again", file=str(path), line=broke.lineno
            )
        kept = max(min(document.good, size), 0)
        log.kept(kept, "document")
        log.skip(broke.lineno, why, size - kept)

    def _case(self, path: Path, case: _Case, number: dict[tuple[str, str], int], ids: Ids) -> Iterator[Trace]:
        suite = case.suite or path.stem
        task = "::".join(part for part in (case.attributes.get("classname"), case.attributes.get("name")) if part)
        for status, reason in case.runs():
            trial = number[suite, task]
            number[suite, task] += 1
            attempt = Attempt(
                task=task or "testcase",
                trial=trial,
                status=status,
                score={"passed": 1.0, "failed": 0.0}.get(status),
                model=case.properties.get("model"),
                agent=case.properties.get("agent"),
                suite=suite,
                reason=reason,
                latency_s=_time(case.attributes.get("time")),
                extra={
                    name: value
                    for name, value in (
                        ("attributes", {k: v for k, v in case.attributes.items() if k not in ("name", "time")}),
                        ("properties", case.properties),
                        ("notes", case.notes),
                    )
                    if value
                },
            )
            key = "~".join((path.parent.name, path.name, suite, task, str(trial)))
            yield trace_of(attempt, self, path, id=ids(f"junit~{key}"), by="junit", where={"line": case.line})


class _Refused(Exception):
    """Something that a report has no need of and that could be used to attack its reader."""


class _Case:
    """One test case as far as it was read."""

    def __init__(self, attributes: dict[str, str], suite: str, line: int, properties: dict[str, str]) -> None:
        self.attributes = attributes
        self.suite = suite
        self.line = line
        self.properties = dict(properties)
        self.notes: list[dict[str, Any]] = []

    def runs(self) -> list[tuple[Status, str | None]]:
        """The attempts that the case records, in order: failed reruns count as attempts of their own."""
        found: list[tuple[Status, str | None]] = []
        final: tuple[Status, str | None] = ("passed", None)
        flaky: list[tuple[Status, str | None]] = []
        for note in self.notes:
            element = note["element"]
            reason = note.get("message") or note.get("text") or None
            if element == "skipped":
                final = ("skipped", reason)
            elif element in ("failure", "error"):
                final = (_failure(element, note), reason)
            elif element in ("flakyFailure", "flakyError"):
                flaky.append((_failure(element, note), reason))
            elif element in _RERUNS:
                found.append((_failure(element, note), reason))
        return [*flaky, final, *found]


def _failure(element: str, note: dict[str, Any]) -> Status:
    if "timeout" in str(note.get("type", "")).lower():
        return "timeout"
    return "error_infra" if element.lower().endswith("error") else "failed"


class _Document:
    """Feeds expat and collects the cases; `good` is the byte after the last whole case."""

    def __init__(self) -> None:
        self.good = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._doctype
        self._open: list[str] = []
        self._suites: list[tuple[str, dict[str, str]]] = []
        self._case: _Case | None = None
        self._note: dict[str, Any] | None = None
        self._pieces: list[str] = []
        self._length = 0
        self._done: list[_Case] = []

    def feed(self, piece: bytes) -> None:
        """Parse on; an empty piece ends the document."""
        self._parser.Parse(piece, not piece)

    def taken(self) -> list[_Case]:
        """The cases that were completed since the last time."""
        done, self._done = self._done, []
        return done

    def _doctype(self, *_: Any) -> None:
        raise _Refused("the report declares a document type, which is refused: its entities could expand without end")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEPTH:
            raise _Refused(f"elements are nested deeper than {_DEPTH} levels")
        self._open.append(name)
        if name == "testsuite":
            self._suites.append((attributes.get("name", ""), {}))
        elif name == "testcase":
            suite, properties = self._suites[-1] if self._suites else ("", {})
            self._case = _Case(attributes, suite, self._parser.CurrentLineNumber, properties)
        elif name == "property":
            home = self._case.properties if self._case is not None else self._suites[-1][1] if self._suites else {}
            if "name" in attributes:
                home[attributes["name"]] = attributes.get("value", "")
        elif self._case is not None and name in _NOTED and self._note is None:
            self._note = {"element": name, **{k: v for k, v in attributes.items() if k not in ("element", "text")}}
            self._pieces, self._length = [], 0

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "testsuite" and self._suites:
            self._suites.pop()
        elif name == "testcase" and self._case is not None:
            self._done.append(self._case)
            self._case = None
            self.good = self._parser.CurrentByteIndex
        elif self._note is not None and self._note["element"] == name and self._case is not None:
            text = "".join(self._pieces).strip()
            if text:
                self._note["text"] = text[:_TEXT]
                if len(text) > _TEXT:
                    self._note["cut"] = True
            self._case.notes.append(self._note)
            self._note = None

    def _text(self, text: str) -> None:
        if self._note is not None and self._length <= _TEXT:
            self._pieces.append(text)
            self._length += len(text)


def _time(text: str | None) -> float | None:
    """Seconds; some writers group thousands by commas."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


READER = JUnit()
