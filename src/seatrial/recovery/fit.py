"""Fitting tasks to a router that can be deployed, with its certificate (METHODS 4.4, 4.5).

Tuned: thresholds are chosen on the fitting tasks. Certified: tasks are split once, at random, into *fit* and *certify*;
models, rules and their order come from *fit* alone; *certify* decides which rules keep the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seatrial._version import __version__
from seatrial.errors import EvidenceError, UsageError
from seatrial.records import Certificate, Frontier, RouterFit
from seatrial.recovery import certify
from seatrial.recovery.bounds import Floats
from seatrial.recovery.cir import FOLDS, LAMBDA, CirFit, Linear, fit_cir
from seatrial.recovery.direct import DirectFit, choose, fit_direct, middle
from seatrial.recovery.episodes import Episodes, play
from seatrial.recovery.router import Model, Router, Tasks, never
from seatrial.recovery.table import Ints

Learner = Literal["direct", "cir"]
SHOWN = 60
"""Rules of the grid that are reported, evenly spread, the chosen one among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How to fit. `limit` bounds clean harm; `certified` asks for the certificate at `confidence`, False tunes only.
    `cost` is taken off the gain of every intervention, in outcome units. `lam` is CIR's lambda."""

    learner: Learner = "direct"
    limit: float = certify.LIMIT
    confidence: float = certify.CONFIDENCE
    certified: bool = True
    cost: float = 0.0
    lam: float = LAMBDA
    folds: int = FOLDS
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted router: its record, the deployable object, and where it acts in episodes."""

    record: RouterFit
    router: Router
    model: DirectFit | CirFit
    threshold: float

    def at(self, e: Episodes) -> Ints:
        """Where it acts in each episode, -1: nowhere."""
        if self.router.kind == "never":
            return np.full(len(e), -1, dtype=np.int64)
        return self.model.at(e) if isinstance(self.model, CirFit) else self.model.at(e, self.threshold)


def fit(e: Episodes, operation: str, options: FitOptions | None = None, untouched: Episodes | None = None) -> Fitted:
    """Fit a router for `operation` on `e`. `untouched` are certify episodes of other tasks; None: split `e`.

    Raises:
        EvidenceError: too few tasks, no features, or no clean or no erroneous episodes.
        UsageError: an option out of range, or certify tasks that are also fitting tasks.
    """
    options = options or FitOptions()
    if not e.features:
        raise EvidenceError("the pairs have no feature columns, so there is nothing to decide on",
                            hint="add columns of numbers known before the decision")  # fmt: skip
    if not 0.0 < options.limit < 1.0 or not 0.0 < options.confidence < 1.0:
        raise UsageError("limit and confidence lie between 0 and 1")
    if untouched is not None and set(e.tasks()) & set(untouched.tasks()):
        raise UsageError("some certify tasks are also fitting tasks", hint="a certificate needs untouched tasks")
    if options.certified and untouched is None:
        e, untouched = split(e, options)
    if options.learner == "cir":
        cir = fit_cir(e, limit=options.limit, lam=options.lam, folds=options.folds, seed=options.seed)
        return _cir(cir, e, operation, options, untouched if options.certified else None)
    made = fit_direct(e, limit=options.limit, cost=options.cost, folds=options.folds, seed=options.seed)
    return _direct(made, e, operation, options, untouched if options.certified else None)


def split(e: Episodes, options: FitOptions) -> tuple[Episodes, Episodes]:
    """Fit and certify episodes, whole tasks, at random; `certify.split_size` tasks to certify on."""
    tasks = np.array(e.tasks())
    n = certify.split_size(tasks.size, options.limit, options.confidence)
    order = np.random.default_rng(options.seed).permutation(tasks.size)
    return e.of(tasks[order[n:]].tolist()), e.of(tasks[order[:n]].tolist())


def _direct(made: DirectFit, e: Episodes, operation: str, options: FitOptions, untouched: Episodes | None) -> Fitted:
    chosen, tested, certificate = made.chosen, None, None
    if untouched is not None:
        clean = untouched.where(untouched.clean)
        tested = certify.fixed_sequence(
            _harms(made, clean), limit=options.limit, confidence=options.confidence
        )  # fmt: skip
        chosen = choose(made.rules, range(tested.certified), limit=None, cost=options.cost)
        harms = 0.0 if chosen is None else tested.harms[chosen]
        certificate = certify.certificate(len(clean), harms, chosen is not None, limit=options.limit,
                                          confidence=options.confidence)  # fmt: skip
    rule = None if chosen is None else made.rules[chosen]
    router = never(operation, e.delays) if rule is None else Router(
        kind="direct", operation=operation, delays=e.delays, features=e.features,
        models={
            n: _timed(m, e) if n == "err" else _model(m, e, True) for n, m in made.value.models.items()
        },
        thresholds={"score": rule.threshold, "least_harm": made.value.least, "cost": made.value.cost},
    )  # fmt: skip
    shown = {round(i) for i in np.linspace(0, len(made.rules) - 1, SHOWN).tolist()} if made.rules else set()
    frontier = tuple(
        Frontier(
            threshold=r.threshold, gain=r.gain, harm=r.harm, rate=r.rate, chosen=i == chosen,
            p_value=tested.p_values[i] if tested is not None and i < len(tested.p_values) else None,
            certify_harms=tested.harms[i] if tested is not None and i < len(tested.harms) else None,
            certified=tested is not None and i < tested.certified,
        )
        for i, r in enumerate(made.rules) if i in shown or i == chosen
    )  # fmt: skip
    return _fitted(made, router, e, options, untouched, certificate, frontier,
                   gain=rule.gain if rule else 0.0, harm=rule.harm if rule else 0.0, rate=rule.rate if rule else 0.0,
                   threshold=rule.threshold if rule else math.inf)  # fmt: skip


def _harms(made: DirectFit, clean: Episodes) -> Iterator[Floats]:
    for rule in made.rules:
        yield play(clean, made.at(clean, rule.threshold)).harm


def _cir(made: CirFit, e: Episodes, operation: str, options: FitOptions, untouched: Episodes | None) -> Fitted:
    acts, certificate = math.isfinite(made.t_err), None
    if untouched is not None:
        clean = untouched.where(untouched.clean)
        harms = play(clean, made.at(clean)).harm
        tested = certify.fixed_sequence([harms], limit=options.limit, confidence=options.confidence)
        acts = acts and tested.certified == 1
        certificate = certify.certificate(len(clean), float(harms.sum()), acts, limit=options.limit,
                                          confidence=options.confidence)  # fmt: skip
    router = Router(
        kind="cir", operation=operation, delays=e.delays, features=e.features,
        models={n: _model(m, e, True) for n, m in (("err", made.err), ("p0", made.p0), ("p1", made.p1))},
        thresholds={"t_err": made.t_err, "t_fail": made.t_fail, "lambda": made.lam},
    ) if acts else never(operation, e.delays)  # fmt: skip
    return _fitted(made, router, e, options, untouched, certificate, (), gain=made.gain if acts else 0.0,
                   harm=made.harm if acts else 0.0, rate=made.rate if acts else 0.0, threshold=made.t_err)  # fmt: skip


def _model(linear: Linear, e: Episodes, logistic: bool = False) -> Model:
    return Model(intercept=linear.intercept, logistic=logistic,
                 weights=dict(zip((*e.features, "delay"), linear.weights.tolist(), strict=True)))  # fmt: skip


def _timed(linear: Linear, e: Episodes) -> Model:
    """The model over `direct.timed` features, in weights of the features themselves and of features times the delay."""
    p, center = len(e.features), middle(e.delays)
    own, later = linear.weights[: p + 1].copy(), linear.weights[p + 1 :]
    own[:p] -= center * later
    return Model(
        intercept=linear.intercept, logistic=True,
        weights=dict(zip((*e.features, "delay"), own.tolist(), strict=True)),
        by_delay=dict(zip(e.features, later.tolist(), strict=True)),
    )  # fmt: skip


def _fitted(
    model: DirectFit | CirFit, router: Router, e: Episodes, options: FitOptions, untouched: Episodes | None,
    certificate: Certificate | None, frontier: tuple[Frontier, ...], *, gain: float, harm: float, rate: float,
    threshold: float,
) -> Fitted:  # fmt: skip
    plain = None if certificate is None else {k: getattr(certificate, k) for k in certificate.__struct_fields__}
    router = Router(
        kind=router.kind, operation=router.operation, delays=router.delays, features=router.features,
        models=router.models, thresholds=router.thresholds, certificate=plain,
        made={"seatrial": __version__, "learner": options.learner, "tasks": len(e.tasks()), "seed": options.seed},
        tasks=Tasks.of(e.tasks(), () if untouched is None else untouched.tasks()),
    )  # fmt: skip
    record = RouterFit(
        learner=options.learner,
        operation=router.operation,
        delays=e.delays,
        features=e.features,
        thresholds=dict(router.thresholds),
        folds=options.folds,
        n_fit=len(e.tasks()),
        n_certify=0 if untouched is None else len(untouched.tasks()),
        gain=gain,
        harm=harm,
        rate=rate,
        limit=options.limit,
        certificate=certificate,
        router=router.plain(),
        frontier=frontier,
        warnings=tuple(_warnings(certificate, router)),
    )
    return Fitted(record, router, model, threshold)


def _warnings(certificate: Certificate | None, router: Router) -> Iterator[str]:
    if certificate is None:
        yield "the harm limit was tuned and is certified by nothing: about one such router in three breaks it"
    elif certificate.n_clean < certificate.need:
        sure = f"{certificate.limit:.3g} at {certificate.confidence:.0%} confidence"
        yield (f"a harm limit of {sure} takes {certificate.need} clean certify tasks without harm; there are "
               f"{certificate.n_clean}: the router never acts")  # fmt: skip
    elif not certificate.feasible:
        yield "no rule that gains anything could be certified: the router never acts"
    if certificate is None and router.kind == "never":
        yield "no rule gains on the fitting tasks within the limit: the router never acts"
