"""An object store behind an ``s3://`` URL, with the few requests that a store needs.

Credentials and endpoint are those of the environment (``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``,
``AWS_REGION``, ``AWS_ENDPOINT_URL`` and so on), as every S3 client reads them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from seatrial.errors import MissingExtra, StoreError, UsageError

TIMEOUT_S = 30
"""Seconds that one request may take; a writer's lease is longer (`lease`)."""

_URL = re.compile(r"s3:/{1,2}([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*?))?/*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/|$)")
_AT_ONCE = 500


def is_url(path: object) -> bool:
    """Whether a store's path names a place that is no folder; one slash may have been lost to a path's clean-up."""
    return _SCHEME.match(str(path)) is not None


def normal(url: object) -> str:
    """The one way to write a store's URL: ``s3://bucket/prefix``.

    Raises:
        UsageError: it is of another kind.
    """
    found = _URL.fullmatch(str(url))
    if found is None:
        given = re.sub(":/*", "://", str(url), count=1)
        raise UsageError(f"a store is a folder or s3://BUCKET/PREFIX, not {given}", hint="see the page on the store")
    return f"s3://{found[1]}/{found[2]}" if found[2] else f"s3://{found[1]}"


def _endpoint() -> str:
    """Where requests go: the address that the environment names, empty where it names none.

    Raises:
        UsageError: it is no address.
    """
    for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        address = os.environ.get(variable)
        if address:
            if re.fullmatch(r"https?://[^\s/]+(/\S*)?", address) is None:
                raise UsageError(f"{variable} is no address: {address!r}", hint="http://HOST:PORT or https://HOST")
            return address
    return ""


class Thing(NamedTuple):
    """An object that was read: its bytes and its tag, which changes with them."""

    data: bytes
    tag: str


class Listed(NamedTuple):
    """An object in a listing: its key below the store's prefix, bytes and tag."""

    key: str
    size: int
    tag: str


class Bucket:
    """The objects below one URL. Every method raises `StoreError` when the store cannot be reached."""

    def __init__(self, url: str) -> None:
        self.url = normal(url)
        endpoint = _endpoint()
        try:
            import obstore
            import obstore.store
        except ImportError:
            raise MissingExtra("distributed", "a store in a bucket") from None
        self.keeps_versions = False
        """Whether the bucket was seen to keep earlier versions of objects, which no deletion reaches."""
        self._lib: Any = obstore
        options: dict[str, Any] = {"timeout": f"{TIMEOUT_S}s", "allow_http": endpoint.startswith("http://")}
        try:
            made: Any = obstore.store.S3Store
            self._store: Any = made.from_url(self.url, client_options=options)
        except Exception as error:
            raise self._unreachable(error) from error

    def get(self, key: str) -> Thing | None:
        """An object; None where there is none."""
        with self._told():
            try:
                answer = self._lib.get(self._store, key)
            except FileNotFoundError:
                return None
            return Thing(bytes(answer.bytes()), answer.meta["e_tag"])

    def changed(self, key: str, tag: str | None) -> Thing | None:
        """An object, unless it still has that tag.

        Raises:
            StoreError: there is none.
        """
        with self._told():
            try:
                answer = self._lib.get(self._store, key, options={"if_none_match": tag} if tag else None)
            except self._lib.exceptions.NotModifiedError:
                return None
            except FileNotFoundError:
                raise StoreError("the object has gone", file=f"{self.url}/{key}", hint="restore the store") from None
            return Thing(bytes(answer.bytes()), answer.meta["e_tag"])

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        with self._told():
            self._note(self._lib.put(self._store, key, data))

    def create(self, key: str, data: bytes) -> str | None:
        """Write an object where there is none; its tag, None when there was one."""
        with self._told():
            try:
                return self._note(self._lib.put(self._store, key, data, mode="create"))
            except (FileExistsError, self._lib.exceptions.AlreadyExistsError):
                return None

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Write an object in the place of the one with that tag; its tag, None when another one was there."""
        with self._told():
            try:
                return self._note(self._lib.put(self._store, key, data, mode={"e_tag": tag}))
            except (self._lib.exceptions.PreconditionError, FileNotFoundError):
                return None

    def list(self, prefix: str = "") -> Iterator[Listed]:
        """The objects below a prefix, in order of their keys."""
        found = []
        with self._told():
            for batch in self._lib.list(self._store, prefix or None):
                found += [Listed(o["path"], o["size"], o["e_tag"]) for o in batch]
        yield from sorted(found)

    def delete(self, keys: Sequence[str], *, before: Callable[[], None] = lambda: None) -> None:
        """Remove objects; those that are not there are passed over. `before` is called ahead of each request."""
        for start in range(0, len(keys), _AT_ONCE):
            before()
            with self._told():
                try:
                    self._lib.delete(self._store, list(keys[start : start + _AT_ONCE]))
                except FileNotFoundError:
                    continue

    def _note(self, answer: Any) -> str:
        if answer.get("version") not in (None, "null"):
            self.keeps_versions = True
        return str(answer["e_tag"])

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (self._lib.exceptions.BaseError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> StoreError:
        said = " ".join(str(error).split("\n\nDebug source")[0].split())[:300]
        return StoreError(
            f"the object store does not answer as it should: {said}",
            file=self.url,
            hint="check the bucket's name, AWS_ENDPOINT_URL, AWS_REGION and the credentials",
        )
