"""A cluster to join: whether it is there, whether its machines can do the work, and what to do where not."""

from __future__ import annotations

import os
import platform
import socket
import threading
from collections.abc import Callable
from typing import Any

from seatrial._version import __version__
from seatrial.errors import InfrastructureError, SeatrialError

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "DAFT_ANALYTICS_ENABLED": "0",
    "DO_NOT_TRACK": "true",
    "DAFT_PROGRESS_BAR": "0",
}

ANSWERS_S = 5.0
"""How long a port may take to answer."""

STARTS_S = 300.0
"""How long a cluster of our own may take to start: on a machine with much else to do, a minute or more."""

JOINS_S = 60.0
"""How long joining may take. Ray itself would wait for minutes for what is no cluster, and then end this process."""

LOOKS_S = 120.0
"""How long every machine may take to say what it has: its first worker process has to start."""

_START = "'ray start --head', then ray://HOST:6379; a cluster with a token wants RAY_AUTH_TOKEN"


def join(address: str | None, workers: int | None) -> int:
    """Join the cluster at `address` (None: start one of `workers` processors here) and make it Daft's runner; how
    many processors it has. Nothing is reported to the makers of either (both do so by default).

    Raises:
        InfrastructureError: nothing answers at that address, what answers is no cluster of this version of Ray and
            Python, or a machine of it lacks seatrial, this version of it, or Daft.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if not ray.is_initialized():
        if address is not None:
            _answers(address)
        _in_time(lambda: _init(address, workers), address)
    import daft

    try:
        daft.set_runner_ray(noop_if_initialized=True)
        processors = int(ray.cluster_resources().get("CPU", 0))
    except Exception as error:
        raise _unreachable(address, said(error)) from error
    if processors < 1:
        raise InfrastructureError(
            "the cluster has no processor to work with", hint="add machines: 'ray start --address HOST:6379'"
        )
    _can_work()
    return processors


def said(error: BaseException) -> str:
    """What an error of the cluster says, in one line: the innermost cause, for Ray wraps it."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    for mark in ("InvalidAuthToken", "AuthenticationError"):
        if mark in text:
            return "it refused the token (RAY_AUTH_TOKEN), or this side sent none (RAY_AUTH_MODE=token)"
    return f"{type(error).__name__}: {text[:297] + '...' if len(text) > 300 else text}"


def another_version(who: str, version: str) -> InfrastructureError:
    """A part of the cluster with another seatrial."""
    return InfrastructureError(
        f"{who} has seatrial {version}, this is {__version__}: their results may differ",
        hint="install the same version on the whole cluster",
    )


def _unreachable(address: str | None, why: str) -> InfrastructureError:
    where = f" at ray://{address}" if address else ""
    return InfrastructureError(f"cannot reach a Ray cluster{where}: {why}", hint=_START)


def _answers(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise _unreachable(address, "the address is not HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, getattr(error, "strerror", None) or str(error)) from error


def _init(address: str | None, workers: int | None) -> None:
    import ray
    from ray._private import worker

    # Ray tells of dead workers on standard output, where a command's answer belongs; we tell of them ourselves.
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None
    if address is None:
        # "local": a new one, also where another cluster runs on this machine.
        ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    else:
        ray.init(address, log_to_driver=False, logging_level="ERROR")


def _in_time(begin: Callable[[], None], address: str | None) -> None:
    """`begin` in a thread of its own: a port that answers but is no cluster's would hold this process for minutes.
    Where it starts a cluster the thread lives on: Ray's processes are killed with the thread that started them."""
    failed: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            begin()
        except BaseException as error:
            failed.append(error)
        over.set()
        if address is None and not failed:
            threading.Event().wait()

    threading.Thread(target=run, name="joining a cluster", daemon=True).start()
    in_time = over.wait(JOINS_S if address is not None else STARTS_S)
    if not in_time and address is None:
        raise InfrastructureError(f"a Ray cluster did not start on this machine in {STARTS_S:.0f} s", hint="try again")
    if not in_time:
        raise _unreachable(address, f"what listens there did not answer as a Ray cluster does in {JOINS_S:.0f} s")
    if failed:
        raise _mismatch(address, failed[0]) from failed[0]


def _mismatch(address: str | None, error: BaseException) -> InfrastructureError:
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        return InfrastructureError(
            f"the cluster at ray://{address} runs another Ray or Python: {text}",
            hint="install the cluster's own versions of both in this environment",
        )
    if "node" in text.lower() and "raylet" in text.lower():
        return InfrastructureError(
            f"this machine is no part of the cluster at ray://{address}: {said(error)}",
            hint=f"give the command on a machine of it, or join it first: 'ray start --address {address}'",
        )
    return _unreachable(address, said(error))


def _can_work() -> None:
    """Ask every machine with processors what it has."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=1)(_looker())
    nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) > 0]
    asked = [
        ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(n["NodeID"], soft=True)).remote() for n in nodes
    ]
    try:
        told = ray.get(asked, timeout=LOOKS_S)
    except Exception as error:
        raise InfrastructureError(
            f"the cluster's machines do not answer: {said(error)}", hint="'ray status' shows what the cluster has"
        ) from error
    for node, found in zip(nodes, told, strict=True):
        refused = _refused(f"the worker machine {node['NodeManagerAddress']}", found)
        if refused is not None:
            raise refused


def _looker() -> Callable[[], dict[str, Any]]:
    """A function that travels by value, since a machine may have no seatrial to import it from."""

    def look() -> dict[str, Any]:
        import importlib
        import platform

        found: dict[str, Any] = {"python": platform.python_version()}
        for name in ("seatrial", "daft"):
            try:
                found[name] = str(getattr(importlib.import_module(name), "__version__", ""))
            except Exception as error:
                found[f"no {name}"] = f"{type(error).__name__}: {error}"
        return found

    return look


def _refused(who: str, found: dict[str, Any]) -> SeatrialError | None:
    for name in ("seatrial", "daft"):
        if name not in found:
            return InfrastructureError(
                f"{who} cannot import {name}: {found[f'no {name}']}",
                hint=f"there: pip install 'seatrial[distributed]=={__version__}'",
            )
    if found["seatrial"] != __version__:
        return another_version(who, found["seatrial"])
    here, there = platform.python_version(), found["python"]
    if here.split(".")[:2] != there.split(".")[:2]:
        return InfrastructureError(
            f"{who} has Python {there}, this is {here}: work cannot travel between them",
            hint="use one Python version on the whole cluster",
        )
    return None
