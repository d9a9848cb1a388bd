"""Who may send: callers on this machine, or holders of the token."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from seatrial.errors import InputError, UsageError

VARIABLE = "SEATRIAL_TOKEN"
SHORTEST = 16
"""A token has at least so many characters."""


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_for(host: str, file: Path | None, environ: Mapping[str, str]) -> str | None:
    """The token that callers must show: of the file, else of ``SEATRIAL_TOKEN``; None for loopback without either.

    Raises:
        InputError: the file cannot be read.
        UsageError: `host` can be reached from elsewhere and there is no token, or it is too short.
    """
    token = environ.get(VARIABLE)
    if file is not None:
        try:
            token = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the token cannot be read: {error}", file=str(file)) from error
    token = None if token is None else token.strip()
    if token is None and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, and no token is set",
            hint=f"put one into a file and give --token-file, or set {VARIABLE}; or listen on 127.0.0.1",
        )
    if token is not None and (len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token):
        raise UsageError(
            f"a token has at least {SHORTEST} characters, all printable ASCII and no space",
            hint="make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token
