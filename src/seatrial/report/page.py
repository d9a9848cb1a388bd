"""Sections to one self-contained HTML page: no network, no scripts, readable by anyone on any screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from seatrial.records import Check, Ranking
from seatrial.report import chapters, numbers, svg, words
from seatrial.report.html import Markup, Node, document, el, json_block
from seatrial.report.section import Chart, Column, Section, Table
from seatrial.report.style import CSS, ICON
from seatrial.report.text import clean, name

_STATES = {True: ("yes", "✓ holds"), False: ("no", "✗ does not hold"), None: ("na", "– not applicable")}


def ranking_page(
    r: Ranking,
    *,
    title: str = "Which model does better?",
    generated: str | None = None,
    version: str | None = None,
    sections: Sequence[Section] = (),
) -> str:
    """The report on a ranking as one HTML file.

    `generated` is the time to print (None: none, so that equal input gives equal bytes); `version` defaults to the
    one in the ranking's basis; `sections` are put at their `place`.
    """
    version = version or str(r.basis.get("seatrial", "")) or None
    plan = chapters.ranking(r, sections)
    return page(
        plan,
        title=title,
        eyebrow=f"{words.VERDICT_NAME[r.design.verdict]} comparison",
        facts=_facts(r),
        verdict=r,
        generated=generated,
        version=version,
        data=msgspec.json.format(msgspec.json.encode(r), indent=1).decode(),
    )


def page(
    sections: Sequence[Section],
    *,
    title: str,
    eyebrow: str = "",
    facts: Sequence[tuple[str, str]] = (),
    verdict: Ranking | None = None,
    generated: str | None = None,
    version: str | None = None,
    data: str | None = None,
) -> str:
    """Any sections as one HTML file; `data` is JSON text shown folded at the end."""
    shown = [s for s in sections if s.only != "terminal"]
    idents = _idents(shown)
    made = " ".join(
        filter(None, ["Made by seatrial", clean(version or ""), f"on {clean(generated)}" if generated else ""])
    )
    body = [
        el("a", {"class": "skip", "href": "#content"}, "Skip to the report"),
        el(
            "div",
            {"class": "page"},
            el(
                "header",
                {"class": "top"},
                el("p", {"class": "eyebrow"}, " · ".join(filter(None, ["seatrial", eyebrow]))),
                el("h1", None, clean(title)),
                el("ul", {"class": "facts"}, [el("li", None, f"{k} ", el("b", None, v)) for k, v in facts])
                if facts
                else None,
            ),
            el(
                "div",
                {"class": "cols"},
                el(
                    "nav",
                    {"class": "toc", "aria-label": "Contents"},
                    el(
                        "ul",
                        None,
                        [
                            el("li", None, el("a", {"href": f"#{i}"}, _short(s)))
                            for s, i in zip(shown, idents, strict=True)
                        ],
                    ),
                ),
                el(
                    "main",
                    {"id": "content", "tabindex": "-1"},
                    [_section(s, i, 2, verdict) for s, i in zip(shown, idents, strict=True)],
                    _json(data) if data is not None else None,
                ),
            ),
            el("footer", None, el("p", None, made + ". This page is one file; it loads nothing and runs no script.")),
        ),
    ]
    return document(title=f"{clean(title)} · seatrial", css=CSS, icon=ICON, body=body)


def fragment(sections: Sequence[Section], *, depth: int = 2, prefix: str = "", verdict: Ranking | None = None) -> str:
    """Sections as HTML to stand inside another page, whose style sheet holds `style.CSS`.

    `depth` is the level of the first heading; `prefix` keeps their ids apart from the page's own.
    """
    shown = [s for s in sections if s.only != "terminal"]
    idents = [f"{prefix}{ident}" for ident in _idents(shown)]
    return "".join(str(_section(s, i, depth, verdict)) for s, i in zip(shown, idents, strict=True))


def chart(drawn: Chart, ident: str, heading: int = 3) -> str:
    """One chart as HTML to stand inside another page."""
    return str(_figure(drawn, ident, heading, titled=False))


def _facts(r: Ranking) -> list[tuple[str, str]]:
    sessions = sum(m.n_sessions for m in r.models)
    return [
        ("models", numbers.count(len(r.models))),
        ("sessions", numbers.count(sessions)),
        ("outcome", clean(chapters.kinds.outcome(r))),
        ("effective clusters", numbers.effective(r.g_effective)),
        ("weights:", chapters.trust.weights(r)),
    ]


_SHORT = {
    "verdict": "Design verdict",
    "models": "The models",
    "null": "Null distribution",
    "power": "Power",
    "sensitivity": "Sensitivity",
    "dropped": "Left out, warnings",
}


def _short(section: Section) -> str:
    return _SHORT.get(section.key, clean(section.heading))


def _idents(sections: Sequence[Section]) -> list[str]:
    made: list[str] = []
    for section in sections:
        stem = section.key or re.sub(r"[^a-z0-9]+", "-", section.heading.lower()).strip("-")[:40] or "part"
        ident, n = stem, 2
        while ident in made or ident == "content":
            ident, n = f"{stem}-{n}", n + 1
        made.append(ident)
    return made


def _section(s: Section, ident: str, depth: int, verdict: Ranking | None) -> Markup:
    heading = el(f"h{min(depth, 4)}", {"id": f"{ident}-h"}, clean(s.heading))
    inner = list(_content(s, ident, depth, verdict))
    if s.folded:
        return el("details", {"class": "section", "id": ident}, el("summary", None, clean(s.heading)), inner)
    kind = "part" if depth == 2 else "sub"
    if s.key == "verdict" and verdict is not None:
        kind = f"part verdict v-{verdict.design.verdict}"
    elif s.key == "models":
        kind = "part answer"
    return el("section", {"class": kind, "id": ident, "aria-labelledby": f"{ident}-h"}, heading, inner)


def _content(s: Section, ident: str, depth: int, verdict: Ranking | None) -> Iterator[Markup]:
    special = s.key == "verdict" and verdict is not None
    if special and verdict is not None:
        yield _ladder(verdict)
    for text in s.paragraphs:
        yield el("p", None, clean(text))
    if special and s.items:
        yield el("ul", {"class": "caveats"}, [el("li", None, clean(text)) for text in s.items])
    if s.checks:
        yield el("ul", {"class": "checks"}, [_check(check) for check in s.checks])
    for i, chart in enumerate(s.charts):
        yield _figure(chart, f"{ident}-c{i}", min(depth + 1, 4), titled=len(s.charts) > 1)
    if s.items and not special:
        yield el("ul", None, [_item(text) for text in s.items])
    for i, table in enumerate(t for t in s.tables if t.only != "terminal"):
        drawn = _table(table, f"{ident}-t{i}")
        if s.charts and s.key != "models":
            yield el("details", None, el("summary", None, f"Table: {clean(table.caption)}"), drawn)
        else:
            yield drawn
    if s.notes:
        yield el("ul", {"class": "notes"}, [el("li", None, clean(text)) for text in s.notes])
    for i, part in enumerate(p for p in s.parts if p.only != "terminal"):
        yield _section(part, f"{ident}-s{i}", depth + 1, verdict)


def _item(text: str) -> Markup:
    return el("li", {"class": "warn" if text.startswith("Warning: ") else None}, clean(text))


def _ladder(r: Ranking) -> Markup:
    steps = []
    for step in words.LADDER:
        here = step == r.design.verdict
        steps.append(
            el(
                "li",
                {"aria-current": "true" if here else None},
                el("b", None, words.VERDICT_NAME[step]),
                words.VERDICT_BRIEF[step],
            )
        )
    return el("ol", {"class": "ladder", "aria-label": "Designs from weakest to strongest"}, steps)


def _check(check: Check) -> Markup:
    kind, state = _STATES[check.ok]
    value = None if check.value is None else el("code", None, f" {clean(numbers.anything(check.value))}")
    return el(
        "li",
        None,
        el("span", {"class": f"state {kind}"}, state),
        el(
            "div", None, el("strong", None, clean(words.check_name(check.name))), value, el("p", None, clean(check.why))
        ),
    )


def _figure(chart: Chart, ident: str, heading: int, *, titled: bool) -> Markup:
    legend = [el("li", None, svg.glyph(layer), clean(text)) for layer, text in chart.legend]
    return el(
        "figure",
        None,
        el("figcaption", None, clean(chart.title)) if titled else None,
        el("ul", {"class": "legend", "aria-label": "Legend"}, legend) if legend else None,
        svg.figure(chart, ident, heading),
    )


def _table(table: Table, ident: str) -> Markup:
    heads = [el("th", {"scope": "col", "class": "r" if c.right else None}, clean(c.head)) for c in table.columns]
    rows = []
    for i, row in enumerate(table.rows):
        cells = []
        for j, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
            heat = table.heat[i][j] if table.heat else None
            kinds = [
                "r" if column.right else "",
                "none" if cell in (None, numbers.NA) else "",
                "" if heat is None else f"h{round(10 * min(max(heat, 0.0), 1.0))}",
            ]
            inner = _cell(cell, column)
            attributes = {"class": " ".join(filter(None, kinds)) or None}
            cells.append(el("th", {**attributes, "scope": "row"}, inner) if j == 0 else el("td", attributes, inner))
        rows.append(el("tr", None, cells))
    caption = el("caption", {"id": f"{ident}-cap"}, clean(table.caption))
    return el(
        "div",
        {"class": "scroll", "role": "region", "tabindex": "0", "aria-labelledby": f"{ident}-cap"},
        el("table", None, caption, el("thead", None, el("tr", None, heads)), el("tbody", None, rows)),
    )


def _cell(cell: str | None, column: Column) -> Node:
    if cell is None:
        return numbers.NA
    if column.name:
        return el("bdi", None, name(cell))
    first, *others = cell.split("\n")
    return [clean(first), *(el("span", {"class": "line"}, clean(line)) for line in others)]


def _json(data: str) -> Markup:
    return el(
        "details",
        {"class": "json"},
        el("summary", None, "The same numbers as JSON"),
        el("pre", {"tabindex": "0", "role": "region", "aria-label": "JSON"}, json_block(data)),
    )
