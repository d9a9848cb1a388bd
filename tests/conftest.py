"""Options and fixtures that every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every machine and in every run, so that a change is judged by what it changed. A search for
# new ones: SEATRIAL_HYPOTHESIS=search (and `scripts/fuzz`); what it finds becomes an `@example`.
settings.register_profile("same", derandomize=True, print_blob=True)
settings.register_profile("search", print_blob=True)
settings.load_profile(os.environ.get("SEATRIAL_HYPOTHESIS", "same"))

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the heavy checks (marked full)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"this test's name holds an address and differs between workers: {unstable[0]}")
    if config.getoption("--full"):
        return
    heavy = [item for item in items if item.get_closest_marker("full")]
    if heavy:
        config.hook.pytest_deselected(items=heavy)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def real_data() -> Path:
    """Where real inputs are: SEATRIAL_DATA, else the folder `shared/data` beside the checkout."""
    return Path(os.environ.get("SEATRIAL_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The real inputs; the test is skipped, with the reason shown, where they are absent."""
    folder = real_data()
    if not folder.is_dir():
        pytest.skip(f"real inputs not found at {folder.name!r}; set SEATRIAL_DATA")
    return folder


@pytest.fixture(scope="session")
def golden() -> Path:
    """Published and worked numbers."""
    return ROOT / "tests" / "golden"
