from __future__ import annotations

import difflib
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from seatrial.errors import UsageError
from seatrial.stats import align, match_unordered


def best_by_recursion(similarity: np.ndarray, gap: float) -> float:
    n, m = similarity.shape

    @cache
    def best(i: int, j: int) -> float:
        if i == n or j == m:
            return -gap * (n - i + m - j)
        options = [best(i + 1, j) - gap, best(i, j + 1) - gap]
        if similarity[i, j] > 0:
            options.append(similarity[i, j] + best(i + 1, j + 1))
        return max(options)

    return best(0, 0)


@pytest.mark.parametrize("gap", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("shape", [(5, 7), (6, 3), (1, 4), (4, 4)])
def test_score_is_the_best_there_is(gap: float, shape: tuple[int, int]) -> None:
    for seed in range(10):
        similarity = np.random.default_rng(seed).normal(0.2, 0.6, shape)
        found = align(similarity, gap)
        assert found.score == pytest.approx(best_by_recursion(similarity, gap), abs=1e-12)
        alone = sum(i is None or j is None for i, j in found.steps)
        assert found.score == pytest.approx(sum(similarity[i, j] for i, j in found.pairs) - gap * alone, abs=1e-12)


def test_every_item_appears_once_and_in_order() -> None:
    found = align(np.random.default_rng(0).normal(size=(9, 6)), 0.1)
    assert [i for i, _ in found.steps if i is not None] == list(range(9))
    assert [j for _, j in found.steps if j is not None] == list(range(6))


def test_longest_common_subsequence() -> None:
    a, b = ["read", "edit", "test", "edit", "test"], ["read", "test", "edit", "edit", "test", "ask"]
    found = align(np.equal.outer(np.array(a), np.array(b)).astype(float))
    assert found.score == 4
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    assert found.score >= sum(x.size for x in blocks)
    assert all(a[i] == b[j] for i, j in found.pairs)


def test_empty_lists() -> None:
    assert align(np.zeros((0, 3)), 0.5).steps == ((None, 0), (None, 1), (None, 2))
    assert align(np.zeros((2, 0)), 0.5).score == -1.0
    assert match_unordered(np.zeros((0, 2))).steps == ((None, 0), (None, 1))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_unordered_is_the_best_permutation(shape: tuple[int, int]) -> None:
    for seed in range(10):
        s = np.round(np.random.default_rng(seed).uniform(-0.5, 1, shape), 1)
        wide = s if shape[0] <= shape[1] else s.T
        best = max(
            sum(max(wide[i, j], 0) for i, j in enumerate(p)) for p in permutations(range(wide.shape[1]), wide.shape[0])
        )
        found = match_unordered(s)
        assert found.score == pytest.approx(best, abs=1e-12)
        assert all(s[i, j] > 0 for i, j in found.pairs)


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError):
        align([1.0, 2.0])
    with pytest.raises(UsageError):
        align([[1.0]], gap=-1)
    with pytest.raises(UsageError):
        match_unordered([[float("nan")]])
