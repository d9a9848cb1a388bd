"""A router's JSON to the router, every value checked: what was not written by a fit is refused, not guessed at."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from seatrial.errors import FormatError
from seatrial.recovery.router import DIRECT, KINDS, VERSION, Model, Router, Tasks

_HINT = "give a file that 'recover fit --out' wrote"
_KEYS = ("seatrial_router", "kind", "operation", "delays", "features", "models", "thresholds")
_MORE = ("certificate", "made", "tasks")
_CERTIFICATE = ("limit", "confidence", "n_clean", "harms", "feasible", "need")


def read(text: str | bytes, file: str) -> Router:
    """Read a router's JSON text.

    Raises:
        FormatError: it is not one, or of a version that this seatrial does not know.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", file=file, hint=_HINT) from None
    return from_plain(value, file)


def from_plain(value: object, file: str) -> Router:
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
