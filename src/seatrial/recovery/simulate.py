"""Episodes with known truth: a fixed grid of data-generating processes on which routers are compared (METHODS 4.5).

Each process draws tasks with two static features, a static surprise at the altered observation, and two features that
change from one decision point to the next. In the processes marked `exact` the three models of CIR are exactly true:
the chance of an erroneous observation, and of success without and with recovery, are logistic in the features and the
delay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from seatrial.errors import UsageError
from seatrial.recovery.episodes import DELAYS, Episodes

CONDITIONS = ("clean", "stale-1", "stale-2", "missing")
FEATURES = ("progress", "budget", "surprise", "consistency", "repetition")
Floats = NDArray[np.float64]


class Drawn(NamedTuple):
    """What a process drew: features (n, d, p), and the chances of the four cells (n, d) behind the outcomes."""

    x: Floats
    rescue: Floats
    harm: Floats
    success: Floats


class Process(NamedTuple):
    """A data-generating process. `draw` maps (error (n,), severity (n,), rng) to features and chances."""

    name: str
    about: str
    exact: bool
    draw: Callable[[Floats, Floats, np.random.Generator, Floats], Drawn]


def episodes(process: str, tasks: int, *, seed: int, replays: int = 1) -> Episodes:
    """`tasks` tasks of a process under the four conditions, outcomes averaged over `replays` continuations each.

    Raises:
        UsageError: there is no such process.
    """
    found = {p.name: p for p in PROCESSES}.get(process)
    if found is None:
        raise UsageError(f"no process {process!r}", hint=", ".join(p.name for p in PROCESSES))
    rng = np.random.default_rng([seed, PROCESSES.index(found)])
    condition = np.tile(np.array(CONDITIONS), tasks)
    task = np.repeat(np.char.add("t", np.arange(tasks).astype(np.str_)), len(CONDITIONS))
    severity = np.tile(np.array([0.0, 0.6, 1.2, 0.9]), tasks)
    static = np.repeat(rng.normal(size=(tasks, 2)), len(CONDITIONS), axis=0)
    drawn = found.draw((severity > 0).astype(np.float64), severity, rng, static)
    y0, y1 = _outcomes(drawn, replays, rng)
    every = np.ones(y0.shape, dtype=np.bool_)
    return Episodes(
        task=task, condition=condition, delays=DELAYS, features=FEATURES, x=drawn.x, y0=y0, y1=y1,
        rescue=(1.0 - y0) * y1, harm=y0 * (1.0 - y1), alive=every, given=every, base=y0.mean(axis=1),
    )  # fmt: skip


def _outcomes(drawn: Drawn, replays: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Outcomes of both branches at every decision point: one draw of the cells per replay, shared by the points, so
    that the branch without recovery has one outcome."""
    n, d = drawn.rescue.shape
    y0, y1 = np.zeros((n, d)), np.zeros((n, d))
    for _ in range(replays):
        u, v = rng.random((n, 1)), rng.random((n, d))
        none = u < drawn.success
        gained = v < drawn.rescue / np.maximum(1.0 - drawn.success, 1e-12)
        lost = v < drawn.harm / np.maximum(drawn.success, 1e-12)
        y0 += none
        y1 += np.where(none, ~lost, gained)
    return y0 / replays, y1 / replays


def _walk(error: Floats, shift: tuple[float, ...], rng: np.random.Generator, extra: Floats | float = 0.0) -> Floats:
    """A feature by decision point: moved by `shift` where the observation is erroneous, unit variance, and
    correlated 0.5 between points."""
    n = error.size
    common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, len(DELAYS)))
    moved = error[:, None] * np.asarray(shift)[None, :]
    return np.asarray(moved + np.sqrt(0.5) * (common + own) + np.reshape(extra, (-1, 1)), dtype=np.float64)


def _features(static: Floats, surprise: Floats, first: Floats, second: Floats) -> Floats:
    n, d = first.shape
    flat = [np.broadcast_to(v[:, None], (n, d)) for v in (static[:, 0], static[:, 1], surprise)]
    return np.stack([*flat, first, second], axis=-1)


_D = np.asarray(DELAYS, dtype=np.float64)


def _three(gap: float, b0: float, slope: float, lift: float, fade: float, *, coupled: bool
           ) -> Callable[[Floats, Floats, np.random.Generator, Floats], Drawn]:  # fmt: skip
    """Gaussian features with equal variance under clean and erroneous observations make p_err logistic."""

    def draw(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
        surprise = 0.6 * gap * error + rng.normal(size=error.size)
        first = _walk(error, (gap,) * 3, rng)
        second = _walk(error, (0.0,) * 3, rng)
        p0 = special.expit(b0 + 0.8 * static[:, :1] - 0.9 * surprise[:, None] + 0.0 * first)
        p1 = special.expit(b0 - 0.4 + 0.7 * static[:, :1] - slope * surprise[:, None] + lift * first - fade * _D)
        if coupled:
            rescue, harm = np.maximum(p1 - p0, 0.0), np.maximum(p0 - p1, 0.0)
        else:
            rescue, harm = (1.0 - p0) * p1, p0 * (1.0 - p1)
        return Drawn(_features(static, surprise, first, second), rescue, harm, p0)

    return draw


def _linear(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = severity + 0.8 * rng.normal(size=error.size)
    first, second = _walk(severity, (1.0, 1.2, 1.4), rng), _walk(error, (0.3,) * 3, rng)
    success = np.clip(0.72 + 0.08 * static[:, :1] - 0.12 * severity[:, None] + 0.0 * first, 0.05, 0.95)
    rescue = np.clip(0.02 + 0.06 * first + 0.05 * surprise[:, None] - 0.03 * static[:, 1:], 0.0, 1.0 - success)
    harm = np.clip(0.05 - 0.02 * first + 0.03 * static[:, 1:], 0.0, success)
    return Drawn(_features(static, surprise, first, second), rescue, harm, success)


def _interaction(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = severity + rng.normal(size=error.size)
    first, second = _walk(severity, (1.2,) * 3, rng), _walk(error, (0.8,) * 3, rng)
    success = special.expit(1.2 + 0.7 * static[:, :1] - 0.9 * error[:, None] + 0.0 * first)
    stuck = (second > 0.8) & (static[:, :1] < 0.3)
    rescue = (1.0 - success) * np.where(stuck & (error[:, None] > 0), 0.75, 0.08)
    harm = success * np.where(stuck, 0.02, 0.12)
    return Drawn(_features(static, surprise, first, second), rescue, harm, success)


def _timing(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = 0.3 * error + rng.normal(size=error.size)
    first, second = _walk(error, (0.5, 1.1, 2.0), rng), _walk(error, (0.2, 0.4, 0.8), rng)
    success = special.expit(1.0 + 0.6 * static[:, :1] - 1.0 * error[:, None] + 0.0 * first)
    # Where the budget is short the chance passes quickly; elsewhere waiting costs nothing and shows more.
    fades = np.where(static[:, 1:] < 0.0, np.exp(-0.9 * (_D - 1.0)), 1.0)
    rescue = (1.0 - success) * (0.65 * error[:, None] * fades)
    harm = success * (0.03 + 0.09 * (1.0 - error[:, None]))
    return Drawn(_features(static, surprise, first, second), rescue, harm, success)


def _noisy(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = severity + rng.normal(size=error.size)
    first, second = _walk(severity, (1.0,) * 3, rng), _walk(error, (0.4,) * 3, rng)
    eta = 0.9 + 0.7 * static[:, :1] - 0.8 * severity[:, None] + 0.0 * first
    p0 = special.expit(eta)
    p1 = special.expit(eta - 0.25 + 0.75 * first * (error[:, None] > 0) + 0.3 * static[:, 1:])
    return Drawn(_features(static, surprise, first, second), (1.0 - p0) * p1, p0 * (1.0 - p1), p0)


def _treacherous(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = 0.7 * severity + rng.normal(size=error.size)
    first = _walk(severity, (1.3, 1.5, 1.7), rng, 0.8 * static[:, 1])
    second = _walk(error, (0.5,) * 3, rng)
    success = special.expit(1.1 + 0.5 * static[:, :1] - 0.8 * severity[:, None] + 0.0 * first)
    late = static[:, 1:] > 0.3
    rescue = (1.0 - success) * np.where(late, 0.15, 0.5) * error[:, None]
    harm = success * np.where(late, 0.30, 0.03)
    return Drawn(_features(static, surprise, first, second), rescue, harm + 0.0 * first, success)


def _nothing(error: Floats, severity: Floats, rng: np.random.Generator, static: Floats) -> Drawn:
    surprise = severity + rng.normal(size=error.size)
    first, second = _walk(severity, (1.0,) * 3, rng), _walk(error, (0.5,) * 3, rng)
    success = special.expit(0.8 + 0.6 * static[:, :1] - 0.8 * severity[:, None] + 0.0 * first)
    rescue, harm = 0.25 * (1.0 - success), 0.12 * success
    return Drawn(_features(static, surprise, first, second), rescue, harm, success)


PROCESSES: tuple[Process, ...] = (
    Process("three models, independent", "CIR's form, outcomes of the branches independent", True,
            _three(1.4, 1.2, 0.35, 0.45, 0.05, coupled=False)),
    Process("three models, coupled", "CIR's form, outcomes of the branches as alike as they can be", True,
            _three(1.4, 1.2, 0.35, 0.45, 0.05, coupled=True)),
    Process("three models, faint", "CIR's form, errors hard to see, small effects", True,
            _three(1.0, 1.3, 0.45, 0.5, 0.05, coupled=True)),
    Process("linear effect", "rescue and harm linear in the features", False, _linear),
    Process("interaction", "rescue where two features meet", False, _interaction),
    Process("timing", "later is surer, and for some runs too late", False, _timing),
    Process("stochastic agent", "chance outcomes in both branches, small effects", False, _noisy),
    Process("treacherous clean", "clean runs that look odd are the ones that are harmed", False, _treacherous),
    Process("nothing to gain", "refresh rescues as much as it harms", False, _nothing),
)  # fmt: skip
"""The grid, all of it reported."""
