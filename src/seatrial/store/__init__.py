"""Records to disk and back: redacted traces as blobs, their numbers as tables, one version log over both."""

from seatrial.store.consent import Permission, consents, permission, permission_of, set_consent, withdraw
from seatrial.store.erase import Erasure, erase, expire
from seatrial.store.originals import Original
from seatrial.store.results import ResultHead, StoredResult
from seatrial.store.rows import frames, rows_of, session_row, step_rows
from seatrial.store.scan import Proof
from seatrial.store.store import FORMAT, Store, temporary_store
from seatrial.store.verify import Verification


def _elsewhere(url: str, *, create: bool, durable: bool) -> Store:
    from seatrial.store.remote import open_remote

    return open_remote(url, create=create, durable=durable)


Store.elsewhere = staticmethod(_elsewhere)

__all__ = [
    "FORMAT",
    "Erasure",
    "Original",
    "Permission",
    "Proof",
    "ResultHead",
    "Store",
    "StoredResult",
    "Verification",
    "consents",
    "erase",
    "expire",
    "frames",
    "permission",
    "permission_of",
    "rows_of",
    "session_row",
    "set_consent",
    "step_rows",
    "temporary_store",
    "withdraw",
]
