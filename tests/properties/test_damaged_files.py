"""Every reader on damaged files of its format: no crash, no hang, bounded memory, every byte accounted for."""

from __future__ import annotations

import contextlib
import importlib.util
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import InputError
from seatrial.ingest import read_file
from seatrial.ingest.catalogue import BUILT_IN, recognise

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 20
"""Processor time that one small damaged file may take."""
MEGABYTES = 500
"""Growth of the process while damaged files of one format are read."""


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


damage = _load("damage")
NAMES = [entry.name for entry in BUILT_IN]
kinds = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 2**32 - 1)), min_size=1, max_size=3)


@contextmanager
def in_time() -> Iterator[None]:
    """Breaks the reader off when it takes too long, which the report then shows."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"no end within {SECONDS} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check(name: str | None, file: str, data: bytes) -> None:
    """Read the bytes with a reader, or with whichever recognises them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_bytes(data)
        with in_time():
            reading = read_file(path, format=name)
            for trace in reading:
                assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
        report = reading.report
    assert report.n_bytes == report.kept_bytes + report.skipped_bytes == len(data)
    broke = [skip.why for skip in report.skipped if " broke: " in skip.why or "did not account" in skip.why]
    assert not broke
    assert all(skip.bytes >= 0 for skip in report.skipped)


def test_every_format_has_seeds_that_its_reader_takes() -> None:
    assert set(damage.HAND_MADE) == set(NAMES)
    for name in NAMES:
        for seed in damage.HAND_MADE[name]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / seed.name
                path.write_bytes(seed.data)
                reading = read_file(path, format=name)
                traces = list(reading)
            assert traces or seed.name.endswith(".pb"), (name, seed.name, reading.report)


def run(name: str, examples: int, data: Path | None) -> None:
    """So many damaged files of the format, at most a third of them named and recognised only by their content."""
    seeds = damage.seeds(name, data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        database=None,
    )
    @given(which=st.integers(0, len(seeds) - 1), how=kinds, named=st.sampled_from([True, True, False]))
    def read_damaged(which: int, how: list[tuple[int, int]], named: bool) -> None:
        seed = seeds[which]
        check(name if named else None, seed.name, damage.damage(seed.data, how))

    read_damaged()
    unit = 1 if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit / 1e6
    assert grown < MEGABYTES


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name: str) -> None:
    run(name, 15, None)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files(name: str, request: pytest.FixtureRequest) -> None:
    run(name, 1500, request.getfixturevalue("data") if name in damage.REAL else None)


@pytest.mark.real
@pytest.mark.parametrize("name", sorted(damage.REAL))
def test_damaged_real_files(name: str, data: Path) -> None:
    run(name, 8, data)


@settings(max_examples=200, deadline=None)
@given(head=st.binary(max_size=300), suffix=st.sampled_from(sorted({s for e in BUILT_IN for s in e.suffixes})))
def test_any_bytes_are_recognised_or_refused(head: bytes, suffix: str) -> None:
    with contextlib.suppress(InputError):
        assert recognise(Path(f"a{suffix}"), head).sniff(Path(f"a{suffix}"), head) > 0
