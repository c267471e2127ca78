"""NumPy and torch arrays, thread limits, and decompositions of matrices.

Numerical functions are written once and work with both NumPy arrays and torch tensors. `to_device`
converts NumPy arrays to tensors, and `to_numpy` converts tensors back. Only this package imports
torch, and only when a torch device is requested.
"""

import array_api_compat.numpy  # noqa: F401  (imported now, so that the first use is fast)
from array_api_compat import array_namespace as namespace

from emgpr.arrays.decompositions import (
    eigh,
    eigvalsh,
    inv,
    inverse_root,
    solve,
    svd,
    tridiagonal,
)
from emgpr.arrays.devices import (
    Array,
    allowed_threads,
    check_device,
    chunk_bytes,
    chunks,
    diagonal,
    empty,
    limit_threads,
    panel_size,
    resolve_device,
    to_device,
    to_device_of,
    to_numpy,
    zeros,
)
from emgpr.arrays.factorisation import (
    JITTERS,
    CholeskyFactor,
    JitterWarning,
    NumericalError,
    cholesky,
)

__all__ = [
    "JITTERS",
    "Array",
    "CholeskyFactor",
    "JitterWarning",
    "NumericalError",
    "allowed_threads",
    "check_device",
    "cholesky",
    "chunk_bytes",
    "chunks",
    "diagonal",
    "eigh",
    "eigvalsh",
    "empty",
    "inv",
    "inverse_root",
    "limit_threads",
    "namespace",
    "panel_size",
    "resolve_device",
    "solve",
    "svd",
    "to_device",
    "to_device_of",
    "to_numpy",
    "tridiagonal",
    "zeros",
]
