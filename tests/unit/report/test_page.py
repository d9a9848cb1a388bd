"""The page without a browser: well formed, self-contained, complete, inert, the same bytes every time."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
import pytest

from seatrial.records import Ranking
from seatrial.report.page import page, ranking_page
from seatrial.report.section import Column, Section, Table

Example = Callable[[str], Ranking]
VOID = {"meta", "link", "br", "wbr", "hr"}


class Reader(HTMLParser):
    """Collects tags, ids, headings, links and text; fails on a tag that is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_well_formed_with_unique_ids_and_working_links(ranking: Ranking) -> None:
    read = Reader(ranking_page(ranking))
    ids = [a["id"] for _, a in read.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    for tag, attributes in read.tags:
        href = attributes.get("href")
        if tag == "a":
            assert href is not None
            assert href[1:] in ids
        for key in ("aria-labelledby", "aria-describedby"):
            if attributes.get(key):
                assert attributes[key] in ids


def test_nothing_is_loaded_and_nothing_runs(ranking: Ranking) -> None:
    text = ranking_page(ranking)
    read = Reader(text)
    tags = {tag for tag, _ in read.tags}
    assert tags.isdisjoint({"script", "iframe", "img", "object", "embed", "form", "base", "video", "audio"})
    assert not any(key.startswith("on") or key in ("src", "style") for _, a in read.tags for key in a)
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert not re.search(r"url\(|@import|expression", style.group(1))


def test_headings_go_down_one_step_at_a_time(ranking: Ranking) -> None:
    levels = [int(tag[1]) for tag, _ in Reader(ranking_page(ranking)).tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_chart_is_an_image_with_words_and_a_table(example: Example) -> None:
    read = Reader(ranking_page(example("observational")))
    images = [a for tag, a in read.tags if tag == "svg" and a.get("class") == "chart"]
    assert len(images) >= 12
    assert all(a.get("role") == "img" and a.get("aria-labelledby") and a.get("aria-describedby") for a in images)
    assert sum(tag == "table" for tag, _ in read.tags) >= sum(tag == "figure" for tag, _ in read.tags)


def test_the_answer_its_basis_and_what_was_dropped_are_there(example: Example) -> None:
    text = Reader(ranking_page(example("observational"), title="My agents", generated="2026-01-02", version="9.9")).text
    for words in (
        "My agents",
        "Design verdict: observational",
        "Associations, not a ranking",
        "+12.3",
        "[+4.1, +20.5]",
        "[+1.7, +22.9]",
        "1 [1–2]",
        "unfitted (unit)",
        "no assignment record",
        "Null distribution (a check, not a result)",
        "How to read this",
        "sub-agent traces",
        "outcomes 3, signals 3",
        "Made by seatrial 9.9 on 2026-01-02",
        "Fewer than 5 effective clusters (2.6).",
    ):
        assert words in text, words


def test_the_json_in_the_page_is_the_ranking(ranking: Ranking) -> None:
    text = ranking_page(ranking)
    block = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", text, re.DOTALL)
    assert block is not None
    assert json.loads(html.unescape(block.group(1))) == json.loads(msgspec.json.encode(ranking))


@pytest.mark.parametrize("name", ["observational", "not_identified", "refusals", "one_user"])
def test_causal_is_never_said_without_a_design_for_it(example: Example, name: str) -> None:
    assert "causal" not in ranking_page(example(name)).lower()


def test_hostile_text_stays_text(example: Example, nasty: tuple[str, ...]) -> None:
    text = ranking_page(example("hostile"), title=nasty[0], generated=nasty[1], version=nasty[2])
    assert "<script" not in text
    assert "<img" not in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert nasty[0] in Reader(text).text
    text.encode("utf-8")


def test_equal_input_gives_equal_bytes(example: Example) -> None:
    assert ranking_page(example("crossed")) == ranking_page(example("crossed"))


def test_sections_of_other_flows(example: Example) -> None:
    table = Table(
        caption="Truth beside estimate",
        columns=(Column(head="Agent", name=True), Column(head="Truth", right=True)),
        rows=(("<b>a</b>", "+3.0\n[1, 2]"), ("b", None)),
    )
    early = Section(heading="Planted truth", tables=(table,), place="answer")
    late = Section(heading="Recall", items=("one",), notes=("two",), parts=(Section(heading="Part"),), folded=True)
    text = ranking_page(example("crossed"), sections=(late, early, Section(heading="No", only="terminal")))
    assert text.index("Planted truth") < text.index("Sub-dimensions") < text.index(">Recall<")
    assert "&lt;b&gt;a&lt;/b&gt;" in text
    assert ">No<" not in text
    Reader(text)


def test_equal_headings_get_different_ids() -> None:
    twin = Section(heading="Same")
    Reader(page((twin, twin, Section(heading="content"), Section(heading="漢字")), title="t"))
    ids = re.findall(r'<section[^>]* id="([^"]*)"', page((twin, twin, Section(heading="content")), title="t"))
    assert len(set(ids)) == 3
    assert "content" not in ids
