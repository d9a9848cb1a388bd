"""Recovery's story after branching: a pairs table to rescue and harm, to a router, and to its trial (METHODS 4)."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from seatrial.errors import EvidenceError, FormatError, InputError, SchemaError, UsageError
from seatrial.ingest import Log
from seatrial.ingest.results_rows import rows as table_rows
from seatrial.records import Contrast, Evaluation
from seatrial.recovery import contrast as contrasts
from seatrial.recovery import router as routers
from seatrial.recovery import table
from seatrial.recovery.episodes import DELAYS, Episodes, episodes, first_crossing
from seatrial.recovery.evaluate import EvaluateOptions, evaluate, random_split
from seatrial.recovery.fit import FitOptions, Fitted, fit
from seatrial.recovery.table import CLEAN, Ints, Pairs

LARGEST = 4 << 30
"""Bytes that a gzipped table may unpack to."""
HELD_OUT = ("test", "unseen", "held-out", "held_out", "heldout")
"""Cohorts that are held out without being asked for."""


class Choice(NamedTuple):
    """Which pairs: of one `agent` (needed where there are several), of these `cohorts` (none: all), and for routers of
    one `operation` at these `delays` with these `features` (None: all)."""

    agent: str | None = None
    cohorts: tuple[str, ...] = ()
    operation: str = "refresh"
    delays: tuple[int, ...] = DELAYS
    features: tuple[str, ...] | None = None


class Read(NamedTuple):
    """Pairs, and what was noticed in reading them."""

    pairs: Pairs
    warnings: tuple[str, ...]


def read_pairs(path: Path) -> Read:
    """A pairs table from CSV, JSON, JSON lines or Parquet, gzipped or not; `features` may be an object in a JSON row.

    Raises:
        InputError: there is no such file, it is no table, or a cell is not what its column holds.
        EvidenceError: it has no rows.
    """
    if not path.is_file():
        raise InputError("no such file" if not path.exists() else "a folder, not a table",
                         hint="give a pairs table: CSV, JSON, JSON lines or Parquet", file=str(path))  # fmt: skip
    log = Log(str(path))
    with _unpacked(path) as file:
        _in_utf8(file, str(path))
        try:
            pairs = table.from_rows(_flat(file, log, str(path)), str(path))
        except FormatError as error:
            # The reader is shared with results tables, whose columns it would name.
            why = error.message.removeprefix(f"line {error.line}: ").partition("; expected")[0]
            parquet = "Parquet" in why
            hint = "write it again" if parquet else "a pairs table in JSON is a list of row objects, or one a line"
            raise FormatError(f"not a pairs table: {why}", file=str(path), line=error.line, hint=hint) from None
    lost = [s for s in log.skips if not s.noted]
    warnings = [f"{path.name}: {len(lost)} rows cannot be read, the first in line {lost[0].line}: {lost[0].why}"
                ] if lost else []  # fmt: skip
    if pairs.ignored:
        warnings.append(f"{path.name}: not numbers, so no features: {', '.join(pairs.ignored)}")
    return Read(pairs, tuple(warnings))


def _in_utf8(path: Path, file: str) -> None:
    """Raises: FormatError for a text table in another encoding, whose names and words would be read wrongly."""
    hint = "save the table as UTF-8"
    with path.open("rb") as stream:
        head = stream.read(4)
        if head == b"PAR1":
            return
        if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head:
            raise FormatError("the text is UTF-16 or UTF-32, not UTF-8", file=file, line=1, hint=hint)
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise FormatError(f"not UTF-8: byte 0x{line[error.start]:02x} at place {error.start + 1} of the line",
                                  file=file, line=number, hint=hint) from None  # fmt: skip


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The table itself: a gzipped one is unpacked beside nothing of the user's.

    Raises:
        InputError: it is no gzip file, or unpacks to more than `LARGEST` bytes.
    """
    if path.suffix != ".gz":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        size = 0
        try:
            with gzip.open(path, "rb") as packed, plain.open("wb") as out:
                while chunk := packed.read(1 << 20):
                    size += len(chunk)
                    if size > LARGEST:
                        raise InputError(f"unpacks to more than {LARGEST >> 30} GiB", file=str(path),
                                         hint="give a part of it")  # fmt: skip
                    out.write(chunk)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be unpacked: {error}", file=str(path), hint="is it a gzip file?") from None
        yield plain


def _flat(path: Path, log: Log, file: str) -> Iterator[table.Row]:
    for row in table_rows(path, log):
        if row.fixed and len(row.cells) < len(row.columns):
            raise SchemaError(f"expected {len(row.columns)} cells, found {len(row.cells)}", file=file, line=row.line,
                              hint="a row of a pairs table has every cell; leave what is unknown empty")  # fmt: skip
        cells = dict(row.cells)
        nested = cells.get("features")
        if isinstance(nested, Mapping):
            del cells["features"]
            cells |= nested
        log.kept(row.size)
        yield table.Row(row.line, cells)


def contrast(path: Path, choice: Choice | None = None, *, level: float = 0.95, seed: int = 0) -> Contrast:
    """Everything that a pairs table says about rescue and harm.

    Raises:
        InputError: the table cannot be read.
        UsageError: it has no such agent or cohort.
        EvidenceError: no pair with a recovery operation.
    """
    read = read_pairs(path)
    choice = choice or Choice()
    found = contrasts.contrast(_of_cohorts(_of_agent(read.pairs, choice.agent), choice.cohorts), level=level, seed=seed)
    return msgspec.structs.replace(found, warnings=(*read.warnings, *found.warnings))


class FitRun(NamedTuple):
    """A fitted router, and what was noticed in reading."""

    fitted: Fitted
    warnings: tuple[str, ...]


def fit_router(
    path: Path, choice: Choice | None = None, options: FitOptions | None = None, *, certify: Sequence[str] = ()
) -> FitRun:
    """Fit a router on a pairs table; `certify` names cohorts to certify on, none: a part of the tasks, at random.

    Raises:
        InputError: the table cannot be read.
        UsageError: it has no such agent, cohort or feature.
        EvidenceError: too few tasks to fit on.
    """
    choice = choice or Choice()
    read = read_pairs(path)
    pairs = _of_agent(read.pairs, choice.agent)
    cohorts = choice.cohorts or tuple(c for c in _cohorts(pairs) if c not in certify and c not in HELD_OUT)
    fitting = _episodes(_of_cohorts(pairs, cohorts), choice)
    untouched = _episodes(_of_cohorts(pairs, tuple(certify)), choice) if certify else None
    fitted = fit(fitting, choice.operation, options, untouched)
    warnings = (*read.warnings, *fitted.record.warnings)
    record = msgspec.structs.replace(fitted.record, warnings=warnings)
    return FitRun(replace(fitted, record=record), warnings)


class EvaluateRun(NamedTuple):
    """The trial of policies on held-out tasks, and what was noticed in reading."""

    evaluation: Evaluation
    warnings: tuple[str, ...]


def try_policies(
    path: Path, choice: Choice | None = None, options: EvaluateOptions | None = None, *, test: Sequence[str] = (),
    held_out: float = 0.4, router: Path | None = None,
) -> EvaluateRun:  # fmt: skip
    """Fit on some tasks and try on others: the cohorts `test` (else those called test or unseen), or a random
    `held_out` share of the tasks. `router` is one that is tried besides; the tasks that it was made on are left out.

    Raises:
        InputError: a file cannot be read.
        UsageError: it has no such agent, cohort or feature, or a task is on both sides.
        EvidenceError: too few tasks, or the router was made on every held-out one.
    """
    choice, options = choice or Choice(), options or EvaluateOptions()
    read = read_pairs(path)
    pairs = _of_agent(read.pairs, choice.agent)
    known = _cohorts(pairs)
    tested = tuple(test) or tuple(c for c in known if c in HELD_OUT and c not in choice.cohorts)
    rest = choice.cohorts or tuple(c for c in known if c not in tested)
    warnings = list(read.warnings)
    if tested:
        if not rest:
            raise UsageError("every cohort is held out, so there is nothing to fit on", hint="name one: --cohort NAME")
        fitting = _episodes(_of_cohorts(pairs, rest), choice)
        held = _episodes(_of_cohorts(pairs, tested), choice)
    else:
        fitting, held = random_split(_episodes(_of_cohorts(pairs, rest), choice), held_out, options.seed)
        warnings.append(f"no held-out cohort: {len(held.tasks())} tasks were held out at random")
    others, idle = {}, set()
    if router is not None:
        given, label = routers.load(router), f"file {router.name}"
        held, told = _unseen(given, held, router.name)
        warnings += told
        others[label] = _acts(given, held, choice)
        if given.kind == "never":
            idle.add(label)
    found = evaluate(fitting, held, choice.operation, options, others, idle)
    warnings += found.warnings
    return EvaluateRun(msgspec.structs.replace(found, warnings=tuple(warnings)), tuple(warnings))


def _unseen(router: routers.Router, held: Episodes, file: str) -> tuple[Episodes, list[str]]:
    """The held-out episodes without the tasks that the router was made on, for every policy alike, and what to say."""
    if router.tasks is None:
        return held, [f"{file} does not say which tasks it was made on: some may be among the held-out ones, which "
                      "flatters it"]  # fmt: skip
    tasks = held.tasks()
    seen = router.tasks.seen(tasks)
    if not seen:
        return held, []
    rest = [t for t in tasks if t not in seen]
    if not rest:
        raise EvidenceError(f"{file} was fitted or certified on all {len(tasks)} held-out tasks, so they cannot try it",
                            hint="fit it on some cohorts and try it on others: --cohort, --test-cohort")  # fmt: skip
    return held.of(rest), [f"{len(seen)} of {len(tasks)} held-out tasks were left out, for every policy: {file} was "
                           "fitted or certified on them"]  # fmt: skip


def _acts(router: routers.Router, e: Episodes, choice: Choice) -> Ints:
    """Where a router acts in episodes, asked moment by moment as in a deployment."""
    if router.operation != choice.operation:
        raise UsageError(f"the router decides on {router.operation}, not on {choice.operation}",
                         hint=f"--operation {router.operation}")  # fmt: skip
    missing = [f for f in router.features if f not in e.features]
    if missing:
        raise UsageError(f"the router needs features that the pairs lack: {', '.join(missing)}")
    holds = np.zeros(e.alive.shape, dtype=np.bool_)
    for i in range(len(e)):
        for k, delay in enumerate(e.delays):
            if e.alive[i, k]:
                values = dict(zip(e.features, e.x[i, k].tolist(), strict=True))
                holds[i, k] = router.decide(values, delay=delay) == "act"
    return first_crossing(holds)


def _episodes(pairs: Pairs, choice: Choice) -> Episodes:
    twice = _twice(pairs)
    if twice is not None:
        raise UsageError(f"task {twice} is in several cohorts", hint="choose one: --cohort NAME")
    chosen = pairs if choice.features is None else pairs.with_features(choice.features)
    return episodes(chosen, choice.operation, choice.delays)


def _twice(pairs: Pairs) -> str | None:
    seen: dict[str, str] = {}
    for task, cohort in zip(pairs.task.tolist(), pairs.cohort.tolist(), strict=True):
        if seen.setdefault(task, cohort) != cohort:
            return str(task)
    return None


def _cohorts(pairs: Pairs) -> tuple[str, ...]:
    return tuple(sorted(set(pairs.cohort.tolist())))


def _of_agent(pairs: Pairs, agent: str | None) -> Pairs:
    known = sorted(set(pairs.agent.tolist()))
    if agent is None:
        return pairs
    if agent not in known:
        raise UsageError(f"the pairs have no agent {agent!r}",
                         hint=f"they have {', '.join(filter(None, known)) or 'none'}")  # fmt: skip
    return pairs.where(pairs.agent == agent)


def _of_cohorts(pairs: Pairs, cohorts: Sequence[str]) -> Pairs:
    known = _cohorts(pairs)
    unknown = [c for c in cohorts if c not in known]
    if unknown:
        raise UsageError(f"the pairs have no cohort {unknown[0]!r}",
                         hint=f"they have {', '.join(filter(None, known)) or 'none'}")  # fmt: skip
    return pairs.where(np.isin(pairs.cohort, list(cohorts))) if cohorts else pairs


def parse_mixes(texts: Sequence[str]) -> dict[str, dict[str, float]] | None:
    """``clean=0.9,stale-2=0.1`` to shares by condition, named by the text; None for no text.

    Raises:
        UsageError: not of that form.
    """
    out: dict[str, dict[str, float]] = {}
    for text in texts:
        try:
            parts = [part.split("=") for part in text.split(",")]
            out[text] = {name.strip(): float(share) for name, share in parts}
        except ValueError:
            raise UsageError(f"a mix is written {CLEAN}=0.9,stale-2=0.1, not {text!r}") from None
    return out or None
