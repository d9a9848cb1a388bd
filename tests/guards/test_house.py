"""The house keeps its floors, its door and its size."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "seatrial"
MAX_LINES = 450


def test_floors_hold() -> None:
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_every_room_stands_on_a_floor() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(c for c in config["tool"]["importlinter"]["contracts"] if c["id"] == "floors")
    placed = {name.strip(" ()") for floor in contract["layers"] for name in floor.split("|")}
    rooms = {
        p.stem for p in SOURCE.iterdir() if p.name not in {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
    }
    assert rooms <= placed


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_file_is_small_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MAX_LINES, "split the room into a folder"
    assert re.match(r'(\s|#.*\n)*"""\s*[^\s"]', text), "the first sentence of a file says what it is for"


def test_no_keyword_bags_between_rooms() -> None:
    """Public functions name their parameters: no **kwargs."""
    found = []
    for path in python_files():
        text = path.read_text()
        if "**" not in text:
            continue
        tree = ast.parse(text)
        private = {
            id(node)
            for kind in ast.walk(tree)
            if isinstance(kind, ast.ClassDef) and kind.name.startswith("_")
            for node in ast.walk(kind)
        }
        for node in ast.walk(tree):
            public = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_"
            if public and node.args.kwarg and id(node) not in private:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}")
    assert not found


def loaded_by(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(out.stdout.split())


HEAVY = {"numpy", "scipy", "polars", "deltalake", "numba", "pandas", "pyarrow", "httpx"}


def test_the_door_loads_no_numerical_library() -> None:
    assert not loaded_by("import seatrial") & HEAVY


def test_help_loads_no_numerical_library() -> None:
    code = "from seatrial.cli.app import run\nassert run(['--help']) == 0"
    assert not loaded_by(code) & HEAVY
