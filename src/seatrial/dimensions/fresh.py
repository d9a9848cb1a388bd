"""Re-execution in a process that has seen nothing yet: what the first process happens to remember cannot help it.

One child process is started and kept; for every run it forks a grandchild, which builds the world and carries out the
calls. The child itself never touches a world, so that each grandchild begins as clean as the first. Frames on the
pipes are a length (4 bytes, big-endian) and MessagePack.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import IO, Any

import msgspec

from seatrial.dimensions.reexecute import Reexecution, reexecute
from seatrial.errors import InfrastructureError, SeatrialError
from seatrial.records import Trace

SECONDS = 120
"""How long one run may take to be carried out again."""

HASH_SEED = "4242"
"""The order of sets in the child: fixed, so that equal inputs give equal reports, and seldom that of the recorder."""

ALONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The child forks: threads that libraries start for their own arithmetic would not live on in what it forks."""

_HEAD = struct.Struct(">I")


class Job(msgspec.Struct, frozen=True):
    """`build` is ``module:function``, which makes the world from `origin`; `path` is where modules are found."""

    build: str
    origin: dict[str, Any]
    trace: Trace
    patterns: tuple[str, ...]
    path: tuple[str, ...]
    seconds: int


class FreshProcess:
    """Carries out runs in fresh processes. The child starts with the first run and ends with this object."""

    def __init__(self, seconds: int = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self, trace: Trace, origin: dict[str, Any], patterns: tuple[str, ...] = ()) -> Reexecution:
        """The run, carried out again; `origin` holds ``build`` beside what that function needs.

        Raises:
            InfrastructureError: no process could be started, or it died.
        """
        build = origin.get("build")
        if not isinstance(build, str):
            return Reexecution(refusal="nothing says how another process makes this world")
        lean = msgspec.structs.replace(trace, extra={k: v for k, v in trace.extra.items() if k in _NEEDED})
        job = Job(build, origin, lean, patterns, tuple(sys.path), self._seconds)
        with self._lock:
            try:
                child = self._started()
                assert child.stdin is not None
                assert child.stdout is not None
                _send(child.stdin, msgspec.msgpack.encode(job))
                answer = _receive(child.stdout)
            except (OSError, EOFError) as error:
                self._drop()
                raise InfrastructureError(f"the process for re-execution died: {error}") from error
        return msgspec.msgpack.decode(answer, type=Reexecution)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._drop()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED, **ALONE}
            self._child = subprocess.Popen(
                [sys.executable, "-m", "seatrial.dimensions.fresh"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            weakref.finalize(self, _end, self._child)
        return self._child

    def _drop(self) -> None:
        if self._child is not None:
            _end(self._child)
            self._child = None


_NEEDED = ("start", "start_seed", "seed", "world", "final", "final_hash", "gates")


def _end(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_HEAD.pack(len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError("it closed its end")
    (size,) = _HEAD.unpack(head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError("it closed its end")
    return data


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """The child: one job after another until its input ends."""
    while True:
        try:
            packed = _receive(source)
        except EOFError:
            return
        job = msgspec.msgpack.decode(packed, type=Job)
        sys.path[:] = job.path
        with contextlib.suppress(Exception):  # the grandchild meets it again, and tells it
            # What only loads code is done once: a module may offer `warm(origin)` for it.
            getattr(importlib.import_module(job.build.partition(":")[0]), "warm", lambda origin: None)(job.origin)
        _send(sink, _forked(job) if hasattr(os, "fork") else _worked(job))
        if not hasattr(os, "fork"):
            return


def _forked(job: Job) -> bytes:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            signal.alarm(job.seconds)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(_worked(job))
        finally:
            # Nothing of the parent's may be flushed twice, whatever happened.
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) or not answer:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        why = f"took longer than {job.seconds} s" if late else "died"
        return msgspec.msgpack.encode(Reexecution(refusal=f"the process that re-executed the run {why}"))
    return answer


def _worked(job: Job) -> bytes:
    try:
        world = _builder(job.build)(job.origin)
    except Exception as error:
        why = error.message if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
        return msgspec.msgpack.encode(Reexecution(refusal=f"a fresh process cannot make the world: {why}"))
    return msgspec.msgpack.encode(reexecute(job.trace, world, job.patterns))


def _builder(name: str) -> Callable[[dict[str, Any]], Any]:
    module, _, function = name.partition(":")
    found: Callable[[dict[str, Any]], Any] = getattr(importlib.import_module(module), function)
    return found


def main() -> None:
    """Serve on the standard pipes; whatever a world prints goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
