"""Which kinds of signal count in a headline made of signals, which do not, and why (METHODS 2)."""

from __future__ import annotations

from seatrial.records import KindUse, Ranking
from seatrial.report import numbers, words
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean


def outcome(r: Ranking) -> str:
    """The headline outcome in words, with the kinds of signal that it leaves out."""
    said = words.SIGNALS.get(r.outcome, r.outcome)
    out = [_kind(use) for use in _unheard(r)]
    return f"{said} (without {numbers.join(out)})" if out else said


def kinds(r: Ranking) -> Section | None:
    """None where the headline is not made of signals."""
    if not r.kinds:
        return None
    out = _unheard(r)
    first = (
        f"Left out of the headline: {numbers.join([_kind(use) for use in out])}. The tables of signals still show them."
        if out
        else "Every kind of signal that an outcome rests on counts in the headline."
    )
    rule = (
        "A kind of signal counts in the headline only if at least half of what is taken for it is right, at the lower "
        "end of the interval of its precision on labelled cases; a kind without labels does not."
    )
    return Section(
        key="kinds",
        heading="Which signals count in the headline",
        paragraphs=(first, rule),
        tables=(
            Table(
                caption="Kinds of signal: whether they count, their precision, the labelled cases behind it, and why",
                columns=(
                    Column(head="Kind"),
                    Column(head="Counts"),
                    Column(head="Precision", right=True),
                    Column(head="Labelled", right=True),
                    Column(head="Why"),
                ),
                rows=tuple(_row(use) for use in r.kinds),
            ),
        ),
    )


def _unheard(r: Ranking) -> list[KindUse]:
    """Kinds that some outcome would hear but the headline does not."""
    return [use for use in r.kinds if use.part and not use.counts]


def _kind(use: KindUse) -> str:
    return words.plain_name(clean(use.kind)).lower()


def _row(use: KindUse) -> tuple[str | None, ...]:
    p = use.precision
    precision = None if p is None else numbers.number(p.value, "plain", 2)
    if p is not None and p.low is not None:
        precision = f"{precision}\n{numbers.interval(p.low, p.high, 'plain', 2)}"
    counts = "yes" if use.counts else "no" if use.part else "no part"
    return (_kind(use), counts, precision, numbers.count(use.n_labelled), clean(use.why))
