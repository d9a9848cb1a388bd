"""What the looking commands show, as sections: what was read, sessions, steps, signals, checks of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from seatrial.records import Check, Consent, Skip, Trace
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import around, clean, clip, name, visible

SHOWN_SKIPS = 20


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _count(value: int | None) -> str | None:
    return None if value is None else numbers.count(value)


def intake(
    files: Mapping[str, int], sessions: int, steps: int, skipped: Sequence[Skip], redacted: Mapping[str, int]
) -> Section:
    """What an ingest read, kept, skipped and redacted."""
    lost = [s for s in skipped if not s.noted]
    noted = [s for s in skipped if s.noted]
    tables = []
    for title, skips in (("Skipped", lost), ("Noted, nothing lost", noted)):
        if skips:
            rows = tuple((clip(clean(s.file), 48), _count(s.line), clean(s.why)) for s in skips[:SHOWN_SKIPS])
            head = (Column(head="file", name=True), Column(head="line", right=True), Column(head="why"))
            more = f" ({len(skips) - SHOWN_SKIPS} more; --json lists all)" if len(skips) > SHOWN_SKIPS else ""
            tables.append(Table(caption=f"{title}: {len(skips)}{more}", columns=head, rows=rows))
    hidden = ", ".join(f"{n} {kind}" for kind, n in sorted(redacted.items())) or "nothing"
    return Section(
        heading="Read",
        paragraphs=(
            f"{numbers.count(files['read'])} files read, {numbers.count(files['kept'])} kept, "
            f"{numbers.count(files['skipped'])} skipped. {numbers.count(sessions)} sessions, "
            f"{numbers.count(steps)} steps. Redacted: {hidden}.",
        ),
        tables=tuple(tables),
    )


def sessions(rows: Iterable[Mapping[str, Any]], total: int) -> Section:
    """Stored sessions as a table; rows have the columns of `records.tables.SESSIONS`."""
    head = (
        Column(head="session", name=True),
        Column(head="start (UTC)"),
        Column(head="model", name=True),
        Column(head="turns", right=True),
        Column(head="calls", right=True),
        Column(head="errors", right=True),
        Column(head="recorded"),
    )
    body = tuple(
        (
            name(row["session"])[:18],
            _time(row["start"]),
            clip(name(row["arm"]), 28) if row["arm"] else None,
            _count(row["human_turns"]),
            _count(row["tool_calls"]),
            _count(row["tool_errors"]),
            row["outcome_status"] or "-",
        )
        for row in rows
    )
    shown = f"{len(body)} of {numbers.count(total)}" if len(body) < total else numbers.count(total)
    return Section(heading="Sessions", tables=(Table(caption=f"{shown} sessions", columns=head, rows=body),))


def trace(one: Trace, limit: int) -> Section:
    """One session step by step; text is clipped to a few lines per step."""
    who = {"human": "human", "simulated_user": "user (simulated)", "agent": "agent"}
    rows = []
    for step in one.steps[:limit]:
        body = [clip(visible(line), 300) for line in step.text.strip().split("\n")[:6]] if step.text.strip() else []
        body += [f"> {clean(c.name)} {clip(clean(str(c.arguments)), 160)}" for c in step.tool_calls]
        body += [f"  {r.outcome}: {clip(clean(r.text), 160)}" for r in step.results]
        speaker = who.get(step.event_class, step.event_class) + (f" ({step.kind})" if step.kind else "")
        rows.append((str(step.index), speaker + (" copied" if step.copied else ""), "\n".join(body) or None))
    facts = [
        f"agent {name(one.agent.name)}" + (f" {clean(one.agent.version)}" if one.agent.version else ""),
        f"model {name(one.model)}" if one.model else "no model named",
        f"task {name(one.task.id)}" if one.task.id else "",
        f"sub-agent of {name(one.parent)}" if one.parent else "",
        f"recorded outcome {one.outcome.status}" if one.outcome else "",
        f"read from {clean(one.provenance.file)}" if one.provenance.file else "",
    ]
    more = (f"{len(one.steps) - limit} more steps; --limit shows more",) if len(one.steps) > limit else ()
    head = (Column(head="step", right=True), Column(head="who"), Column(head="what", name=True))
    return Section(
        heading=f"Session {name(one.id)}",
        paragraphs=("; ".join(f for f in facts if f) + ".",),
        tables=(Table(caption=f"{len(one.steps)} steps", columns=head, rows=tuple(rows)),),
        notes=more,
    )


def hits(found: Sequence[Mapping[str, Any]], searched: int, total: int) -> Section:
    """Where a text was found."""
    rows = tuple((name(h["session"])[:18], str(h["step"]), h["where"], clip(clean(h["quote"]), 120)) for h in found)
    head = (Column(head="session", name=True), Column(head="step", right=True), Column(head="where"),
            Column(head="text", name=True))  # fmt: skip
    stopped = "" if searched == total else f"; stopped at the limit after {searched} of {total} sessions"
    return Section(heading="Found", tables=(Table(caption=f"{len(rows)} places{stopped}", columns=head, rows=rows),))


def signal_counts(rows: Sequence[Mapping[str, Any]]) -> Section:
    """Signals by kind and model: kept, merged, dropped."""
    head = (
        Column(head="kind"),
        Column(head="model", name=True),
        *(Column(head=h, right=True) for h in ("kept", "merged", "dropped")),
    )
    body = tuple(
        (r["kind"], name(r["model"]) if r["model"] else None, *(_count(r[k]) for k in ("kept", "merged", "dropped")))
        for r in rows
    )
    return Section(
        heading="Signals",
        tables=(Table(caption="Signals by kind and model", columns=head, rows=body, grouped=True),),
        notes=("--explain SESSION shows the evidence for each signal and why it counts or does not",),
    )


def explanation(session: str, rows: Sequence[Any]) -> Section:
    """Why each signal of one session was kept, merged or dropped; rows are `signals.explain.Explanation`."""
    head = (
        Column(head="step", right=True),
        Column(head="signal"),
        Column(head="fate"),
        Column(head="evidence", name=True),
        Column(head="why"),
    )
    body = tuple(
        (
            str(r.step),
            f"{r.kind.replace('_', ' ')} {r.confidence:.2f}",
            r.fate,
            around(r.left, r.quote, r.right, 150),
            clean(r.reason + (f"; {r.why}" if r.why else "")),
        )
        for r in rows
    )
    kept = sum(r.fate == "kept" for r in rows)
    if not rows:
        return Section(heading=f"Signals of {name(session)}", paragraphs=(
            "No signal was detected: nobody judged the work in words that the detectors know, and no command failed.",
        ))  # fmt: skip
    counting = "1 counts" if kept == 1 else f"{kept} count"
    caption = f"{len(rows)} {'signal' if len(rows) == 1 else 'signals'} detected, {counting}"
    return Section(
        heading=f"Signals of {name(session)}",
        tables=(Table(caption=caption, columns=head, rows=body),),
        notes=("the evidence stands in brackets; the words around it are context",),
    )


def sample(rows: Sequence[Mapping[str, Any]], strata: Sequence[str]) -> Section:
    """A drawn evaluation set: how many per stratum, with what probability."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[s]) for s in strata), []).append(row["inclusion_probability"])
    body = tuple((*(name(part) for part in key), _count(len(p)), f"{min(p):.4g}") for key, p in sorted(groups.items()))
    head = (
        *(Column(head=s.replace("_", " "), name=True) for s in strata),
        Column(head="drawn", right=True),
        Column(head="probability", right=True),
    )
    return Section(heading="Sample", tables=(Table(caption=f"{len(rows)} sessions drawn", columns=head, rows=body),))


def verification(ok: bool, checks: Sequence[Check], problems: Sequence[str], sessions: int, blobs: int) -> Section:
    """What `verify` found."""
    return Section(
        heading="The store is sound" if ok else "The store is damaged",
        paragraphs=(f"{numbers.count(sessions)} sessions, {numbers.count(blobs)} blobs.",),
        checks=tuple(checks),
        items=tuple(clean(p) for p in problems),
    )


_PLUGINS = (
    Column(head="kind"),
    Column(head="name", name=True),
    Column(head="version"),
    Column(head="package", name=True),
    Column(head="state"),
)


def installation(facts: Mapping[str, Any]) -> Section:
    """Versions, extras, readers and plugins."""
    readers = tuple((r["name"], r["version"], "yes" if r["verified"] else "no: built to the specification")
                    for r in facts["readers"])  # fmt: skip
    extras = tuple((e["extra"], "installed" if e["installed"] else "not installed", e["for"]) for e in facts["extras"])
    plugged = tuple(
        (
            clean(p["kind"]), clean(p["name"]), clean(p["version"]), clean(p["distribution"]),
            "in use" if p["in_use"] else "left out: its name is taken, or it is no " + clean(p["kind"]),
        )
        for p in facts["plugins"]
    )  # fmt: skip
    return Section(
        heading=f"seatrial {facts['seatrial']} on Python {facts['python']}",
        tables=(
            Table(
                caption="Readers",
                columns=(Column(head="format"), Column(head="version"), Column(head="checked on real files")),
                rows=readers,
            ),
            Table(
                caption="Extras",
                columns=(Column(head="extra"), Column(head="state"), Column(head="what for")),
                rows=extras,
            ),
            *((Table(caption="From other packages", columns=_PLUGINS, rows=plugged),) if plugged else ()),
        ),
        items=tuple(clean(w) for w in facts["warnings"]),
    )


class Scanned(Protocol):
    """What a scan of a store's bytes found (`store.Proof`)."""

    @property
    def files(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def unpacked_bytes(self) -> int: ...
    @property
    def looked_for(self) -> dict[str, int]: ...
    @property
    def found(self) -> tuple[str, ...]: ...


def erasure(
    sessions: Sequence[str], rows: Mapping[str, int], blobs: int, versions: int, shared: int, proof: Scanned
) -> Section:
    """What was erased, and the proof that it is gone."""
    gone = ", ".join(f"{numbers.count(n)} of {table}" for table, n in rows.items()) or "none"
    asked = ", ".join(f"{numbers.count(n)} {kind}s" for kind, n in proof.looked_for.items()) or "nothing"
    notes = []
    if shared:
        notes.append(
            f"{numbers.count(shared)} source records are also in sessions that stay, as copies; their text stays there."
        )
    tables: tuple[Table, ...] = ()
    if proof.found:
        head = (Column(head="still found", name=True),)
        tables = (Table(caption="Not gone", columns=head, rows=tuple((clean(f),) for f in proof.found)),)
    return Section(
        heading="Erased" if not proof.found else "Erased, but not everywhere",
        paragraphs=(
            f"{numbers.count(len(sessions))} sessions; rows: {gone}; {numbers.count(blobs)} blobs. "
            f"{numbers.count(versions)} earlier data versions can no longer be read.",
            f"Proof: every byte of the store was read ({numbers.count(proof.files)} files, "
            f"{numbers.count(proof.bytes)} bytes, and {numbers.count(proof.unpacked_bytes)} characters unpacked from "
            f"them) for {asked}: found {numbers.count(len(proof.found))}.",
        ),
        tables=tables,
        notes=tuple(notes),
    )


def consents(found: Sequence[Consent]) -> Section:
    """Consents on record."""
    head = (
        Column(head="subject", name=True),
        Column(head="purposes"),
        Column(head="basis"),
        Column(head="given (UTC)"),
        Column(head="withdrawn (UTC)"),
    )
    rows = tuple(
        (name(c.subject), ", ".join(c.purposes) or "none", clean(c.basis or "-"), _time(c.time) or "-",
         _time(c.withdrawn) or "-")
        for c in found
    )  # fmt: skip
    return Section(heading="Consent", tables=(Table(caption=f"{len(rows)} on record", columns=head, rows=rows),))
