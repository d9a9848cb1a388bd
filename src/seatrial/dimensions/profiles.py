"""Deployment profiles: weights that a user gives, kept apart from what is measured (METHODS 5).

The source prescribes no weights: what matters depends on where an agent is deployed. A profile's value is shown beside
the seven measurements, never in their place, and is None where a dimension that it weighs was not measured.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.records import DIMENSIONS, Scorecard


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A name and non-negative weights by dimension, at least one of them positive; they need not sum to 1."""

    name: str
    weights: dict[str, float]


class ProfileValue(msgspec.Struct, frozen=True, kw_only=True):
    """The weighted mean of an agent's dimensions. `low` and `high` are the same mean of their limits: never narrower
    than the interval of the mean, however the dimensions depend on each other. None: `why`."""

    value: float | None
    low: float | None
    high: float | None
    weights: dict[str, float]
    why: str = ""


def weighed(card: Scorecard, profile: Profile) -> ProfileValue:
    """What the profile makes of a scorecard."""
    total = sum(profile.weights.values())
    shares = {name: w / total for name, w in profile.weights.items() if w > 0}
    value, low, high = 0.0, 0.0, 0.0
    bounded = True
    for name, share in shares.items():
        found = card.dimensions.get(name)
        estimate = found.estimate if found is not None else None
        if estimate is None:
            why = found.why if found is not None else "it was left out"
            return ProfileValue(value=None, low=None, high=None, weights=shares, why=f"{name} is not measured: {why}")
        value += share * estimate.value
        if estimate.low is None or estimate.high is None:
            bounded = False
        else:
            low, high = low + share * estimate.low, high + share * estimate.high
    return ProfileValue(value=value, low=low if bounded else None, high=high if bounded else None, weights=shares,
                        why="" if bounded else "a dimension has no interval")  # fmt: skip


def load_profiles(path: Path) -> tuple[Profile, ...]:
    """Profiles from a TOML file: one table of weights per profile, such as ``[clinic]`` with ``D6 = 3``.

    Raises:
        InputError: it cannot be read, a weight is no non-negative number, or names no dimension.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}", file=str(path)) from None
    out = tuple(_profile(name, weights, str(path)) for name, weights in raw.items())
    if not out:
        raise InputError("holds no profile", file=str(path), hint="a table per profile, such as [clinic] with D6 = 3")
    return out


def _profile(name: str, weights: Any, file: str) -> Profile:
    hint = f"weights by dimension: {', '.join(DIMENSIONS)}"
    if not isinstance(weights, Mapping):
        raise InputError(f"the profile {name!r} is no table", file=file, hint=hint)
    for key, value in weights.items():
        if key not in DIMENSIONS:
            raise InputError(f"the profile {name!r} weighs {key!r}", file=file, hint=hint)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"the profile {name!r} gives {key} the weight {value!r}", file=file,
                             hint="a number of 0 or more")  # fmt: skip
    if not sum(weights.values()) > 0:
        raise InputError(f"the profile {name!r} weighs nothing", file=file, hint="one weight must be positive")
    return Profile(name=name, weights={k: float(v) for k, v in weights.items()})
