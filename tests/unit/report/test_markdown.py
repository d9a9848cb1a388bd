"""The Markdown summary: the answer in a pull request, with names that cannot format, link or mention."""

from __future__ import annotations

import re
from collections.abc import Callable

from seatrial.records import Ranking
from seatrial.report import markdown

Example = Callable[[str], Ranking]


def test_every_table_row_has_as_many_cells_as_its_head(ranking: Ranking) -> None:
    expected = 0
    for line in markdown.ranking(ranking, full=True).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1 if line.startswith("|") else 0
        if cells and expected:
            assert cells == expected, line
        expected = cells


def test_verdict_answer_and_basis(example: Example) -> None:
    text = markdown.ranking(example("observational"))
    assert text.startswith("## Design verdict: observational\n")
    assert "weights: unfitted (unit)" in text
    assert "+12.3 \\[+4.1, +20.5\\]" in text
    assert "Associations, not a ranking" in text
    assert "| Data version | outcomes 3, signals 3 |" in text
    assert "Null distribution" not in text
    assert "Null distribution" in markdown.ranking(example("observational"), full=True)
    assert "causal" not in text.lower()


def test_hostile_text_is_inert(example: Example) -> None:
    text = markdown.ranking(example("hostile"), full=True).replace("<!-- -->", "")
    assert not re.search(r"(?<!\\)<", text)
    assert not re.search(r"(?<!\\)\[[^\]]*\]\(", text)
    assert not re.search(r"(?<!\\)`", text)
    raw = markdown.ranking(example("hostile"), full=True)
    assert "@everyone" not in raw
    assert "www.evil" not in raw
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", raw)
