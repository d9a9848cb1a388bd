"""atif-make as an adapter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import atif_make
from running import atif_turns, main


def show(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        code = "import sys; from atif_make.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "convert", str(file), "--json", "--quiet"]
        done = subprocess.run(command, check=True, capture_output=True)
        yield from atif_turns(json.loads(done.stdout))


def read(file: Path) -> int:
    trajectory, _ = atif_make.convert(file)
    return len(trajectory.steps)


if __name__ == "__main__":
    main(show, read)
