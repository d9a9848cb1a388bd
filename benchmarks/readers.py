"""Readers of agents' logs side by side, on the same files in one run: speed, memory, traps failed.

    python benchmarks/readers.py [--megabytes 20] [--rounds 2] [--write] [--environments DIR] [--quick] [--json]

Other readers are installed from the package index, each into an environment of its own that is thrown away (or kept
in DIR); one that cannot be installed is left out with the reason. Each reads the same real Claude Code sessions
(SEATRIAL_DATA) in a process of its own: megabytes (10^6 bytes) per second of processor time, imports not counted, best
of the rounds, and the peak resident memory of the process, imports counted. Then each is scored by the trap kit
(``seatrial doctor readers --adapter``); the adapters are in ``benchmarks/peers`` and use whatever a reader notes about
who wrote a turn in its favour. ``--write`` writes docs/reference/reader-benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from contract import row as tell
from contract import told
from seatrial._version import __version__
from seatrial.errors import SeatrialError
from seatrial.flows import readers
from seatrial.ingest.traps import Verdict

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
PAGE = ROOT / "docs" / "reference" / "reader-benchmarks.md"
TIME_LIMIT = 1800
SLOW = 60
"""Processor seconds of a round after which no other is run."""


class Peer(NamedTuple):
    """A reader: adapter script, package to install (None: runs in this environment), oldest Python it takes."""

    name: str
    script: str
    package: str | None = None
    python: tuple[int, int] = (3, 11)


PEER_READERS = (
    Peer("seatrial", "from_seatrial.py"),
    Peer("agentpile", "from_agentpile.py", "agentpile"),
    Peer("atif-make", "from_atif_make.py", "atif-make", (3, 12)),
    Peer("inspect_scout", "from_inspect_scout.py", "inspect_scout"),
    Peer("a plain script", "from_plain_script.py"),
)


class Row(NamedTuple):
    """What was measured of one reader, or why it was not."""

    name: str
    version: str = ""
    megabytes_per_second: float | None = None
    peak_mb: float | None = None
    unread: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    missing: str | None = None


class Unavailable(Exception):
    """A peer cannot be run here: why."""


def interpreter(peer: Peer, environments: Path) -> tuple[str, str]:
    """The Python that has the peer, and the peer's version."""
    if peer.package is None:
        return sys.executable, __version__ if peer.name == "seatrial" else ""
    base = _python(peer.python)
    folder = environments / peer.name
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        _run([base, "-m", "venv", str(folder)], "no environment could be made")
        _run([python, "-m", "pip", "install", "--quiet", peer.package], f"{peer.package} could not be installed")
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    return python, _run([python, "-c", code], f"{peer.package} is not there").strip()


def _python(oldest: tuple[int, int]) -> str:
    if sys.version_info[:2] >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + 6):
        found = shutil.which(f"python3.{minor}")
        if found is not None and subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0:
            return found
    raise Unavailable(f"it needs Python {oldest[0]}.{oldest[1]}, and there is only {platform.python_version()}")


def _run(command: list[str], failing: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{failing}: {error}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")] or ["no message"]
        raise Unavailable(f"{failing}: {said[-1][:200]}")
    return done.stdout


def measure(peer: Peer, environments: Path, listing: Path, size: int, rounds: int) -> Row:
    """One reader's row."""
    try:
        python, version = interpreter(peer, environments)
        script = str(PEERS / peer.script)
        best: dict[str, Any] = {}
        for _ in range(rounds):
            got = json.loads(_run([python, script, "--time", str(listing)], "reading broke off").splitlines()[-1])
            if not best or got["seconds"] < best["seconds"]:
                best = got
            if got["seconds"] > SLOW:
                break
        verdicts = readers.score(adapter=shlex.join([python, script]), format="claude-code")
    except (Unavailable, SeatrialError) as error:
        return Row(peer.name, missing=str(error))
    return Row(
        peer.name,
        version,
        size / 1e6 / best["seconds"],
        best["peak"] / 1e6,
        tuple(best["failed"]),
        tuple(verdicts),
    )


def sample(megabytes: int) -> tuple[list[Path], int]:
    """Real sessions, whole files from the whole range of sizes, up to about so many megabytes."""
    data = Path(os.environ.get("SEATRIAL_DATA", ROOT.parent / "shared" / "data")) / "sessions" / "claude-code"
    found = sorted(data.rglob("*.jsonl"))
    if not found:
        sys.exit("no real sessions found: set SEATRIAL_DATA")
    total = sum(path.stat().st_size for path in found)
    every = max(1, round(total / (megabytes * 1e6)))
    chosen = found[::every]
    return chosen, sum(path.stat().st_size for path in chosen)


def page(rows: list[Row], files: int, size: int) -> str:
    """The measured table as a page."""
    lines = [
        "# Reader benchmarks",
        "",
        "Made by `benchmarks/readers.py --write`: readers of Claude Code sessions on the same files in one run.",
        f"{files} real sessions, {size / 1e6:.0f} MB; Python {platform.python_version()} (a reader that needs a",
        "newer one has it). Speed is megabytes per second of processor time on one core, imports not counted, beside",
        "whatever else the machine did; memory is the peak of the process. Traps are those of the",
        "[trap kit](../how-to/score-a-reader.md) for this format; *not stated* means that the reader does not give",
        "what the trap asks for (such as causes of errors, or lost lines).",
        "",
        "The kit asks what seatrial needs to know: who spoke, what counts once, how calls ended. A reader that was",
        "made for another purpose may keep the harness's words as a user's turn by intent. The adapters",
        "(`benchmarks/peers`) show what each reader gives as its conversation, and use its own marks in its favour.",
        "The plain script parses each line and keeps nothing while it is timed.",
        "",
        "| reader | version | MB/s | peak MB | files not read | traps failed | not stated | passed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.missing is not None:
            lines.append(f"| {row.name} | not run: {row.missing} | | | | | | |")
            continue
        failed, unstated, passed = (_count(row, v) for v in ("failed", "not stated", "passed"))
        numbers = f"{row.megabytes_per_second:.1f} | {row.peak_mb:.0f} | {len(row.unread)}"
        lines.append(f"| {row.name} | {row.version} | {numbers} | {failed} | {unstated} | {passed} |")
    lines += ["", "## Trap by trap", "", *_traps([row for row in rows if row.missing is None])]
    return "\n".join(lines) + "\n"


def _count(row: Row, verdict: str) -> int:
    return sum(v.verdict == verdict for v in row.verdicts)


def _traps(rows: list[Row]) -> list[str]:
    lines = [
        "| trap | " + " | ".join(row.name for row in rows) + " |",
        "|---" * (len(rows) + 1) + "|",
    ]
    for i, verdict in enumerate(rows[0].verdicts):
        lines.append(f"| {verdict.trap} | " + " | ".join(row.verdicts[i].verdict for row in rows) + " |")
    return lines


def main(quick: bool) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=5 if quick else 20)
    parser.add_argument("--rounds", type=int, default=1 if quick else 2)
    parser.add_argument("--write", action="store_true", help="write docs/reference/reader-benchmarks.md")
    parser.add_argument("--environments", type=Path, help="keep the peers' environments here")
    options = parser.parse_args()
    files, size = sample(options.megabytes)
    with tempfile.TemporaryDirectory(prefix="seatrial-peers-") as temporary:
        listing = Path(temporary) / "files.txt"
        listing.write_text("\n".join(map(str, files)))
        environments = options.environments or Path(temporary)
        rows = []
        for peer in PEER_READERS:
            row = measure(peer, environments, listing, size, options.rounds)
            rows.append(row)
            failed, own = sum(v.verdict == "failed" for v in row.verdicts), rows[0].megabytes_per_second
            times = row.megabytes_per_second / own if own and row.megabytes_per_second else None
            note = f"{failed} of {len(row.verdicts)} traps failed, peak {row.peak_mb or 0:.0f} MB"
            tell(f"{row.name} {row.version}".strip(), row.megabytes_per_second, "MB/s per core",
                 peer=row.name != "seatrial", missing=row.missing, times=times, note=note)  # fmt: skip
            print(f"{row.name}: {row.missing or f'{row.megabytes_per_second:.1f} MB/s'}", file=sys.stderr)
            for verdict in row.verdicts:
                if verdict.verdict != "passed":
                    print(f"  {verdict.trap}: {verdict.verdict}: {verdict.why[:160]}", file=sys.stderr)
            for unread in row.unread:
                print(f"  not read: {unread}", file=sys.stderr)
    text = page(rows, len(files), size)
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    with told("readers") as small:
        main(small)
