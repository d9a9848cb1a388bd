"""The outcomes table to a checked `Sample`: arms, outcome, strata labels, clusters, assignment (METHODS 3.1, 3.4)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.errors import EvidenceError, SchemaError, UsageError
from seatrial.records import SCORED, STATUSES, Dropped

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NEEDED = ("session", "arm")
OPTIONAL: dict[str, pl.DataType] = {
    "user": pl.String(),
    "task": pl.String(),
    "suite": pl.String(),
    "task_type": pl.String(),
    "difficulty": pl.String(),
    "epoch": pl.String(),
    "unit": pl.String(),
    "assigned_stratum": pl.String(),
    "probability": pl.Float64(),
    "probabilities_json": pl.String(),
    "mixed": pl.Boolean(),
    "start": pl.Float64(),
    "status": pl.String(),
    "prompt_chars": pl.Int64(),
}
EXCLUDED = tuple(s for s in STATUSES if s not in SCORED)


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """Sessions with an arm and an outcome, sorted by session so that row order cannot matter.

    `y`, `arm`, `cluster` and `probability` (of the drawn arm; NaN where not recorded) have shape (n,). `arms`
    names the arm codes, in sorted order. `cluster_kind` is user, session, unit or task; `one_user` marks a
    single known user (METHODS 3.1). `frame` keeps the columns of the same rows.
    """

    frame: pl.DataFrame
    y: Floats
    arm: Codes
    cluster: Codes
    n_clusters: int
    probability: Floats
    arms: tuple[str, ...]
    cluster_kind: str
    one_user: bool
    bounded: bool
    binary: bool

    @property
    def n(self) -> int:
        return self.y.size

    def take(self, rows: NDArray[np.bool_] | Codes, arms: Sequence[str] | None = None) -> Sample:
        """The same sample restricted to `rows` (mask or indices) and, in order, to `arms`; clusters recoded."""
        if (arms is None or tuple(arms) == self.arms) and rows.dtype == np.bool_ and rows.all():
            return self
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        names = tuple(self.arms if arms is None else arms)
        where = {name: code for code, name in enumerate(names)}
        recode = np.array([where.get(name, -1) for name in self.arms], dtype=np.int64)
        arm = recode[self.arm[index]]
        index, arm = index[arm >= 0], arm[arm >= 0]
        kept, cluster = np.unique(self.cluster[index], return_inverse=True)
        return dataclasses.replace(
            self,
            frame=self.frame[index],
            y=self.y[index],
            arm=arm,
            cluster=cluster.astype(np.int64),
            n_clusters=kept.size,
            probability=self.probability[index],
            arms=names,
        )


def codes(column: pl.Series) -> tuple[Codes, tuple[str, ...]]:
    """A text column without nulls as codes 0..L-1 in sorted label order, and the labels."""
    labels = column.unique().sort()
    enum = pl.Enum(labels)
    return column.cast(enum).to_physical().to_numpy().astype(np.int64), tuple(labels.to_list())


def numbered(column: pl.Series) -> tuple[Codes, int]:
    """A text column without nulls as codes 0..L-1 in the order of first appearance, and L.

    For names that may be pseudonyms: their order depends on the store's key, the order of sessions does not, and every
    draw over clusters or units must give the same bytes whatever the key is (METHODS 0.5).
    """
    labels = column.unique(maintain_order=True)
    return place(column, labels.to_list()), labels.len()


def place(column: pl.Series, labels: Sequence[str]) -> Codes:
    """Position of every value in `labels`, which hold them all."""
    return column.cast(pl.Enum(list(labels))).to_physical().to_numpy().astype(np.int64)


def complete(outcomes: pl.DataFrame, arm: str = "arm") -> pl.DataFrame:
    """`outcomes` with every column that this room reads, missing optional ones null, the arm column as `arm`.

    Raises:
        SchemaError: no session or arm column, a column of the wrong type, or a session that occurs twice.
    """
    if arm != "arm":
        if arm not in outcomes.columns:
            raise SchemaError(f"outcomes: no column {arm!r} to take the arm from")
        outcomes = outcomes.with_columns(pl.col(arm).cast(pl.String).alias("arm"))
    missing = [name for name in NEEDED if name not in outcomes.columns]
    if missing:
        raise SchemaError(f"outcomes: no column {missing[0]!r}", hint="expected the outcomes table's columns")
    adds, casts = [], []
    for name, kind in OPTIONAL.items():
        if name not in outcomes.columns:
            adds.append(pl.lit(None, dtype=kind).alias(name))
        elif outcomes.schema[name] != kind:
            casts.append(pl.col(name).cast(kind))
    try:
        table = outcomes.with_columns(*adds, *casts, pl.col("session", "arm").cast(pl.String))
        # Two suites may use one task id for different tasks.
        both = pl.col("suite").is_not_null() & pl.col("task").is_not_null()
        named = pl.concat_str("suite", pl.lit("/"), "task")
        table = table.with_columns(pl.when(both).then(named).otherwise("task").alias("task"))
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"outcomes: a column has the wrong type: {error}") from None
    if table["session"].null_count():
        raise SchemaError("outcomes: a row without a session id")
    if table["session"].n_unique() != table.height:
        raise SchemaError("outcomes: a session occurs more than once", hint="one row per session")
    return table


def with_value(table: pl.DataFrame, outcome: str | None, value: pl.Series | str | None) -> tuple[pl.DataFrame, str]:
    """The table with the outcome as Float64 column `_y` (null: no outcome), and the outcome's name.

    Raises:
        UsageError: neither outcome nor value, a series of another length, or an infinite value.
        SchemaError: the named column is absent or not numeric.
    """
    if value is None:
        value = outcome
    if value is None:
        raise UsageError("which outcome? give outcome= or value=", hint="for example outcome='outcome'")
    if isinstance(value, str):
        if value not in table.columns:
            raise SchemaError(f"outcomes: no column {value!r} to take the outcome from")
        column, name = table[value], outcome or value
    else:
        if value.len() != table.height:
            raise UsageError(f"value has {value.len()} rows, outcomes {table.height}")
        column, name = value, outcome or value.name or "value"
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise SchemaError(f"outcome {name!r}: expected numbers, got {column.dtype}")
    y = column.cast(pl.Float64).fill_nan(None)
    if y.is_infinite().any():
        raise UsageError(f"outcome {name!r}: a value is infinite")
    return table.with_columns(y.alias("_y")), name


def split(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[Dropped]]:
    """Rows that count, rows with an arm but no counted outcome, and what was dropped, by reason (METHODS 0.1)."""
    dropped: list[Dropped] = []
    no_arm = table.filter(pl.col("arm").is_null())
    if no_arm.height:
        dropped.append(Dropped(what="sessions", n=no_arm.height, why="no agent turn names a model"))
    table = table.filter(pl.col("arm").is_not_null())
    excluded = pl.col("status").is_in(EXCLUDED).fill_null(False)
    lost = table.filter(excluded | pl.col("_y").is_null())
    for status, n in sorted(lost.filter(excluded)["status"].value_counts().rows()):
        dropped.append(Dropped(what="sessions", n=n, why=f"status {status}: excluded, see the bounds"))
    unscored = lost.filter(~excluded).height
    if unscored:
        dropped.append(Dropped(what="sessions", n=unscored, why="no outcome (coverage by model is shown)"))
    return table.filter(~excluded & pl.col("_y").is_not_null()), lost, dropped


def clusters(table: pl.DataFrame) -> tuple[Codes, str, bool]:
    """Cluster codes, their kind, and whether one known user did everything (METHODS 0.4, 3.1, 3.4).

    The user, where several are known. Else the task, where task ids repeat: attempts of one task are never
    independent. Else the session. The assignment unit where it is coarser, that is, where every cluster lies inside
    one unit and some unit holds several. `table` has one row per session, sorted by session: clusters are numbered by
    their first.
    """
    users = 0 if table["user"].null_count() == table.height else table["user"].drop_nulls().n_unique()
    one_user = users == 1 and table["user"].null_count() == 0
    own = pl.concat_str(pl.lit("session:"), pl.col("session"))
    kind = "user" if users >= 2 else "task" if tasks_repeat(table) else "session"
    if kind == "session":
        key = own
    else:
        key = pl.when(pl.col(kind).is_not_null()).then(pl.concat_str(pl.lit(f"{kind}:"), kind)).otherwise(own)
    keyed = table.select("unit", key.alias("key"))
    units = 0 if table["unit"].null_count() else table["unit"].n_unique()
    if 0 < units < keyed["key"].n_unique():
        per_key = keyed.group_by("key").agg(pl.col("unit").n_unique())["unit"]
        if per_key.max() == 1:
            return numbered(keyed["unit"])[0], "unit", one_user
    return numbered(keyed["key"])[0], kind, one_user


def by_task(frame: pl.DataFrame) -> tuple[Codes, int]:
    """Cluster codes by task, the session where its task is unknown, and their number."""
    task = frame["task"]
    if task.null_count():
        own = pl.concat_str(pl.lit("session:"), pl.col("session"))
        task = frame.select(pl.coalesce("task", own).alias("task"))["task"]
    return numbered(task)


def tasks_repeat(table: pl.DataFrame) -> bool:
    """Whether some task was attempted more than once."""
    known = table["task"].drop_nulls()
    return bool(known.n_unique() < known.len())


def refuse_all_excluded(outcomes: pl.DataFrame) -> None:
    """Say by status what happened to every attempt, where none counts (METHODS 0.1, 0.2).

    Raises:
        EvidenceError: every row has a status that excludes it.
    """
    if outcomes.height == 0 or "status" not in outcomes.columns:
        return
    status = outcomes["status"].cast(pl.String)
    if not status.is_in(EXCLUDED).fill_null(False).all():
        return
    said = ", ".join(f"{n} {name}" for name, n in sorted(status.value_counts().rows()))
    raise EvidenceError(
        f"every attempt was excluded, by status: {said}",
        hint="nothing scored is never a result; passed, failed, error_agent and timeout are scored",
    )


def sample(table: pl.DataFrame) -> Sample:
    """The countable rows as a `Sample`.

    Raises:
        EvidenceError: no session has both an arm and an outcome.
    """
    if table.height == 0:
        raise EvidenceError("no session has both a model and an outcome", hint="nothing scored is never a result")
    table = table.sort("session")
    arm, arms = codes(table["arm"])
    cluster, kind, one_user = clusters(table)
    y = table["_y"].to_numpy().astype(np.float64)
    return Sample(
        frame=table,
        y=y,
        arm=arm,
        cluster=cluster,
        n_clusters=int(cluster.max()) + 1,
        probability=table["probability"].fill_null(float("nan")).to_numpy().astype(np.float64),
        arms=arms,
        cluster_kind=kind,
        one_user=one_user,
        bounded=bool(y.min() >= 0.0 and y.max() <= 1.0),
        binary=bool(np.isin(y, (0.0, 1.0)).all()),
    )


def probabilities(table: pl.DataFrame, arms: Sequence[str]) -> Floats | None:
    """Every arm's recorded probability, shape (n, K), NaN row where the record lacks one; None without any record."""
    texts = table["probabilities_json"]
    if texts.null_count() == table.height:
        return None
    distinct = texts.drop_nulls().unique().to_list()
    parsed: dict[str, list[float]] = {}
    for text in distinct:
        try:
            record = json.loads(text)
            parsed[text] = [float(record.get(a, 0.0)) for a in arms] if isinstance(record, dict) else []
        except (TypeError, ValueError):
            parsed[text] = []
    blank = [float("nan")] * len(arms)
    lookup = np.array([parsed[text] or blank for text in distinct] + [blank])
    place = {text: i for i, text in enumerate(distinct)}
    index = texts.replace_strict(place, default=len(distinct), return_dtype=pl.Int64).fill_null(len(distinct))
    result: Floats = lookup[index.to_numpy()]
    return result
