"""The whole way of a file: read, redact, pseudonymise, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from seatrial import ingest as reading_room
from seatrial.engine import local
from seatrial.errors import InputError, UsageError
from seatrial.intake.assignments import Assignments, Join, stored
from seatrial.intake.commit import Committer
from seatrial.intake.prepare import How, Part, Prepared, ReadFile, parts_of, parts_of_batch
from seatrial.intake.result import IngestResult
from seatrial.privacy import mask_home
from seatrial.records import FileReport, Skip
from seatrial.store import Store

Progress = Callable[[int, int | None, str], None]

LARGE_FILE = 64 * 1024 * 1024
"""A file from this size on (bytes) is streamed here, one session in memory, instead of sent to a worker."""

WORKER_BATCH = 8 * 1024 * 1024
POOL_FROM = 24 * 1024 * 1024
"""Bytes in all from which worker processes pay for their start."""


def ingest(
    store: Store,
    paths: Sequence[Path],
    *,
    format: str | None = None,
    redact: bool = True,
    assignments: Path | None = None,
    user: str | None = None,
    workers: int | None = None,
    keep_raw: bool = False,
    progress: Progress | None = None,
) -> IngestResult:
    """Read files and folders into the store.

    Idempotent: the same bytes again are known and add nothing; a session that has grown replaces the stored
    one, and what was derived from it is removed; an older copy changes nothing. A source record counts in the
    first session that had it, here or in the store: elsewhere its step is kept, marked as copied. A crash
    leaves the batches that were committed; running it again completes the rest.

    `format` None: each file is recognised. `user` names the one person behind traces without a user.
    `assignments` is a CSV (METHODS 3.6b) whose unit is a session, user or task id. `workers` None: two
    processes for much data, else one; the result does not depend on it. With `keep_raw` the files that gave
    sessions are kept too, encrypted and unredacted (`store.originals`). `progress(done, total, what)`.

    Raises:
        InputError: a path does not exist, or the assignments cannot be read.
        MissingExtra: `keep_raw`, and there is no cryptography.
        StoreError: the store is locked or damaged.
        UsageError: no such format.
    """
    files = reading_room.with_main_files(reading_room.scan([Path(p) for p in paths]))
    return run(
        store,
        files,
        reading_room.read_file,
        how_format=format,
        redact=redact,
        assignments=None if assignments is None else Assignments(Path(assignments)),
        user=user,
        workers=workers,
        keep_raw=keep_raw,
        progress=progress,
    )


def run(
    store: Store,
    files: Sequence[Path],
    read_file: ReadFile,
    *,
    how_format: str | None = None,
    redact: bool = True,
    assignments: Assignments | None = None,
    user: str | None = None,
    workers: int | None = None,
    keep_raw: bool = False,
    progress: Progress | None = None,
) -> IngestResult:
    """`ingest` over listed files and a given way to read one; `read_file` must be picklable for workers."""
    if workers is not None and workers < 1:
        raise UsageError(f"the number of workers must be at least 1, got {workers}")
    if keep_raw:
        store.refuse_originals()
    pseudonyms, new_key = store.pseudonyms()
    how = How(key=pseudonyms.key, format=how_format, redact=redact, user=user)
    matching = None if assignments is None else Join(assignments, pseudonyms)
    committer = Committer(store, matching)
    done = 0
    sources: dict[str, list[str]] = {}
    for part in _parts(how, read_file, files, workers):
        committer.take(part)
        if keep_raw and isinstance(part, Prepared):
            sources.setdefault(part.file, []).append(part.session)
        if len(committer.reports) != done:
            done = len(committer.reports)
            if progress is not None:
                progress(done, len(files), "files")
    committer.finish()
    warnings: list[str] = []
    kept = _keep(store, committer, sources, warnings)
    if new_key:
        warnings.append("the pseudonym key had been deleted: users that were stored before get new pseudonyms")
    return msgspec.structs.replace(_result(committer, store, matching, warnings), originals=kept)


def attrition(store: Store, assignments: Path) -> tuple[str, ...]:
    """Warnings about units of a CSV that no session of a store belongs to, where nothing is read with it.

    Raises:
        InputError: the assignments cannot be read.
    """
    return Join(Assignments(assignments), store.pseudonyms()[0]).report(stored(store)).warnings


def _keep(store: Store, committer: Committer, sources: dict[str, list[str]], warnings: list[str]) -> int:
    """Keep the files that gave sessions, under the names that these have in the store; how many."""
    kept = 0
    for file, sessions in sources.items():
        try:
            names = [committer.name_of(file, s) for s in sessions]
            with store.writing():
                for source in (Path(file), *reading_room.beside(Path(file))):
                    store.originals.keep(source, mask_home(str(source)), names)
        except InputError as error:
            warnings.append(str(error))
        else:
            kept += 1
    return kept


def _parts(how: How, read_file: ReadFile, files: Sequence[Path], workers: int | None) -> Iterator[Part]:
    sizes = [_size(f) for f in files]
    n = workers if workers is not None else local.default_workers() if sum(sizes) >= POOL_FROM else 1
    if n == 1:
        for path in files:
            yield from parts_of(how, read_file, path)
        return
    work = partial(parts_of_batch, how, read_file)
    for large, group in _groups(files, sizes):
        if large:
            yield from parts_of(how, read_file, group[0][0])
            continue
        for parts in local.map_sessions(work, group, workers=n, what="files"):
            yield from parts


def _groups(files: Sequence[Path], sizes: Sequence[int]) -> Iterator[tuple[bool, list[list[Path]]]]:
    """Runs of batches of small files, and large files alone, in the order of the files."""
    run_: list[list[Path]] = []
    room = 0
    for path, size in zip(files, sizes, strict=True):
        if size >= LARGE_FILE:
            if run_:
                yield False, run_
            yield True, [[path]]
            run_, room = [], 0
            continue
        if not run_ or size > room:
            run_.append([])
            room = WORKER_BATCH
        run_[-1].append(path)
        room -= size
    if run_:
        yield False, run_


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _result(committer: Committer, store: Store, matching: Join | None, warnings: list[str]) -> IngestResult:
    reports = committer.reports
    kept = sum(r.status == "kept" for r in reports)
    skips = [s for r in reports for s in _skips(r)]
    report = None if matching is None else matching.report(stored(store))
    if report is not None:
        warnings += report.warnings
    return IngestResult(
        files={"read": len(reports), "kept": kept, "skipped": len(reports) - kept},
        sessions=committer.sessions,
        steps=committer.steps,
        skipped=(*(s for s in skips if not s.noted), *committer.lost),
        redacted=dict(sorted(committer.redacted.items())),
        added=committer.counts["added"],
        replaced=committer.counts["replaced"],
        known=committer.counts["known"],
        copied=committer.counts["copied"],
        data_version=store.data_version,
        assignments=report,
        notes=(*(s for s in skips if s.noted), *committer.notes),
        warnings=tuple(warnings),
        reports=reports,
    )


def _skips(report: FileReport) -> list[Skip]:
    """What a file's report lists, and the file itself where it gave nothing and no entry says why."""
    listed = list(report.skipped)
    if report.status != "kept" and all(s.noted for s in listed):
        listed.append(Skip(file=report.file, line=None, why=report.why or "it holds no session"))
    return listed


__all__ = ["attrition", "ingest", "run"]
