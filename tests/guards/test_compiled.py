"""Compiled code that is kept on disk knows the files that it was made from.

Numba keeps a function's machine code while the function's own file stays as it is, whatever happens to the files that
it takes functions and numbers from. So each such file names the digests of those files: when one changes, it must too.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2] / "src"
COMPILED = sorted(f for f in HOME.rglob("*.py") if "import njit" in f.read_text("utf-8"))
_FROM = re.compile(r"^from (seatrial[\w.]*) import \(?([^)\n]+)", re.MULTILINE)
_KNOWN = re.compile(r"^BUILT_WITH = \((.*)\)$", re.MULTILINE)


def taken(file: Path) -> list[str]:
    """``name digest`` of every file of ours that a file imports."""
    out = []
    for module, names in _FROM.findall(file.read_text("utf-8")):
        whole = HOME / (module.replace(".", "/") + ".py")
        found = [whole] if whole.is_file() else [whole.with_suffix("") / f"{n.strip()}.py" for n in names.split(",")]
        out += [f"{f.stem} {hashlib.sha256(f.read_bytes()).hexdigest()[:12]}" for f in found]
    return out


def test_there_is_compiled_code() -> None:
    assert len(COMPILED) >= 7


@pytest.mark.parametrize("file", COMPILED, ids=lambda f: f.stem)
def test_a_compiled_file_names_what_it_was_made_from(file: Path) -> None:
    held = _KNOWN.search(file.read_text("utf-8"))
    named = re.findall(r'"([^"]+)"', held.group(1)) if held else []
    assert named == taken(file), (
        f"in {file.name}: BUILT_WITH = ({''.join(f'{chr(34)}{t}{chr(34)}, ' for t in taken(file))})"
    )
