"""Records to disk and back: redacted traces as blobs, their numbers as tables, one version log over both."""

from seatrial.store.rows import frames, session_row, step_rows
from seatrial.store.store import FORMAT, Store, temporary_store
from seatrial.store.verify import Verification

__all__ = ["FORMAT", "Store", "Verification", "frames", "session_row", "step_rows", "temporary_store"]
