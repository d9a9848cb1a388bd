"""A store as the workers of an engine reach it."""

from __future__ import annotations

import socket
from pathlib import Path

from seatrial.errors import InfrastructureError, InputError, MissingExtra, StoreError
from seatrial.store import Store
from seatrial.store.layout import followed


def address_of(store: Store) -> str:
    """What a worker, here or on another machine, opens: a bucket's URL, else the whole path of the folder."""
    return followed(store.path) or str(Path(store.path).absolute())


def reached(address: str) -> Store:
    """In a worker: the store at an address.

    Raises:
        InfrastructureError: this process cannot reach it; says which machine, and what that machine needs.
    """
    try:
        return Store.open(address)
    except (InputError, StoreError, MissingExtra) as error:
        hint = (
            "every machine of the cluster needs AWS_ENDPOINT_URL, AWS_REGION and credentials, and the extra"
            if "://" in address
            else "the store must lie where every worker sees it by the same path: a shared folder, or s3://BUCKET"
        )
        raise InfrastructureError(
            f"a worker on {socket.gethostname()} cannot open the store {address}: {error.message}", hint=hint
        ) from error
