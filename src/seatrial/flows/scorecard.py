"""The scorecard's story: runs are found, measured one by one in seven dimensions, and set side by side by agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.canon import canonical
from seatrial.dimensions.annotations import Annotations
from seatrial.dimensions.audit_record import audit_of
from seatrial.dimensions.card import Gathered, correlations, of_gathered
from seatrial.dimensions.catalogue import dimensions
from seatrial.dimensions.contrast import Contrast, contrast
from seatrial.dimensions.profiles import Profile, ProfileValue, weighed
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows.attempts import resolve, runs, stored_run
from seatrial.flows.evidence import UNNAMED, Foreign, Setting, of_judged, setting
from seatrial.flows.relevance_judge import RelevanceJudge
from seatrial.flows.series import ByFile
from seatrial.records import DimensionResult, Evidence, Scorecard, protocols
from seatrial.store import Store

ProgressFn = Callable[[int, int | None, str], None]


class ScorecardOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is scored and how.

    `suite` names the suite that stored runs were made in (None: a worked example by its name; else no world is
    known, and replays are not measured). `model` keeps one model's runs. `only` names dimensions (none: all).
    `audits` is a folder for one audit file per run. `profiles` are deployment profiles, kept apart from what is
    measured. `values` keeps every run's values in the result. `annotations` are a person's verdicts on actions, which
    outrank every other source of relevance, and `judge` a validated judge's, which none do (METHODS 5, D2).
    """

    level: float = 0.95
    suite: str | None = None
    model: str | None = None
    format: str | None = None
    store: Path | None = None
    only: tuple[str, ...] = ()
    audits: Path | None = None
    profiles: tuple[Profile, ...] = ()
    values: bool = False
    annotations: Annotations | None = None
    judge: RelevanceJudge | None = None


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """Scorecards in the order of their sources. `correlations` are over the tasks of all agents together;
    `profiles` what deployment profiles make of the measurements, by profile and agent; `separation` which dimensions
    tell the first agent from each other one, by the other's name."""

    cards: tuple[Scorecard, ...]
    correlations: dict[str, float | None]
    profiles: dict[str, dict[str, ProfileValue]]
    warnings: tuple[str, ...]
    separation: dict[str, tuple[Contrast, ...]] = {}
    data_version: str | None = None

    def summary(self) -> dict[str, Any]:
        """The ``scorecard --json`` result: the contract's fields of the first agent, and with several agents each
        one's under `agents`."""
        cards = [plain(card) for card in self.cards]
        out = {**cards[0], "correlations": self.correlations}
        if len(cards) > 1:
            out |= {"agents": cards, "separation": self.separation}
        if self.profiles:
            out["profiles"] = self.profiles
        return out


class _One(NamedTuple):
    """One agent's runs, still to be measured."""

    agent: str
    model: str | None
    suite: str | None
    gathered: Gathered
    warnings: list[str]
    basis: dict[str, Any]


def score_sources(
    sources: Sequence[str], options: ScorecardOptions = ScorecardOptions(), progress: ProgressFn | None = None
) -> Scored:
    """Score stored runs, results tables and traces; a source with several models gives a scorecard for each.

    Raises:
        InputError: a source cannot be read, or names neither a file nor a stored run.
        EvidenceError: there is nothing to score.
        UsageError: no source, or an unknown dimension.
    """
    if not sources:
        raise UsageError("name runs, results tables or traces", hint="seatrial scorecard RUNS...")
    found: list[_One] = []
    version = None
    for source in sources:
        if Path(source).exists():
            found += _foreign(Path(source), options, progress)
        else:
            one, version = _stored(source, options, progress)
            found.append(one)
    return _scored(_distinct(found), options, version)


def _stored(source: str, options: ScorecardOptions, progress: ProgressFn | None) -> tuple[_One, str]:
    if options.store is None or not options.store.is_dir():
        raise InputError("no such file, folder or stored run", file=source, hint="runs are found in a --store")
    store = Store.open(options.store, create=False)
    name = resolve(store, source)
    judged = stored_run(store, name)
    first = judged[0][0]
    where = setting(options.suite, first.suite)
    gathered = gather(of_judged(judged, store, where), options, progress, len(judged))
    return _One(
        agent=first.agent or "agent", model=first.model, suite=first.suite, gathered=gathered,
        warnings=_of_setting(where, first.suite), basis={"run": name, "store": str(options.store)},
    ), store.data_version  # fmt: skip


def _of_setting(where: Setting, name: str | None) -> list[str]:
    if where.suite is None:
        return [f"the suite {name} is not given (--suite), so nothing can be re-executed in its worlds"]
    if where.changed:
        return [f"{len(where.changed)} tasks changed since the run: they are scored without their worlds"]
    return []


def _foreign(path: Path, options: ScorecardOptions, progress: ProgressFn | None) -> list[_One]:
    source = Foreign(path, format=options.format, model=options.model)
    chosen = _chosen(options)
    made: dict[tuple[str, str | None], ByFile] = {}
    for done, (label, run) in enumerate(source.runs(), 1):
        file = (
            Path(run.trace.provenance.file).name if run.trace is not None and run.trace.provenance.file else path.name
        )
        made.setdefault((label, run.attempt.suite), ByFile(chosen)).add(_annotated(run, options), file)
        _write_audit(run, options)
        if progress is not None:
            progress(done, None, "runs measured")
    labels = [label for label, _ in made]
    parts = [(label, suite, *one) for (label, suite), by_file in made.items() for one in by_file.series()]
    apart = [by_file for by_file in made.values() if by_file.twice]
    if apart:
        n = sum(by_file.twice for by_file in apart)
        first = apart[0].first
        source.warnings.append(f"{path.name}: {n} attempts are recorded in more than one file, the first {first}: "
                               "such files are not merged but scored apart")  # fmt: skip
    return [
        _One(
            agent=_called(path.stem if label == UNNAMED else label, suite if labels.count(label) > 1 else None, files),
            model=None if label == UNNAMED else label, suite=suite, gathered=g, warnings=list(source.warnings),
            basis={"source": str(path), **({} if files is None else {"files": files})},
        )
        for label, suite, files, g in parts
    ]  # fmt: skip


def _called(label: str, suite: str | None, files: str | None) -> str:
    """Tasks of two suites are never taken for one: an agent that tried both has a scorecard for each, and so have
    files that record the same attempts."""
    more = ", ".join(part for part in (suite, files) if part is not None)
    return f"{label} ({more})" if more else label


def gather(
    evidence: Iterable[Evidence],
    options: ScorecardOptions,
    progress: ProgressFn | None = None,
    total: int | None = None,
) -> Gathered:
    """Measure runs one by one; no trace is held longer than that takes."""
    gathered = Gathered(_chosen(options))
    for done, run in enumerate(evidence, 1):
        gathered.add(_annotated(run, options))
        _write_audit(run, options)
        if progress is not None:
            progress(done, total, "runs measured")
    return gathered


def _annotated(run: Evidence, options: ScorecardOptions) -> Evidence:
    if options.annotations is not None:
        run = msgspec.structs.replace(run, annotations=options.annotations.of(run.attempt, run.trace))
    return run if options.judge is None else msgspec.structs.replace(run, judged=options.judge.of(run))


def _chosen(options: ScorecardOptions) -> tuple[protocols.Dimension, ...]:
    known = dimensions()
    names = [d.name for d in known]
    strange = [name for name in options.only if name not in names]
    if strange:
        raise UsageError(f"there is no dimension {strange[0]!r}", hint=f"one of {', '.join(names)}")
    return tuple(d for d in known if not options.only or d.name in options.only)


def _write_audit(run: Evidence, options: ScorecardOptions) -> None:
    if options.audits is None or run.trace is None:
        return
    audit = audit_of(run.trace, run.task, run.attempt)
    plain_name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in run.trace.id)[-120:]
    path = options.audits / f"{plain_name}.audit.json"
    try:
        options.audits.mkdir(parents=True, exist_ok=True)
        path.write_bytes(canonical(audit) + b"\n")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=str(path)) from error


def _distinct(found: list[_One]) -> list[_One]:
    """Two sources may hold one agent: then each is named with where it comes from."""
    names = [one.agent for one in found]
    out = []
    for one in found:
        if names.count(one.agent) > 1:
            source = Path(str(one.basis.get("source", "")))
            alike = {o.basis.get("source") for o in found if Path(str(o.basis.get("source", ""))).name == source.name}
            origin = one.basis.get("run") or (source.name if len(alike) < 2 else source)
            one = one._replace(agent=f"{one.agent} ({origin})")
        out.append(one)
    return out


def _scored(found: Sequence[_One], options: ScorecardOptions, version: str | None) -> Scored:
    cards = tuple(
        of_gathered(
            one.gathered, agent=one.agent, model=one.model, suite=one.suite, level=options.level,
            warnings=one.warnings, keep_values=options.values, basis=one.basis,
        )
        for one in found
    )  # fmt: skip
    told = options.annotations.misfits() if options.annotations is not None else []
    if options.judge is not None and options.judge.left_out:
        told.append(f"{options.judge.left_out} runs were not shown to the judge: there is no consent to it")
    return side_by_side(cards, options.profiles, version, [one.gathered for one in found], told)


def side_by_side(
    cards: Sequence[Scorecard],
    profiles: Sequence[Profile] = (),
    version: str | None = None,
    gathered: Sequence[Gathered] = (),
    warnings: Sequence[str] = (),
) -> Scored:
    """Several agents' scorecards as one result; `gathered` are their runs' values, in the same order."""
    return Scored(
        cards=tuple(cards),
        correlations=correlations([card.dimensions for card in cards]),
        profiles={p.name: {card.agent: weighed(card, p) for card in cards} for p in profiles},
        warnings=tuple(dict.fromkeys([w for card in cards for w in card.warnings] + list(warnings))),
        separation={
            card.agent: contrast(gathered[0].values, other.values)
            for card, other in zip(cards[1:], gathered[1:], strict=False)
        },
        data_version=version,
    )  # fmt: skip


def plain(card: Scorecard) -> dict[str, Any]:
    """A scorecard as plain JSON: DESIGN 5's contract first, every field there also where it is empty."""
    held: dict[str, Any] = msgspec.to_builtins(card)
    shown = {name: _plain(found) for name, found in card.dimensions.items()}
    return {
        **held, "k": card.k, "tasks": card.tasks, "dimensions": shown, "counts": statuses(card),
        "attempts": msgspec.to_builtins(card.counts),
    }  # fmt: skip


def statuses(card: Scorecard) -> dict[str, int]:
    """Attempts by status."""
    return {**card.statuses, **({"missing": n} if (n := card.counts.excluded.get("missing")) else {})}


def _plain(found: DimensionResult) -> dict[str, Any]:
    held: dict[str, Any] = msgspec.to_builtins(found)
    return {
        **held, "estimate": held.get("estimate"), "why": found.why, "name": found.name, "level": found.level,
        "raw": found.raw, "per_task": {task: t.value for task, t in found.per_task.items()},
        "task_detail": held.get("per_task", {}),
    }  # fmt: skip


def listed(store: Path) -> Iterator[Mapping[str, Any]]:
    """The runs of a store, newest first."""
    yield from runs(Store.open(store, create=False)).iter_rows(named=True)


__all__ = ["EvidenceError", "ScorecardOptions", "Scored", "gather", "listed", "plain", "score_sources", "side_by_side"]
