"""The uncertainty of the parameters at the end of a fit, which predictions include."""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import inv
from emgpr.covariance.vecchia_table import VecchiaTable
from emgpr.kernels import distance_scales, kernel_matrices
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction import (
    LMCModel,
    LMCPosterior,
    ParameterDirections,
    principal_directions,
    separate_directions,
)
from emgpr.weights import ParameterVector

Array = np.ndarray

# The information in the readings of one output is computed from at most this number of sites, each
# conditioned on its nearest earlier sites.
MAX_SITES, N_NEIGHBOURS = 5000, 15
DIRECTIONS_PER_OUTPUT = 4  # of the model without transfer: length-scale, noise, variance and mean
MAX_MEAN_SITES = 1000  # from which the covariance of the means is computed


def with_parameter_uncertainty(
    posterior: LMCPosterior,
    information: Float[Array, "p p"] | None,
    vector: ParameterVector | None,
    execution: Execution = DEFAULT_EXECUTION,
    *,
    known_means: bool = False,
) -> LMCPosterior:
    """Return a posterior whose predictions include the uncertainty of the parameters.

    `information` is the information matrix of the parameters in the order of `vector.pack`, which
    includes the curvature of the priors. The posterior is returned unchanged if the matrix is None
    or not finite, or if there are several members, whose spread includes this uncertainty.
    """
    table, own = posterior.observations, posterior.independent
    if information is None or vector is None or posterior.model.n_members > 1:
        return posterior
    if not np.isfinite(information).all():
        return posterior
    directions = principal_directions(
        information, posterior.model, vector.noise, table,
        free=_free_parameters(vector), device=execution.device,
        mean_covariance=None if known_means else mean_covariance(table, posterior.model),
    )  # fmt: skip
    alone = None
    if own is not None:
        alone = independent_directions(table, own, execution, known_means=known_means)
    return replace(posterior, directions=directions, independent_directions=alone)


def _free_parameters(vector: ParameterVector) -> Bool[Array, " p"]:
    """Mark the parameters that are not fixed."""
    low, high = vector.bounds.T
    start = vector.start
    weights = np.ones(start.W.shape, bool) if start.free is None else start.free
    return np.concatenate([low < high, weights.ravel()])


def independent_directions(
    observations: Observations,
    model: LMCModel,
    execution: Execution = DEFAULT_EXECUTION,
    *,
    known_means: bool = False,
) -> ParameterDirections:
    """Return the directions of the parameters of a model in which latent d is that of output d."""
    D = len(model.noise)
    parts = [model.separate_output(d) for d in range(D)]
    information = [
        output_information(observations.output(d), part, execution) for d, part in enumerate(parts)
    ]
    variances = None
    if not known_means:
        sites = observations.subsample(MAX_MEAN_SITES)
        tables = (observations.select_outputs(np.array([d])) for d in range(D))
        found = [
            mean_covariance(table, part, sites) for table, part in zip(tables, parts, strict=True)
        ]
        variances = np.ravel(found)
    return separate_directions(
        information, model, observations, mean_variances=variances,
        max_directions=DIRECTIONS_PER_OUTPUT * D, device=execution.device,
    )  # fmt: skip


def mean_covariance(
    observations: Observations, model: LMCModel, sites: Int[Array, " n"] | None = None
) -> Float[Array, "D D"]:
    """Return the posterior covariance of the means of the outputs; sites as in the next function.

    Outputs are standardised by the averages of their readings, which differ from the means of the
    processes by errors with the covariance V. With a prior whose covariance S is that of
    uncorrelated readings, the posterior covariance is V (V + S)⁻¹ S. Without it, the mean of an
    output with a trend would be more uncertain than its readings vary.
    """
    varies = np.flatnonzero(~observations.constant)
    at = np.ix_(varies, varies)
    V = average_covariance(observations, model, sites)[at]
    S = np.diag(output_variances(observations)[varies])
    posterior = V @ inv(V + S) @ S
    found = np.zeros_like(model.noise)
    found[at] = 0.5 * (posterior + posterior.T)  # symmetric, whatever the rounding errors
    return found


def average_covariance(
    observations: Observations, model: LMCModel, sites: Int[Array, " n"] | None = None
) -> Float[Array, "D D"]:
    """Return the covariance of the average readings of the outputs under a model.

    It is large for few readings, and for readings that are correlated over long distances. The
    correlation is computed from some `sites`, by default from a subsample.
    """
    table = observations.at(observations.subsample(MAX_MEAN_SITES) if sites is None else sites)
    observed = table.observed.astype(float)
    weights = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1.0)
    K = kernel_matrices(list(model.kernels), table.x)
    averages = np.einsum("dn,qnm,em->qde", weights, K, weights, optimize=True)
    n_readings = np.maximum(observations.observed.sum(axis=1), 1)
    both = observations.observed.astype(float) @ observations.observed.T
    cov = (model.B[0] * averages).sum(axis=0)
    return cov + model.noise * both / np.outer(n_readings, n_readings)


def output_information(
    table: Observations, model: LMCModel, execution: Execution = DEFAULT_EXECUTION
) -> Float[Array, "p p"]:
    """Return the information in the readings of one output about its kernel, noise and weights."""
    rows = np.arange(table.n_sites)
    chosen = rows if len(rows) <= MAX_SITES else table.subsample(MAX_SITES)
    (W,), (kernel,) = model.weights, model.kernels
    blocks = VecchiaTable.from_sites(
        table, (kernel,), N_NEIGHBOURS, distance_scales([kernel], table.x.shape[1]), chosen,
        execution=execution,
    )  # fmt: skip
    information = blocks.information(kernel.theta, W, model.noise, model.noise[None])
    return information * len(rows) / len(chosen)
