"""Looking at a store: signal counts, explanations, exports, and what is installed here."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial import ingest, plugins, scoring, signals
from seatrial._version import __version__
from seatrial.errors import UsageError
from seatrial.flows.extract import extract_store
from seatrial.records import Trace
from seatrial.settings import load
from seatrial.store import Store


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One session and why each of its signals was kept, merged or dropped."""

    session: str
    signals: list[signals.Explanation]


def signal_counts(
    store: str | None, progress: Callable[[int, int | None, str], None] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Kept, merged and dropped signals by kind and model, and the data version."""
    opened = Store.open(store or load().store)
    extract_store(opened, scoring.UNIT, progress=progress)
    fate = (
        pl.when(pl.col("dropped_by").is_null())
        .then(pl.lit("kept"))
        .when(pl.col("dropped_by").str.starts_with("merged_into"))
        .then(pl.lit("merged"))
        .otherwise(pl.lit("dropped"))
        .alias("fate")
    )
    counted = opened.table("signals").select("kind", "model", fate).group_by("kind", "model").agg(
        *((pl.col("fate") == f).sum().alias(f) for f in ("kept", "merged", "dropped"))
    )  # fmt: skip
    return counted.sort("kind", "model", nulls_last=True).collect().to_dicts(), opened.data_version


def explain(*, session: str | None, path: Path | None, store: str | None) -> tuple[list[Explained], str | None]:
    """Why each signal of a stored session, or of every session in a file, was kept, merged or dropped."""
    if path is not None:
        traces: Iterator[Trace] = iter(ingest.read(path))
        wanted = [t for t in traces if session is None or t.id.startswith(session)]
        version = None
    elif session is not None:
        opened = Store.open(store or load().store)
        wanted, version = [opened.trace(opened.resolve(session))], opened.data_version
    else:
        raise UsageError("name a session or a file to explain")
    return [Explained(session=t.id, signals=signals.explain(signals.extract(t), t)) for t in wanted], version


def safe_name(text: str) -> str:
    """A file name for an id that came out of a trace: it can name no other folder and collides with no other."""
    from seatrial.canon import digest

    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in text).strip(".")[:80]
    return kept if kept == text else f"{kept}-{digest(text.encode())[:8]}"


_EXTRAS = (
    ("fast", ("numba", "hyperscan"), "compiled randomisation tests, fastest phrase matching"),
    ("web", ("starlette", "uvicorn", "jinja2"), "seatrial serve, seatrial view"),
    ("otel", ("opentelemetry",), "OTLP in protobuf"),
    ("raw", ("cryptography",), "ingest --keep-raw"),
    ("distributed", ("daft", "ray", "obstore"), "--engine ray, a store in a bucket (obstore)"),
)


def installation() -> dict[str, Any]:
    """Versions, readers, extras and plugins of this installation."""
    readers = [{"name": r.name, "version": r.version, "verified": r.verified} for r in ingest.readers()]
    extras = [
        {"extra": name, "installed": all(importlib.util.find_spec(m) for m in modules), "for": purpose}
        for name, modules, purpose in _EXTRAS
    ]
    return {
        "seatrial": __version__,
        "python": platform.python_version(),
        "readers": readers,
        "extras": extras,
        "plugins": _plugins(),
        "warnings": [str(broken) for group in plugins.GROUPS for broken in plugins.plugins(group).broken],
    }


def _plugins() -> list[dict[str, Any]]:
    """What other packages bring, and whether it is in use: a name that is taken, or an object that is none of its kind,
    is not."""
    from seatrial.dimensions.catalogue import dimensions
    from seatrial.grading.catalogue import checks

    used: dict[str, tuple[Any, ...]] = {
        "seatrial.readers": tuple(ingest.readers()),
        "seatrial.checks": checks(),
        "seatrial.dimensions": dimensions(),
    }
    return [
        {
            "kind": group.removeprefix("seatrial.").removesuffix("s"),
            "name": str(getattr(p.value, "name", p.name)),
            "version": str(getattr(p.value, "version", "")),
            "distribution": p.distribution,
            "in_use": group not in used or any(p.value is u for u in used[group]),
        }
        for group in plugins.GROUPS
        for p in plugins.plugins(group).found
    ]
