"""A real cluster of processes on this machine, for tests: started and ended by its own process ids."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

BLOCK = """import os, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == os.environ.get("CLUSTER_LACKS"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
if os.environ.get("CLUSTER_LACKS"):
    sys.meta_path.insert(0, Absent())
"""
"""A ``sitecustomize.py`` that makes a machine lack a package."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def node(environment: Mapping[str, str], *words: str) -> Iterator[None]:
    """A machine of a cluster: ``ray start`` with these words, until the end."""
    ray = Path(sys.executable).with_name("ray")
    command = [str(ray), "start", "--block", "--disable-usage-stats", *words]
    with subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as running:
        try:
            yield
        finally:
            running.terminate()
            running.wait(60)


@contextmanager
def cluster(environment: Mapping[str, str], cpus: int = 2) -> Iterator[str]:
    """A cluster with one machine; its URL. The environment must name a token."""
    port = free_port()
    with node(environment, "--head", f"--num-cpus={cpus}", f"--port={port}", "--include-dashboard=false"):
        until = time.monotonic() + 300
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until, "the cluster did not start"
                time.sleep(0.2)
        yield f"ray://127.0.0.1:{port}"


class Killer:
    """Kills one worker that has begun a piece of work and not ended it: of the marks ``busy-PID-NAME`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed: int | None = None
        self.over: str | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._end.wait(0.02):
            for busy in sorted(self.folder.glob("busy-*")):
                _, pid, name = busy.name.split("-", 2)
                if not (self.folder / f"done-{name}").exists():
                    os.kill(int(pid), signal.SIGKILL)
                    self.killed, self.over = int(pid), name
                    return

    def __enter__(self) -> Killer:
        for old in self.folder.iterdir():
            old.unlink()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def begun(self) -> list[str]:
        """The pieces that were begun, each as often as it was."""
        return [busy.name.split("-", 2)[2] for busy in self.folder.glob("busy-*")]

    def check(self) -> None:
        """It killed one, whose piece was begun again by another and done; every other piece was done, too."""
        assert self.killed is not None
        begun = self.begun()
        assert begun.count(str(self.over)) >= 2, "the piece that was in hand was begun again"
        assert sorted(set(begun)) == sorted(d.name.split("-", 1)[1] for d in self.folder.glob("done-*"))
