"""What could explain the answer away, and whether other defensible analyses agree (METHODS 3.4c, 3.5)."""

from __future__ import annotations

from typing import Any

from seatrial.records import ModelRow, Ranking
from seatrial.report import numbers, words
from seatrial.report.chapters import answer
from seatrial.report.chapters.measures import MODEL, keys
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, name


def sensitivity(r: Ranking) -> Section | None:
    """How strong an unseen common cause would have to be (METHODS 3.4c)."""
    rows = [m for m in answer.ordered(r) if m.sensitivity]
    if not rows:
        return None
    maps = [flat(m.sensitivity or {}) for m in rows]
    names = [key for key in keys(maps, _SENSITIVITY) if any(key in m for m in maps)]
    plain = [
        key
        for key in names
        if not any(isinstance(m.get(key), str) for m in maps) and any(m.get(key) is not None for m in maps)
    ]
    notes = {
        f"{label_of(key.removesuffix('_note'))}: {clean(m[key])}": None
        for m in maps
        for key in m
        if isinstance(m[key], str) and m.get(key.removesuffix("_note"), "") is not None
    }
    if "gamma" in names and "gamma" not in plain:
        notes["Rosenbaum Γ: not applicable, it needs outcomes of 0 or 1"] = None
    return Section(
        key="sensitivity",
        heading="Sensitivity: what could explain this away",
        paragraphs=(
            (
                "Without random assignment something unseen may decide both which model is used and how it goes. "
                "The larger a number, the stronger such a cause would have to be to explain the association away."
            ),
        ),
        tables=(
            Table(
                caption="Sensitivity by model",
                columns=(MODEL, *(Column(head=label_of(key), right=True) for key in plain)),
                rows=tuple(
                    (name(m.model), *(_strength(values.get(key)) for key in plain))
                    for m, values in zip(rows, maps, strict=True)
                ),
            ),
        ),
        notes=tuple(notes),
    )


def _strength(value: Any) -> str | None:
    return None if value is None else f"{value:.2f}" if isinstance(value, float) else clean(numbers.anything(value))


_SENSITIVITY: dict[str, str] = {
    "robustness_value": "Robustness value",
    "robustness": "Robustness value",
    "e_value": "E-value",
    "e_value_limit": "E-value of the interval's limit",
    "gamma": "Rosenbaum Γ",
}
_ROBUSTNESS: dict[str, str] = {
    "bootstrap_median": "Median of the cluster bootstrap",
    "winsorised": "Outcome winsorised at 10%",
    "leave_one_stratum_out": "Leaving out one stratum, from / to",
    "manski": "Manski bounds",
    "cr3_over_cr1": "CR3/CR1",
    "se_ignoring_clusters": "SE if clusters were ignored",
    "null_sd": "SD of the null, closed form / draws",
    "g_effective_by_model": "G* of the model",
    "degrees_of_freedom": "Degrees of freedom",
    "p_any": "p of the null that no model matters",
}
_INTERVALS = ("leave_one_stratum_out", "manski")
_EFFECTS = ("bootstrap_median", "winsorised")
_SIZES = ("se_ignoring_clusters", "null_sd")


def label_of(key: str) -> str:
    """A detail's label: known ones in words, dotted paths of others spelled out."""
    known = {**_SENSITIVITY, **_ROBUSTNESS}
    return known.get(key) or words.plain_name(clean(key).replace(".", ", "))


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested maps as one map with dotted keys."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out.update(flat(value, f"{prefix}{key}."))
        else:
            out[prefix + key] = value
    return out


def robustness(r: Ranking) -> Section | None:
    """Whether other defensible analyses agree (METHODS 3.5), and what carries the result."""
    rows = answer.ordered(r)
    models = {m.model for m in rows}
    found = {key: v for key, v in r.robustness.items() if v is not None and not key.startswith("p_holm_by_")}
    by_model = {key: v for key, v in found.items() if isinstance(v, dict) and v and set(v) <= models}
    rest = flat({key: v for key, v in found.items() if key not in by_model})
    effects = [key for key in (*_EFFECTS, *_INTERVALS) if key in by_model]
    spread = [key for key in keys([by_model], _ROBUSTNESS) if key not in effects]
    general = (
        f"Effective clusters G*: {numbers.effective(r.g_effective)}; the largest cluster holds "
        f"{numbers.number(r.largest_cluster_share, 'percent')} of the weight."
    )
    tables = [
        _table(r, rows, caption, {key: by_model[key] for key in picked})
        for caption, picked in (("The estimate under other analyses", effects), ("What carries it", spread))
        if picked
    ]
    return Section(
        key="robustness",
        heading="Robustness",
        paragraphs=(general,),
        items=tuple(f"{label_of(key)}: {clean(_scaled(r, key, rest[key]))}." for key in keys([rest], _ROBUSTNESS)),
        tables=tuple(tables),
    )


def _table(r: Ranking, rows: list[ModelRow], caption: str, by_model: dict[str, dict[str, Any]]) -> Table:
    shown = [m for m in rows if any(m.model in values for values in by_model.values())]
    return Table(
        caption=caption,
        columns=(
            MODEL,
            Column(head="Estimate", right=True),
            *(Column(head=label_of(key), right=True) for key in by_model),
        ),
        rows=tuple(
            (
                name(m.model),
                numbers.number(m.net_improvement.value, words.outcome_unit(r)) if m.net_improvement else None,
                *(
                    clean(_scaled(r, key, values[m.model])) if m.model in values else None
                    for key, values in by_model.items()
                ),
            )
            for m in shown
        ),
    )


def _scaled(r: Ranking, key: str, value: Any) -> str:
    """An effect is written in points with its sign, an error's size without, anything else as it is."""
    unit = words.outcome_unit(r)
    size: numbers.Unit = "size" if unit == "points" else "plain"
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(part, float | int) for part in parts):
        return numbers.anything(value)
    if key in _INTERVALS and len(parts) == 2:
        return numbers.interval(parts[0], parts[1], unit)
    if key in _EFFECTS:
        return ", ".join(numbers.number(part, unit) for part in parts)
    if key in _SIZES:
        return " / ".join(numbers.number(part, size) for part in parts)
    if key == "p_any":
        return numbers.p_value(float(parts[0]))
    return ", ".join(f"{part:.2f}" if isinstance(part, float) else numbers.anything(part) for part in parts)
