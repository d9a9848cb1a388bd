"""Strategies as a fixture: tests are not a package, so they are not imported from one another."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def strategies() -> ModuleType:
    """The module ``tests/strategies.py``."""
    path = Path(__file__).resolve().parent.parent / "strategies.py"
    spec = importlib.util.spec_from_file_location("strategies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
