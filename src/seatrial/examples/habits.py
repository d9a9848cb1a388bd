"""How good a scripted agent is: probabilities of documented bad and good habits, nothing else."""

from __future__ import annotations

import msgspec


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """Each is a probability in [0, 1], drawn anew whenever the occasion arises.

    A bad habit only makes the agent *act* differently; whether the job then comes out right is decided by
    the world, and whether the user notices by the user.
    """

    slips: float
    """Per change: takes the wrong value, or the right change to a look-alike (wrong arguments)."""
    leaves_out: float
    """Per item after the first of a job with several items: forgets it."""
    verifies: float
    """Per job: reads back or runs the tests before it answers, and repairs what it finds."""
    overlooks: float
    """Per verification: looks and does not see the fault."""
    fumbles: float
    """Per command: gets an option or name wrong first, so that the command fails."""
    gives_up: float
    """Per failed call: stops working on the job."""
    invents: float
    """Per job: first calls a tool that does not exist."""
    meddles: float
    """Per job: also changes something that nobody asked for."""
    overclaims: float
    """After giving up: says that it is done."""
    heeds: float
    """Per correction: does precisely what it says; otherwise it works as it did the first time."""
    asks: float
    """Per job with several changes: describes the plan and asks before it acts."""
    offers: float
    """Per job: offers something extra at the end."""
    seconds: float
    """Mean time of one response, in seconds."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A member of the fleet. `about` says its weaknesses in words; the users never see any of this."""

    name: str
    about: str
    habits: Habits


FLEET: tuple[Profile, ...] = (
    Profile(
        name="harbor-large",
        about="careful and slow: verifies most of its work, works past errors, heeds corrections",
        habits=Habits(
            slips=0.14,
            leaves_out=0.06,
            verifies=0.75,
            overlooks=0.15,
            fumbles=0.03,
            gives_up=0.1,
            invents=0.01,
            meddles=0.02,
            overclaims=0.1,
            heeds=0.85,
            asks=0.15,
            offers=0.12,
            seconds=9.0,
        ),
    ),
    Profile(
        name="harbor-small",
        about="quick: as able as its larger sibling, but seldom verifies, so slips and omissions stay",
        habits=Habits(
            slips=0.18,
            leaves_out=0.1,
            verifies=0.35,
            overlooks=0.2,
            fumbles=0.06,
            gives_up=0.2,
            invents=0.03,
            meddles=0.04,
            overclaims=0.4,
            heeds=0.75,
            asks=0.05,
            offers=0.1,
            seconds=3.0,
        ),
    ),
    Profile(
        name="tern-2",
        about="timid: gives up after an error and says so, leaves parts out, asks before it acts",
        habits=Habits(
            slips=0.16,
            leaves_out=0.16,
            verifies=0.35,
            overlooks=0.3,
            fumbles=0.12,
            gives_up=0.55,
            invents=0.05,
            meddles=0.03,
            overclaims=0.15,
            heeds=0.65,
            asks=0.35,
            offers=0.05,
            seconds=6.0,
        ),
    ),
    Profile(
        name="kite-mini",
        about="careless: wrong arguments, tools that do not exist, unasked changes, and claims to be done",
        habits=Habits(
            slips=0.27,
            leaves_out=0.2,
            verifies=0.12,
            overlooks=0.4,
            fumbles=0.15,
            gives_up=0.4,
            invents=0.18,
            meddles=0.12,
            overclaims=0.8,
            heeds=0.5,
            asks=0.02,
            offers=0.15,
            seconds=2.0,
        ),
    ),
)
"""The demo's fleet, best first by construction of the habits; `planted.json` holds the truth by simulation."""
