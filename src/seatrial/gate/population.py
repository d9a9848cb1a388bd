"""Which cases both runs have: missing, new and changed cases are findings by policy, never dropped (METHODS 6.5)."""

from __future__ import annotations

from typing import NamedTuple

from seatrial.gate.runs import Run
from seatrial.gate.settings import GateSettings, Policy
from seatrial.records import Population


class Findings(NamedTuple):
    """The population, the tasks that can be compared, and what its findings do to the verdict.

    `unscored` are cases whose every attempt of the candidate is excluded: what if all of them had failed?

    `stop` is missing evidence, `inconclusive` withholds PASS, `notes` are shown only.
    """

    population: Population
    common: frozenset[str]
    unscored: frozenset[str]
    stop: tuple[str, ...]
    inconclusive: tuple[str, ...]
    notes: tuple[str, ...]


def compare_population(baseline: Run, candidate: Run, settings: GateSettings) -> Findings:
    """Cases by their presence and content. A case without a single scored attempt has no evidence on that side: it
    is missing where the candidate has none, new where the baseline has none."""
    b = set(baseline.tasks) - set(baseline.unscored)
    c = set(candidate.tasks) - set(candidate.unscored)
    both = b & c
    changed = {
        t for t in both
        if baseline.tasks[t] and candidate.tasks[t] and baseline.tasks[t] != candidate.tasks[t]
    }  # fmt: skip
    missing = b - c
    new = c - b
    failing = {t for t in new if t in candidate.failing}
    stop: list[str] = []
    inconclusive: list[str] = []
    notes: list[str] = []

    def found(tasks: set[str], policy: Policy, text: str) -> None:
        if tasks:
            where = {"stop": stop, "inconclusive": inconclusive, "note": notes}[policy]
            where.append(f"{_cases(tasks)} {text}")

    found(missing & set(candidate.tasks), settings.missing, "has no scored attempt in the candidate")
    found(missing - set(candidate.tasks), settings.missing, "is missing from the candidate")
    found(changed, settings.changed, "has other content than in the baseline: run the baseline again on it")
    found(failing, settings.new_failing, "is new to the baseline and fails")
    found(new - failing, settings.new_passing, "is new to the baseline and passes")
    both_unscored = (set(baseline.tasks) & set(candidate.tasks)) - b - c
    found(both_unscored, settings.missing, "has no scored attempt on either side")
    population = Population(
        missing=tuple(sorted(missing | both_unscored)), new=tuple(sorted(new)), changed=tuple(sorted(changed))
    )
    unscored = frozenset(missing & set(candidate.tasks))
    return Findings(population, frozenset(both - changed), unscored, tuple(stop), tuple(inconclusive), tuple(notes))


def _cases(tasks: set[str]) -> str:
    names = sorted(tasks)
    shown = ", ".join(repr(t) for t in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"case {shown}" if len(names) == 1 else f"each of {len(names)} cases ({shown}{more})"
