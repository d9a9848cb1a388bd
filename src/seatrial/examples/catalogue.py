"""The worked domains: a ticket desk on SQLite, a small code repository in a folder, an assistant in memory."""

from __future__ import annotations

from seatrial.examples.domain import Domain


def domains() -> tuple[Domain, ...]:
    """The three domains; loaded when asked for."""
    from seatrial.examples.assistant import DOMAIN as assistant
    from seatrial.examples.coderepo import DOMAIN as coderepo
    from seatrial.examples.ticketdesk import DOMAIN as ticketdesk

    return (ticketdesk, coderepo, assistant)
