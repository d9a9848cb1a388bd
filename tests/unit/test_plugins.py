"""Plugins come in by entry points; a broken one is listed and never raises."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial import Agent, Signal, Step, Trace, ingest, plugins, signals
from seatrial.cli.app import run
from seatrial.errors import UsageError
from seatrial.grading.catalogue import checks
from seatrial.records import Provenance
from seatrial.records.protocols import Reader
from seatrial.signals import extraction

PROVENANCE = Provenance(format="f", reader="r", reader_version="1", file="f")


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


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "extend.md"


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the how-to, to the letter: its blocks as modules, its entry points as its metadata."""
    text = PAGE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    points = re.search(r"^```toml\n(.*?)^```$", text, re.M | re.S)
    assert points is not None
    package = tmp_path / "site" / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)  # the page's own example writes its file here
    named = dict(re.findall(r'"my_package\.(\w+):(\w+)"', points[1]))
    assert len(named) == 4
    for module, name in named.items():
        whole = "".join(b for b in blocks[: 1 + next(i for i, b in enumerate(blocks) if _defines(b, name))])
        (package / f"{module}.py").write_text(whole)
    declared = re.sub(r'\[project\.entry-points\."([^"]+)"\]', r"[\1]", points[1]).replace('"', "")
    info = tmp_path / "site" / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(declared)
    monkeypatch.syspath_prepend(tmp_path / "site")
    caches = (plugins.plugins, checks)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()
    for module in [m for m in sys.modules if m.split(".")[0] == "my_package"]:
        del sys.modules[module]


def _defines(block: str, name: str) -> bool:
    return re.search(rf"^(class {name}\b|{name} = )", block, re.M) is not None


def test_the_documented_plugins_work(documented: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = documented / "clean.diary"
    day.write_text(
        '{"who": "me", "said": "fix it"}\n\n{"who": "agent-9", "said": "Done."}\n{"who": "me", "said": "Sigh, no."}\n'
    )
    assert run(["ingest", str(day), "--store", "store", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["result"]
    assert (told["files"]["kept"], told["sessions"], told["skipped"]) == (1, 1, [])
    (report,) = told["reports"]
    assert (report["format"], report["skipped_bytes"], report["kept_bytes"]) == ("diary", 0, day.stat().st_size)
    (trace,) = ingest.read(day)
    (sigh,) = [s for s in signals.extract(trace).signals if s.detector == "sighs"]
    assert (sigh.model, sigh.judges_step, sigh.quote) == ("agent-9", 1, "Sigh")
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert found["warnings"] == []
    assert {(p["kind"], p["name"], p["distribution"], p["in_use"]) for p in found["plugins"]} == {
        ("reader", "diary", "my-package", True),
        ("detector", "sighs", "my-package", True),
        ("check", "polite", "my-package", True),
        ("dimension", "X1", "my-package", True),
    }
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "From other packages" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_a_detector_may_say_itself_what_it_judges() -> None:
    steps = [Step(index=i, event_class=k, text="x", model=m) for i, (k, m) in enumerate(
        [("human", None), ("agent", "m1"), ("agent", "m2"), ("human", None)])]  # fmt: skip
    trace = Trace(id="t", agent=Agent(name="a"), steps=tuple(steps), provenance=PROVENANCE)
    plain = Signal(kind="complaint", session="t", step=3, detector="d", version="1", confidence=1.0)
    filled = extraction._judging(plain, trace, [1, 2])
    assert (filled.model, filled.judges_step) == ("m2", 2)
    for own in (replace(plain, judges_step=1), replace(plain, model="m1"), replace(plain, step=0)):
        assert extraction._judging(own, trace, [1, 2]) == own
    assert extraction._judging(replace(plain, step=1), trace, [1, 2]).model == "m1"


def test_a_plugin_of_a_name_that_is_taken_is_told_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taker.py").write_text("class Odd:\n    name, version = 'odd', '1'\n")
    info = tmp_path / "taker-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: taker\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[seatrial.checks]\nodd = taker:Odd\n")
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (plugins.plugins, checks):
        cached.cache_clear()
    try:
        assert run(["doctor", "--json"]) == 0
    finally:
        for cached in (plugins.plugins, checks):
            cached.cache_clear()
    (plugin,) = json.loads(capsys.readouterr().out)["result"]["plugins"]
    assert (plugin["name"], plugin["in_use"]) == ("odd", False)


def test_the_second_of_one_name_is_left_out() -> None:
    points = [EntryPoint("x", "os:sep", "g"), EntryPoint("x", "os:linesep", "g")]
    found = plugins.load(points, None)
    assert len(found.found) == 1
    assert [b.name for b in found.broken] == ["x"]


def test_an_unknown_group_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        plugins.plugins("seatrial.raeders")
