"""A continuation in a child process: the whole process is copied, so that nothing need be saved or replayed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable

import msgspec

from seatrial.errors import InfrastructureError, UsageError
from seatrial.recovery.live import Ending


def forked(work: Callable[[], Ending]) -> Ending:
    """What `work` returns, done in a fork of this process; this process is left as it was.

    Raises:
        UsageError: this system cannot fork.
        InfrastructureError: the child died.
    """
    if not hasattr(os, "fork"):
        raise UsageError("this system cannot fork", hint="branch by snapshot or by replay")
    reading, writing = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads only read: they hold nothing of the run
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(msgspec.json.encode(work()))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0 or not data:
        raise InfrastructureError("a forked branch died", hint="branch by snapshot or by replay")
    return msgspec.json.decode(data, type=Ending)
