"""A real browser, offline, for tests that look at pages; the tests are skipped, visibly, where there is none.

With SEATRIAL_BROWSER=required they fail instead: `.ci/run` sets it, after installing a browser.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import threading
import time
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


def load(name: str, file: str) -> Any:
    """A module beside the tests."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(file))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Serving:
    """The application over a store, in a thread, on a free port of this machine."""

    def __init__(self, path: Path, holders: tuple[Any, ...] = ()) -> None:
        import uvicorn

        from seatrial.server import ServerSettings
        from seatrial.server.app import make
        from seatrial.server.receiver import Receiver
        from seatrial.server.run import _listen
        from seatrial.store import Store

        self.store = Store.open(path)
        settings = ServerSettings(commit_after=0.0, suite=str(path.parent / "suite.jsonl"))
        self.receiver = Receiver(self.store, settings)
        app = make(self.store, settings, holders, receiver=self.receiver)
        self._socket = _listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, access_log=False, http="h11", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        until = time.monotonic() + 30
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        self._socket.close()
        self.receiver.close()


@pytest.fixture(scope="session")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A filled and ranked store, served. Pages of it are looked at and forms of it sent by all tests."""
    path = tmp_path_factory.mktemp("site") / "store"
    load("web_stores", "stores.py").ranked(path)
    serving = Serving(path)
    yield serving
    serving.stop()


@pytest.fixture
def see(browser: Any, site: Serving) -> Iterator[Callable[..., Visit]]:
    """Opens an address of the site, at a width and in a colour scheme."""
    contexts = []

    def opened(path: str, *, width: int = 1440, scheme: str = "light", scripts: bool = True) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        seen = Visit(context.new_page())
        seen.page.goto(site.address + path)
        return seen

    yield opened
    for context in contexts:
        context.close()
