"""Consent that traces carry goes on record, under the pseudonym, with the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec

from seatrial.intake.pipeline import run
from seatrial.records import Consent, FileReport, Trace
from seatrial.store import Store, consents, permission


class Carrying:
    """The fake reading, with a consent in every trace."""

    def __init__(self, inner: object, given: Consent) -> None:
        self._inner = inner
        self._given = given

    def __iter__(self) -> Iterator[Trace]:
        for trace in self._inner:  # type: ignore[attr-defined]
            yield msgspec.structs.replace(trace, consent=self._given)

    @property
    def report(self) -> FileReport:
        return self._inner.report  # type: ignore[attr-defined, no-any-return]


def test_carried_consent_is_put_on_record_once(fake: ModuleType, store: Store, tmp_path: Path) -> None:
    file = fake.write(tmp_path / "s.jsonl", fake.say("r1", "words", user="jane"))

    def read(path: Path, *, format: str | None = None, time: float = 1.0) -> Carrying:
        return Carrying(fake.read_file(path), Consent(subject="jane", purposes=("rank",), time=time))

    run(store, [file], read)
    (kept,) = consents(store)
    assert kept == Consent(subject=store.pseudonyms()[0].of("jane"), purposes=("rank",), time=1.0)
    assert permission(store, "rank").denied == {}
    assert set(permission(store, "judge").denied) == {"s"}
    version = store.data_version
    run(store, [file], read)
    assert store.data_version == version
    assert store.verify().ok
