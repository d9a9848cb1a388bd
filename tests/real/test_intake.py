"""Real Claude Code sessions into a store: every file accounted for, nothing personal left, and once only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatrial import ingest as reading
from seatrial import intake
from seatrial.store import Store

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    return data / "sessions" / "claude-code"


@pytest.fixture(scope="module")
def filled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, intake.IngestResult]:
    store = Store.open(tmp_path_factory.mktemp("real") / "store", create=True)
    return store, intake.ingest(store, [folder])


def test_every_file_is_accounted_for(filled: tuple[Store, intake.IngestResult], folder: Path) -> None:
    store, result = filled
    assert result.files["read"] == sum(1 for p in folder.rglob("*") if p.is_file())
    assert result.files["read"] == result.files["kept"] + result.files["skipped"]
    assert result.sessions == result.added == len(store.session_ids())
    verified = store.verify()
    assert verified.ok, verified.problems
    assert verified.blobs == result.sessions


def test_copies_are_those_that_one_reading_with_one_memory_finds(
    filled: tuple[Store, intake.IngestResult], folder: Path
) -> None:
    """Intake finds copies after reading, from record ids; the readers find them while reading."""
    store, result = filled
    expected = {t.id: [s.index for s in t.steps if s.copied] for t in reading.read(folder)}
    found = {i: [s.index for s in store.trace(i).steps if s.copied] for i in store.session_ids()}
    assert found == expected
    assert result.copied == sum(map(len, expected.values())) > 0


def test_reading_again_by_two_workers_adds_nothing(filled: tuple[Store, intake.IngestResult], folder: Path) -> None:
    store, first = filled
    again = intake.ingest(store, [folder], workers=2)
    assert (again.added, again.replaced, again.known) == (0, 0, first.sessions)
    assert again.data_version == first.data_version
    assert (again.files, again.steps, again.redacted) == (first.files, first.steps, first.redacted)


def test_nothing_personal_is_left(filled: tuple[Store, intake.IngestResult]) -> None:
    """By patterns of its own, not the redactor's."""
    store, result = filled
    assert result.redacted["HOME"] > 1_000
    # The address of an ssh remote (`git@host`) is nobody's.
    mail = re.compile(rb"[\w.+-]+@[\w-]+\.(?:com|org|net|io|dev|edu|de)\b")
    home = re.compile(rb"/(?:home|Users)/[a-z][\w.-]*/[\w.-]+/")
    mails: set[bytes] = set()
    homes: set[bytes] = set()
    for blob in store.blobs_of(store.session_ids()).values():
        text = store.blobs.get(blob).replace(b"\\t", b" ").replace(b"\\n", b" ")
        mails |= {m for m in mail.findall(text) if not m.startswith(b"git@")}
        homes |= set(home.findall(text))
    assert mails == set()
    assert homes == set()
