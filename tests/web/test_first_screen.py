"""The first screen answers why the second model ranks below the first, before anybody scrolls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.web


@pytest.mark.parametrize(("width", "height"), [(360, 640), (1440, 900)])
def test_the_answer_stands_on_the_first_screen(see: Callable[..., Any], width: int, height: int) -> None:
    page = see("/", width=width).page
    page.set_viewport_size({"width": width, "height": height})
    answer = page.locator(".answer")
    said = " ".join(answer.inner_text().split())
    assert said.startswith("model-b ranks below model-a because ")
    assert " against " in said
    box = answer.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    answer.locator("a").first.click()
    page.wait_for_url("**/why?**measure=**")
    assert page.locator("#evidence .quotes li").count()
