"""``seatrial.toml`` to frozen settings.

Where a setting is given several times, the later of this list wins: the default; ``[tool.seatrial]`` in
``pyproject.toml``; ``seatrial.toml``; the environment (``SEATRIAL_<NAME>``, such as ``SEATRIAL_STORE``); the
command line. Files are looked for in the working folder and then in each folder above it; the nearest folder
with settings is used. A table such as ``[suites]`` belongs to the room of that name, which types it: `part`.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from seatrial.errors import SettingsError
from seatrial.records.price import Price

ROOMS: tuple[str, ...] = ("suites", "gate", "server")
"""Tables that belong to rooms: those that a command reads, so that none is taken and has no effect. Their keys are
checked when the room's part is read."""

T = TypeVar("T")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that every command shares.

    `store` is the store's folder; `redact` whether personal data is replaced at ingest; `workers` the number
    of processes (None: chosen by the size of the work); `seed` the seed of everything random; `level` the
    confidence level of intervals, in (0, 1). `consent` says whether sessions may be used where no consent is on
    record. `retention_days` is how long sessions are kept after they ended (None: for ever). `prices` are USD for a
    million tokens by model name, ``[prices."my-model"]`` with ``input``, ``output`` and perhaps ``cached``; a model
    without one has no known cost.
    """

    store: str = ".seatrial"
    redact: bool = True
    workers: int | None = None
    seed: int = 0
    level: float = 0.95
    consent: Literal["assume", "require"] = "assume"
    retention_days: int | None = None
    prices: dict[str, Price] = {}
    rooms: dict[str, dict[str, Any]] = {}
    source: str | None = None

    def part(self, room: str, kind: type[T]) -> T:
        """The room's own table as its frozen struct `kind`; defaults where the file has no such table.

        Raises:
            SettingsError: a key is unknown or a value does not fit; names file and line.
        """
        table = self.rooms.get(room, {})
        _refuse_unknown(table, _names(kind), self.source, room)
        return _convert(table, kind, self.source, room)


_OWN = tuple(f for f in Settings.__struct_fields__ if f not in ("rooms", "source"))


def load(
    start: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings in force in folder `start` (None: the working folder).

    `environ` None: the process's. `overrides` are the command line's; None values in it are not given.

    Raises:
        SettingsError: a file cannot be read, a key is unknown, or a value does not fit; names file and line.
    """
    file, table = _find(Path.cwd() if start is None else start)
    source = None if file is None else str(file)
    _refuse_unknown(table, (*_OWN, *ROOMS), source, None)
    rooms = {name: table[name] for name in ROOMS if name in table}
    for name, value in rooms.items():
        if not isinstance(value, dict):
            raise _error(f"{name} is a table, not a {type(value).__name__}", source, name, None)
    values = {name: table[name] for name in _OWN if name in table}
    settings = _checked(_convert(values, Settings, source, None), source)
    given = _from_environment(os.environ if environ is None else environ)
    given |= {k: v for k, v in (overrides or {}).items() if v is not None}
    _refuse_unknown(given, _OWN, None, None)
    merged = {name: getattr(settings, name) for name in _OWN} | given
    return msgspec.structs.replace(_checked(_convert(merged, Settings, None, None), None), rooms=rooms, source=source)


def schema(parts: Mapping[str, type] | None = None) -> dict[str, Any]:
    """JSON Schema of ``seatrial.toml``. `parts` maps rooms to the structs that type their tables."""
    (reference,), definitions = msgspec.json.schema_components([Settings], ref_template="#/$defs/{name}")
    named = reference["$ref"].rsplit("/", 1)[-1]
    properties = {k: v for k, v in definitions[named]["properties"].items() if k in _OWN}
    extra: dict[str, Any] = {k: v for k, v in definitions.items() if k != named}
    for room, kind in sorted((parts or {}).items()):
        (typed,), more = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        properties[room] = typed
        extra |= more
        name = typed["$ref"].rsplit("/", 1)[-1]
        extra[name] = {**more[name], "additionalProperties": False}
    for room in ROOMS:
        properties.setdefault(room, {"type": "object"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "seatrial.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": extra,
    }


def _find(start: Path) -> tuple[Path | None, dict[str, Any]]:
    for folder in (start.resolve(), *start.resolve().parents):
        own = folder / "seatrial.toml"
        project = folder / "pyproject.toml"
        table: dict[str, Any] | None = None
        if project.is_file():
            tools = _read(project).get("tool")
            table = tools.get("seatrial") if isinstance(tools, dict) else None
            if table is not None and not isinstance(table, dict):
                raise SettingsError("expected a table: [tool.seatrial]", file=str(project))
        if os.path.lexists(own):  # a folder or a dead link of that name is refused, not passed over
            return own, {**(table or {}), **_read(own)}
        if table is not None:
            return project, table
    return None, {}


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise SettingsError(
            f"not valid TOML: {error}", file=str(file), line=int(found.group(1)) if found else None
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings cannot be read: {error}", file=str(file)) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        scalar = field.name in _OWN and field.name != "prices"
        text = environ.get(f"SEATRIAL_{field.name.upper()}") if scalar else None
        if text is None:
            continue
        try:
            if field.type is bool:
                given[field.name] = {"1": True, "true": True, "0": False, "false": False}[text.lower()]
            else:
                given[field.name] = msgspec.convert(text, field.type, strict=False)
        except (KeyError, msgspec.ValidationError):
            raise SettingsError(
                f"SEATRIAL_{field.name.upper()} is {text!r}, which does not fit", hint="see seatrial.toml's schema"
            ) from None
    return given


def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.encode_name for f in msgspec.structs.fields(kind))


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], source: str | None, room: str | None) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            where = f"{room}.{key}" if room else key
            raise _error(f"there is no setting {where!r}", source, key, room, hint)


def _convert(table: Mapping[str, Any], kind: type[T], source: str | None, room: str | None) -> T:
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        found = re.search(r"at `\$\.([\w-]+)", str(error))
        key = found.group(1) if found else None
        name = ".".join(p for p in (room, key) if p)
        what = str(error).split(" - at ")[0]
        raise _error(f"setting {name!r}: {what}" if name else what, source, key, room) from error


def _checked(settings: Settings, source: str | None) -> Settings:
    if not 0.0 < settings.level < 1.0:
        raise _error(f"setting 'level' is {settings.level}, not between 0 and 1", source, "level", None)
    if settings.workers is not None and settings.workers < 1:
        raise _error(f"setting 'workers' is {settings.workers}, not at least 1", source, "workers", None)
    if settings.seed < 0:
        raise _error(f"setting 'seed' is {settings.seed}, not at least 0", source, "seed", None)
    if settings.retention_days is not None and settings.retention_days < 1:
        raise _error(
            f"setting 'retention_days' is {settings.retention_days}, not at least 1", source, "retention_days", None
        )
    return settings


def _error(what: str, source: str | None, key: str | None, room: str | None, hint: str | None = None) -> SettingsError:
    line = None if source is None or key is None else _line(Path(source), key, room)
    return SettingsError(what, file=source, line=line, hint=hint)


def _line(file: Path, key: str, room: str | None) -> int | None:
    """The line that sets `key` (1-based): tomllib does not say, so the nearest match under its header."""
    root = "tool.seatrial" if file.name == "pyproject.toml" else ""
    wanted = ".".join(p for p in (root, room) if p)
    at = ""
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:
        return None
    for number, line in enumerate(lines, 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header:
            at = header.group(1).replace('"', "").replace(" ", "")
            if at == ".".join(p for p in (wanted, key) if p):
                return number
        elif at == wanted and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
    return None
