"""Results of all benchmarks to one page: what, where and when, every row, and how to run it again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

OPENING = """# Benchmarks

Made by `benchmarks/run_all.py --write`. Every number comes from a script in `benchmarks/` that anybody can run again;
peers are measured in the same run, on the same data and the same machine. Seconds are processor seconds unless said
otherwise, which compare where a machine is shared with other work; *times ours* is a peer's time over ours (or its
speed over ours, where the unit is a speed). A quick size shows that a benchmark works and roughly what it says; the
table tells which ones ran in full. A peer that is not installed is named.

```text
python benchmarks/run_all.py --list                          # what there is
python benchmarks/run_all.py --write --peers out/peers       # everything, full sizes: some hours
python benchmarks/run_all.py --write --quick                 # quick sizes: some minutes
python benchmarks/run_all.py --write --only gate             # one of them; the others keep their numbers
```
"""
ROWS_SHOWN = 40
ALWAYS = ("numpy", "polars")
"""Packages that seatrial itself computes with; of the others a benchmark's versions are told where it names them."""


class Known(Protocol):
    """What the page says of a benchmark besides its numbers (`run_all.Benchmark`)."""

    @property
    def name(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def page(self) -> str | None: ...
    @property
    def remark(self) -> str: ...


def render(results: dict[str, Any], known: Sequence[Known], folder: Path) -> str:
    """The page."""
    lines = [OPENING, *_machine(results), "", *_overview(results, known, folder), ""]
    for group in dict.fromkeys(b.group for b in known):
        lines += [f"## {group}", ""]
        for benchmark in (b for b in known if b.group == group):
            lines += _one(benchmark, results.get(benchmark.name), folder)
    return "\n".join(lines).rstrip() + "\n"


def _machine(results: dict[str, Any]) -> list[str]:
    if not results:
        return ["Nothing has been run yet."]
    last = max((r["machine"] for r in results.values()), key=lambda m: m["date"])
    loads = [r["machine"]["load"] for r in results.values()]
    return [
        f"Machine: {last['processor']}, {last['cores']} cores, {last['memory_gib']} GiB, {last['system']}, "
        f"Python {last['python']}; load at the start of a benchmark {min(loads):.0f} to {max(loads):.0f}. "
        "Each benchmark names the versions that it ran with."
    ]


def _ran(name: str, found: dict[str, Any]) -> str:
    """When a benchmark ran, and with which versions of the packages that it concerns; those that it missed are told by
    its rows."""
    script = Path(__file__).with_name(f"{name}.py")
    source = script.read_text(encoding="utf-8") if script.exists() else ""
    missed = " ".join(r["missing"] or "" for r in found["rows"])
    shown = [
        f"{package} {version}"
        for package, version in sorted(found["machine"]["versions"].items())
        if version and (package in ALWAYS or _named(package, source)) and not _named(package, missed)
    ]
    size = " at its quick size" if found["quick"] else ""
    return f"Ran{size} on {found['machine']['date']} at load {found['machine']['load']:.0f}, with {', '.join(shown)}."


def _named(package: str, text: str) -> bool:
    other = {"scikit-learn": "sklearn"}.get(package, package)
    return any(re.search(rf"\b{re.escape(n)}\b", text) for n in (package, other, package.replace("-", "_")))


def _overview(results: dict[str, Any], known: Sequence[Known], folder: Path) -> list[str]:
    lines = ["| benchmark | measures | size | date | took |", "|---|---|---|---|---|"]
    for b in known:
        found = results.get(b.name)
        own = b.page is not None and (folder / b.page).exists()
        link = f"[{b.name}]({b.page})" if own else f"[{b.name}](#{b.name.replace('_', '-')})"
        if found is None:
            lines.append(f"| {link} | {b.what} | {'on its own page' if own else 'not run'} | | |")
            continue
        size = found["missing"] or ("quick" if found["quick"] else "full")
        took = f"{found['cpu_s']:.0f} CPU s" if "cpu_s" in found else ""
        lines.append(f"| {link} | {b.what} | {size} | {found['machine']['date']} | {took} |")
    return lines


def _one(b: Known, found: dict[str, Any] | None, folder: Path) -> list[str]:
    told = f"{b.what[0].upper()}{b.what[1:]} (`benchmarks/{b.name}.py`)."
    own = b.page is not None and (folder / b.page).exists()
    if own:
        told += f" The full page: [{Path(b.page or '').stem.replace('-', ' ')}]({b.page})."
    lines = [f"### {b.name.replace('_', ' ')}", "", told, ""]
    if found is None and own:
        return lines
    if found is None or found["missing"]:
        return [*lines, f"Not run: {found['missing'] if found else 'nobody has yet'}.", ""]
    lines += [" ".join(x for x in (_ran(b.name, found), b.remark) if x), ""]
    if b.name == "validity":
        return [*lines, *_validity(found["rows"]), ""]
    if found["text"]:
        printed = [x[:118] for x in found["text"].splitlines()[-60:]]
        table = any(x.startswith("|") for x in printed)
        return [*lines, *(printed if table else ["```text", *printed, "```"]), ""]
    return [*lines, *_rows(found["rows"]), ""]


def _rows(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["It said nothing."]
    compared = any(r["times"] is not None for r in rows)
    extra = " times ours |" if compared else ""
    lines = [f"| | value | unit |{extra} |", "|---|---|---|" + "---|" * (1 + compared)]
    for r in rows[:ROWS_SHOWN]:
        what = f"{r['what']} (peer)" if r["peer"] else r["what"]
        if r["missing"]:
            lines.append(f"| {what} | {r['missing']} | |" + (" |" if compared else "") + " |")
            continue
        if r["unit"] == "kept":
            value = "kept" if r["value"] else "missed"
            lines.append(f"| {what} | {value} | |{' |' if compared else ''} {r['note']} |")
            continue
        times = (f" {_number(r['times'])} |" if r["times"] is not None and r["peer"] else " |") if compared else ""
        lines.append(f"| {what} | {_number(r['value'])} | {r['unit']} |{times} {r['note']} |")
    if len(rows) > ROWS_SHOWN:
        lines += ["", f"And {len(rows) - ROWS_SHOWN} more rows in `results.json`."]
    return lines


def _validity(rows: list[dict[str, Any]]) -> list[str]:
    ours, peers = ([r for r in rows if r["peer"] == p and not r["missing"]] for p in (False, True))
    lines = ["| | pairs of a design and a method | coverage low | type I error high |", "|---|---|---|---|"]
    for who, some in (("seatrial, foils included", ours), ("peers", peers)):
        low, high = sum(r["short"] for r in some), sum(r["eager"] for r in some)
        lines.append(f"| {who} | {len(some)} | {low} | {high} |")
    missing = sorted({r["missing"] for r in rows if r["missing"]})
    return lines + (["", *[f"{m}." for m in missing]] if missing else [])


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.0f}" if size >= 100 else f"{value:.3g}"
