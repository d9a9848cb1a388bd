"""The two set-up commands run in a plain POSIX shell and pass their arguments on, not into the installation."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SHELLS = [name for name in ("sh", "dash", "bash") if shutil.which(name)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts beside an environment whose programs only say how they were called."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in ("python", "seatrial", "ruff", "mypy", "lint-imports"):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\necho "{name} $*"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def run(shell: str, checkout: Path, script: str, *arguments: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k not in {"SEATRIAL_VENV", "PYTHON"}}
    done = subprocess.run(
        [shell, f"scripts/{script}", *arguments], cwd=checkout, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_demo_installs_and_runs(shell: str, checkout: Path) -> None:
    lines = run(shell, checkout, "demo", "--sessions", "200")
    assert lines[0].startswith("python -m pip install")
    assert lines[0].endswith(".[fast]")
    assert lines[-1] == "seatrial demo --sessions 200"


@pytest.mark.parametrize("shell", SHELLS)
def test_test_passes_its_arguments_to_pytest(shell: str, checkout: Path) -> None:
    lines = run(shell, checkout, "test", "--full", "-x")
    assert lines[0].endswith(".[all,dev]")
    assert lines[-1].startswith("python -m pytest")
    assert lines[-1].endswith("--full -x")
    again = run(shell, checkout, "test")
    assert not any("pip install" in line for line in again), "installing again is skipped while nothing has changed"


def test_what_is_compiled_ahead_is_made_by_tests_that_are_there() -> None:
    """`scripts/test` does not hear what these say, so a name that leads nowhere would go unseen."""
    ahead = re.search(r"-k \"(\w+) or (\w+)\" \\\n +(\S+\.py) (\S+\.py)", (ROOT / "scripts" / "test").read_text())
    assert ahead is not None
    for word, file in zip(ahead.groups()[:2], ahead.groups()[2:], strict=True):
        assert word in (ROOT / file).read_text(), file


@pytest.mark.parametrize("shell", SHELLS)
def test_ci_installs_from_wherever_it_is_called_and_demands_a_browser(shell: str, checkout: Path) -> None:
    shutil.copytree(ROOT / ".ci", checkout / ".ci")
    program = checkout / ".venv" / "bin" / "chromium"
    program.write_text("")
    program.chmod(0o755)
    python = checkout / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "python $* $SEATRIAL_BROWSER"\n')
    env = {k: v for k, v in os.environ.items() if k not in {"SEATRIAL_VENV", "PYTHON", "SEATRIAL_BROWSER"}}
    env["PATH"] = f"{program.parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        [shell, f"{checkout.name}/.ci/run"], cwd=checkout.parent, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("python -m pip install")
    assert [line for line in lines[1:] if "pip install" in line] == []
    assert lines[-1].startswith("python -m pytest")
    assert lines[-1].endswith(" required")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_named_python_that_is_not_here_fails_the_wheel(shell: str, checkout: Path) -> None:
    """Before anything is built: a release must not go out untried on one of the Pythons that it promises."""
    done = subprocess.run(
        [shell, "scripts/wheel", "python-of-nowhere", "python3.11"],
        cwd=checkout, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == "python-of-nowhere: not here, or older than 3.11\n"
    assert done.stdout == ""


def test_a_release_waits_for_all_tests_and_tries_every_python() -> None:
    flows = ROOT / ".github" / "workflows"
    ci, release = (yaml.safe_load((flows / f"{name}.yml").read_text()) for name in ("ci", "release"))
    jobs = release["jobs"]
    assert "workflow_call" in ci[True]  # what YAML reads for `on`
    calls = {name for name, job in jobs.items() if job.get("uses") == "./.github/workflows/ci.yml"}
    assert calls | {"wheel"} == set(jobs["publish"]["needs"])
    assert calls
    pythons = ci["jobs"]["test"]["strategy"]["matrix"]["python"]
    steps = [step.get("run", "") for step in jobs["wheel"]["steps"]]
    assert f"scripts/wheel {' '.join(f'python{p}' for p in pythons)}" in steps
    assert any("out/wheel/seatrial-*.tar.gz" in step and "out/wheel/seatrial-*.whl" in step for step in steps)
