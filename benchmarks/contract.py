"""What every benchmark here offers: `--quick` for a small size, `--json` for one line with its rows.

A script calls `row` for what it measured and wraps its work in `told`. With `--json` what it prints for people goes to
standard error, and standard output gets one object: benchmark, quick, rows.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

_ROWS: list[dict[str, Any]] = []
_MORE: dict[str, Any] = {}


def row(what: str, value: float | None = None, unit: str = "", *, peer: bool = False, missing: str | None = None,
        times: float | None = None, note: str = "") -> None:  # fmt: skip
    """Keep one measured number. `peer`: another project's; `missing`: why there is none; `times`: how many times as
    much as ours (a peer's seconds over ours, or ours over theirs where more is better)."""
    _ROWS.append({"what": what, "value": value, "unit": unit, "peer": peer, "missing": missing, "times": times,
                  "note": note})  # fmt: skip


def also(name: str, value: Any) -> None:
    """Put something else of this script's into its object."""
    _MORE[name] = value


@contextlib.contextmanager
def told(name: str) -> Iterator[bool]:
    """Take `--quick` and `--json` off the command line; gives whether to be quick."""
    quick, as_json = "--quick" in sys.argv, "--json" in sys.argv
    sys.argv = [a for a in sys.argv if a not in ("--quick", "--json")]
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield quick
    if as_json:
        print(json.dumps({"benchmark": name, "quick": quick, "rows": _ROWS, **_MORE}))


def installed(module: str) -> bool:
    """Whether a peer can be imported. SEATRIAL_PEERS may name a folder with more of them, looked at last."""
    folder = os.environ.get("SEATRIAL_PEERS")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    return importlib.util.find_spec(module) is not None
