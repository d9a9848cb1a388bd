"""What an ALFWorld game says to the next command: agents that read, remember, search, and can be misled."""

from seatrial.world.household.agent import AGENTS, HouseholdAgent, Traits
from seatrial.world.household.reading import Goal, Percept, goal_of, percepts

__all__ = ["AGENTS", "Goal", "HouseholdAgent", "Percept", "Traits", "goal_of", "percepts"]
