"""Small matrix products without the threads of a linear algebra library.

The matrices here have a few thousand rows and a few dozen columns: threads gain nothing on them, and on a machine that
is busy they wait for each other (measured: thirty seconds for a fit that takes one).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def times(x: Floats, v: Floats) -> Floats:
    """``x @ v`` for x (m, p) and v (p,)."""
    return np.asarray(np.einsum("ij,j->i", x, v), dtype=np.float64)


def transposed(x: Floats, v: Floats) -> Floats:
    """``x.T @ v`` for x (m, p) and v (m,)."""
    return np.asarray(np.einsum("ij,i->j", x, v), dtype=np.float64)


def gram(x: Floats, weight: Floats | None = None) -> Floats:
    """``x.T @ diag(weight) @ x``, p by p."""
    weighted = x if weight is None else x * weight[:, None]
    return np.asarray(np.einsum("ij,ik->jk", weighted, x), dtype=np.float64)
