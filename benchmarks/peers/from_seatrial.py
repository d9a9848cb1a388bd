"""seatrial as an adapter, so that it is timed and judged by the same door as the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from running import main

from seatrial import ingest
from seatrial.flows import readers


def show(files: list[Path]) -> Iterator[dict[str, Any]]:
    given = [Path(a) for a in sys.argv[1:]]
    shown = readers.show(given)
    for line in (*shown.turns, *shown.reports):
        yield msgspec.to_builtins(line)


def read(file: Path) -> int:
    return sum(len(trace.steps) for trace in ingest.read_file(file))


if __name__ == "__main__":
    main(show, read)
