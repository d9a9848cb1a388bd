"""Pages over many sessions in a real browser: what they ask the network for, what they cost the server, what they say.

Times are the business of `benchmarks/million_sessions.py`; here is what holds on a busy machine too.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.web

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SERVER_CPU_S = 0.3
"""Several times what the second look at any page costs the server."""

PEAK_MIB = 1_100
BYTES = 130_000
ELEMENTS = 2_600


@pytest.fixture(scope="module")
def many() -> Any:
    spec = importlib.util.spec_from_file_location("many_sessions", BENCHMARKS / "million_sessions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["many_sessions"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
def test_a_million_sessions_in_the_browser(browser: Any, tmp_path: Path) -> None:
    """The second look at a page asks the server once, and costs it a fraction of a second."""
    command = [sys.executable, str(BENCHMARKS / "million_sessions.py"), "--store", str(tmp_path / "store")]
    out = subprocess.run([*command, "--browser", "--json"], capture_output=True, text=True, check=True, timeout=1800)
    found = json.loads(out.stdout)
    assert found["quick"] is False
    logged = found["served"]["logged"]  # steps alone, without their page, name no icon
    assert [line for line in logged if not line.endswith("/favicon.ico")] == []
    assert len(found["served"]["seen"]) == len(found["loads"]) - 1
    for look in found["served"]["seen"]:
        assert look["requests"] == 1, look
        assert look["size"] < BYTES, look
        assert look["elements"] < ELEMENTS, look
        if look["page"] != "rare text":  # reads for as long as a page may
            assert look["server_cpu_s"] < SERVER_CPU_S, look
    assert found["served"]["peak_mib"] < PEAK_MIB


def test_a_second_page_is_one_request(site: Any, see: Callable[..., Any], many: Any) -> None:
    page = see("/sessions").page
    page.wait_for_load_state("networkidle")  # its files are kept by now
    page.goto("about:blank")  # the first page asks for nothing any more, not even for its own news
    net = many.Net(page)
    page.goto(f"{site.address}/suites")
    assert len(net.asked) == 1
    names = page.evaluate("[...document.querySelectorAll('link[href], script[src]')].map(e => e.href || e.src)")
    assert len(names) == 3
    for name in names:
        assert "immutable" in page.request.get(name).headers["cache-control"], name


def test_a_search_says_that_it_is_not_at_its_end_and_goes_on_to_it(
    site: Any, see: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.server.pages import sessions

    monkeypatch.setattr(sessions, "_SEARCH_S", 0.0)
    page = see("/sessions?text=broke+the+totals").page
    said = page.locator("[data-status]")
    assert said.inner_text().startswith("Not everything has been read yet")
    before = page.locator("[data-places] li").count()
    page.locator("[data-further]").click()
    page.locator("[data-status]:has-text('All have been read')").wait_for(timeout=60_000)
    assert page.locator("[data-further]").count() == 0
    after = page.locator("[data-places] li").count()
    assert before < after
    ids = page.locator("[data-places] li a").evaluate_all("all => all.map(a => a.href)")
    assert len(set(ids)) == after
    monkeypatch.setattr(sessions, "_SEARCH_S", 60.0)
    page.goto(f"{site.address}/sessions?text=broke+the+totals")
    assert said.inner_text().startswith("All ")
    assert page.locator("[data-places] li").count() == after
    without = see("/sessions?text=broke+the+totals", scripts=False).page
    assert without.locator("[data-places] li").count() == after
