"""A shell that sees one folder and nothing else: bubblewrap, or a clear refusal."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import IO

import msgspec

from seatrial.errors import InfrastructureError

MOUNT = "/workspace"
"""Where the folder is, as the shell sees it."""

HINT = "install bubblewrap (Debian: apt install bubblewrap; Fedora: dnf install bubblewrap) and allow user namespaces"


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `text` is what it printed, both streams in order, cut in the middle when long."""

    text: str
    exit_code: int
    timed_out: bool
    truncated: bool


class ShellLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on one command: wall seconds, memory and file size in MB, processes, characters of output."""

    seconds: float = 30.0
    memory_mb: int = 2_048
    file_mb: int = 256
    processes: int = 256
    characters: int = 30_000


@lru_cache(maxsize=1)
def refusal() -> str | None:
    """Why no confined shell can be had on this machine; None where it can."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "a confined shell needs bubblewrap (bwrap), which is not installed"
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run(_command(bwrap, Path(folder), "true", ShellLimits()), capture_output=True, timeout=20)
    if probe.returncode != 0:
        said = probe.stderr.decode(errors="replace").strip().splitlines()
        return f"bubblewrap cannot confine a shell here: {said[-1] if said else f'exit {probe.returncode}'}"
    return None


def require() -> None:
    """Refuse to go on without confinement.

    Raises:
        InfrastructureError: there is no bubblewrap, or it may not make namespaces.
    """
    why = refusal()
    if why is not None:
        raise InfrastructureError(f"{why}; commands of an agent are never run unconfined", hint=HINT)


def run(folder: Path, command: str, limits: ShellLimits = ShellLimits()) -> Finished:
    """Run `command` in bash, in new namespaces without network, with `folder` as its only writable place.

    Raises:
        InfrastructureError: no confinement (see `require`).
    """
    require()
    words = _command(shutil.which("bwrap") or "bwrap", folder, command, limits)
    # A file, not a pipe: output cannot fill the memory, and a child that lingers cannot hold the reader.
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env={}
        )
        try:
            code = process.wait(limits.seconds)
            timed_out = False
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code, timed_out = 124, True
        text, truncated = _cut(out, limits.characters)
    if timed_out:
        text += f"\n[stopped after {limits.seconds:g} s]"
    return Finished(text=text, exit_code=code, timed_out=timed_out, truncated=truncated)


def _command(bwrap: str, folder: Path, command: str, limits: ShellLimits) -> list[str]:
    words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "desk"]
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives"):
        words += ["--ro-bind-try", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for prefix in sorted({sys.base_prefix, sys.prefix}):
        if not prefix.startswith("/usr"):
            # After the empty /tmp: an environment may lie there.
            words += ["--ro-bind", prefix, prefix]
    words += ["--bind", str(folder.resolve()), MOUNT, "--chdir", MOUNT, "--clearenv"]
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    for name, value in environment.items():
        words += ["--setenv", name, value]
    bounds = f"ulimit -v {limits.memory_mb * 1024} -f {limits.file_mb * 1024} -c 0"
    # The bound on processes counts the user's others, too, so it is the namespace's own where the user is root.
    bounds += f"; ulimit -u {limits.processes} 2>/dev/null"
    return [*words, "/bin/bash", "-c", f'{bounds}; exec /bin/bash -c "$1"', "bash", command]


def _cut(out: IO[bytes], characters: int) -> tuple[str, bool]:
    size = out.seek(0, os.SEEK_END)
    out.seek(0)
    if size <= characters:
        return out.read().decode(errors="replace"), False
    half = characters // 2
    head = out.read(half).decode(errors="replace")
    out.seek(size - half)
    tail = out.read().decode(errors="replace")
    return f"{head}\n[... {size - 2 * half} bytes left out ...]\n{tail}", True
