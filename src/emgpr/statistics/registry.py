"""The statistics of predicted frames and maps; a new one is a class in its own file, added here."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emgpr.statistics.base import Statistic
from emgpr.statistics.builtin import (
    Centre,
    Exceedance,
    Quantiles,
    StandardDeviation,
    threshold_per_output,
)


def requested(
    outputs: Sequence[str],
    *,
    statistic: str = "median",
    quantiles: Any = None,
    exceedance: Any = None,
) -> list[Statistic]:
    """Return the statistics in a frame or map: centre, standard deviation, and any requested."""
    chosen: list[Statistic] = [Centre(statistic), StandardDeviation()]
    if quantiles is not None:
        if not np.size(quantiles):
            raise ValueError(f"quantiles={quantiles!r}; expected probabilities between 0 and 1.")
        chosen.append(Quantiles(quantiles))
    if exceedance is not None:
        chosen.append(Exceedance(threshold_per_output(exceedance, outputs)))
    return chosen
