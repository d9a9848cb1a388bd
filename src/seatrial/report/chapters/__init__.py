"""A ranking to sections: the plan that terminal, page and Markdown share."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.records import Ranking
from seatrial.report.chapters import answer, kinds, measures, repeats, robust, signals, trust, types
from seatrial.report.section import Section


def ranking(r: Ranking, sections: Sequence[Section] = ()) -> tuple[Section, ...]:
    """All sections of a report on `r`, in reading order, with other flows' `sections` at their places."""
    return tuple(
        section
        for section in (
            answer.verdict(r),
            answer.models(r),
            *(s for s in sections if s.place == "answer"),
            repeats.repeats(r),
            measures.dimensions(r),
            signals.signals(r),
            kinds.kinds(r),
            types.by_type(r),
            trust.null(r),
            trust.power(r),
            robust.sensitivity(r),
            robust.robustness(r),
            trust.dropped(r),
            *(s for s in sections if s.place == "end"),
            trust.reading(r),
            trust.basis(r),
        )
        if section is not None
    )
