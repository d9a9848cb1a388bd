"""The truth behind the demo: what every agent of the fleet is worth, by simulation with true labels.

Every agent works the same planned sessions in the same worlds for the same users (a paired design that no real
study has), and the outcomes are scored from what users *meant* and what the world knows, not from any detector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources

import msgspec
import numpy as np
import polars as pl

from seatrial import scoring
from seatrial.examples import fleet, habits, sentences, truth, worker, workspace
from seatrial.examples.truth import Truth
from seatrial.flows import voices
from seatrial.records import OUTCOMES
from seatrial.scoring.heading import MEAN
from seatrial.stats import cluster_se

SEED = 1_000_000
PER_POPULATION = 4
"""Sessions drawn from one population of users; populations differ, so that the truth is about users in general."""
SUCCESS = "success"
"""Share of a session's jobs that came out as asked, by the world's final state."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's mean of one outcome, and its net improvement over the uniform baseline with its simulation
    error. `n` sessions had a value."""

    mean: float
    net: float
    se: float
    n: int


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """The truth by agent and outcome. `made_by` names what it depends on; `probe` is the same for the first few
    populations alone, so that a test can tell in a second whether the file is still true."""

    made_by: dict[str, str]
    populations: int
    agents: dict[str, dict[str, Value]]
    probe: dict[str, dict[str, Value]]


PROBE = 6


def made_by() -> dict[str, str]:
    """Versions of everything that the truth depends on (METHODS 0.6)."""
    unheard = ", ".join(voices.shipped().silent)
    return {"workspace": workspace.VERSION, "agents": worker.VERSION, "truth": truth.VERSION, "unheard": unheard}


def outcome_row(true: Truth) -> dict[str, float | None]:
    """The five outcomes of one session from true labels, the mean that heads a report, and its success."""
    silent = voices.shipped().silent
    scored = scoring.score(true.trace, true.signals, true.episodes, scoring.UNIT, calls=true.calls, silent=silent)
    return {**scored.signals, MEAN: scored.mean, SUCCESS: true.success}


def outcome_table(rows: Sequence[dict[str, float | None]]) -> pl.DataFrame:
    """Outcomes of sessions, with the headline that `rank` would choose from them (METHODS 2)."""
    names = (*OUTCOMES, MEAN, SUCCESS)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64))
    name, values = scoring.headline(frame)
    return frame.with_columns(values.alias(name))


def simulate(populations: int, *, progress: Callable[[int, int], None] | None = None) -> Planted:
    """Let every agent work the same `populations` x 4 sessions."""
    words = sentences.built_in()
    rows: dict[str, list[dict[str, float | None]]] = {profile.name: [] for profile in habits.FLEET}
    for i in range(populations):
        for planned in fleet.plan(PER_POPULATION, SEED + i):
            for profile in habits.FLEET:
                rows[profile.name].append(outcome_row(truth.of(fleet.work(planned, profile, words))))
        if progress is not None:
            progress(i + 1, populations)
    few = {name: values[: PROBE * PER_POPULATION] for name, values in rows.items()}
    return Planted(made_by=made_by(), populations=populations, agents=_values(rows), probe=_values(few))


def load() -> Planted:
    """The committed truth, made by ``benchmarks/planted_truth.py``."""
    return msgspec.json.decode(resources.files("seatrial.examples").joinpath("planted.json").read_bytes(), type=Planted)


def _values(rows: dict[str, list[dict[str, float | None]]]) -> dict[str, dict[str, Value]]:
    tables = {name: outcome_table(values) for name, values in rows.items()}
    out: dict[str, dict[str, Value]] = {name: {} for name in tables}
    for outcome in next(iter(tables.values())).columns:
        columns = {name: table[outcome].to_numpy() for name, table in tables.items()}
        means = {name: float(np.nanmean(column)) for name, column in columns.items()}
        overall = sum(means.values()) / len(means)
        for name, column in columns.items():
            out[name][outcome] = Value(
                mean=round(means[name], 6),
                net=round(means[name] - overall, 6),
                se=round(_error(columns, name), 6),
                n=int(np.isfinite(column).sum()),
            )
    return out


def _error(columns: dict[str, np.ndarray], name: str) -> float:
    """Simulation error of one net improvement: paired where all agents have a value, clustered by population."""
    every = np.vstack(list(columns.values()))
    difference = columns[name] - every.mean(axis=0)
    usable = np.isfinite(difference)
    population = np.repeat(np.arange(difference.size // PER_POPULATION), PER_POPULATION)
    return cluster_se(difference[usable], population[usable]) or 0.0
