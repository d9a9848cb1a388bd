"""The pytest plugin: k trials judged together, fresh fixtures, workers, and nothing without the marker."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest
from seatrial import Task

made = []

@pytest.fixture(scope="module")
def wide():
    made.append(1)
    return made

@pytest.fixture
def box(tmp_path):
    return []

@pytest.mark.seatrial(trials=4)
def test_fresh(box, tmp_path, wide, seatrial_trial):
    box.append(1)
    assert (len(box), len(wide), list(tmp_path.iterdir()), seatrial_trial.of) == (1, 1, [], 4)
    (tmp_path / "mark").write_text("x")

@pytest.mark.seatrial(trials=5, at_least=4)
def test_mostly(seatrial_trial):
    assert seatrial_trial.number != 2

@pytest.mark.seatrial(trials=5)
def test_flaky(seatrial_trial):
    task = Task(id="t", input="", expected_tools=["a"])
    tool = "b" if seatrial_trial.number == 1 else "a"
    found = seatrial_trial.grade(task, [{"event": "executed", "tool": tool, "args": {}, "ok": True}])
    assert found["required_present"], "the tool is missing"

@pytest.mark.seatrial(trials=3)
def test_skipped():
    pytest.skip("not here")

@pytest.mark.seatrial(trials=2)
@pytest.mark.parametrize("n", [1, 2])
def test_each(n, seatrial_trial):
    assert seatrial_trial.seed > 0

def test_plain(seatrial_trial):
    assert seatrial_trial.of == 1
"""


def pytest_run(folder: Path, text: str, *args: str) -> tuple[int, str]:
    (folder / "test_them.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:seatrial",
        "-p",
        "seatrial.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run([*argv, *args, "test_them.py"], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_trials_are_judged_together(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, out = pytest_run(tmp_path, TESTS, "-q", *workers)
    assert status == 1, out
    assert "1 failed, 5 passed, 1 skipped" in out, out
    assert "test_mostly: 4 of 5 trials passed (4 needed)" in out
    assert "test_flaky: 4 of 5 trials passed (5 needed); pass^1 0.80, pass^2 0.60, pass^3 0.40, pass^5 0.00" in out
    assert "required_present 4/5" in out
    assert "the tool is missing" in out
    assert "test_skipped: 0 of 0 trials passed (3 needed); 3 not scored" in out


def test_a_fixture_that_breaks_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    text = (
        "import pytest\nn = []\n@pytest.fixture\ndef shaky():\n    n.append(1)\n"
        "    assert len(n) != 2, 'cannot be set up'\n"
        "@pytest.mark.seatrial(trials=3)\ndef test_it(shaky):\n    pass\n"
    )
    status, out = pytest_run(tmp_path, text, "-q")
    assert status == 1
    assert "cannot be set up" in out
    assert "2 of 2 trials passed (3 needed)" in out


@pytest.mark.parametrize(
    "mark", ["trials=0", "trials=3, at_least=4", "trial=3", "trials='many'", "trials=True", "1, 2"]
)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_marker_that_means_nothing_fails_its_test_alone(tmp_path: Path, mark: str, workers: tuple[str, ...]) -> None:
    text = (
        "import pytest\n@pytest.fixture(scope='module')\ndef wide():\n    yield\n    print('torn' + ' down')\n"
        f"def test_before(wide):\n    pass\n@pytest.mark.seatrial({mark})\ndef test_it(wide):\n    pass\n"
    )
    (tmp_path / "test_more.py").write_text("def test_after():\n    pass\n")
    status, out = pytest_run(tmp_path, text, "-s", "-rf", *workers, "test_more.py")
    assert status == 1, out
    assert "1 failed, 2 passed" in out
    assert "the marker seatrial" in out
    assert "INTERNALERROR" not in out
    if not workers:
        assert out.count("torn down") == 1


def test_without_the_marker_nothing_happens_and_nothing_is_loaded(tmp_path: Path) -> None:
    text = "import sys\ndef test_it():\n    assert not {'numpy', 'scipy', 'polars', 'msgspec'} & set(sys.modules)\n"
    (tmp_path / "conftest.py").write_text("")
    status, out = pytest_run(tmp_path, text, "-q", "-p", "no:hypothesispytest")
    assert status == 0, out
    assert "seatrial" not in out


def test_it_comes_by_the_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"seatrial": "seatrial.pytest_plugin"}
