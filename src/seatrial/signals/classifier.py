"""Turns to log-odds by a small linear classifier on hashed n-grams, added to what the rules say (METHODS 1.2).

The weights ship in `classifier.npz` (whole numbers with one scale a kind) and were trained by
`scripts/train_classifier`. It speaks only about the kinds for which that paid on sources that it had not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import SchemaError
from seatrial.signals import grams
from seatrial.signals.lexicon import CONTEXTS, builtin
from seatrial.signals.matching import normalise

CONTEXT_SCALE = 0.3
"""What a context counts beside the n-grams of a turn, whose values are small."""

_BATCH = 2_000
_WORDS = 12


class Model(NamedTuple):
    """`weights` (n_features, n_kinds), whole numbers in units of `scale`, with the contexts last; `share` of the
    log-odds is added to the rules', and `shift`, which keeps the thresholds in their place."""

    version: str
    kinds: tuple[str, ...]
    weights: NDArray[np.int8]
    scale: NDArray[np.float64]
    bias: NDArray[np.float64]
    share: NDArray[np.float64]
    shift: NDArray[np.float64]


@lru_cache(maxsize=1)
def model() -> Model:
    """The shipped classifier.

    Raises:
        SchemaError: it was trained beside another lexicon.
    """
    with resources.files("seatrial.signals").joinpath("classifier.npz").open("rb") as file:
        held = np.load(file, allow_pickle=False)
        if str(held["lexicon"]) != builtin().version:
            raise SchemaError(
                f"the classifier was trained beside lexicon {held['lexicon']}, this is {builtin().version}",
                hint="run scripts/train_classifier",
            )
        return Model(
            str(held["version"]),
            tuple(str(k) for k in held["kinds"]),
            held["weights"],
            held["scale"],
            held["bias"],
            held["share"],
            held["shift"],
        )


def log_odds(saids: Sequence[str], befores: Sequence[str], contexts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """What is to be added to the rules' log-odds, (n_turns, n_kinds): share times the classifier's, plus the shift.

    `saids` are masked turns as `matching.mask` gives them, `befores` the agent's words before them.
    """
    parts = [
        _batch(saids[i : i + _BATCH], befores[i : i + _BATCH], contexts[i : i + _BATCH])
        for i in range(0, len(saids), _BATCH)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, len(model().kinds)))


def _batch(saids: Sequence[str], befores: Sequence[str], contexts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    n = len(saids)
    row, bucket = grams.turns(
        [grams.view(said) for said in saids], [grams.view(normalise(b[-grams.BEFORE :])) for b in befores]
    )
    weights = model().weights
    total = np.stack([np.bincount(row, weights[bucket, j], minlength=n) for j in range(weights.shape[1])], axis=1)
    held = np.zeros((n, len(CONTEXTS)), np.bool_)
    for i, names in enumerate(contexts):
        for name in names:
            held[i, CONTEXTS.index(name)] = True
    return from_sums(total, np.bincount(row, minlength=n), held)


def from_sums(total: NDArray[Any], features: NDArray[Any], contexts: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The same from `total`, the whole-number weights of each turn's n-grams added up (n_turns, n_kinds), `features`,
    how many they were, and which of the lexicon's contexts hold (n_turns, n_contexts)."""
    fitted = model()
    root = np.sqrt(np.maximum(features, 1))[:, None]
    out = total * fitted.scale / root + fitted.bias
    first = 1 << grams.BITS
    for c in range(len(CONTEXTS)):
        out += contexts[:, c : c + 1] * (CONTEXT_SCALE * (fitted.weights[first + c] * fitted.scale))
    return np.asarray(fitted.share * out + fitted.shift)


def strongest(said: str, kind: str) -> tuple[int, int]:
    """The run of words [start, end) that speaks most for a kind: what the classifier's verdict points at."""
    words = []
    at = 0
    for word in said[: grams.HEAD].split():
        start = said.index(word, at)
        at = start + len(word)
        words.append((start, at))
    if len(words) <= _WORDS:
        return (words[0][0], words[-1][1]) if words else (0, 0)
    windows = [(words[i][0], words[i + _WORDS - 1][1]) for i in range(0, len(words) - _WORDS + 1, 3)]
    column = model().kinds.index(kind)
    scores = log_odds([said[a:b] for a, b in windows], [""] * len(windows), [()] * len(windows))[:, column]
    return windows[int(np.argmax(scores))]
