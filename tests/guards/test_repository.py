"""Nothing that belongs to one machine or person is tracked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FORBIDDEN = {
    "an address of a package index": re.compile(
        rb"(extra-)?index-url *=|https?://[^ \"]*/(simple|packages/[0-9a-f]{2})/"
    ),
    "a path of one machine": re.compile(rb"(^|[^A-Za-z0-9_.<{])/(work|farm|root)/[a-z]"),
}


def tracked() -> list[Path]:
    try:
        out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name.decode() for name in out.split(b"\0") if name]


def test_no_machine_or_index_in_tracked_files() -> None:
    found = []
    for path in tracked():
        if path == Path(__file__) or not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {what}" for what, p in FORBIDDEN.items() if p.search(line)]
    assert not found
