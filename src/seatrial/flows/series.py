"""Measured runs of several files to series in which no attempt of a task is twice: two runs of a suite stay two."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.dimensions.card import Gathered
from seatrial.records import Evidence, protocols


class _Series:
    def __init__(self, gathered: Gathered) -> None:
        self.gathered = gathered
        self.files: list[str] = []
        self.held: set[tuple[str, int]] = set()

    def name(self) -> str:
        more = len(self.files) - 1
        return self.files[0] + (f" and {more} more" if more else "")


class ByFile:
    """Collects the runs of one agent file by file. A file joins the first series that has none of its attempts;
    `twice` counts the attempts that kept files apart, and `first` names one."""

    def __init__(self, dimensions: Sequence[protocols.Dimension]) -> None:
        self._dimensions = dimensions
        self._series: list[_Series] = []
        self._file: str | None = None
        self._now = Gathered(dimensions)
        self.twice = 0
        self.first = ""

    def add(self, run: Evidence, file: str) -> None:
        """Measure a run of a file; the runs of a file come one after another."""
        if file != self._file:
            self._flush()
            self._file = file
        self._now.add(run)

    def series(self) -> list[tuple[str | None, Gathered]]:
        """Each series with the name of its files; None where there is but one series."""
        self._flush()
        alone = len(self._series) == 1
        return [(None if alone else s.name(), s.gathered) for s in self._series]

    def _flush(self) -> None:
        if not self._now.attempts or self._file is None:
            return
        held = {(a.task, a.trial) for a in self._now.attempts}
        if self._series and (both := sorted(held & self._series[0].held)):
            self.twice += len(both)
            task, trial = both[0]
            self.first = self.first or f"attempt {trial} of task {task}, in {self._series[0].name()} and {self._file}"
        into = next((s for s in self._series if not held & s.held), None)
        if into is None:
            into = _Series(Gathered(self._dimensions))
            self._series.append(into)
        into.gathered.absorb(self._now)
        into.files.append(self._file)
        into.held |= held
        self._now = Gathered(self._dimensions)
