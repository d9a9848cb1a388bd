"""The terminal report: within 100 columns, in order, complete, and inert."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from rich.console import Console

from seatrial.records import Power, Ranking
from seatrial.report import terminal
from seatrial.report.section import Column, Section, Table

Example = Callable[[str], Ranking]


def shown(parts: list[object], width: int = 100, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 100, 180])
def test_no_line_is_wider_than_the_terminal_or_100_columns(ranking: Ranking, width: int) -> None:
    for line in shown(terminal.ranking(ranking), width).splitlines():
        assert cell_len(line) <= min(width, 100), line
        assert line == line.rstrip()


def test_plain_ascii_terminals_get_plain_ascii(ranking: Ranking) -> None:
    text = shown(terminal.ranking(ranking), encoding="ascii")
    assert text.isascii()
    assert "DESIGN" in text.upper()


def test_not_a_terminal_gets_no_control_sequences(ranking: Ranking) -> None:
    text = shown(terminal.ranking(ranking))
    assert not any(ord(c) < 32 and c != "\n" for c in text)
    assert not any(0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in text)


def test_sections_come_in_reading_order(example: Example) -> None:
    text = shown(terminal.ranking(example("observational")))
    order = [
        "Design verdict: observational",
        "Associations, not a ranking",
        "weights: unfitted",
        "Worse ┊ better",
        "Sub-dimensions",
        "Signals",
        "By task type",
        "Null distribution (a check, not a result)",
        "Power: what these data can see",
        "Sensitivity: what could explain this away",
        "Robustness",
        "Left out, and warnings",
        "How to read this",
        "Basis",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_numbers_of_a_model_are_there(example: Example) -> None:
    text = shown(terminal.ranking(example("observational")))
    for words in ("+12.3 [+4.1, +20.5]", "[+1.7, +22.9]", "[1–2]", "412", "64/41.3", "71.0%", "sub-agent traces", "31"):
        assert words in text


@pytest.mark.parametrize("name", ["observational", "not_identified", "refusals", "one_user"])
def test_causal_is_never_said_without_a_design_for_it(example: Example, name: str) -> None:
    assert "causal" not in shown(terminal.ranking(example(name))).lower()


@pytest.mark.parametrize("name", ["randomised", "crossed"])
def test_causal_is_said_where_the_design_allows_it(example: Example, name: str) -> None:
    assert "causal" in shown(terminal.ranking(example(name))).lower()


def test_a_missing_number_is_na_with_its_reason(example: Example) -> None:
    text = shown(terminal.ranking(example("refusals")))
    assert "n/a" in text
    assert "small: Fewer than 5 effective clusters (2.8): no interval." in " ".join(text.split())
    assert "No judging word in any session: tiny (positivity)" in text
    assert "nan" not in text.lower().replace("finance", "")
    assert "None" not in text


def test_rich_markup_in_names_is_text(example: Example) -> None:
    assert "[bold]rich[/bold]" in shown(terminal.ranking(example("hostile")))


def test_other_sections_are_put_at_their_place(example: Example) -> None:
    table = Table(caption="Truth", columns=(Column(head="Agent", name=True), Column(head="Truth")), rows=(("a", "1"),))
    early = Section(heading="Planted truth", tables=(table,), place="answer")
    late = Section(heading="Recall of detectors", paragraphs=("How many.",), place="end")
    page_only = Section(heading="Not here", only="page")
    text = shown(terminal.ranking(example("crossed"), (late, early, page_only)))
    assert text.index("Every model ran") < text.index("Planted truth") < text.index("Sub-dimensions")
    assert text.index("Left out") < text.index("Recall of detectors") < text.index("How to read this")
    assert "Not here" not in text


def test_wide_tables_go_on_below_with_their_first_column(example: Example) -> None:
    columns = (Column(head="Model", name=True), *(Column(head=f"column {i}", right=True) for i in range(12)))
    rows = tuple((f"model-{k}", *(f"{i}.{k} [1, 2]" for i in range(12))) for k in range(3))
    text = shown(
        [terminal.section_block(Section(heading="Wide", tables=(Table(caption="c", columns=columns, rows=rows),)))]
    )
    assert text.count("model-1") >= 2
    for i in range(12):
        assert f"{i}.1 [1, 2]" in text


def test_plan_and_read_line() -> None:
    plan = shown(terminal.plan(Power(mde={}, sessions_for={"1": 9_812, "5": None}, level=0.95)))
    assert "9,812" in plan
    assert "5 points" in plan
    line = shown([terminal.read_line({"read": 12, "kept": 11, "skipped": 1}, 9, 1_234)])
    assert line == "Read 12 files (11 kept, 1 skipped): 9 sessions, 1,234 steps.\n"
