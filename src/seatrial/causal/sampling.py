"""Draw a stratified evaluation set with inclusion probabilities: difficulties covered evenly (METHODS 3.6b)."""

from __future__ import annotations

import numpy as np
import polars as pl

from seatrial.causal.prepare import codes
from seatrial.errors import SchemaError, UsageError


def sample(
    table: pl.DataFrame,
    n: int,
    *,
    strata: tuple[str, ...] = ("task_type", "difficulty"),
    key: str = "session",
    seed: int = 0,
) -> pl.DataFrame:
    """`n` rows of `table`, spread as evenly over strata as their sizes allow, with each row's inclusion probability.

    Strata share `n` equally; a stratum smaller than its share is taken whole and the rest shared again (remainders
    are drawn at random). Inside a stratum rows are drawn without replacement. The result, sorted by `key`, has two
    more columns: `stratum` and `inclusion_probability` (the number drawn over the stratum's size; its inverse is the
    weight that leads back to the original mix). The order of rows of `table` does not matter.

    Raises:
        UsageError: n below 1 or above the number of rows. SchemaError: a column is absent, or `key` is not unique.
    """
    for column in (*strata, key):
        if column not in table.columns:
            raise SchemaError(f"no column {column!r} to sample by")
    if not 1 <= n <= table.height:
        raise UsageError(f"cannot draw {n} of {table.height} rows", hint="ask for fewer, or ingest more sessions")
    if table[key].null_count() or table[key].n_unique() != table.height:
        raise SchemaError(f"column {key!r} must name every row once")
    table = table.sort(key)
    if strata:
        parts = [pl.col(c).cast(pl.String).fill_null("unknown") for c in strata]
        label = table.select(pl.concat_str(*parts, separator="/").alias("stratum"))["stratum"]
    else:
        label = pl.Series("stratum", ["all"] * table.height)
    code, labels = codes(label)
    sizes = np.bincount(code, minlength=len(labels))
    rng = np.random.default_rng(seed)
    take = allocate(sizes, n, rng)
    chosen = np.concatenate([rng.permutation(np.flatnonzero(code == s))[: take[s]] for s in range(len(labels))])
    chosen.sort()
    chance = take / sizes
    return table[chosen].with_columns(
        label[chosen].alias("stratum"), pl.Series("inclusion_probability", chance[code[chosen]])
    )


def allocate(sizes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Equal shares of `n` capped by `sizes`, as whole numbers that sum to n."""
    take = np.zeros(sizes.size, dtype=np.int64)
    left = n
    while left > 0:
        open_ = np.flatnonzero(take < sizes)
        share = left // open_.size
        if share == 0:
            take[rng.permutation(open_)[:left]] += 1
            break
        add = np.minimum(share, sizes[open_] - take[open_])
        take[open_] += add
        left -= int(add.sum())
    return take
