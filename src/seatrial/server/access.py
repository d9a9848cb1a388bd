"""Who may do what: callers on this machine, or holders of a token, in one of four roles."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from seatrial.errors import InputError, UsageError

VARIABLE = "SEATRIAL_TOKEN"
SHORTEST = 16
"""A token has at least so many characters."""

Role = Literal["sender", "viewer", "labeller", "admin"]
ROLES: tuple[Role, ...] = ("sender", "viewer", "labeller", "admin")
"""Each but the first may do what those before it may: look, label and triage, start jobs and read the audit log.

A sender sends traces and sees nothing; beside it only an admin may send, so that nobody who is to look can feed what is
looked at.
"""

HERE = "this machine"


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """A caller: a name for the audit log, and a role."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the caller's role covers another."""
        return self.sends if role == "sender" else ROLES.index(self.role) >= ROLES.index(role)

    @property
    def sends(self) -> bool:
        """Whether the caller may send traces."""
        return self.role in ("sender", "admin")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A token and whom it belongs to."""

    token: str
    who: Who


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def holder_of(given: str, holders: Sequence[Holder]) -> Who | None:
    """Whose token this is; every token is compared, in constant time."""
    shown = given.encode("utf-8", "replace")
    found = None
    for holder in holders:
        if hmac.compare_digest(shown, holder.token.encode()):
            found = holder.who
    return found


def tokens_for(host: str, file: Path | None, environ: Mapping[str, str]) -> tuple[Holder, ...]:
    """The tokens that callers must show: of the file, else of ``SEATRIAL_TOKEN``; none for loopback without either.

    A file holds one token, which may do everything, or lines of ``role name token`` (``#`` begins a comment).

    Raises:
        InputError: the file cannot be read, or a line of it cannot be understood.
        UsageError: `host` can be reached from elsewhere and there is no token, or one is too short.
    """
    text = environ.get(VARIABLE)
    if file is not None:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the token cannot be read: {error}", file=str(file)) from error
    holders = () if text is None else _parse(text, file)
    if not holders and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, and no token is set",
            hint=f"put one into a file and give --token-file, or set {VARIABLE}; or listen on 127.0.0.1",
        )
    for holder in holders:
        _check(holder.token)
    return holders


def _parse(text: str, file: Path | None) -> tuple[Holder, ...]:
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if len(lines) == 1 and not lines[0][1].startswith(tuple(f"{role} " for role in ROLES)):
        return (Holder(token=lines[0][1], who=Who(name="admin", role="admin")),)
    if not lines:
        return (Holder(token="", who=Who(name="admin", role="admin")),)
    out: list[Holder] = []
    for number, line in lines:
        parts = line.split()
        role = next((r for r in ROLES if r == parts[0]), None)
        if len(parts) != 3 or role is None:
            raise InputError(
                "not a line 'role name token'",
                file=None if file is None else str(file),
                line=number,
                hint=f"roles: {', '.join(ROLES)}",
            )
        out.append(Holder(token=parts[2], who=Who(name=parts[1][:40], role=role)))
    if len({h.token for h in out}) < len(out):
        raise InputError("two lines hold the same token", file=None if file is None else str(file))
    return tuple(out)


def _check(token: str) -> None:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"a token has at least {SHORTEST} characters, all printable ASCII and no space",
            hint="make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
