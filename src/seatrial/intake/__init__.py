"""Files to a store: read, redacted, pseudonymised and committed, once however often they are read."""

from seatrial.intake.assignments import AssignmentReport, Assignments
from seatrial.intake.pipeline import attrition, ingest
from seatrial.intake.result import IngestResult

__all__ = ["AssignmentReport", "Assignments", "IngestResult", "attrition", "ingest"]
