"""Sections of contrast, router and trial: numbers as they are, hostile names harmless, a plot with a title."""

from __future__ import annotations

import io

import pytest

from seatrial.recovery import simulate
from seatrial.recovery.contrast import contrast
from seatrial.recovery.evaluate import EvaluateOptions, evaluate, random_split
from seatrial.recovery.fit import FitOptions, fit
from seatrial.recovery.table import Row, from_rows
from seatrial.report import page, terminal
from seatrial.report.chapters import recovery, router
from seatrial.report.section import Section

EVIL = "<script>alert(1)</script>\u202e"


def text_of(sections: tuple[Section, ...]) -> str:
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    for s in sections:
        console.print(terminal.section_block(s))
    return console.export_text()


def rows(condition: str, operation: str, outcomes: str) -> list[Row]:
    cells = {"condition": condition, "operation": operation, "delay": 1}
    return [
        Row(None, cells | {"task": f"{EVIL}{i}", "y0": int(a), "y1": int(b)})
        for i, (a, b) in enumerate(o.split(">") for o in outcomes.split())
    ]


def test_contrast_chapter() -> None:
    found = contrast(from_rows(
        rows("clean", "refresh", "1>1 1>0 1>1 0>0") + rows(EVIL, "refresh", "0>1 0>1 1>1 0>0")
        + rows(EVIL, "ablated-refresh", "0>1 0>0 1>1 0>0") + rows("clean", "none", "1>1 1>0 1>1 0>0")
    ))  # fmt: skip
    sections = recovery.contrast(found)
    html = page.page(sections, title="t")
    assert "<script>" not in html
    assert "\u202e" not in html
    assert "Rescue and harm by delay" in html
    text = text_of(sections)
    for words in ("The four cells", "How much of it is noise", "Why does it help", "the content", "50.0%"):
        assert words in text, words


def test_router_chapter_says_what_is_certified() -> None:
    e = simulate.episodes("three models, coupled", 130, seed=1)
    sections = router.fit(fit(e, "refresh", FitOptions(limit=0.05)).record)
    text = text_of(sections)
    assert "with 95% confidence it harms at most 5.0% of clean tasks" in text
    html = page.page(sections, title="t")
    assert 'class="curve"' in html
    assert ">limit<" in html
    never = text_of(router.fit(fit(e, "refresh", FitOptions(limit=0.01)).record))
    assert "takes 299 clean tasks" in " ".join(never.split())
    tuned = text_of(router.fit(fit(e, "refresh", FitOptions(certified=False)).record))
    assert "nothing certifies it" in tuned


@pytest.mark.parametrize("mix", [None, {"rain": {"clean": 1.0}}])
def test_trial_chapter(mix: dict[str, dict[str, float]] | None) -> None:
    sides = random_split(simulate.episodes("three models, coupled", 60, seed=1), 0.4, 0)
    found = evaluate(*sides, "refresh", EvaluateOptions(fit=FitOptions(certified=False), mixes=mix))
    text = text_of(router.evaluation(found))
    for words in ("never", "always", "oracle", "cir", "When does the router act", "The direct router"):
        assert words in text, words
    assert ("Mix: rain" in text) == (mix is not None)


def test_wording_fits_the_numbers() -> None:
    one = text_of(recovery.contrast(contrast(from_rows(rows("clean", "refresh", "1>0")))))
    assert "1 pair of 1 task:" in one
    assert "Effect: refresh" in one
    assert "Lowest" not in one
    two = text_of(recovery.contrast(contrast(from_rows(
        rows("clean", "refresh", "1>0 1>1") + rows("stale", "refresh", "0>1 1>1")
    ))))  # fmt: skip
    assert "4 pairs of 2 tasks:" in two
    assert "Highest effect:" in two
    assert "Difference between the effect under a condition and on clean" in two


def test_what_never_acts_has_a_plain_zero() -> None:
    fitting, test = random_split(simulate.episodes("three models, coupled", 60, seed=1), 0.4, 0)
    sections = router.evaluation(evaluate(fitting, test, "refresh", EvaluateOptions(fit=FitOptions(limit=0.001))))
    found = next(s for s in sections if s.heading == "All conditions alike").tables[0].rows
    gains = {row[0]: row[2] for row in found}
    assert gains["never"] == gains["router certified"] == "0"
    assert gains["always"] != "0"
