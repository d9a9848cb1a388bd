"""A validated judge's word on actions: the last source of relevance, and no source at all without its stamp."""

from __future__ import annotations

from pathlib import Path

from seatrial.canon import canonical
from seatrial.dimensions.actions import Action, actions_of, asked_of
from seatrial.errors import EvidenceError, UsageError
from seatrial.flows.judge_endpoint import endpoint
from seatrial.flows.stamps import read_judge, read_stamp
from seatrial.grading.judge import Judge, key, refuse_own_family
from seatrial.grading.judge_cache import Cache
from seatrial.records import ActionVerdict, Evidence
from seatrial.records.judge import Complete, JudgeSpec, JudgeStamp
from seatrial.store import permission_of

CRITERION = "relevant"
_LONG = 600


class RelevanceJudge:
    """Asks a judge of each executed action whether it served the task; `asked` counts its answers.

    The judge has one criterion, ``relevant``, and a stamp that calls it usable for it (METHODS 6.4).

    Raises:
        UsageError: the judge has no such criterion, or compares pairs.
        EvidenceError: its stamp is another judge's, or does not call it usable: it may decide nothing.
    """

    def __init__(
        self,
        spec: JudgeSpec,
        complete: Complete,
        stamp: JudgeStamp,
        *,
        cache: Cache | None = None,
        allow_own_family: bool = False,
    ) -> None:
        if spec.kind != "criteria" or [c.id for c in spec.criteria] != [CRITERION]:
            raise UsageError(f"judge {spec.name} is no judge of actions", hint=f"one criterion: {CRITERION}")
        if stamp.key != key(spec):
            raise EvidenceError(f"the stamp is not of judge {spec.name} as it is now: model, prompt or rubric changed",
                                hint="seatrial judge validate --stamp")  # fmt: skip
        status = stamp.criteria.get(CRITERION)
        if status != "usable":
            raise EvidenceError(f"judge {spec.name} is {status or 'not validated'}: it decides nothing about actions",
                                hint="only a usable judge is a source of relevance")  # fmt: skip
        self._judge = Judge(spec, complete, cache)
        self._allow = allow_own_family
        self.asked = 0
        self.left_out = 0
        """Runs without consent to judge: nothing of them was asked."""

    def of(self, run: Evidence) -> tuple[ActionVerdict, ...]:
        """The verdicts on this run's executed actions; None where an answer cannot be read.

        Raises:
            UsageError: judge and agent are of one family.
            InfrastructureError: the judge does not answer.
        """
        if run.trace is None:
            return ()
        if not permission_of([run.trace], "judge").allows(run.trace.id):
            self.left_out += 1
            return ()
        refuse_own_family(self._judge.spec, [run.trace.model], allowed=self._allow)
        actions = actions_of(run.trace)
        task = asked_of(run.trace) or (run.task.input if run.task is not None else "")
        out = []
        for action in actions:
            if action.executed and action.index is not None:
                judged = self._judge.judge(record(actions, action), task=task)
                self.asked += not judged.cached
                said = judged.verdicts[0]
                out.append(
                    ActionVerdict(index=action.index, step=action.step, call_id=action.call.id, tool=action.call.name,
                                  relevant=said.passed, source="judge", why=said.reason)
                )  # fmt: skip
        return tuple(out)


def record(actions: tuple[Action, ...], judged: Action) -> str:
    """What the judge reads: every call with the beginning of its result, the one in question marked."""
    lines = []
    for a in actions:
        mark = "THE ACTION IN QUESTION " if a.position == judged.position else ""
        text = a.text if len(a.text) <= _LONG else a.text[: _LONG - 3] + "..."
        lines.append(f"{mark}{a.position + 1}. {a.call.name}({canonical(a.call.arguments).decode()}) -> {text}")
    return "\n".join(lines)


def from_files(
    judge: Path, stamp: Path, *, url: str | None = None, key_variable: str | None = None
) -> RelevanceJudge:  # fmt: skip
    """The judge of a ``judge.toml`` with its committed stamp.

    Raises:
        InputError, FormatError: a file cannot be read.
        UsageError, EvidenceError: as `RelevanceJudge`; no endpoint is known.
    """
    spec = read_judge(judge)
    return RelevanceJudge(spec, endpoint(spec, url, key_variable), read_stamp(stamp))
