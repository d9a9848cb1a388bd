"""The table ``[server]`` of ``seatrial.toml``."""

from __future__ import annotations

import msgspec

MIB = 1024 * 1024


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and delays of the receiver, and what pages may write to.

    `max_body` is the most bytes that a request may have, before and after decompression; `max_in_flight` the most
    that all requests may hold in memory together; `max_spool` the most that the spool may hold on disk (further
    requests are told to come back later). A conversation is committed `commit_after` seconds after its last span,
    and held open for more of them until it has been quiet for `settle_after` seconds or has `max_session` bytes.
    `grace` is how long a stopping server waits for requests under way (seconds). `suite` is the file of tasks that
    drafts made in the browser are added to.
    """

    max_body: int = 20 * MIB
    max_in_flight: int = 64 * MIB
    max_spool: int = 4096 * MIB
    max_session: int = 128 * MIB
    commit_after: float = 1.0
    settle_after: float = 3600.0
    grace: float = 10.0
    suite: str = "suite.jsonl"
