"""One fit, as every experiment does it: settings in, predictions, time and complaints out."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from emgpr import estimators
from emgpr.estimators.base import MultiOutputGP

Settings = dict[str, Any]  # the estimator's name and its parameters, as they stand in a row


@dataclass(frozen=True)
class Outcome:
    """Predictions at the new sites, seconds that the fit took, and what it warned of."""

    prediction: Float[np.ndarray, "M D"]
    seconds: float
    notes: list[str]


def build(settings: Settings, random_state: int) -> MultiOutputGP:
    """The unfitted estimator that the settings describe.

    >>> build({"estimator": "IndependentGP", "transform": "log"}, random_state=1)
    IndependentGP(random_state=1, transform='log')
    """
    parameters = {name: value for name, value in settings.items() if name != "estimator"}
    make = attrgetter(settings["estimator"])(estimators)
    model: MultiOutputGP = make(**parameters, random_state=random_state)
    return model


@contextmanager
def quietly() -> Iterator[Callable[[], list[str]]]:
    """One thread, and warnings kept as notes, which the function gives.

    These matrices are small: threads only make one another wait, and times of several fits at once
    then compare.
    """
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield lambda: sorted({str(warning.message) for warning in caught})


def fit_and_predict(
    settings: Settings, X: pd.DataFrame, Y: pd.DataFrame, new: pd.DataFrame, random_state: int
) -> Outcome:
    """Fit to (X, Y), predict at the new sites; warnings become notes, not noise."""
    model = build(settings, random_state)
    with quietly() as notes:
        start = perf_counter()
        model.fit(X, Y)
        seconds = perf_counter() - start
        prediction = np.asarray(model.predict(new))
    return Outcome(prediction, seconds, notes())
