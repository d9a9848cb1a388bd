"""Every error that seatrial raises on purpose.

::

    SeatrialError                 catch this to catch everything below
    |-- InputError                bad input: names file, line, what was expected, what to do   (exit 2)
    |   |-- FormatError           a file that no reader, or not the named reader, can read
    |   |-- SettingsError         seatrial.toml, environment or option
    |   `-- SchemaError           a table or record without the columns or types it needs
    |-- UsageError                a call or command line that cannot mean anything             (exit 2)
    |-- EvidenceError             nothing scored, or evidence that a decision needs is absent  (exit 3)
    |   `-- VersionMismatch       a comparison across detector, check or judge versions
    |-- AgentError                the agent under test crashed or broke its protocol           (exit 1)
    |   `-- AgentTimeout          it did not answer in time
    |-- InfrastructureError       disk, network, child process, lock                           (exit 4)
    |   |-- StoreError            the store is damaged, locked or of an unknown version
    |   |   `-- ErasedError       a data version whose rows were erased on request
    |   `-- MissingExtra          an optional dependency is absent; names the extra
    `-- CheckFailed               a check, gate or verification failed                         (exit 1)
"""

from __future__ import annotations


class SeatrialError(Exception):
    """Root of all errors raised on purpose.

    `hint` says what to do next; `file` and `line` (1-based) say where, None when there is no such place.
    `code` is the stable word used in ``--json`` errors; `exit_code` is the process exit status (DESIGN 5).
    """

    code = "error"
    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{where}{self.message}" + (f" ({self.hint})" if self.hint else "")


class InputError(SeatrialError):
    """Bad input that the caller can correct."""

    code = "bad_input"
    exit_code = 2


class FormatError(InputError):
    """A file that no reader, or not the reader that was named, can read."""

    code = "unknown_format"


class SettingsError(InputError):
    """A setting that is unknown, of the wrong type or out of range."""

    code = "bad_settings"


class SchemaError(InputError):
    """A table or record without the columns or types that it needs."""

    code = "bad_schema"


class UsageError(SeatrialError):
    """A call that cannot mean anything, such as pass^k with k greater than the number of attempts."""

    code = "usage"
    exit_code = 2


class EvidenceError(SeatrialError):
    """Nothing was scored, or evidence that the answer needs is missing."""

    code = "no_evidence"
    exit_code = 3


class VersionMismatch(EvidenceError):
    """Two results made by different detector, check or judge versions cannot be compared (METHODS 0.6)."""

    code = "version_mismatch"


class AgentError(SeatrialError):
    """The agent under test crashed or broke its protocol: the attempt counts, as `error_agent` (METHODS 0.1)."""

    code = "agent"
    exit_code = 1


class AgentTimeout(AgentError):
    """The agent under test did not answer in time: the attempt counts, as `timeout`."""

    code = "agent_timeout"


class InfrastructureError(SeatrialError):
    """Disk, network, child process or lock."""

    code = "infrastructure"
    exit_code = 4


class StoreError(InfrastructureError):
    """The store is damaged, locked or of an unknown version."""

    code = "store"


class ErasedError(StoreError):
    """A data version whose rows were erased, by `forget` or `purge`, and cannot be read any more."""

    code = "erased"


class MissingExtra(InfrastructureError):
    """An optional dependency is not installed."""

    code = "missing_extra"

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the extra [{extra}], which is not installed",
            hint=f"pip install 'seatrial[{extra}]'",
        )
        self.extra = extra


class CheckFailed(SeatrialError):
    """A check, gate or verification failed."""

    code = "check_failed"
    exit_code = 1
