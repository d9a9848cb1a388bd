"""Plugins come in by entry points; a broken one is listed and never raises."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from seatrial import plugins
from seatrial.errors import UsageError
from seatrial.records.protocols import Reader


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with one good reader and three bad ones."""
    (tmp_path / "their_readers.py").write_text(
        "class Good:\n"
        "    name = 'theirs'\n    version = '1'\n    verified = True\n"
        "    def sniff(self, path, head): return 0.0\n"
        "    def read(self, path, log): return iter(())\n"
        "GOOD = Good()\nODD = object()\n"
    )
    (tmp_path / "their_crash.py").write_text("raise SystemExit('at import')\n")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[seatrial.readers]\ntheirs = their_readers:GOOD\nodd = their_readers:ODD\n"
        "crash = their_crash:X\nabsent = no_such_module_anywhere:X\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins.plugins.cache_clear()
    yield tmp_path
    plugins.plugins.cache_clear()


def test_good_ones_are_loaded_and_bad_ones_listed(package: Path) -> None:
    assert "their_readers" not in sys.modules
    found = plugins.plugins("seatrial.readers")
    theirs = [p for p in found.found if p.distribution == "their-package"]
    assert [p.name for p in theirs] == ["theirs"]
    assert isinstance(theirs[0].value, Reader)
    why = {b.name: str(b) for b in found.broken}
    assert set(why) == {"absent", "crash", "odd"}
    assert "No module named 'no_such_module_anywhere'" in why["absent"]
    assert "SystemExit: at import" in why["crash"]
    assert "not a Reader: it lacks" in why["odd"]
    assert all("their-package" in text for text in why.values())


def test_the_second_of_one_name_is_left_out() -> None:
    points = [EntryPoint("x", "os:sep", "g"), EntryPoint("x", "os:linesep", "g")]
    found = plugins.load(points, None)
    assert len(found.found) == 1
    assert [b.name for b in found.broken] == ["x"]


def test_an_unknown_group_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        plugins.plugins("seatrial.raeders")
