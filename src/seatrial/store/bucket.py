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

_NAME = "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_URL = re.compile(rf"s3:/{{1,2}}({_NAME})(?:/(.*?))?/*")
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
        given = re.sub(r":(/(?!/)|$)", "://", str(url), count=1)
        raise UsageError(
            f"a store is a folder or s3://BUCKET/PREFIX, not {given}{_why_no_bucket(given)}",
            hint="see the page on the store",
        )
    return f"s3://{found[1]}/{found[2]}" if found[2] else f"s3://{found[1]}"


def _why_no_bucket(url: str) -> str:
    """What is wrong with the bucket's name; empty where the fault lies elsewhere."""
    found = re.match(r"s3://([^/]*)", url)
    if found is None:
        return ""
    name = found[1]
    if not name:
        return ": it names no bucket"
    if not 3 <= len(name) <= 63:
        return f": a bucket's name has 3 to 63 characters, and {name[:80]!r} has {len(name)}"
    if re.fullmatch(_NAME, name) is None:
        return ": a bucket's name is of small letters, digits, dots and hyphens, with no dot or hyphen at its ends"
    return ""


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
            except FileNotFoundError as error:
                self._sure_of_bucket(error)
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
            except FileNotFoundError as error:
                self._sure_of_bucket(error)
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
            except (self._lib.exceptions.PreconditionError, FileNotFoundError) as error:
                self._sure_of_bucket(error)
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
                except FileNotFoundError as error:
                    self._sure_of_bucket(error)

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

    def _sure_of_bucket(self, error: Exception) -> None:
        """An object that is not there is an answer; a bucket that is not there is none."""
        if "NoSuchBucket" in str(error):
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> StoreError:
        said = str(error).split("\n\nDebug source")[0]
        name = self.url.removeprefix("s3://").split("/")[0]
        for sign, message, hint in _REFUSALS:
            if sign.search(said) is not None:
                return StoreError(message.format(bucket=name), file=self.url, hint=hint)
        code, text = (re.search(rf"<{tag}>(.*?)</{tag}>", said, re.S) for tag in ("Code", "Message"))
        if code is not None:
            said = f"{code[1]}{f': {text[1]}' if text is not None else ''}"
        return StoreError(
            f"the object store does not answer as it should: {' '.join(said.split())[:300]}",
            file=self.url,
            hint="check the bucket's name, AWS_ENDPOINT_URL, AWS_REGION and the credentials",
        )


_KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_REFUSALS = (
    (
        re.compile("NoSuchBucket"),
        "there is no bucket {bucket}",
        "make it first, or check its name, AWS_ENDPOINT_URL and AWS_REGION",
    ),
    (
        re.compile(r"169\.254\.169\.254|169\.254\.170\.2\b|latest/api/token|latest/meta-data"),
        "there are no credentials for the object store",
        f"set {_KEYS}, and AWS_SESSION_TOKEN where they are temporary",
    ),
    (
        re.compile(r"InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|401 Unauthorized"),
        "the object store does not know these credentials",
        f"check {_KEYS}, and AWS_SESSION_TOKEN where they are temporary",
    ),
    (
        re.compile(r"AccessDenied|403 Forbidden"),
        "these credentials may not use the bucket {bucket}",
        "they need to list the bucket, and to read, write and delete its objects",
    ),
    (
        re.compile(r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint"),
        "the bucket {bucket} is in another region",
        "set AWS_REGION to the region that it is in",
    ),
    (
        re.compile(r"error sending request|error trying to connect|dns error"),
        "the object store cannot be reached",
        "check AWS_ENDPOINT_URL, AWS_REGION and the network",
    ),
)
"""What object stores and their client say, as patterns, and what a person should read instead, with a hint."""
