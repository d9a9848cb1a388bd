"""A child process that speaks lines: started, read with a time limit, and ended with all its children."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence

from seatrial.errors import AgentError, AgentTimeout, InfrastructureError

LONGEST = 16_000_000
"""Bytes of one line; a longer one is a broken protocol."""


class Process:
    """One child in its own process group. Standard error is kept for what a failure says.

    Raises:
        InfrastructureError: the program cannot be started.
    """

    def __init__(
        self, words: Sequence[str], *, environment: Mapping[str, str] | None = None, folder: str | None = None
    ) -> None:
        self._name = words[0]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._child = subprocess.Popen(
                list(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            self._errors.close()
            hint = "check the program's name and path"
            raise InfrastructureError(f"{self._name} cannot be started: {error.strerror}", hint=hint) from error
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True, name="agent-output")
        self._reader.start()

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            AgentError: the program has ended.
        """
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(data)
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise AgentError(f"{self._name} ended early{self.said()}") from error

    def end_input(self) -> None:
        """Close its standard input."""
        assert self._child.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._child.stdin.close()

    def line(self, seconds: float) -> bytes | None:
        """The next line without its end; None at the end of output.

        Raises:
            AgentTimeout: none came in time.
        """
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AgentTimeout(f"{self._name} sent nothing within {seconds:g} s{self.said()}") from None

    def wait(self, seconds: float) -> int | None:
        """Its exit status; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(seconds)
        return self._child.returncode

    def said(self) -> str:
        """How it ended, if it has, and the end of what it wrote to standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(0.2)
        code = self._child.returncode
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 1_000))
        text = self._errors.read().decode(errors="replace").strip()
        return (f" (exit {code})" if code is not None else "") + (f": {text}" if text else "")

    def close(self, seconds: float = 1.0) -> None:
        """Let it end by itself for `seconds`, then end its whole group."""
        if self._errors.closed:
            return
        self.end_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(seconds)
        self.kill()
        self._child.wait()
        self._reader.join(1.0)
        if self._child.stdout is not None and not self._reader.is_alive():
            self._child.stdout.close()
        self._errors.close()

    def kill(self) -> None:
        """End its whole group at once; `close` afterwards. A write that blocks in another thread is released."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _read(self) -> None:
        assert self._child.stdout is not None
        while True:
            line = self._child.stdout.readline(LONGEST)
            if not line:
                self._lines.put(None)
                return
            self._lines.put(line.rstrip(b"\r\n"))
