"""Suite files to suites: Python, JSON, JSON lines, TOML, and YAML with its extra.

JSON, JSON lines and TOML need nothing beyond the core. YAML needs a parser of its own, which is an extra (`[yaml]`):
most suites do without, and what a YAML file means depends on its parser.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from seatrial import plugins
from seatrial.errors import InputError, MissingExtra, UsageError
from seatrial.records import Task
from seatrial.suites.references import resolve
from seatrial.suites.schema import file_schema, task_schema
from seatrial.suites.suite import HOLDOUT_SHARE, Suite

SUFFIXES = (".py", ".json", ".jsonl", ".toml", ".yaml", ".yml")
_HEADS = ("world", "counterpart", "approver")
Raw = tuple[int | None, Any]
"""A task as read, with its line (1-based) where the format tells it."""


def load(spec: str | Path) -> Suite:
    """A suite from a file, or from ``module:name`` (a `Suite`, a domain, a list of tasks, or a function of these).

    A file names functions of its own folder, or of packages that it names itself (`suites.references`). A Python file
    offers its suite as ``SUITE``, or as ``file.py:NAME``. Loading runs the Python that it names.

    Raises:
        InputError: the file cannot be read, or a task does not fit the schema; names file and line or task.
        MissingExtra: YAML without its parser.
        UsageError: `spec` names nothing.
    """
    text = str(spec)
    path = Path(text)
    if path.suffix.lower() in SUFFIXES:
        if not path.is_file():
            raise InputError("there is no such suite", file=text, hint="give a file, or module:name")
        return _python(f"{path.name}:SUITE", path.parent, text) if path.suffix == ".py" else _file(path)
    place, colon, _ = text.rpartition(":")
    if colon and place.endswith(".py"):
        return _python(f"{Path(place).name}:{text.rpartition(':')[2]}", Path(place).parent, place)
    if colon:
        return _python(text, None, None)
    raise UsageError(f"{text!r} is no suite", hint=f"a file ({', '.join(SUFFIXES)}) or module:name")


def suite_of(value: Any, file: str | None = None, name: str | None = None) -> Suite:
    """A suite from a `Suite`, from anything with ``name``, ``tasks`` and ``world`` such as a domain, or from tasks.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(value, Suite):
        return value
    if isinstance(value, list | tuple) and all(isinstance(t, Task) for t in value):
        return Suite(name or (Path(file).stem if file else "suite"), tuple(value), file=file)
    if hasattr(value, "tasks") and hasattr(value, "name"):
        return Suite(
            value.name,
            tuple(value.tasks),
            world=getattr(value, "world", None),
            counterpart=getattr(value, "counterpart", None),
            approver=getattr(value, "approver", None),
            agents=_agents(getattr(value, "agents", None)),
            file=file,
        )
    raise UsageError(f"{type(value).__name__} is no suite", hint="a Suite, a list of tasks, or a function of these")


def _agents(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    return {a.name: a for a in given} if isinstance(given, list | tuple) else {}


def _python(reference: str, folder: Path | None, file: str | None) -> Suite:
    value = plugins.named(reference, folder)
    if callable(value) and not isinstance(value, Suite) and not hasattr(value, "tasks"):
        value = value()
    return suite_of(value, file)


def _file(path: Path) -> Suite:
    head, raw = _read(path)
    _against(head, file_schema()["oneOf"][1]["properties"]["suite"], str(path), None, "suite")
    defaults = head.get("defaults", {})
    tasks, drafts = [], []
    lines: dict[str, int] = {}
    for number, (line, one) in enumerate(raw, 1):
        if not isinstance(one, dict):
            raise InputError(f"task {number}: expected an object", file=str(path), line=line)
        merged = {**defaults, **one}
        what = f"task {merged.get('id') or number}"
        _against(merged, task_schema(), str(path), line, what)
        task = _resolved(Task(**merged), path.parent, head.get("packages", ()), str(path), line)
        if line is not None:
            lines[task.id] = line
        if task.extra.get("draft"):
            drafts.append(task.id)
        else:
            tasks.append(task)
    if not tasks and not drafts:
        raise InputError("the suite holds no task", file=str(path))
    named = {k: _named(k, head[k], path, head.get("packages", ())) for k in _HEADS if k in head}
    return Suite(
        head.get("name") or path.stem,
        tuple(tasks),
        world=named.get("world"),
        counterpart=named.get("counterpart"),
        approver=named.get("approver"),
        agents=head.get("agents", {}),
        drafts=tuple(drafts),
        file=str(path),
        holdout=head.get("holdout", HOLDOUT_SHARE),
        lines=lines,
    )


def _named(field: str, reference: str, path: Path, packages: Sequence[str]) -> Any:
    try:
        return resolve(field, reference, path.parent, packages)
    except InputError as error:
        raise InputError(error.message, file=str(path), hint=error.hint) from error


def _resolved(task: Task, folder: Path, packages: Sequence[str], file: str, line: int | None) -> Task:
    """The task with its functions in place of their names."""
    found: dict[str, Any] = {}
    for field in ("setup", "check_final"):
        value = getattr(task, field)
        try:
            found[field] = resolve(field, value, folder, packages) if isinstance(value, str) else value
        except (UsageError, InputError) as error:
            raise InputError(f"task {task.id}: {error.message}", file=file, line=line, hint=error.hint) from error
    return msgspec.structs.replace(task, **found)


def check_task(raw: Mapping[str, Any], file: str, line: int | None = None) -> None:
    """Hold a task, as a plain object, to its schema. Nothing that it names is imported.

    Raises:
        InputError: it does not fit; names the field.
    """
    _against(raw, task_schema(), file, line, f"task {raw.get('id')}")


def _against(value: Any, schema: Mapping[str, Any], file: str, line: int | None, what: str) -> None:
    wrong = jsonschema.Draft202012Validator(schema)
    found = sorted(wrong.iter_errors(value), key=lambda e: list(map(str, e.absolute_path)))
    if found:
        first = jsonschema.exceptions.best_match(found)
        place = ".".join(map(str, first.absolute_path))
        said = first.message if len(first.message) < 300 else first.message[:297] + "..."
        raise InputError(
            f"{what}: {place + ': ' if place else ''}{said}", file=file, line=line, hint="see: seatrial suite schema"
        )


def _read(path: Path) -> tuple[dict[str, Any], list[Raw]]:
    """The file's head and its tasks."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the suite cannot be read: {error}", file=str(path)) from error
    kind = path.suffix.lower()
    if kind == ".jsonl":
        return _lines(text, str(path))
    if kind in (".yaml", ".yml"):
        return _yaml(text, str(path))
    try:
        whole = tomllib.loads(text) if kind == ".toml" else json.loads(text, object_pairs_hook=_no_doubles)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"not valid {kind[1:].upper()}: {error}", file=str(path), line=getattr(error, "lineno", None)
        ) from error
    head, tasks = _split(whole, str(path))
    return head, [(None, t) for t in tasks]


def _split(whole: Any, file: str) -> tuple[dict[str, Any], list[Any]]:
    if isinstance(whole, list):
        return {}, _plain(whole)
    if not isinstance(whole, dict) or not isinstance(whole.get("tasks"), list):
        raise InputError("expected a list of tasks, or an object with tasks", file=file, hint="seatrial suite schema")
    unknown = set(whole) - {"suite", "tasks"}
    if unknown:
        raise InputError(f"unknown key {sorted(unknown)[0]!r}", file=file, hint="suite, tasks")
    whole = _plain(whole)
    head = whole.get("suite", {})
    return head if isinstance(head, dict) else {"name": head}, whole["tasks"]


def _plain(value: Any) -> Any:
    """Dates of TOML and YAML as ISO text: a task holds plain JSON."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _lines(text: str, file: str) -> tuple[dict[str, Any], list[Raw]]:
    head: dict[str, Any] = {}
    tasks: list[Raw] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_no_doubles)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not valid JSON: {error}", file=file, line=number) from error
        if isinstance(value, dict) and set(value) == {"suite"} and not tasks:
            head = value["suite"] if isinstance(value["suite"], dict) else {"name": value["suite"]}
        else:
            tasks.append((number, value))
    return head, tasks


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        twice = next(k for k, _ in pairs if sum(k == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return out


def _yaml(text: str, file: str) -> tuple[dict[str, Any], list[Raw]]:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("yaml", "a suite in YAML") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _plain_tree(node, file, {}, set())
        whole = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError(
            f"not valid YAML: {getattr(error, 'problem', None) or error}",
            file=file,
            line=None if mark is None else mark.line + 1,
        ) from error
    head, tasks = _split(whole, file)
    lines = list(_task_lines(node, isinstance(whole, list)))
    return head, list(zip(lines, tasks, strict=True))


MOST_NODES = 1_000_000
"""Values that a YAML file may hold once its aliases are written out."""


def _plain_tree(node: Any, file: str, sizes: dict[int, int], above: set[int]) -> int:
    """How many values a YAML node stands for.

    Raises:
        InputError: an alias leads back to what it stands in, aliases multiply, or a key stands twice in one mapping.
    """
    if node is None or isinstance(node.value, str):
        return 1
    line = node.start_mark.line + 1
    if id(node) in above:
        raise InputError("an alias leads back to what it stands in", file=file, line=line, hint="write it out")
    if id(node) in sizes:
        return sizes[id(node)]
    above.add(id(node))
    n, seen = 1, set()
    for item in node.value:
        key, value = item if isinstance(item, tuple) else (None, item)
        if key is not None:
            n += _plain_tree(key, file, sizes, above)
            named = (key.tag, key.value) if isinstance(key.value, str) and key.value != "<<" else None
            if named is not None and named in seen:
                at = key.start_mark.line + 1
                raise InputError(f"the key {key.value!r} stands twice in one mapping", file=file, line=at)
            seen.add(named)
        n += _plain_tree(value, file, sizes, above)
        if n > MOST_NODES:
            raise InputError(f"its aliases stand for more than {MOST_NODES:,} values", file=file, line=line)
    above.discard(id(node))
    sizes[id(node)] = n
    return n


def _task_lines(node: Any, is_list: bool) -> Iterator[int]:
    if not is_list:
        node = next(value for key, value in node.value if key.value == "tasks")
    for item in node.value:
        yield item.start_mark.line + 1
