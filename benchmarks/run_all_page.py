"""Results of all benchmarks to one page: what, where and when, every row, and how to run it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def render(results: dict[str, Any], known: list[tuple[str, str, str, str | None]], folder: Path) -> str:
    """The page."""
    lines = [OPENING, *_machine(results), "", *_overview(results, known, folder), ""]
    for group in dict.fromkeys(g for _, _, g, _ in known):
        lines += [f"## {group}", ""]
        for name, what, _, page in (k for k in known if k[2] == group):
            lines += _one(name, what, page, results.get(name), folder)
    return "\n".join(lines).rstrip() + "\n"


def _machine(results: dict[str, Any]) -> list[str]:
    if not results:
        return ["Nothing has been run yet."]
    last = max((r["machine"] for r in results.values()), key=lambda m: m["date"])
    loads = [r["machine"]["load"] for r in results.values()]
    versions = ", ".join(f"{p} {v}" if v else f"{p} not installed" for p, v in last["versions"].items())
    return [
        f"Machine: {last['processor']}, {last['cores']} cores, {last['memory_gib']} GiB, {last['system']}, "
        f"Python {last['python']}; load at the start of a benchmark {min(loads):.0f} to {max(loads):.0f}. "
        f"Versions: {versions}."
    ]


def _overview(results: dict[str, Any], known: list[tuple[str, str, str, str | None]], folder: Path) -> list[str]:
    lines = ["| benchmark | measures | size | date | took |", "|---|---|---|---|---|"]
    for name, what, _, page in known:
        found = results.get(name)
        own = page is not None and (folder / page).exists()
        link = f"[{name}]({page})" if own else f"[{name}](#{name.replace('_', '-')})"
        if found is None:
            lines.append(f"| {link} | {what} | {'on its own page' if own else 'not run'} | | |")
            continue
        size = found["missing"] or ("quick" if found["quick"] else "full")
        took = f"{found['cpu_s']:.0f} CPU s" if "cpu_s" in found else ""
        lines.append(f"| {link} | {what} | {size} | {found['machine']['date']} | {took} |")
    return lines


def _one(name: str, what: str, page: str | None, found: dict[str, Any] | None, folder: Path) -> list[str]:
    lines = [f"### {name.replace('_', ' ')}", "", f"{what[0].upper()}{what[1:]} (`benchmarks/{name}.py`).", ""]
    if page is not None and (folder / page).exists():
        lines[2] += f" The full page: [{Path(page).stem.replace('-', ' ')}]({page})."
    if found is None and "full page" in lines[2]:
        return lines
    if found is None or found["missing"]:
        return [*lines, f"Not run: {found['missing'] if found else 'nobody has yet'}.", ""]
    if name == "validity":
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
