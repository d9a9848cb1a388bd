"""The leaderboard, and why a model is where it is: from a place to the sentence that caused it."""

from __future__ import annotations

import itertools

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from seatrial.errors import InputError
from seatrial.records import ModelRow, Ranking
from seatrial.report import chapters, words
from seatrial.report.chapters import answer
from seatrial.report.text import clean, clip
from seatrial.server import movers, rendering, state, stored
from seatrial.server.site import Asked, Page
from seatrial.store import ResultHead

_SHOWN_SECTIONS = ("dimensions", "signals", "repeats", "types")


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two neighbours of the ranking: why is `below` below `above`? `apart`: their rank intervals do not overlap."""

    above: ModelRow
    below: ModelRow
    against: list[movers.Mover]
    sentence: movers.Sentence | None
    apart: bool
    lost: list[str] = []

    @property
    def because(self) -> list[movers.Mover]:
        """What one sentence tells: the clear reasons, two at most; the largest where none is clear."""
        return [m for m in self.against if m.clear][:2] or self.against[:1]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A stored ranking: the whole one, and the part of it that is looked at."""

    head: ResultHead
    whole: Ranking
    part: Ranking
    task_type: str
    types: list[str]


def chosen(asked: Asked) -> Chosen | None:
    """The ranking that the address names, the newest where it names none; None where there is none."""
    heads = asked.store.results("rank")
    head = stored.choose(heads, asked.text("result"))
    if head is None:
        return None
    whole = stored.ranking(asked.result(head.id, seen=False))  # its sections quote no session
    parts = whole.by.get("task_type", {})
    wanted = asked.text("type")
    if wanted and wanted not in parts:
        raise InputError(f"this ranking has no tasks of the kind {clip(clean(wanted), 60)}", hint="choose on its page")
    return Chosen(
        head=head,
        whole=whole,
        part=parts.get(wanted, whole),
        task_type=wanted if wanted in parts else "",
        types=list(parts),
    )


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Markup of what a ranking alone says: the same at every look."""

    forest: Markup | None
    verdict: Markup
    more: Markup


def _drawn(found: Chosen, rows: list[ModelRow]) -> Drawn:
    ranking = found.part
    more = [s for s in chapters.ranking(ranking) if s.key not in ("verdict", "models")]
    forest = answer.forest(ranking, rows) if any(m.net_improvement for m in rows) else None
    return Drawn(
        forest=None if forest is None else rendering.chart(forest, "forest"),
        verdict=rendering.sections([answer.verdict(ranking)], 2, "", ranking),
        more=rendering.sections(more, 2, "r-"),
    )


def leaderboard(asked: Asked) -> Response:
    """The first page."""
    snapshot = asked.site.index.current()
    heads = asked.store.results("rank")
    found = chosen(asked)
    if found is None:
        return asked.page(
            "empty_leaderboard.html",
            {
                "sessions": snapshot.frame.height,
                "data_version": snapshot.data_version,
                "lost": asked.lost("rank"),
            },
        )
    ranking = found.part
    rows = answer.ordered(ranking)
    pairs = [
        _pair(asked, found, a, b) for a, b in itertools.pairwise([m for m in rows if m.net_improvement and m.signals])
    ][:4]
    drawn = asked.site.index.derived(
        ("drawn", found.head.id, found.task_type), (), lambda snapshot: _drawn(found, rows)
    )
    return asked.page(
        "leaderboard.html",
        {
            "found": found,
            "heads": heads,
            "ranking": ranking,
            "rows": rows,
            "pairs": pairs,
            "lost": [*asked.lost("rank"), *dict.fromkeys(text for p in pairs for text in p.lost)],
            "worse": movers.WORSE,
            "by_outcome": ranking.outcome not in ("signals", "signals_mean", "score"),
            "sentences": answer.summary(ranking),
            "notes": answer.reasons(ranking, rows),
            "drawn": drawn,
            "verdict_name": words.VERDICT_NAME[ranking.design.verdict],
            "verdict_means": words.VERDICT_MEANS[ranking.design.verdict],
            "caveats": [words.sentence(text) for text in ranking.design.caveats],
            "unit": words.outcome_unit(ranking),
            "outcome": words.signal_name(ranking.outcome),
            "data_version": snapshot.data_version,
            "old": _old(asked, found.head),
            "value": movers.value,
        },
    )


def _old(asked: Asked, head: ResultHead) -> bool:
    """Whether a ranking made now would be made from something else."""
    since, store = head.data_version, asked.store
    if since is None:
        return False
    return asked.site.index.derived(("changed", since), state.RANKED, lambda snapshot: state.has_changed(store, since))


def _pair(asked: Asked, found: Chosen, above: ModelRow, below: ModelRow) -> Pair:
    against = movers.against(movers.movers(below, above))
    sentence, lost = None, list[str]()
    if against:
        for mover in against:
            seen = _behind(asked, found, below.model, mover.key)
            if seen.sentences:
                told = _told(asked, found, below.model, mover.key, seen.sentences[:1])
                sentence, lost = told.sentences[0], told.lost
                break
    apart = above.rank is not None and below.rank is not None and above.rank.high < below.rank.low
    if sentence is not None:
        asked.site.saw(asked, sentence.session)
    return Pair(above=above, below=below, against=against, sentence=sentence, apart=apart, lost=lost)


def _behind(asked: Asked, found: Chosen, model: str, key: str) -> movers.Behind:
    store, whole, part = asked.store, found.whole, found.task_type
    return asked.site.index.derived(
        ("behind", found.head.id, model, key, part),
        movers.TABLES,
        lambda snapshot: movers.behind(store, snapshot, whole, model, key, task_type=part),
    )


def _told(asked: Asked, found: Chosen, model: str, key: str, sentences: list[movers.Sentence]) -> movers.Context:
    store = asked.store
    return asked.site.index.derived(
        ("told", found.head.id, model, key, found.task_type, len(sentences)),
        movers.TABLES,
        lambda snapshot: movers.in_context(store, sentences),
        lambda context: context.whole,
    )


def why(asked: Asked) -> Response:
    """Why is this model here?"""
    found = chosen(asked)
    model = asked.text("model")
    rows = [] if found is None else answer.ordered(found.part)
    mine = next((m for m in rows if m.model == model), None)
    if found is None or mine is None:
        raise InputError("no stored ranking has this model", hint="choose one on the leaderboard")
    others = [m for m in rows if m.model != model and m.signals]
    wanted = asked.text("against")
    other = next((m for m in others if m.model == wanted), None) or _neighbour(rows, mine, others)
    measured = [] if other is None else movers.movers(mine, other)
    key = asked.text("measure") or next((m.key for m in movers.against(measured, 1)), "")
    key = key or (measured[0].key if measured else "any_complaint")
    snapshot = asked.site.index.current()
    seen = _behind(asked, found, model, key)
    told = _told(asked, found, model, key, seen.sentences)
    sentences = told.sentences
    asked.site.saw(asked, *(s.session for s in sentences))
    return asked.page(
        "why.html",
        {
            "found": found,
            "mine": mine,
            "other": other,
            "others": others,
            "measured": measured,
            "key": key,
            "mover": next((m for m in measured if m.key == key), None),
            "seen": seen,
            "sentences": sentences,
            "lost": [*asked.lost("rank"), *told.lost],
            "unit": words.outcome_unit(found.part),
            "outcome": words.signal_name(found.part.outcome),
            "baseline": words.baseline(found.part),
            "value": movers.value,
            "data_version": snapshot.data_version,
            "causal": words.is_causal(found.part),
        },
    )


def _neighbour(rows: list[ModelRow], mine: ModelRow, others: list[ModelRow]) -> ModelRow | None:
    """The model just above, or below the first."""
    at = rows.index(mine)
    above = [m for m in rows[:at] if m in others]
    return above[-1] if above else next((m for m in rows[at + 1 :] if m in others), None)


PAGES = (Page("/", leaderboard), Page("/why", why))
