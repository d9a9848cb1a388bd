"""agentpile as an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agentpile
from running import atif_turns, main


def show(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for run in agentpile.load(str(file), reader="claude-code-jsonl"):
            yield from atif_turns(run.record)


def read(file: Path) -> int:
    return sum(len(run.record["steps"]) for run in agentpile.load(str(file), reader="claude-code-jsonl"))


if __name__ == "__main__":
    main(show, read)
