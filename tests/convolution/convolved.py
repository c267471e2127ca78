"""Convolved processes with known parameters, and tables drawn from them."""

import numpy as np

from emgpr.convolution import ConvolutionParameters, ConvolvedCovariance
from emgpr.observations import Observations
from emgpr.prediction import ReadingLocations


def some_covariance(rng, *, Q=2, D=3, P=2, own=False) -> ConvolvedCovariance:
    """A covariance whose outputs have different widths, lengths and weights."""
    shared = (
        rng.uniform(0.3, 1.0, Q), rng.uniform(0.1, 0.8, D), rng.normal(size=(Q, D)), P,
    )  # fmt: skip
    return ConvolvedCovariance(*shared, *((rng.uniform(0.2, 1.0, (2, D))) if own else ()))


def some_parameters(rng, **shape) -> ConvolutionParameters:
    covariance = some_covariance(rng, **shape)
    return ConvolutionParameters(covariance, rng.uniform(0.05, 0.3, covariance.n_outputs))


def drawn_table(rng, parameters: ConvolutionParameters, N=15, missing=0.0) -> Observations:
    """Sites in the unit cube, and readings drawn from the model."""
    D, P = parameters.covariance.n_outputs, parameters.covariance.n_inputs
    x = rng.uniform(size=(N, P))
    places = ReadingLocations.all_outputs(x, D)
    cov = parameters.covariance.between(places, places)
    cov += np.diag(parameters.noise[places.output])
    y = (np.linalg.cholesky(cov) @ rng.normal(size=N * D)).reshape(D, N).T
    return Observations.from_table(x, np.where(rng.uniform(size=y.shape) < missing, np.nan, y))


def covariance_of(table: Observations, parameters: ConvolutionParameters) -> np.ndarray:
    """Covariance of all readings, ordered by output."""
    places = ReadingLocations.measured(table)
    cov = parameters.covariance.between(places, places)
    return cov + np.diag(parameters.noise[places.output])
