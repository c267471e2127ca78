"""Fitting of a model with given settings, and recording of its predictions, time and warnings."""

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
from emgpr.estimators import GPRegressor

Settings = dict[str, Any]  # the name of the estimator and its parameters, as stored in a row


@dataclass(frozen=True)
class Outcome:
    """Predictions at new locations, the duration of the fit in seconds, and its warnings."""

    prediction: Float[np.ndarray, "M D"]
    seconds: float
    notes: list[str]


def build(settings: Settings, random_state: int) -> GPRegressor:
    """Return an unfitted estimator with these settings and, if it is random, this seed.

    >>> build({"estimator": "IndependentGP", "output_transform": "log"}, random_state=1)
    IndependentGP(output_transform='log', random_state=1)
    """
    parameters = {name: value for name, value in settings.items() if name != "estimator"}
    make = attrgetter(settings["estimator"])(estimators)
    model: GPRegressor = make(**parameters)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=random_state)
    return model


@contextmanager
def one_thread_with_notes() -> Iterator[Callable[[], list[str]]]:
    """Run the `with` block in one thread, and yield a function that returns its warnings.

    The matrices are too small to benefit from several threads. Also, the times of fits that run in
    parallel are comparable only if each fit has one thread.
    """
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield lambda: sorted({str(warning.message) for warning in caught})


def fit_and_predict(
    settings: Settings, X: pd.DataFrame, Y: pd.DataFrame, X_new: pd.DataFrame, random_state: int
) -> Outcome:
    """Fit an estimator to (X, Y), and predict at the locations X_new."""
    model = build(settings, random_state)
    with one_thread_with_notes() as notes:
        start = perf_counter()
        model.fit(X, Y)
        seconds = perf_counter() - start
        prediction = np.asarray(model.predict(X_new))
    return Outcome(prediction, seconds, notes())
