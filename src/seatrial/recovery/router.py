"""A history to `act` or `wait`: the deployed router. Plain JSON in, standard library alone (METHODS 4.4, 4.5).

A router scores the features of the present moment with linear models and acts at most once, at the first decision
point at which its rule holds. `decide` is the whole interface; `Watch` keeps the count for one run of an agent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import FormatError, InputError, UsageError

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


_HINT = "give a file that 'recover fit --out' wrote"
_KEYS = ("seatrial_router", "kind", "operation", "delays", "features", "models", "thresholds")
_MORE = ("certificate", "made", "tasks")
_CERTIFICATE = ("limit", "confidence", "n_clean", "harms", "feasible", "need")


def from_json(text: str | bytes, file: str = "router") -> Router:
    """Read a router that `to_json` wrote; what no fit writes is refused, not guessed at.

    Raises:
        FormatError: it is not one, or of a version that this seatrial does not know.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", file=file, hint=_HINT) from None
    return from_plain(value, file)


def from_plain(value: object, file: str = "router") -> Router:
    """A plain JSON value to a router.

    Raises:
        FormatError: it is not one.
    """
    if not isinstance(value, dict) or type(value.get("seatrial_router")) is not int or (
        value["seatrial_router"] != VERSION
    ):  # fmt: skip
        raise FormatError("not a router of version 1", file=file, hint=_HINT)
    try:
        _keys(value, _KEYS, _MORE, "the router")
        made = Router(
            kind=_text(value["kind"], "kind"),
            operation=_text(value["operation"], "operation"),
            delays=tuple(_whole(d, "a delay") for d in _list(value["delays"], "delays")),
            features=tuple(_text(f, "a feature", empty=True) for f in _list(value["features"], "features")),
            models={k: _model(m, f"model {k}") for k, m in _object(value["models"], "models").items()},
            thresholds=_numbers(value["thresholds"], "thresholds"),
            certificate=_certificate(value.get("certificate")),
            made={} if value.get("made") is None else _object(value["made"], "made"),
            tasks=_tasks(value.get("tasks")),
        )
        _complete(made)
    except ValueError as error:
        raise FormatError(f"the router is damaged: {error}"[:400], file=file, hint="fit it again") from None
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


def _keys(value: dict[str, Any], needed: Collection[str], more: Collection[str], what: str) -> None:
    missing = [k for k in needed if k not in value]
    if missing:
        raise ValueError(f"{what} has no {', '.join(missing)}")
    unknown = sorted(set(value) - {*needed, *more})
    if unknown:
        raise ValueError(f"{what} has the unknown {', '.join(map(repr, unknown))}")


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what}: expected an object, found {value!r}"[:200])
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what}: expected a list, found {value!r}"[:200])
    if len({repr(v) for v in value}) < len(value):
        raise ValueError(f"{what}: something is listed twice")
    return value


def _text(value: object, what: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise ValueError(f"{what}: expected a name, found {value!r}"[:200])
    return value


def _number(value: object, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{what}: expected a number, found {value!r}"[:200])
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what}: not a finite number: {value!r}"[:200])
    return number


def _whole(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{what}: expected a whole number of at least 0, found {value!r}"[:200])
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{what}: expected true or false, found {value!r}"[:200])
    return value


def _numbers(value: object, what: str) -> dict[str, float]:
    return {k: _number(v, f"{what} {k}") for k, v in _object(value, what).items()}


def _model(value: object, what: str) -> Model:
    found = _object(value, what)
    _keys(found, ("intercept", "weights"), ("logistic", "by_delay"), what)
    return Model(
        intercept=_number(found["intercept"], f"{what}, intercept"),
        weights=_numbers(found["weights"], f"{what}, weights"),
        logistic=_flag(found.get("logistic", False), f"{what}, logistic"),
        by_delay=_numbers(found.get("by_delay", {}), f"{what}, by_delay"),
    )


def _certificate(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    found = _object(value, "certificate")
    _keys(found, _CERTIFICATE, (), "the certificate")
    limit, confidence = (_number(found[k], f"certificate, {k}") for k in ("limit", "confidence"))
    if not 0.0 < limit < 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError("certificate: limit and confidence lie between 0 and 1")
    n_clean, need = (_whole(found[k], f"certificate, {k}") for k in ("n_clean", "need"))
    harms = _number(found["harms"], "certificate, harms")
    least = math.ceil(math.log1p(-confidence) / math.log1p(-limit) - 1e-9)
    if need < least:
        raise ValueError(f"certificate: {limit:g} at {confidence:g} needs {least} clean tasks, not {need}")
    if not 0.0 <= harms <= n_clean:
        raise ValueError(f"certificate: {harms:g} harms among {n_clean} clean tasks")
    if _flag(found["feasible"], "certificate, feasible") and (n_clean < need or harms > limit * n_clean):
        raise ValueError(f"certificate: {harms:g} harms among {n_clean} clean tasks certify no limit of {limit:g}")
    return found


def _tasks(value: object) -> Tasks | None:
    if value is None:
        return None
    found = _object(value, "tasks")
    _keys(found, ("salt", "fit", "certify"), (), "tasks")
    sides = (tuple(_text(h, f"tasks, {k}") for h in _list(found[k], f"tasks, {k}")) for k in ("fit", "certify"))
    return Tasks(_text(found["salt"], "tasks, salt"), *sides)


def _complete(router: Router) -> None:
    """Raises: ValueError for a model, threshold or feature that its kind needs and lacks, or does not know."""
    if router.kind not in KINDS:
        raise ValueError(f"kind {router.kind!r}")
    wanted = {"never": ((), ()), "direct": (DIRECT, ("score", "least_harm", "cost")),
              "cir": (("err", "p0", "p1"), ("t_err", "t_fail", "lambda"))}[router.kind]  # fmt: skip
    for what, names, present in (("model", wanted[0], router.models), ("threshold", wanted[1], router.thresholds)):
        if set(names) - set(present):
            raise ValueError(f"no {what} {', '.join(sorted(set(names) - set(present)))}")
        if set(present) - set(names):
            raise ValueError(f"a {router.kind} router has no {what} {', '.join(sorted(set(present) - set(names)))}")
    if router.kind != "never" and not router.delays:
        raise ValueError("delays: no decision point, so it could never act")
    certificate = router.certificate
    if certificate is not None and certificate["feasible"] == (router.kind == "never"):
        raise ValueError(f"a {router.kind} router whose certificate says feasible: {certificate['feasible']}")
    if router.kind == "direct" and router.thresholds["least_harm"] <= 0.0:
        raise ValueError("threshold least_harm: must be above 0")
    known = {*router.features, "delay"}
    for model in router.models.values():
        used = {*model.weights, *model.by_delay}
        if used - known:
            raise ValueError(f"a model uses {', '.join(sorted(used - known))}, which is no feature of the router")
