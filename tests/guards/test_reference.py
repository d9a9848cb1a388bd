"""What the reference says is what the code says."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "reference" / "settings.schema.json").read_text())


def test_the_reference_is_as_the_code_makes_it() -> None:
    done = subprocess.run([sys.executable, "scripts/reference", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run scripts/reference\n{done.stderr}"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("store = 'runs'\nlevel = 0.9\n[prices.amber]\ninput = 1.0\noutput = 2.0\n[gate]\n[server]\n[suites]\n", True),
        ("stroe = 'runs'\n", False),
        ("consent = 'perhaps'\n", False),
        ("[gate]\nno_such_margin = 1\n", False),
        ("[signals]\n", False),
    ],
)
def test_the_published_schema_of_settings_tells_good_from_bad(text: str, fits: bool) -> None:
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text)) is fits
