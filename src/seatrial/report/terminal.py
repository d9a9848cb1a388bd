"""Sections to a terminal: at most 100 columns, plain words first, nothing said by colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from seatrial.records import Check, Design, ModelRow, Power, Ranking
from seatrial.report import chapters, numbers, svg, words
from seatrial.report.chapters import answer, kinds, trust
from seatrial.report.plot import NARROWEST, WIDEST, Forest
from seatrial.report.section import Panel, Section, Table
from seatrial.report.text import ascii_only, clean, clip, name, width

WIDTH = 100
_STATES = {True: ("✓ holds", "green"), False: ("✗ fails", "red"), None: ("– n/a", "dim")}


class Block:
    """Renderables held to 100 columns, in ASCII where the terminal has nothing else, with the keyboard's minus."""

    def __init__(self, *inner: RenderableType) -> None:
        self.inner = Group(*inner)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update(width=min(WIDTH, options.max_width))
        for line in console.render_lines(self.inner, options, pad=False):
            while line and not line[-1].text.strip(" "):
                line = line[:-1]
            for i, segment in enumerate(line):
                text = numbers.plain_minus(segment.text)
                text = text.rstrip(" ") if i == len(line) - 1 else text
                yield Segment(ascii_only(text) if options.ascii_only else text, segment.style, segment.control)
            yield Segment.line()


def ranking(r: Ranking, sections: Sequence[Section] = ()) -> list[RenderableType]:
    """The report on a ranking, one renderable per section, with other flows' sections at their places."""
    drawn: list[RenderableType] = []
    for section in chapters.ranking(r, sections):
        if section.only == "page":
            continue
        if section.key == "verdict":
            drawn.append(_verdict(r.design, section))
        elif section.key == "models":
            drawn.append(_models(r, section))
        else:
            drawn.append(section_block(section))
    return drawn


def read_line(files: Mapping[str, int], sessions: int, steps: int) -> RenderableType:
    """What was read, in one line: files read, kept and skipped; sessions; steps."""
    counts = ", ".join(f"{numbers.count(files.get(key, 0))} {key}" for key in ("kept", "skipped"))
    return Block(
        Text(
            f"Read {numbers.count(files.get('read', 0))} files ({counts}): "
            f"{numbers.count(sessions)} sessions, {numbers.count(steps)} steps."
        )
    )


def plan(power: Power) -> list[RenderableType]:
    """A plan before any data: sessions per model for differences of 1, 2 and 5 points."""
    section = Section(
        heading="Plan: how many sessions",
        paragraphs=tuple(filter(None, (clean(power.why) if power.why else "",))),
        tables=trust.plan_table(power.sessions_for),
    )
    return [section_block(section)]


def section_block(section: Section, depth: int = 1) -> RenderableType:
    """Any section as a renderable."""
    parts: list[RenderableType] = [*_heading(section.heading, depth)]
    parts.extend(_paragraph(text) for text in section.paragraphs)
    parts.extend(_check(check) for check in section.checks)
    parts.extend(_item(text) for text in section.items)
    parts.extend(_table(table, section.heading) for table in section.tables if table.only != "page")
    parts.extend(Padding(Text(f"† {clean(text)}", style="dim"), (0, 0, 0, 2)) for text in section.notes)
    parts.extend(section_block(part, depth + 1) for part in section.parts if part.only != "page")
    return Block(*parts)


class _Heading:
    """A heading that runs out into a rule, so that sections stand apart without colour."""

    def __init__(self, text: str, depth: int) -> None:
        self.text, self.depth = text, depth

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.depth > 1:
            yield Text(self.text, style="bold")
            return
        lines = Text(self.text, style="bold").wrap(console, options.max_width - 4)
        last = lines[-1]
        last.rstrip()
        last.append(" " + "─" * (options.max_width - last.cell_len - 1), style="dim")
        yield from lines


def _heading(text: str, depth: int = 1) -> Iterator[RenderableType]:
    yield Text("")
    yield _Heading(clean(text), depth)


def _paragraph(text: str) -> RenderableType:
    return Padding(Text(clean(text)), (0, 0, 0, 2))


def _item(text: str) -> RenderableType:
    return _hanging("!" if text.startswith("Warning: ") else "•", Text(clean(text)))


def _hanging(sign: str, text: Text, room: int = 1, style: str = "") -> RenderableType:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(width=room, no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_row(Text(sign, style=style), text)
    return Padding(grid, (0, 0, 0, 2))


def _check(check: Check) -> RenderableType:
    state, style = _STATES[check.ok]
    text = Text(clean(words.check_name(check.name)), style="bold")
    if check.value is not None:
        text.append(f" ({clean(numbers.anything(check.value))})", style="not bold")
    text.append(f": {clean(check.why)}", style="not bold")
    return _hanging(state, text, room=7, style=style)


def _verdict(design: Design, section: Section) -> RenderableType:
    ladder = Text("  ")
    for i, step in enumerate(words.LADDER):
        here = step == design.verdict
        ladder.append(" < " if i else "", style="dim")
        label = words.VERDICT_NAME[step]
        ladder.append(f"[{label.upper()}]" if here else label.lower(), style="bold" if here else "dim")
    return Block(
        *_heading(section.heading),
        *(_paragraph(text) for text in section.paragraphs),
        *(_hanging("!", Text(clean(text))) for text in section.items),
        Text(""),
        ladder,
        *(_check(check) for check in section.checks),
    )


def _models(r: Ranking, section: Section) -> RenderableType:
    rows = answer.ordered(r)
    marks = tuple(answer.mark(r, m) for m in rows)
    unit = words.outcome_unit(r)
    low, high = svg.domain(Panel(marks=marks, unit=unit, zero=0.0))
    at = words.ranking_level(r)
    table = _bare()
    cells = [(*_model_cells(r, m), *_model_counts(r, m)) for m in rows]
    heads = (
        "Rank",
        "Model",
        f"{'Points' if unit == 'points' else 'Net'} [{at} interval]\n[all models together]",
        "Sessions\nclusters/G*",
        "Mean\noutcome",
    )
    widths = [max(_columns(text) for text in (head, *(row[j].plain for row in cells))) for j, head in enumerate(heads)]
    widths[1] = min(widths[1], 26)
    plot = max(NARROWEST, min(WIDEST, WIDTH - 2 - sum(widths) - 2 * len(widths)))
    for j, head in enumerate(heads):
        table.add_column(
            Text(head, style="bold"), justify="right" if j > 1 else "left", overflow="fold", width=widths[j]
        )
        if j == 2:
            table.add_column(Text("Worse ┊ better\nthan the baseline", style="bold"), width=plot)
    for row, mark in zip(cells, marks, strict=True):
        table.add_row(*row[:3], Forest(mark, low, high, 0.0), *row[3:])
    axis = Forest(None, low, high, 0.0, 100.0 if unit == "points" else 1.0)
    table.add_row("", "", "", axis, "", "")
    others = answer.others_table(r)
    return Block(
        *_heading(section.heading),
        *(_paragraph(text) for text in section.paragraphs),
        Text(f"  outcome: {clean(kinds.outcome(r))} | weights: {trust.weights(r)}", style="dim"),
        Text(""),
        Padding(table, (0, 0, 0, 2)),
        *((_table(others, ""),) if others else ()),
        *(Padding(Text(f"† {clean(text)}", style="dim"), (0, 0, 0, 2)) for text in section.notes),
    )


def _model_cells(r: Ranking, m: ModelRow) -> tuple[Text, Text, Text]:
    unit, places = words.outcome_unit(r), answer.decimals(r)
    e = m.net_improvement
    place = f"{m.rank.value}\n[{m.rank.low}–{m.rank.high}]" if m.rank else "–\n[n/a]"
    if e is None:
        value = numbers.NA
    else:
        value = numbers.estimate(e, unit, places)
        band = numbers.interval(*m.simultaneous, unit, places) if m.simultaneous else "[n/a]"
        value += f"\n{band}"
    return Text(place), Text(clip(name(m.model), 42), style="bold"), Text(value)


def _model_counts(r: Ranking, m: ModelRow) -> tuple[Text, Text]:
    counts = f"{numbers.count(m.n_sessions)}\n{numbers.count(m.n_clusters)}/{numbers.effective(m.g_effective)}"
    return Text(counts), Text(numbers.number(m.mean.value if m.mean else None, words.mean_unit(r)))


def _bare(gap: int = 2) -> RichTable:
    return RichTable(box=None, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False)


def _table(table: Table, heading: str) -> RenderableType:
    if not table.rows:
        return Text("")
    drawn: list[RenderableType] = []
    if clean(table.caption).lower() != clean(heading).lower():
        drawn.append(Padding(Text(clean(table.caption), style="italic"), (0, 0, 0, 2)))
    for picked, widths in _chunks(table):
        made = _bare()
        for j, columns in zip(picked, widths, strict=True):
            made.add_column(
                Text(clip(clean(table.columns[j].head), 40), style="bold"),
                justify="right" if table.columns[j].right else "left",
                overflow="fold",
                width=columns,
            )
        before: str | None = ""
        for row in table.rows:
            shown = [_cell(row[j], table.columns[j].name) for j in picked]
            if table.grouped:
                shown = [
                    clip(t, w) if table.columns[j].name else t for t, j, w in zip(shown, picked, widths, strict=True)
                ]
            cells = [Text(text) for text in shown]
            if table.grouped and row[0] == before:
                cells[0] = Text("")
            before = row[0]
            made.add_row(*cells)
        drawn.append(Padding(made, (0, 0, 0, 2)))
    return Group(Text(""), *drawn)


def _cell(cell: str | None, is_name: bool) -> str:
    if cell is None:
        return numbers.NA
    return clip(name(cell), 40) if is_name else "\n".join(clean(line) for line in cell.split("\n"))


def _columns(text: str) -> int:
    return max(width(line) for line in text.split("\n"))


def _chunks(table: Table) -> Iterator[tuple[list[int], list[int]]]:
    """Columns that fit side by side, and their widths; a table too wide goes on below, its first column repeated."""
    needs, wants = [], []
    for j, column in enumerate(table.columns):
        head = clean(column.head)
        longest = max((_columns(_cell(row[j], column.name)) for row in table.rows), default=0)
        word = max((width(part) for part in head.split(" ")), default=0)
        needs.append(max(min(longest, 26 if column.right or j == 0 else 20), min(word, 26)))
        wants.append(min(max(longest, width(head), needs[j]), 70))
    picked = [0]
    for j in range(1, len(needs)):
        if _total(needs, [*picked, j]) > WIDTH - 2 and len(picked) > 1:
            yield picked, _shares(needs, wants, picked)
            picked = [0]
        picked.append(j)
    yield picked, _shares(needs, wants, picked)


def _total(widths: list[int], picked: list[int]) -> int:
    return sum(widths[j] for j in picked) + 2 * (len(picked) - 1)


def _shares(needs: list[int], wants: list[int], picked: list[int]) -> list[int]:
    """Each column what it needs; what is left over goes to the columns that want more, narrowest wish first."""
    given = {j: needs[j] for j in picked}
    left = WIDTH - 2 - _total(needs, picked)
    for j in sorted(picked, key=lambda j: wants[j] - needs[j]):
        more = min(left, wants[j] - needs[j])
        given[j] += more
        left -= more
    if left < 0 and len(picked) > 1:
        given[picked[-1]] = max(8, given[picked[-1]] + left)
    return [given[j] for j in picked]
