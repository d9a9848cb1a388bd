"""A real browser, offline, for tests that look at pages; the tests are skipped, visibly, where there is none.

With SEATRIAL_BROWSER=required they fail instead: `.ci/run` sets it, after installing a browser.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.records import Ranking

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium of the system."""
    without = pytest.fail if os.environ.get("SEATRIAL_BROWSER") == "required" else pytest.skip
    if importlib.util.find_spec("playwright") is None:
        without("playwright is not installed (dev extra)")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        without(f"no browser found: {', '.join(BROWSERS)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = play.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield made
        made.close()


class Visit:
    """An open page, with what it logged and what it asked the network for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.logged: list[str] = []
        self.requested: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", lambda message: self.logged.append(message.text))
        page.on("pageerror", lambda error: self.logged.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """Opens HTML text as a file, at a width and in a colour scheme."""
    contexts = []

    def opened(text: str, *, width: int = 1440, scheme: str = "light", scripts: bool = True) -> Visit:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        seen = Visit(context.new_page())
        seen.page.goto(file.as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def rankings() -> dict[str, Callable[[], Ranking]]:
    """The rankings that the report's unit tests use."""
    spec = importlib.util.spec_from_file_location("web_rankings", ROOT / "unit" / "report" / "rankings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Callable[[], Ranking]] = module.RANKINGS
    return found
