"""Names for traces whose source has none that is unique: from content, so that reading twice gives one trace."""

from __future__ import annotations


class Ids:
    """Hands out ids within one file: the second trace of equal id gets ``~2``, so that neither is lost."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def __call__(self, wanted: str) -> str:
        n = self._given[wanted] = self._given.get(wanted, 0) + 1
        return wanted if n == 1 else f"{wanted}~{n}"
