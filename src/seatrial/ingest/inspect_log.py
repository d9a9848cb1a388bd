"""Inspect logs to traces: `.eval` archives and JSON logs, one trace per sample and epoch.

A sample's epoch is its attempt. Errors and limits are statuses (METHODS 0.1): a sample that failed to run is
`error_infra`, as Inspect itself leaves it out; one that met a limit and was not passed is `timeout`; a planned sample
that the log lacks is `missing`. The first score is the outcome; all are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.drafts import an_object
from seatrial.ingest.identity import Ids
from seatrial.ingest.inspect_archive import Archive, open_archive
from seatrial.ingest.inspect_sample import Run, absent, trace_of
from seatrial.ingest.jsontext import BadJSON, fields, first_keys, items, kind, line_of, loads, malformed
from seatrial.records import Provenance, ReadLog, Trace

_SHAPE = "an Inspect log: an object with version, status, eval and samples"


class InspectLog:
    """Reads Inspect logs: one trace per sample and epoch."""

    name = "inspect"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure of an archive by its name, of JSON by its first keys."""
        if path.suffix.lower() == ".eval":
            return 0.97 if head.startswith(b"PK") else 0.0
        if not head.lstrip().startswith(b"{"):
            return 0.0
        found = first_keys(head)
        if {"version", "eval"} <= found and b'"task"' in head:
            return 0.97
        return 0.5 if {"version", "status"} <= found and path.suffix.lower() == ".txt" else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per sample and epoch, in the log's order, then those that were planned and are missing.

        Raises:
            FormatError: no Inspect log, or an archive that cannot be opened.
        """
        if path.suffix.lower() == ".eval" or _is_zip(path):
            yield from self._archive(path, log)
        else:
            yield from self._json(path, log)

    def _json(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        data = path.read_bytes()
        try:
            top, repairs = fields(data)
            for repair in repairs:
                log.note(None, repair)
            header = {name: loads(raw)[0] for name, raw in top.items() if name != "samples"}
            if not isinstance(header.get("eval"), dict):
                raise BadJSON("the object has no eval", 0)
            run = Run(header)
            raw = top.get("samples")
            yield from self._samples(path, data, raw if raw not in (None, b"null") else None, run, log)
        except BadJSON as error:
            raise malformed(path, data, error, _SHAPE) from None

    def _samples(self, path: Path, data: bytes, raw: bytes | None, run: Run, log: ReadLog) -> Iterator[Trace]:
        start = data.find(raw) if raw is not None else -1
        repaired = raw is not None and start < 0
        counted = 0
        ids = Ids()
        if raw is not None:
            body, offset, end = (raw, 0, None) if repaired else (data, start, start + len(raw))
            for item in items(body, offset, end):
                here = item._replace(start=0, end=0) if repaired else item
                size = here.end - here.start
                counted += size
                line = line_of(data, here.start)
                if item.broken is not None or not isinstance(item.value, dict):
                    log.skip(line, item.broken or f"expected a sample, found {kind(item.value)}", size)
                    continue
                for repair in item.repairs:
                    log.note(line, repair)
                log.kept(size, "sample")
                yield trace_of(item.value, run, here.provenance(self, path, data), ids)
        log.kept(len(data) - counted, "run")
        yield from absent(run, self._origin(path), ids, log)

    def _archive(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        with open_archive(path) as archive:
            header = self._header(path, archive, log)
            run = Run(header)
            ids = Ids()
            for name in archive.samples():
                member = archive.read(name, log)
                if member is None:
                    continue
                if not isinstance(member.value, dict):
                    log.skip(None, f"{name}: expected a sample, found {kind(member.value)}", member.size)
                    continue
                log.kept(member.size, "sample")
                yield trace_of(member.value, run, self._origin(path, name, member.hash), ids)
            for name in archive.others():
                log.kept(archive.size(name), "bookkeeping")
            log.kept(archive.framing(), "framing")
            yield from absent(run, self._origin(path), ids, log)

    def _header(self, path: Path, archive: Archive, log: ReadLog) -> dict[str, Any]:
        for name in ("header.json", "_journal/start.json"):
            if name not in archive.names:
                continue
            member = archive.read(name, log)
            if member is not None:
                log.kept(member.size, "header")
                if isinstance(an_object(member.value).get("eval"), dict):
                    if name != "header.json":
                        log.note(None, "the log was not finished: it has no header, only its journal")
                    return dict(member.value)
        raise FormatError(
            "the archive holds no header.json and no _journal/start.json that can be read",
            hint="an Inspect log has one of them",
            file=str(path),
        )

    def _origin(self, path: Path, member: str | None = None, hash: str | None = None) -> Provenance:
        return Provenance(
            format=self.name,
            reader=self.name,
            reader_version=self.version,
            file=str(path),
            content_hash=hash,
            extra={} if member is None else {"member": member},
        )


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


READER = InspectLog()
