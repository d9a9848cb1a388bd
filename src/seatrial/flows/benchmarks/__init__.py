"""Benchmarks to scorecards: other people's tasks run k times as they are, each run measured in seven dimensions."""

from seatrial.flows.benchmarks.gym_set import GymSet
from seatrial.flows.benchmarks.inspect_task import InspectTask
from seatrial.flows.benchmarks.repository import Repository, RepositorySet, from_folder
from seatrial.flows.benchmarks.scoring import evidence, score_benchmark

__all__ = ["GymSet", "InspectTask", "Repository", "RepositorySet", "evidence", "from_folder", "score_benchmark"]
