"""A cluster that cannot be joined, or cannot work, says which machine and what to do; without any cluster."""

from __future__ import annotations

import platform
import socket
import threading

import pytest

from seatrial._version import __version__
from seatrial.engine import cluster
from seatrial.errors import InfrastructureError

GOOD = {"python": platform.python_version(), "seatrial": __version__, "daft": "1"}


def test_a_closed_port_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster._answers(f"127.0.0.1:{port}")
    with pytest.raises(InfrastructureError, match=f"cannot reach a Ray cluster at ray://127.0.0.1:{port}") as refused:
        cluster._answers(f"127.0.0.1:{port}")
    assert "ray start --head" in str(refused.value.hint)


@pytest.mark.parametrize("address", ["somewhere", "somewhere:", ":6379", "somewhere:x", "127.0.0.1:99999"])
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(InfrastructureError, match="cannot reach a Ray cluster"):
        cluster._answers(address)


def test_what_listens_but_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "JOINS_S", 0.05)
    end = threading.Event()
    with pytest.raises(InfrastructureError, match="did not answer as a Ray cluster does"):
        cluster._in_time(lambda: end.wait(30), "a:1")
    end.set()


@pytest.mark.parametrize(("error", "said", "hint"), [
    (RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.1\n    Python: 3.12"),
     "another Ray or Python: Version mismatch: The cluster was started with: Ray: 2.1 Python: 3.12", "own versions"),
    (RuntimeError("This node has an IP address of 10.0.0.1, and Ray expects one of the Raylet addresses"),
     "no part of the cluster", "ray start --address"),
    (ConnectionError("InvalidAuthToken: Authentication token is missing"), "refused the token", "RAY_AUTH_TOKEN"),
    (ValueError("odd"), "ValueError: odd", "ray start --head"),
])  # fmt: skip
def test_ray_s_refusals_are_told_with_what_to_do(error: Exception, said: str, hint: str) -> None:
    def begin() -> None:
        raise error

    with pytest.raises(InfrastructureError) as refused:
        cluster._in_time(begin, "10.0.0.2:6379")
    assert said in refused.value.message
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize(("found", "said"), [
    ({"seatrial": None, "no seatrial": "ModuleNotFoundError: No module named 'seatrial'"}, "cannot import seatrial"),
    ({"daft": None, "no daft": "ImportError: x"}, "cannot import daft: ImportError: x"),
    ({"seatrial": "0.0.1"}, f"has seatrial 0.0.1, this is {__version__}"),
    ({"python": "2.7.18"}, "has Python 2.7.18"),
])  # fmt: skip
def test_a_machine_that_lacks_something_is_named(found: dict[str, str | None], said: str) -> None:
    told = {k: v for k, v in {**GOOD, **found}.items() if v is not None}
    refused = cluster._refused("the worker machine 10.0.0.3", told)
    assert refused is not None
    assert "10.0.0.3" in refused.message
    assert said in refused.message
    assert refused.hint
    assert cluster._refused("it", GOOD) is None
