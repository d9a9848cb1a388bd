"""A way to read files, without any reader: JSON lines, one session a file, importable by worker processes.

A line is ``{"id", "text", "who"?, "model"?, "user"?, "time"?}``; the session's id is the file's stem up to the
first dot, so that two files can hold one session. A line that is no JSON is skipped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from seatrial.records import Agent, FileReport, Provenance, Skip, Step, TaskRef, Totals, Trace, Usage


class Reading:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._report: FileReport | None = None

    @property
    def report(self) -> FileReport:
        assert self._report is not None
        return self._report

    def __iter__(self) -> Iterator[Trace]:
        data = self.path.read_bytes()
        steps: list[Step] = []
        skipped: list[Skip] = []
        user = None
        for number, line in enumerate(data.splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError:
                skipped.append(Skip(file=str(self.path), line=number, why="not JSON", bytes=len(line)))
                continue
            user = record.get("user", user)
            steps.append(
                Step(
                    index=len(steps),
                    event_class=record.get("who", "human"),
                    text=record["text"],
                    time=record.get("time"),
                    model=record.get("model"),
                    source_ids=(record["id"],) if record.get("id") else (),
                    usage=Usage(input_tokens=10),
                    extra=record.get("extra", {}),
                )
            )
        if steps:
            yield Trace(
                id=self.path.name.split(".")[0],
                agent=Agent(name="fake"),
                provenance=Provenance(
                    format="fake",
                    reader="fake",
                    reader_version="1",
                    file=str(self.path),
                    byte_end=len(data),
                    content_hash=hashlib.sha256(data).hexdigest(),
                ),
                user=user,
                task=TaskRef(id=f"task of {self.path.name.split('.')[0]}"),
                steps=tuple(steps),
                totals=Totals(usage=Usage(input_tokens=10 * len(steps))),
            )
        self._report = FileReport(
            file=str(self.path),
            format="fake",
            status="kept" if steps else "skipped",
            traces=int(bool(steps)),
            steps=len(steps),
            n_bytes=len(data),
            skipped=tuple(skipped),
            why=None if steps else "it holds no session",
        )


def read_file(path: Path, *, format: str | None = None) -> Reading:
    return Reading(path)


def write(path: Path, *records: dict[str, object] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def say(record: str, text: str = "hello", **more: object) -> dict[str, object]:
    return {"id": record, "text": text, **more}
