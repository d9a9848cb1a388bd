"""A history to `act` or `wait`: the deployed router. Plain JSON in, standard library alone (METHODS 4.4, 4.5).

A router scores the features of the present moment with linear models and acts at most once, at the first decision
point at which its rule holds. `decide` is the whole interface; `Watch` keeps the count for one run of an agent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import InputError, UsageError

Decision = Literal["act", "wait"]
Featurise = Callable[[Any], Mapping[str, float]]
"""A history as the caller keeps it to the features of its present moment, by name."""


class UnusableFeature(UsageError):
    """A feature that a router needs is missing or not a finite number."""


VERSION = 1
KINDS = ("never", "cir", "direct")
DIRECT = ("err", "wrong_pass", "wrong_rescued", "wrong_harmed", "clean_pass", "clean_harmed", "without", "with")
"""Models of a direct router: an erroneous observation; on erroneous ones, success without recovery, rescue of a run
that fails and harm to one that passes; on clean ones, success and harm to one that passes; success without and with
recovery on all."""


@dataclass(frozen=True, slots=True)
class Model:
    """``intercept + sum of weights``, by feature name; the delay is a feature named ``delay``. `by_delay` weighs a
    feature times the delay. `logistic` True: the score is a chance."""

    intercept: float
    weights: Mapping[str, float]
    logistic: bool = False
    by_delay: Mapping[str, float] = field(default_factory=dict)

    def linear(self, features: Mapping[str, float]) -> float:
        """``intercept + sum of weights`` at these features."""
        plain = sum(weight * features[name] for name, weight in self.weights.items())
        later = sum(weight * features[name] for name, weight in self.by_delay.items())
        return self.intercept + plain + (later * features["delay"] if self.by_delay else 0.0)

    def score(self, features: Mapping[str, float]) -> float:
        """The model's value at these features."""
        total = self.linear(features)
        if not self.logistic:
            return total
        if total >= 0.0:
            return 1.0 / (1.0 + math.exp(-min(total, 700.0)))
        shrunk = math.exp(max(total, -700.0))
        return shrunk / (1.0 + shrunk)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks that a router was fitted and certified on, as salted hashes: `seen` knows them again, and the file
    names none. The salt comes from the tasks, so that equal fits write equal files."""

    salt: str
    fit: tuple[str, ...]
    certify: tuple[str, ...] = ()

    @classmethod
    def of(cls, fit: Iterable[str], certify: Iterable[str] = ()) -> Tasks:
        """The hashes of these task ids."""
        fit, certify = sorted(set(fit)), sorted(set(certify))
        salt = hashlib.sha256(json.dumps([fit, certify]).encode()).hexdigest()[:16]
        return cls(salt, *(tuple(sorted(_task_hash(salt, t) for t in side)) for side in (fit, certify)))

    def seen(self, tasks: Iterable[str]) -> set[str]:
        """Those of `tasks` that the router was fitted or certified on."""
        known = {*self.fit, *self.certify}
        return {t for t in tasks if _task_hash(self.salt, t) in known}


def _task_hash(salt: str, task: str) -> str:
    return hashlib.sha256(f"{salt}\0{task}".encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Router:
    """When to use `operation`. `delays` are the decision points, in environment actions since the watch began.

    `kind` ``direct`` acts where ``log(odds(err) * (gain - cost) / harm * odds ratio)`` is at least the threshold
    ``score``; ``cir`` is the published rule over ``err``, ``p0`` and ``p1``; ``never`` waits. `certificate` says what
    is certified about its harm, None for a router that was only tuned. `tasks` are those it was made on, None: unknown.
    """

    kind: str
    operation: str
    delays: tuple[int, ...]
    features: tuple[str, ...]
    models: Mapping[str, Model]
    thresholds: Mapping[str, float]
    certificate: Mapping[str, Any] | None = None
    made: Mapping[str, Any] = field(default_factory=dict)
    tasks: Tasks | None = None

    def decide(self, history: Any, *, delay: int | None = None, featurise: Featurise | None = None) -> Decision:
        """`act` or `wait`, for the moment that `history` ends in.

        `history` is a mapping of features, or whatever `featurise` turns into one. `delay` is the number of actions
        since the watch began (default: the feature ``delay``). Between decision points the answer is `wait`; that it
        acts at most once is the caller's to keep, or `Watch`'s.

        Raises:
            UnusableFeature: a feature that the router needs is missing or not a finite number.
            UsageError: `history` is no mapping and there is no `featurise`, or the delay is nowhere.
        """
        found = featurise(history) if featurise is not None else history
        if not isinstance(found, Mapping):
            raise UsageError("a history needs a function that turns it into features", hint="decide(..., featurise=f)")
        at = found.get("delay") if delay is None else delay
        if at is None:
            raise UsageError("the delay since the watch began is missing", hint="decide(..., delay=1)")
        if self.kind == "never" or at not in self.delays:
            return "wait"
        values = {name: self._value(found, name) for name in self.features} | {"delay": float(at)}
        return "act" if self._holds(values) else "wait"

    def score(self, features: Mapping[str, float], delay: int) -> dict[str, float]:
        """Every model's value, to look at; empty for a router that never acts."""
        values = {name: self._value(features, name) for name in self.features} | {"delay": float(delay)}
        return {name: model.score(values) for name, model in self.models.items()}

    def _value(self, found: Mapping[str, Any], name: str) -> float:
        value = found.get(name)
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise UnusableFeature(f"feature {name}: expected a finite number, found {value!r}"[:200],
                                  hint=f"the router was fitted on {', '.join(self.features)}")  # fmt: skip
        return float(value)

    def _holds(self, values: Mapping[str, float]) -> bool:
        if self.kind == "direct":
            return self._worth(values) >= self.thresholds["score"]
        err, p0, p1 = (self.models[name].score(values) for name in ("err", "p0", "p1"))
        lam = self.thresholds["lambda"]
        return (
            err >= self.thresholds["t_err"]
            and 1.0 - p0 >= self.thresholds["t_fail"]
            and (1.0 - p0) * p1 - lam * p0 * (1.0 - p1) >= -1e-12
        )

    def _worth(self, values: Mapping[str, float]) -> float:
        """``log(odds(err) * (gain - cost) / harm * odds ratio)``; minus infinity where acting does not pay."""
        p = {name: model.score(values) for name, model in self.models.items()}
        lifted = self.models["with"].linear(values) - self.models["without"].linear(values)
        odds = min(max(self.models["err"].linear(values), -30.0), 30.0)
        saved, lost = (1.0 - p["wrong_pass"]) * p["wrong_rescued"], p["wrong_pass"] * p["wrong_harmed"]
        gain = saved - lost - self.thresholds["cost"]
        harm = max(p["clean_pass"] * p["clean_harmed"], self.thresholds["least_harm"])
        return odds + lifted + math.log(gain) - math.log(harm) if gain > 0.0 else -math.inf

    def watch(self, featurise: Featurise | None = None) -> Watch:
        """Begin to watch one run."""
        return Watch(self, featurise)

    def to_json(self) -> str:
        """The router as one line of JSON; `from_json` reads it back to the same decisions."""
        return json.dumps(self.plain(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def plain(self) -> dict[str, Any]:
        """The router as a plain JSON value."""
        return {
            "seatrial_router": VERSION,
            "kind": self.kind,
            "operation": self.operation,
            "delays": list(self.delays),
            "features": list(self.features),
            "models": {
                name: {
                    "intercept": m.intercept,
                    "weights": dict(m.weights),
                    "logistic": m.logistic,
                    "by_delay": dict(m.by_delay),
                }
                for name, m in self.models.items()
            },
            "thresholds": dict(self.thresholds),
            "certificate": None if self.certificate is None else dict(self.certificate),
            "made": dict(self.made),
            "tasks": None
            if self.tasks is None
            else {"salt": self.tasks.salt, "fit": list(self.tasks.fit), "certify": list(self.tasks.certify)},
        }


class Watch:
    """One run under a router's eye: counts actions, acts at most once. `last_reason` says why the last answer was
    `wait` although a decision was due: a feature that the router needs was missing or no finite number; else None."""

    def __init__(self, router: Router, featurise: Featurise | None = None) -> None:
        self.router, self.featurise = router, featurise
        self.actions, self.acted = 0, False
        self.last_reason: str | None = None

    def decide(self, history: Any) -> Decision:
        """To be asked after every action since the watch began; `history` as in `Router.decide`.

        A feature that cannot be used does not end the run that is watched: the answer is `wait`, and `last_reason`
        names the feature. What `featurise` raises is raised.
        """
        self.actions += 1
        self.last_reason = None
        if self.acted or self.actions not in self.router.delays:
            return "wait"
        found = self.featurise(history) if self.featurise is not None else history
        try:
            answer = self.router.decide(found, delay=self.actions)
        except UnusableFeature as error:
            self.last_reason = error.message
            return "wait"
        self.acted = answer == "act"
        return answer


def never(operation: str, delays: Sequence[int] = ()) -> Router:
    """The router that always waits: what is deployed where no harm limit could be certified."""
    return Router("never", operation, tuple(delays), (), {}, {})


def from_json(text: str | bytes, file: str = "router") -> Router:
    """Read a router that `to_json` wrote.

    Raises:
        FormatError: it is not one, or of a version that this seatrial does not know.
    """
    from seatrial.recovery import router_json

    return router_json.read(text, file)


def from_plain(value: object, file: str = "router") -> Router:
    """A plain JSON value to a router.

    Raises:
        FormatError: it is not one.
    """
    from seatrial.recovery import router_json

    return router_json.from_plain(value, file)


def load(path: Path | str) -> Router:
    """Read a router from a file.

    Raises:
        InputError: the file cannot be read.
        FormatError: it is not a router.
    """
    try:
        return from_json(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
