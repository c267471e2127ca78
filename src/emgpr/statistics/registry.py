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
from emgpr.statistics.candidate_weights import CandidateShares


def requested(
    outputs: Sequence[str],
    *,
    statistic: str = "median",
    quantiles: Any = None,
    exceedance: Any = None,
    explain: bool = False,
) -> list[Statistic]:
    """Return the statistics in a frame or map: centre, standard deviation and those requested."""
    chosen: list[Statistic] = [Centre(statistic), StandardDeviation()]
    if quantiles is not None:
        if not np.size(quantiles):
            raise ValueError(f"quantiles={quantiles!r}; expected probabilities between 0 and 1.")
        chosen.append(Quantiles(quantiles))
    if exceedance is not None:
        chosen.append(Exceedance(threshold_per_output(exceedance, outputs)))
    if explain:
        chosen.append(CandidateShares())
    return chosen


def columns_by_output(
    outputs: Sequence[str], statistics: Sequence[Statistic]
) -> dict[str, list[str]]:
    """Return the columns of each output in a frame of these statistics.

    >>> columns_by_output(["Cd", "Zn"], requested(["Cd", "Zn"], exceedance={"Cd": 0.8}))
    {'Cd': ['Cd', 'Cd_std', 'Cd_above_0.8'], 'Zn': ['Zn', 'Zn_std']}
    """
    return {
        name: [
            column
            for statistic in statistics
            if statistic.applies_to(d)
            for column in statistic.columns(name, d)
        ]
        for d, name in enumerate(outputs)
    }
