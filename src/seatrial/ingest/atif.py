"""ATIF documents to traces: the Agent Trajectory Interchange Format, versions 1.0 to 1.8.

A document is one trajectory, with embedded sub-agents (1.7 on) or references to files that hold them. Every
sub-agent is a trace of its own. Files that refer to each other by the names of the format's own tools
(``trajectory.json``, ``trajectory.cont-1.json``) are linked when they lie in one folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import content_hash, digest
from seatrial.ingest.atif_parts import (
    NATIVE,
    agent,
    extra_of,
    ours,
    references,
    step,
    totals,
    unplaced,
    with_ours,
)
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import BadJSON, kind, loads, malformed
from seatrial.records import Provenance, ReadLog, Step, Trace

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
"""Schema versions that are read; 1.8 is written."""

_VERSION = re.compile(r"^ATIF-v(\d+)\.(\d+)$")
_SHAPE = "an ATIF document: an object with schema_version ATIF-v1.0 to ATIF-v1.8, agent and steps"
_CHAINED = re.compile(r"^(?P<prefix>.*?)trajectory(?P<part>\..+)?\.json$")
_KIN = 50
"""Files beside a document that are looked into for a reference to it, at most."""
_KIN_BYTES = 64 * 1024 * 1024
_DEPTH = 32
"""Levels of sub-agents inside sub-agents."""


class Atif:
    """Reads ATIF. A user step is a person's unless its text is a known harness's (METHODS 1.1)."""

    name = "atif"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the file names the schema."""
        return 0.99 if head.lstrip().startswith(b"{") and b'"ATIF-v' in head else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The trajectory, then its embedded sub-agents.

        Raises:
            FormatError: not JSON, or not an ATIF 1.x document.
        """
        data = path.read_bytes()
        try:
            document, repairs = loads(data)
            _check(document)
        except BadJSON as error:
            raise malformed(path, data, error, _SHAPE) from None
        for repair in repairs:
            log.note(None, repair)
        version = document["schema_version"]
        if version not in VERSIONS:
            log.note(None, f"{version} is newer than {VERSIONS[-1]}: fields that it added are kept in extra")
        provenance = Provenance(
            format=self.name,
            reader=self.name,
            reader_version=self.version,
            file=str(path),
            byte_end=len(data),
            content_hash=digest(data),
            extra={"schema_version": version},
        )
        lost: list[tuple[str, int]] = []
        found = traces(document, provenance, lost)
        first, *embedded = _linked(path, document, found)
        spare = len(data)
        for why, size in lost:
            size = min(size, spare)
            spare -= size
            log.skip(None, why, size)
        log.kept(spare, "document")
        yield first
        yield from embedded


def traces(document: Mapping[str, Any], provenance: Provenance, lost: list[tuple[str, int]]) -> list[Trace]:
    """A document's trajectory, then its embedded sub-agents, each with its parent.

    `lost` collects what could not be read, with its size in bytes as compact JSON.
    """
    return list(_trajectory(document, provenance, lost, Ids(), None, 0))


def trace_of(document: Mapping[str, Any], provenance: Provenance, parent: Trace | None = None) -> Trace:
    """The trajectory of a document alone, as `traces` reads it; `parent` is the one that it is embedded in."""
    return next(_trajectory(document, provenance, [], Ids(), parent, 0))


def _trajectory(
    document: Mapping[str, Any],
    provenance: Provenance,
    lost: list[tuple[str, int]],
    ids: Ids,
    parent: Trace | None,
    depth: int,
) -> Iterator[Trace]:
    native = unplaced(document, _PLACED)
    embedded = document.get("subagent_trajectories")
    children = [c for c in embedded if isinstance(c, dict)] if isinstance(embedded, list) else []
    if embedded is not None and (not isinstance(embedded, list) or len(children) < len(embedded)):
        native["subagent_trajectories"] = (
            embedded if not isinstance(embedded, list) else [c for c in embedded if not isinstance(c, dict)]
        )
    trace_id = _id(document, parent.id if parent is not None else None)
    inside = {c["trajectory_id"]: _id(c, trace_id) for c in children if isinstance(c.get("trajectory_id"), str)}

    def resolve(trajectory_id: str) -> str:
        return inside.get(trajectory_id, trajectory_id)

    steps: list[Step] = []
    listed = document.get("steps")
    for n, raw in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(raw, dict):
            lost.append((f"steps[{n}]: expected an object, found {kind(raw)}", len(msgspec.json.encode(raw))))
            continue
        steps.append(step(raw, len(steps), resolve))
    if listed is not None and not isinstance(listed, list):
        native["steps"] = listed
    by = document.get("agent")
    model = by.get("model_name") if isinstance(by, dict) else None
    calls = {t: r.call_id for s in (parent.steps if parent else ()) for r in s.results for t in r.subagents}
    trace = Trace(
        id=trace_id,
        agent=agent(by),
        provenance=provenance,
        model=model if isinstance(model, str) and model else None,
        steps=tuple(steps),
        totals=totals(document.get("final_metrics")),
        parent=parent.id if parent is not None else None,
        parent_call=calls.get(trace_id),
        extra=extra_of(document, native),
    )
    origin = ours(document).get("provenance")
    if isinstance(origin, dict):
        kept = msgspec.structs.replace(provenance, extra=provenance.extra | {"original": origin})
        trace = msgspec.structs.replace(trace, provenance=kept)
    trace = with_ours(trace, document)
    trace = msgspec.structs.replace(trace, id=ids(trace.id))
    yield trace
    if depth >= _DEPTH and children:
        lost.append((f"sub-agents more than {_DEPTH} levels deep", len(msgspec.json.encode(children))))
        return
    for child in children:
        yield from _trajectory(child, provenance, lost, ids, trace, depth + 1)


_PLACED = ("schema_version", "trajectory_id", "agent", "steps", "final_metrics", "subagent_trajectories", "extra")


def _id(document: Mapping[str, Any], parent: str | None) -> str:
    """`trajectory_id`, inside its parent's where it is embedded; else the session's id and the content's hash.

    A session's id is the run's, shared by continuations and sub-agents, so that alone it names no trace. An
    embedded document that our writer made says which id its trace had.
    """
    own = document.get("trajectory_id")
    if isinstance(own, str) and own:
        given = ours(document).get("id")
        if isinstance(given, str) and given:
            return given
        return own if parent is None else f"{parent}/{own}"
    session = document.get("session_id")
    named = session if isinstance(session, str) and session else "atif"
    return f"{named}~{content_hash(document)[:12]}"


def _check(document: Any) -> None:
    if not isinstance(document, dict):
        raise BadJSON(f"found {kind(document)}", 0)
    version = document.get("schema_version")
    found = _VERSION.match(version) if isinstance(version, str) else None
    if found is None:
        raise BadJSON("schema_version names no ATIF version", 0)
    if found.group(1) != "1":
        raise BadJSON(f"{version} is not read", 0)
    if not isinstance(document.get("steps"), list):
        raise BadJSON("the document has no list of steps", 0)


def _linked(path: Path, document: Mapping[str, Any], found: list[Trace]) -> list[Trace]:
    """The traces, with links to and from the files beside this one."""
    first, *embedded = found
    first = msgspec.structs.replace(first, steps=tuple(_with_files(path, s) for s in first.steps))
    name = _CHAINED.match(path.name)
    if name is not None and name["part"] and first.parent is None and first.continues is None:
        beside = [
            other
            for other in sorted(path.parent.glob("*.json"))
            if other != path and (kin := _CHAINED.match(other.name)) and kin["prefix"] == name["prefix"]
        ]
        for other in beside[:_KIN]:
            first = _related(first, path, other)
            if first.parent is not None or first.continues is not None:
                break
    return [first, *embedded]


def _related(trace: Trace, path: Path, other: Path) -> Trace:
    """The trace with `other` as what it continues or belongs to, where `other` refers to it."""
    document = _peek(other)
    if document is None:
        return trace
    if _file(other, document.get("continued_trajectory_ref")) == path:
        return msgspec.structs.replace(trace, continues=_id(document, None))
    steps = document.get("steps")
    for n, raw in enumerate(steps if isinstance(steps, list) else ()):
        for result in step(raw, n).results if isinstance(raw, dict) else ():
            native = result.extra.get(NATIVE)
            refs = native.get("subagent_trajectory_ref") if isinstance(native, dict) else None
            if any(_file(other, ref.get("trajectory_path")) == path for ref in references(refs)):
                return msgspec.structs.replace(trace, parent=_id(document, None), parent_call=result.call_id)
    return trace


def _with_files(path: Path, made: Step) -> Step:
    """The step with the ids of the sub-agents that its results refer to as files beside this one."""
    results = []
    for result in made.results:
        native = result.extra.get(NATIVE)
        refs = native.get("subagent_trajectory_ref") if isinstance(native, dict) else None
        files = [
            file
            for ref in references(refs)
            if not isinstance(ref.get("trajectory_id"), str)
            and (file := _file(path, ref.get("trajectory_path"))) is not None
        ]
        known = [_id(document, None) for file in files if (document := _peek(file)) is not None]
        fresh = tuple(trace_id for trace_id in known if trace_id not in result.subagents)
        results.append(msgspec.structs.replace(result, subagents=(*result.subagents, *fresh)) if fresh else result)
    return msgspec.structs.replace(made, results=tuple(results)) if made.results else made


def _file(path: Path, reference: Any) -> Path | None:
    """The file beside `path` that a reference means: by its last part alone, no other folder is entered."""
    if not isinstance(reference, str) or "\0" in reference:
        return None
    name = Path(reference).name
    chained = _CHAINED.match(path.name)
    for candidate in (name, f"{chained['prefix']}{name}" if chained else name):
        file = path.parent / candidate
        if candidate and len(candidate) < 250 and file != path and file.is_file():
            return file
    return None


def _peek(path: Path) -> dict[str, Any] | None:
    """The ATIF document in a file; None when it is none."""
    try:
        if path.stat().st_size > _KIN_BYTES:
            return None
        document, _ = loads(path.read_bytes())
        _check(document)
    except (OSError, BadJSON):
        return None
    return dict(document)


READER = Atif()
