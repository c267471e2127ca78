"""The one seam to the machine: NumPy or torch, and Cholesky factors with the one jitter policy.

The mathematics is written once, on the namespace of the arrays it is given. They are NumPy's,
or torch's where `put` has brought them to a device; `fetch` brings results back. No other
package knows torch, and this one imports it only when a device is asked for.
"""

import array_api_compat.numpy  # noqa: F401  (or the first array would wait for it)
from array_api_compat import array_namespace as namespace

from emgpr.arrays.devices import (
    Array,
    diagonal,
    empty,
    fetch,
    like,
    panel,
    put,
    refuse_unknown,
    room,
    settle,
    zeros,
)
from emgpr.arrays.factors import JITTERS, Factor, JitterWarning, NumericalError, factor

__all__ = [
    "JITTERS",
    "Array",
    "Factor",
    "JitterWarning",
    "NumericalError",
    "diagonal",
    "empty",
    "factor",
    "fetch",
    "like",
    "namespace",
    "panel",
    "put",
    "refuse_unknown",
    "room",
    "settle",
    "zeros",
]
