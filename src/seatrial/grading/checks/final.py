"""Did it end well? The final checks of a task: the world's state and the answer (METHODS 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from seatrial import plugins
from seatrial.errors import InputError
from seatrial.grading import assertions
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict

NOT_RECORDED = {"not_recorded": True}


class Final:
    """One half of `task.check_final`.

    Assertions about the answer are the metric `final_answer`, all others `world_state`. A function judges both at
    once: its verdict is `world_state`, unless it returns ``{"world_state": ..., "final_answer": ...}``.
    """

    version = "1"
    layer: Layer = "final"

    def __init__(self, name: str, about: Literal["answer", "state"]) -> None:
        self.name = name
        self._about = about

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the share of its assertions that hold.

        Raises:
            InputError: the assertions cannot be read, or the function returned something else than a verdict.
        """
        given = task.check_final
        if given is None:
            return self._verdict(None, "the task has no final check")
        if isinstance(given, list):
            return self._assertions(assertions.parse(given), evidence)
        return self._function(given, evidence)

    def _assertions(self, all_of_them: tuple[assertions.Assertion, ...], evidence: Evidence) -> Verdict:
        mine = [a for a in all_of_them if a.about == self._about]
        if not mine:
            return self._verdict(None, f"the task asserts nothing about the {self._about}")
        outcomes = [
            assertions.judge(
                a, answer=evidence.answer, state=evidence.final, start=evidence.start, changes=evidence.changes
            )
            for a in mine
        ]
        wrong = [o for o in outcomes if o.ok is False]
        open_ones = [o for o in outcomes if o.ok is None]
        value = sum(o.ok is True for o in outcomes) / len(outcomes)
        if wrong:
            said = "; ".join(o.assertion.why + ": " + o.said if o.assertion.why else o.said for o in wrong)
            return self._verdict(False, said, value, {"failed": [o.said for o in wrong]})
        if open_ones:
            return self._verdict(None, open_ones[0].said, evidence=NOT_RECORDED)
        return self._verdict(True, "; ".join(o.said for o in outcomes), value)

    def _function(self, given: str | Callable[..., Any] | Mapping[str, Any], evidence: Evidence) -> Verdict:
        function = plugins.named(given) if isinstance(given, str) else given
        if not callable(function):
            raise InputError(f"check_final {given!r} is not a function", hint="check_final(final_answer, world_state)")
        if evidence.final is None and evidence.answer is None:
            return self._verdict(None, "neither an answer nor a state was recorded", evidence=NOT_RECORDED)
        said = function(evidence.answer or "", evidence.final if evidence.final is not None else {})
        if isinstance(said, Mapping):
            if self.name not in said:
                return self._verdict(None, f"the final check says nothing about the {self._about}")
            said = said[self.name]
        elif self._about == "answer":
            return self._verdict(None, "the final check judges answer and state in one: see world_state")
        return self._read(said)

    def _read(self, said: Any) -> Verdict:
        if isinstance(said, Verdict):
            graded = {"graded": True} if said.value is not None else {}
            return self._verdict(said.passed, said.reason, said.value, said.evidence | graded)
        if isinstance(said, bool):
            return self._verdict(said, "the final check passed" if said else "the final check did not pass")
        if said is None:
            return self._verdict(None, "the final check gave no verdict")
        raise InputError(
            f"check_final returned {type(said).__name__}", hint="a bool, a Verdict, or one of these by metric"
        )

    def _verdict(
        self, passed: bool | None, reason: str, value: float | None = None, evidence: dict[str, Any] | None = None
    ) -> Verdict:
        return Verdict(
            metric=self.name,
            passed=passed,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=value,
            evidence=evidence or {},
        )


WORLD_STATE = Final("world_state", "state")
FINAL_ANSWER = Final("final_answer", "answer")
