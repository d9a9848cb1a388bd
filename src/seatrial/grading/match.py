"""Reference calls and actual calls to their best pairing, so that no score depends on listing order (METHODS 6.2).

Modes: `strict`, the same calls in the same order; `unordered`, the same calls in any order; `superset`, the agent
made every reference call, and may have made others; `subset`, the agent made no call beyond the reference, and may
have left some out; `in_order`, every reference call in this order, others in between allowed.

Argument modes: `exact`; `ignore`; `superset`, the call has every argument of the reference with an equal value and
may have more; `subset`, the call has no argument beyond the reference's, each with an equal value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from seatrial.errors import InputError
from seatrial.grading.assertions import same

Mode = Literal["strict", "unordered", "subset", "superset", "in_order"]
Arguments = Literal["exact", "ignore", "subset", "superset"]


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a reference. `mode` overrides how its arguments are compared."""

    tool: str
    arguments: dict[str, Any] = {}
    mode: Arguments | None = None


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """A best pairing. `pairs` are (reference, actual) positions; `recall` is the matched share of the reference,
    `precision` that of the actual calls (None where the list is empty); `value` is the share that the mode asks for.
    """

    passed: bool
    pairs: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    recall: float | None
    precision: float | None
    value: float | None


def parse(raw: Mapping[str, Any]) -> tuple[tuple[Reference, ...], Mode, Arguments]:
    """The reference of a task, ``{"calls", "mode" (in_order), "arguments" (exact)}``.

    Raises:
        InputError: an unknown mode or key, or a call without a tool.
    """
    mode, arguments = raw.get("mode", "in_order"), raw.get("arguments", "exact")
    if mode not in get_args(Mode):
        raise InputError(f"reference: there is no mode {mode!r}", hint=", ".join(get_args(Mode)))
    if arguments not in get_args(Arguments):
        raise InputError(f"reference: there is no argument mode {arguments!r}", hint=", ".join(get_args(Arguments)))
    unknown = set(raw) - {"calls", "mode", "arguments"}
    if unknown:
        raise InputError(f"reference: unknown key {sorted(unknown)[0]!r}", hint="calls, mode, arguments")
    try:
        calls = msgspec.convert(raw.get("calls"), tuple[Reference, ...])
    except msgspec.ValidationError as error:
        raise InputError(f"reference: {error}", hint='calls is a list of {"tool", "arguments"}') from error
    return calls, cast(Mode, mode), cast(Arguments, arguments)


def fits(reference: Reference, tool: str, arguments: Mapping[str, Any], mode: Arguments = "exact") -> bool:
    """Whether an actual call is this reference call."""
    if reference.tool != tool:
        return False
    wanted, how = reference.arguments, reference.mode or mode
    if how == "ignore":
        return True
    if how == "exact" and wanted.keys() != arguments.keys():
        return False
    small, large = (wanted, arguments) if how == "superset" else (arguments, wanted)
    return all(name in large and same(value, large[name]) for name, value in small.items())


def match(
    reference: Sequence[Reference],
    actual: Sequence[tuple[str, Mapping[str, Any]]],
    mode: Mode = "in_order",
    arguments: Arguments = "exact",
) -> Pairing:
    """The best pairing of reference and actual calls, and whether it is what the mode asks for."""
    table = [[r.tool == tool and fits(r, tool, args, arguments) for tool, args in actual] for r in reference]
    pairs = _pairs(table, ordered=mode in ("strict", "in_order"))
    n, m, k = len(reference), len(actual), len(pairs)
    taken_reference, taken_actual = {i for i, _ in pairs}, {j for _, j in pairs}
    recall, precision = k / n if n else None, k / m if m else None
    both = 2 * k / (n + m) if n + m else None
    passed = {
        "strict": k == n == m,
        "unordered": k == n == m,
        "superset": k == n,
        "in_order": k == n,
        "subset": k == m,
    }[mode]
    value = {"strict": both, "unordered": both, "superset": recall, "in_order": recall, "subset": precision}[mode]
    return Pairing(
        passed=passed,
        pairs=pairs,
        missing=tuple(i for i in range(n) if i not in taken_reference),
        extra=tuple(j for j in range(m) if j not in taken_actual),
        recall=recall,
        precision=precision,
        value=value,
    )


def _pairs(table: list[list[bool]], *, ordered: bool) -> tuple[tuple[int, int], ...]:
    """The most pairs. Calls that fit no reference are left out first: they change nothing and are most of a trace."""
    columns = [j for j, fitting in enumerate(zip(*table, strict=True)) if any(fitting)]
    if not columns:
        return ()
    small = [[row[j] for j in columns] for row in table]
    if len(columns) == 1:
        return ((next(i for i, row in enumerate(small) if row[0]), columns[0]),)
    from seatrial import stats

    found = stats.align(small) if ordered else stats.match_unordered(small)
    return tuple((i, columns[j]) for i, j in found.pairs)
