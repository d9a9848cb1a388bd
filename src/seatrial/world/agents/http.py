"""An agent behind an address: the agent protocol's objects, one POST for each turn (docs/reference/agent-protocol)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import httpx

from seatrial.errors import AgentError, AgentTimeout, InfrastructureError
from seatrial.records import AgentTurn, ToolResult, ToolSpec, UserMessage
from seatrial.world.agents.protocol import Session


class HttpAgent:
    """Posts ``{"session": id, "messages": [objects]}``; the response is one ``call`` or ``answer`` object.

    `seconds` bounds each turn. A server that cannot be reached, or answers 502, 503 or 504, is infrastructure; any
    other error is the agent's.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        version: str = "1",
        seconds: float = 600.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.name = name or url
        self.version = version
        self._url = url
        self._seconds = seconds
        self._transport = transport

    @property
    def parts(self) -> dict[str, Any]:
        """What the fingerprint covers: the address and the version; what is behind it cannot be seen."""
        return {"harness": self._url, "version": self.version}

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> _Posts:
        """A new session, with an id of its own."""
        client = httpx.Client(
            timeout=httpx.Timeout(self._seconds, connect=min(10.0, self._seconds)), transport=self._transport
        )
        return _Posts(client, self._url, Session(tools, seed))


class _Posts:
    def __init__(self, client: httpx.Client, url: str, session: Session) -> None:
        self._client = client
        self._url = url
        self._session = session
        self._id = uuid.uuid4().hex

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The next turn.

        Raises:
            AgentError: an error status, or something else than a turn.
            AgentTimeout: no answer in time.
            InfrastructureError: the server cannot be reached.
        """
        body = {"session": self._id, "messages": self._session.outgoing(incoming)}
        try:
            response = self._client.post(self._url, json=body)
        except httpx.ReadTimeout as error:
            raise AgentTimeout(f"{self._url} did not answer in time") from error
        except httpx.HTTPError as error:
            hint = "is the agent's server running?"
            raise InfrastructureError(f"{self._url} cannot be reached: {error}", hint=hint) from error
        if response.status_code in (502, 503, 504):
            raise InfrastructureError(f"{self._url} answered {response.status_code}", hint="try again later")
        if response.status_code >= 400:
            raise AgentError(f"{self._url} answered {response.status_code}: {response.text[:200]}")
        return self._session.turn(response.content)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
