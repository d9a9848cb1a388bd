"""The demo's recovery chapter on few homes: exact branches, no noise, the agent misled and set right."""

from __future__ import annotations

import pytest

from seatrial.examples import household
from seatrial.flows import demo_recovery
from seatrial.flows.demo_recovery import Homes
from seatrial.recovery.branch import Design, branch
from seatrial.recovery.contrast import contrast, row
from seatrial.recovery.live import Run
from seatrial.recovery.perturb import Missing
from seatrial.recovery.table import from_pairs


def test_no_intervention_gives_no_discordant_pair() -> None:
    pairs = [p for p in demo_recovery.pairs(0, 12) if p.placebo]
    assert len(pairs) >= 100
    assert all(p.y0 == p.y1 for p in pairs)


def test_a_look_rescues_the_misled_and_harms_the_undisturbed() -> None:
    found = contrast(from_pairs(demo_recovery.pairs(0, 60)))
    clean, missing = row(found, "clean", "refresh", 1), row(found, "missing", "refresh", 1)
    assert (clean.rescue, missing.rescue > missing.harm) == (0.0, True)
    assert clean.harm > 0
    assert 0.5 < clean.stable_success + clean.harm < 0.9


def test_the_agent_is_misled_by_what_it_reads_alone() -> None:
    """The same home, the same luck: only the text of one observation differs, and with it what the agent does."""
    source = Homes()
    case = source.case("home-3", household.AGENT, max_actions=household.PATIENCE, seed=0)
    plain = Run(case)
    plain.finish()
    told = [e.results for e in plain.history]
    misled = Run(case, Missing(), 3)
    misled.finish()
    assert [e.turn for e in plain.history[:3]] == [e.turn for e in misled.history[:3]]
    assert told[2] != misled.history[2].results


def test_careful_agent_draws_and_repeats_itself_for_a_seed() -> None:
    source = Homes()
    case = source.case("home-5", household.CAREFUL, max_actions=household.PATIENCE, seed=0)
    one, two = branch(case, Design(delays=(1,), replays=3)), branch(case, Design(delays=(1,), replays=3))
    assert one.pairs == two.pairs


def test_chapter_on_few_homes() -> None:
    found = demo_recovery.run(seed=1, fitted=24, fresh=6)
    certificate = found.router.certificate
    assert certificate is not None
    assert (certificate.feasible, certificate.need) == (False, 149)
    section = demo_recovery.section(found)
    text = " ".join(section.paragraphs)
    assert "Placebo: two runs without a look differ in at most 0.0% of homes" in text
    assert "takes 149 clean tasks" in text
    assert {r.policy for r in found.rows} == {"never", "always", "router"}


@pytest.mark.full
def test_whole_chapter_is_certified() -> None:
    found = demo_recovery.run()
    certificate = found.router.certificate
    assert certificate is not None
    assert certificate.feasible
    assert certificate.n_clean == 149
    rows = {(r.policy, r.condition): r for r in found.rows}
    gain, always = rows["router", "all"].gain, rows["always", "all"].gain
    assert gain is not None
    assert always is not None
    assert gain.value > always.value
    assert rows["router", "clean"].harm <= 0.02
