"""A history to `act` or `wait`: the deployed router. Plain JSON in, standard library alone (METHODS 4.4, 4.5).

A router scores the features of the present moment with linear models and acts at most once, at the first decision
point at which its rule holds. `decide` is the whole interface; `Watch` keeps the count for one run of an agent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import FormatError, InputError, UsageError

Decision = Literal["act", "wait"]
Featurise = Callable[[Any], Mapping[str, float]]
"""A history as the caller keeps it to the features of its present moment, by name."""

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
class Router:
    """When to use `operation`. `delays` are the decision points, in environment actions since the watch began.

    `kind` ``direct`` acts where ``log(odds(err) * (gain - cost) / harm * odds ratio)`` is at least the threshold
    ``score``; ``cir`` is the published rule over ``err``, ``p0`` and ``p1``; ``never`` waits. `certificate` says what
    is certified about its harm, None for a router that was only tuned.
    """

    kind: str
    operation: str
    delays: tuple[int, ...]
    features: tuple[str, ...]
    models: Mapping[str, Model]
    thresholds: Mapping[str, float]
    certificate: Mapping[str, Any] | None = None
    made: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, history: Any, *, delay: int | None = None, featurise: Featurise | None = None) -> Decision:
        """`act` or `wait`, for the moment that `history` ends in.

        `history` is a mapping of features, or whatever `featurise` turns into one. `delay` is the number of actions
        since the watch began (default: the feature ``delay``). Between decision points the answer is `wait`; that it
        acts at most once is the caller's to keep, or `Watch`'s.

        Raises:
            UsageError: a feature that the router needs is missing or not a finite number.
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
            raise UsageError(f"feature {name}: expected a finite number, found {value!r}"[:200],
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
        }


class Watch:
    """One run under a router's eye: counts actions, acts at most once."""

    def __init__(self, router: Router, featurise: Featurise | None = None) -> None:
        self.router, self.featurise = router, featurise
        self.actions, self.acted = 0, False

    def decide(self, history: Any) -> Decision:
        """To be asked after every action since the watch began; `history` as in `Router.decide`."""
        self.actions += 1
        if self.acted or self.actions not in self.router.delays:
            return "wait"
        answer = self.router.decide(history, delay=self.actions, featurise=self.featurise)
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
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", file=file, hint="give a file that 'recover fit --out' wrote") from None
    return from_plain(value, file)


def from_plain(value: object, file: str = "router") -> Router:
    """A plain JSON value to a router.

    Raises:
        FormatError: it is not one.
    """
    if not isinstance(value, dict) or value.get("seatrial_router") != VERSION:
        raise FormatError("not a router of version 1", file=file, hint="give a file that 'recover fit --out' wrote")
    try:
        kind = str(value["kind"])
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r}")
        made = Router(
            kind=kind,
            operation=str(value["operation"]),
            delays=tuple(int(d) for d in value["delays"]),
            features=tuple(str(f) for f in value["features"]),
            models={str(k): _model(m) for k, m in value["models"].items()},
            thresholds={str(k): _finite(v) for k, v in value["thresholds"].items()},
            certificate=value.get("certificate"),
            made=value.get("made") or {},
        )
        _complete(made)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"the router is damaged: {error}", file=file, hint="fit it again") from None
    return made


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


def _model(value: Mapping[str, Any]) -> Model:
    return Model(
        intercept=_finite(value["intercept"]),
        weights={str(k): _finite(v) for k, v in value["weights"].items()},
        logistic=bool(value.get("logistic", False)),
        by_delay={str(k): _finite(v) for k, v in value.get("by_delay", {}).items()},
    )


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _complete(router: Router) -> None:
    """Raises: ValueError for a model, threshold or feature that its kind needs and lacks."""
    wanted = {"never": ((), ()), "direct": (DIRECT, ("score", "least_harm", "cost")),
              "cir": (("err", "p0", "p1"), ("t_err", "t_fail", "lambda"))}[router.kind]  # fmt: skip
    for name in wanted[0]:
        if name not in router.models:
            raise ValueError(f"no model {name}")
    for name in wanted[1]:
        if name not in router.thresholds:
            raise ValueError(f"no threshold {name}")
    known = {*router.features, "delay"}
    for model in router.models.values():
        used = {*model.weights, *model.by_delay}
        if used - known:
            raise ValueError(f"a model uses {', '.join(sorted(used - known))}, which is no feature of the router")
