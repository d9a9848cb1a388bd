"""Was no failed call repeated as it was? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading.events import Call, Timeline
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class NoVerbatimRetries:
    """The same failed call again, adjacent or not, with nothing in between that changed the world.

    What changes the world: a successful call of a tool that is not declared a read; where no effects are known (an
    event list), any other successful call. One retry of a transient fault is allowed. A call that was refused for
    its arguments, or because there is no such tool, has failed too. Calls of one turn are no retries of each other:
    their agent had not seen the result.
    """

    name = "no_verbatim_retries"
    version = "2"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` counts the retries; not applicable where the log never says whether a call failed."""
        if unknown(evidence.timeline):
            return self._verdict(None, "the log does not say whether calls failed", None, ())
        found = retries(evidence.timeline)
        if not found:
            return self._verdict(True, "no failed call was repeated as it was", 0.0, ())
        tools = list(dict.fromkeys(c.tool for c in found))
        n = len(found)
        times = "once" if n == 1 else f"{n} times"
        return self._verdict(
            False, f"repeated as it was after failing, {times}: {', '.join(tools)}", float(n),
            tuple(c.step for c in found),
        )  # fmt: skip

    def _verdict(self, passed: bool | None, reason: str, value: float | None, steps: tuple[int, ...]) -> Verdict:
        return Verdict(
            metric=self.name,
            passed=passed,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=value,
            steps=steps,
        )


def unknown(line: Timeline) -> bool:
    """There are calls, and the log says of none whether it worked."""
    return bool(line.calls) and all(c.ok is None for c in line.calls)


class _Failed:
    def __init__(self, call: Call) -> None:
        self.turn = call.turn
        self.forgiven = 1 if call.transient else 0


def retries(line: Timeline) -> list[Call]:
    """The calls that repeat a failed one."""
    open_failures: dict[bytes, _Failed] = {}
    found = []
    for call in line.calls:
        before = open_failures.get(call.key)
        if before is not None and (call.turn is None or call.turn != before.turn):
            if before.forgiven:
                before.forgiven -= 1
            else:
                found.append(call)
            before.turn = call.turn
        if _changes(call, line):
            open_failures.clear()
        elif call.failed and call.refused != "user" and call.key not in open_failures:
            open_failures[call.key] = _Failed(call)
        elif call.executed and call.ok:
            open_failures.pop(call.key, None)
    return found


def _changes(call: Call, line: Timeline) -> bool:
    if not call.executed or call.ok is False:
        return False
    return not line.effects or call.effect != "read"


CHECK = NoVerbatimRetries()
