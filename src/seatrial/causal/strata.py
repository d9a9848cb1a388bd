"""Pre-treatment strata and the overlap ladder: which sessions may be compared (METHODS 3.3, 3.4b)."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.causal.cells import distinct
from seatrial.causal.prepare import Codes, Floats, Sample, codes
from seatrial.records import Dropped

MIN_SESSIONS = 10
MIN_CLUSTERS = 2
"""What every cell of stratum x arm should hold; two clusters is a floor, ten sessions a target."""

_ORDER = (
    ("trivial", "very easy"),
    ("easy", "simple", "low", "short", "small"),
    ("medium", "moderate", "normal", "mid"),
    ("hard", "difficult", "high", "complex", "long", "large"),
    ("very hard", "expert", "extreme", "very high"),
)
UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Strata:
    """`code` (n,): stratum of every session, -1 where dropped. `weight_by_p`: weights 1/p are needed inside strata.

    `retained` is the share of sessions in strata where every arm appears. `thin` counts kept strata with a cell
    under ten sessions. `merges` and `dropped` say what was done. `base` holds the unmerged codes, `n_sk` (S, K)
    the unmerged cell counts, `members` the merged stratum of every base stratum (-1: dropped).
    """

    code: Codes
    labels: tuple[str, ...]
    retained: float
    thin: int
    weight_by_p: bool
    merges: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    base: Codes
    base_labels: tuple[str, ...]
    members: Codes


@dataclasses.dataclass(slots=True)
class _Group:
    n: Floats
    seen: list[set[int]]
    task_type: str
    difficulties: set[int]
    epochs: set[int]
    p: Floats
    varies: bool
    members: list[int]
    least: int = MIN_CLUSTERS

    @property
    def complete(self) -> bool:
        return all(len(s) >= self.least for s in self.seen)

    @property
    def full(self) -> bool:
        return self.complete and bool((self.n >= MIN_SESSIONS).all())

    def same_p(self, other: _Group) -> bool:
        """Equal recorded probabilities; an arm that is absent from one of them (NaN) says nothing."""
        both = ~(np.isnan(self.p) | np.isnan(other.p))
        return not self.varies and not other.varies and bool((np.abs(self.p - other.p)[both] <= 1e-9).all())

    def absorb(self, other: _Group) -> None:
        self.varies = not self.same_p(other)
        self.p = np.where(np.isnan(self.p), other.p, self.p)
        self.n = self.n + other.n
        for mine, theirs in zip(self.seen, other.seen, strict=True):
            mine.update(theirs)
        self.difficulties |= other.difficulties
        self.epochs |= other.epochs
        self.members += other.members


def difficulty_order(label: str) -> tuple[float, str]:
    """Sort key of a difficulty: numbers by value, known words by hardness, `unknown` last, others by name."""
    text = label.strip().lower().replace("_", " ").replace("-", " ")
    if text == UNKNOWN:
        return (1e9, text)
    for place, words in enumerate(_ORDER):
        if text in words:
            return (float(place), text)
    number = re.fullmatch(r"(?:level |l|d)?(\d{1,6}(?:\.\d{1,6})?)", text)
    return (float(number.group(1)), text) if number else (1e6, text)


def _first_two(sample: Sample, cell: Codes, n_cells: int) -> list[set[int]]:
    """Up to two distinct clusters of every cell: enough to know whether there are two after any merge."""
    pairs = distinct(cell * np.int64(sample.n_clusters) + sample.cluster)
    owner, cluster = pairs // sample.n_clusters, pairs % sample.n_clusters
    start = np.searchsorted(owner, np.arange(n_cells + 1))
    return [set(cluster[start[c] : min(start[c] + MIN_CLUSTERS, start[c + 1])].tolist()) for c in range(n_cells)]


def _p_keys(sample: Sample, cell: Codes, n_sk: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean recorded probability of every cell (S, K), and whether it varies inside any cell of the stratum (S,)."""
    shape = n_sk.shape
    if np.isnan(sample.probability).any():
        return np.full(shape, np.nan), np.zeros(shape[0], dtype=bool)
    low, high = np.full(n_sk.size, np.inf), np.full(n_sk.size, -np.inf)
    np.minimum.at(low, cell, sample.probability)
    np.maximum.at(high, cell, sample.probability)
    varies = ((high - low) > 1e-9).reshape(shape).any(axis=1)
    return np.where(np.isfinite(low), low, np.nan).reshape(shape), varies


def base_strata(
    sample: Sample, by: tuple[str, ...] = ("task_type", "difficulty", "epoch")
) -> tuple[pl.DataFrame, Codes]:
    """One row per unmerged stratum (task_type, difficulty, epoch) and the code of every session."""
    names = ("task_type", "difficulty", "epoch")
    filled = sample.frame.select(
        *(pl.col(c).fill_null(UNKNOWN if c != "epoch" else "") if c in by else pl.lit("").alias(c) for c in names)
    )
    key = filled.select(pl.concat_str(*names, separator="\x1f").alias("key"))["key"]
    code, labels = codes(key)
    table = pl.DataFrame([label.split("\x1f")[:3] for label in labels], schema=list(names), orient="row")
    return table, code


def _label(table: pl.DataFrame, members: list[int]) -> str:
    def joined(column: str) -> str:
        return "+".join(sorted({str(table[column][i]) for i in members} - {""}))

    return " / ".join(part for part in (joined(c) for c in table.columns) if part) or "all sessions"


def _neighbours(group: _Group, groups: list[_Group]) -> tuple[list[_Group], str]:
    """Adjacent difficulties of the same task type and epochs; where there are none, adjacent epochs."""
    kin = [g for g in groups if g.task_type == group.task_type]
    same = sorted((g for g in kin if g.epochs == group.epochs), key=lambda g: min(g.difficulties))
    place = next(i for i, g in enumerate(same) if g is group)
    near = same[max(place - 1, 0) : place] + same[place + 1 : place + 2]
    if near:
        return near, "adjacent difficulties"
    distance = {id(g): min(abs(a - b) for a in g.epochs for b in group.epochs) for g in kin if g is not group}
    closest = min(distance.values(), default=0)
    return [g for g in kin if g is not group and distance[id(g)] == closest], "adjacent epochs"


def _merge(groups: list[_Group], table: pl.DataFrame) -> list[str]:
    """Merge in place, smallest deficient stratum first; never across task types (METHODS 3.4b)."""
    said: list[str] = []
    stuck: set[int] = set()
    while True:
        poor = [g for g in groups if not g.full and id(g) not in stuck]
        if not poor:
            return said
        group = min(poor, key=lambda g: (g.n.sum(), g.members[0]))
        near, how = _neighbours(group, groups)
        if not near:
            stuck.add(id(group))
            continue
        partner = min(near, key=lambda g: (not group.same_p(g), g.n.sum(), g.members[0]))
        said.append(f"{_label(table, group.members)} with {_label(table, partner.members)} ({how})")
        group.absorb(partner)
        groups[:] = [g for g in groups if g is not partner]


def ladder(
    sample: Sample, by: tuple[str, ...] = ("task_type", "difficulty", "epoch"), *, least: int = MIN_CLUSTERS
) -> Strata:
    """Merged strata in which every arm of `sample.arms` has `least` clusters, and ten sessions if it can be had.

    What cannot be merged into such a stratum is dropped for all arms (rung a of METHODS 3.4b) and named.
    """
    table, base = base_strata(sample, by)
    s_count, k_count = table.height, len(sample.arms)
    cell = base * k_count + sample.arm
    n_sk = np.bincount(cell, minlength=s_count * k_count).reshape(s_count, k_count).astype(np.float64)
    seen = _first_two(sample, cell, s_count * k_count)
    p_key, varies = _p_keys(sample, cell, n_sk)
    scale = sorted(set(table["difficulty"].to_list()), key=difficulty_order)
    epochs = sorted(set(table["epoch"].to_list()))
    groups = [
        _Group(
            n=n_sk[s],
            seen=seen[s * k_count : (s + 1) * k_count],
            task_type=str(table["task_type"][s]),
            difficulties={scale.index(table["difficulty"][s])},
            epochs={epochs.index(table["epoch"][s])},
            p=p_key[s],
            varies=bool(varies[s]),
            members=[s],
            least=least,
        )
        for s in range(s_count)
    ]
    merges = _merge(groups, table)
    groups.sort(key=lambda g: min(g.members))
    members = np.full(s_count, -1, dtype=np.int64)
    labels: list[str] = []
    dropped: list[Dropped] = []
    for group in groups:
        if group.complete:
            members[group.members] = len(labels)
            labels.append(_label(table, group.members))
        else:
            lacking = [a for a, s in zip(sample.arms, group.seen, strict=True) if len(s) < least]
            few = "no session" if least == 1 else "fewer than two clusters"
            why = f"stratum {_label(table, group.members)}: {few} of {', '.join(lacking)}"
            dropped.append(Dropped(what="sessions in the estimate", n=int(group.n.sum()), why=why))
    code = members[base]
    kept = [g for g in groups if g.complete]
    return Strata(
        code=code,
        labels=tuple(labels),
        retained=float((code >= 0).mean()),
        thin=sum(not g.full for g in kept),
        weight_by_p=any(g.varies for g in kept),
        merges=tuple(merges),
        dropped=tuple(dropped),
        base=base,
        base_labels=tuple(_label(table, [s]) for s in range(s_count)),
        members=members,
    )


def components(base: Codes, arm: Codes, k_count: int) -> list[list[int]]:
    """Arms linked by shared strata, largest set first: contrasts across sets are not identified."""
    parent = list(range(k_count))

    def root(a: int) -> int:
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    present = distinct(base * k_count + arm)
    anchor: dict[int, int] = {}
    for pair in present.tolist():
        s, k = divmod(pair, k_count)
        if s in anchor:
            parent[root(k)] = root(anchor[s])
        else:
            anchor[s] = k
    sets: dict[int, list[int]] = {}
    for k in range(k_count):
        sets.setdefault(root(k), []).append(k)
    sizes = np.bincount(arm, minlength=k_count)
    return sorted(sets.values(), key=lambda ks: (-len(ks), -int(sizes[ks].sum()), ks[0]))


def manski(base: Codes, sample: Sample, coefficients: Floats) -> Floats:
    """Bounds (M, 2) on contrasts over *all* strata, outcomes in [0, 1]: empty cells give W_s [min(0,c), max(0,c)]."""
    k_count = len(sample.arms)
    s_count = int(base.max()) + 1
    cell = base * k_count + sample.arm
    n = np.bincount(cell, minlength=s_count * k_count).reshape(s_count, k_count)
    total = np.bincount(cell, weights=sample.y, minlength=s_count * k_count).reshape(s_count, k_count)
    mean = total / np.maximum(n, 1)
    share = n.sum(axis=1) / n.sum()
    known = np.where(n > 0, share[:, None] * mean, 0.0).sum(axis=0)
    empty = np.where(n > 0, 0.0, share[:, None]).sum(axis=0)
    low = coefficients @ known + np.minimum(coefficients, 0.0) @ empty
    high = coefficients @ known + np.maximum(coefficients, 0.0) @ empty
    return np.column_stack([low, high])
