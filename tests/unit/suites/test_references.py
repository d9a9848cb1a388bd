"""A suite names its own functions, and cannot reach for any function there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InputError
from seatrial.suites import load

CODE = """
def final(answer, state):
    return True


def start():
    return {"n": 1}


def one(answer):
    return True


NUMBER = 3
"""


def suite(tmp_path: Path, head: dict[str, Any] | None = None, **fields: Any) -> Path:
    (tmp_path / "own.py").write_text(CODE)
    path = tmp_path / "suite.json"
    path.write_text(json.dumps({"suite": head or {}, "tasks": [{"id": "t", "input": "", **fields}]}))
    return path


@pytest.mark.parametrize("reference", ["os:system", "subprocess:check_output", "builtins:eval", "shutil:rmtree"])
@pytest.mark.parametrize("field", ["check_final", "setup"])
def test_functions_of_elsewhere_are_refused(tmp_path: Path, field: str, reference: str) -> None:
    with pytest.raises(InputError, match="neither in the suite's folder nor in a package") as caught:
        load(suite(tmp_path, **{field: reference}))
    assert "packages" in str(caught.value.hint)
    assert caught.value.file == str(tmp_path / "suite.json")


def test_the_heads_functions_are_held_to_the_same(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="world: 'os:system'"):
        load(suite(tmp_path, {"world": "os:system"}))


def test_what_lies_beside_the_suite_or_is_named_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = load(suite(tmp_path, check_final="own.py:final", setup="own.py:start")).tasks
    assert callable(task.check_final)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside_suite_56.py").write_text(CODE)
    (task,) = load(suite(tmp_path, check_final="beside_suite_56:final")).tasks
    assert callable(task.check_final)
    (task,) = load(suite(tmp_path, {"packages": ["operator"]}, check_final="operator:eq")).tasks
    assert callable(task.check_final)
    (task,) = load(suite(tmp_path, setup="seatrial.examples.coderepo.world:green")).tasks
    assert callable(task.setup)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"check_final": "own.py:one"}, "does not take final_answer and world_state"),
        ({"check_final": "own.py:NUMBER"}, "not a function"),
        ({"setup": "own.py:final"}, "does not take nothing, the seed, or the world"),
        ({"check_final": "../outside.py:final"}, "leads out of the suite's folder"),
        ({"check_final": "own.py:absent"}, "absent"),
        ({"check_final": "not_there_at_all:f"}, "cannot be imported"),
    ],
)
def test_what_does_not_fit_is_told_when_the_suite_is_read(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    (tmp_path.parent / "outside.py").write_text(CODE)
    with pytest.raises(InputError, match=says):
        load(suite(tmp_path, **fields))


def test_nothing_of_a_refused_module_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even on import."""
    away = tmp_path / "away"
    away.mkdir()
    mark = tmp_path / "ran"
    (away / "elsewhere_56.py").write_text(f"open({str(mark)!r}, 'w').close()\n\ndef final(a, s): return True\n")
    monkeypatch.syspath_prepend(str(away))
    here = tmp_path / "here"
    here.mkdir()
    with pytest.raises(InputError, match="elsewhere_56"):
        load(suite(here, check_final="elsewhere_56:final"))
    assert not mark.exists()
