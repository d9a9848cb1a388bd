"""A store, and the fake reader in a module that worker processes can import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from seatrial.store import Store


@pytest.fixture(scope="session")
def fake() -> Iterator[ModuleType]:
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    yield importlib.import_module("fake_reader")
    sys.path.remove(folder)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)
