"""Judges' files and stamps: which judge may gate, and why another may not (METHODS 6.4)."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import FormatError, InputError
from seatrial.gate.settings import GateSettings
from seatrial.grading.judge import key, prompt_hash, rubric_hash
from seatrial.grading.validate import Standing
from seatrial.records.judge import JudgeSpec, JudgeStamp


def read_judge(path: Path) -> JudgeSpec:
    """The judge of a ``judge.toml`` (or JSON).

    Raises:
        InputError: the file cannot be read.
        FormatError: it does not describe a judge; says where.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    try:
        if path.suffix.lower() == ".json":
            return msgspec.json.decode(data, type=JudgeSpec)
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), JudgeSpec)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = "a judge has name, model and [[criteria]] with id, statement, passes, fails"
        raise FormatError(f"no judge: {error}", hint=hint, file=str(path)) from None


def make_stamp(spec: JudgeSpec, standings: Collection[Standing], now: datetime | None = None) -> JudgeStamp:
    """The stamp of a validation. Criteria that were not validated are refused; a file without a column of criteria
    validates the judge's only criterion."""
    found = {s.criterion: s for s in standings}
    if len(spec.criteria) == 1 and set(found) == {"overall"}:
        found = {spec.criteria[0].id: found["overall"]}
    numbers: dict[str, Any] = {
        name: {
            "n": s.n_items,
            "agreement": s.agreement.value if s.agreement else None,
            "agreement_low": s.agreement.low if s.agreement else None,
            "kappa": s.kappa.value if s.kappa else None,
            "kappa_low": s.kappa.low if s.kappa else None,
            "human_kappa": s.human_kappa.value if s.human_kappa else None,
            "why": s.why,
        }
        for name, s in found.items()
    }
    return JudgeStamp(
        key=key(spec),
        name=spec.name,
        model=spec.model,
        prompt_hash=prompt_hash(spec),
        rubric_hash=rubric_hash(spec),
        criteria={c.id: found[c.id].status if c.id in found else "refused" for c in spec.criteria},
        made=(now or datetime.now(UTC)).strftime("%Y-%m-%d"),
        numbers=numbers,
    )


def write_stamp(path: Path, stamp: JudgeStamp) -> None:
    """Write a stamp as readable JSON, to be committed.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(stamp), indent=1) + b"\n")
    except OSError as error:
        raise InputError(f"the stamp cannot be written: {error.strerror}", file=str(path)) from error


def read_stamp(path: Path) -> JudgeStamp:
    """A committed stamp.

    Raises:
        InputError: the file cannot be read.
        FormatError: it is no stamp.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=JudgeStamp)
    except OSError as error:
        raise InputError(f"the stamp cannot be read: {error.strerror}", hint="make it with seatrial judge validate "
                         "--stamp", file=str(path)) from error  # fmt: skip
    except msgspec.DecodeError as error:
        raise FormatError(f"no stamp: {error}", file=str(path)) from None


def refused_judges(settings: GateSettings, versions: dict[str, str | None]) -> dict[str, str]:
    """Judged metrics that may not gate, with the reason. `versions` maps the metrics that a judge gave in some run to
    the version recorded there, several joined by ``+``."""
    judged = {*versions, *(n for n, m in settings.metrics.items() if m.judge or m.stamp)}
    return {m: why for m in sorted(judged) if (why := _why_not(m, settings, versions.get(m))) is not None}


def _why_not(metric: str, settings: GateSettings, version: str | None) -> str | None:
    own = settings.metrics.get(metric)
    if own is None or own.stamp is None:
        return "its judge has no stamp: validate it (seatrial judge validate) and name the stamp in the settings"
    if not Path(own.stamp).exists():
        return f"its judge's stamp {own.stamp} is missing: validate it again"
    stamp = read_stamp(Path(own.stamp))
    if own.judge is not None and key(read_judge(Path(own.judge))) != stamp.key:
        return "its judge's stamp has expired: model, prompt or rubric changed since it was validated"
    if version is None:
        return "the run does not say which judge gave it, so no stamp can vouch for it"
    if any(not v.endswith(f"/{stamp.key}") for v in version.split("+")):
        return "the run was judged by another judge, prompt or rubric than the stamp is for: judge it again"
    status = stamp.criteria.get(metric)
    if status != "usable":
        return f"its judge is {status or 'not validated'} for this criterion, and only a usable judge gates"
    return None
