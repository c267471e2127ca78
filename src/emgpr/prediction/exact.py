"""A linear model of coregionalisation, and its exact predictions.

Signals f are conditioned on readings y = f + e (eq. 4 of the paper). A sample is the specimen on
which the outputs are measured at a site. The noise e of different outputs of a sample can be
correlated, with covariance Σ. If outputs s of a sample were measured and outputs u were not, then
e_u = A e_s + ε with A = Σ_us Σ_ss⁻¹. Because e_s = y_s − f_s,

    y_u = (f_u − A f_s) + A y_s + ε,   cov ε = Σ_uu − A Σ_su

so that only the distribution of the signals is needed. For an output that was already measured,
the prediction refers to a repeated measurement with independent noise.

Arguments and results are NumPy arrays; computations run on `device`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import (
    Array,
    CholeskyFactor,
    cholesky,
    chunk_bytes,
    namespace,
    solve,
    to_device,
    to_numpy,
)
from emgpr.covariance import coregionalization, cross_covariance, prior_covariance
from emgpr.covariance.lmc import observation_covariance
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction.parameter_uncertainty import (
    GroupDirections,
    MeanDerivative,
    ParameterDirections,
)
from emgpr.prediction.posterior import GaussianMixture


class CoupledOutputs(NamedTuple):
    """A group of outputs coupled by latent processes or correlated noise, and their model."""

    outputs: Int[Array, " d"]
    latents: Int[Array, " q"]
    kernels: list[Kernel]
    B: Float[Array, "L q d d"]
    noise: Float[Array, "d d"]

    def readings(self, observations: Observations) -> Observations:
        """Return the readings of these outputs at all sites with at least one such reading."""
        return observations.select_outputs(self.outputs).without_empty_sites()

    def prior_covariance(self, x: Float[Array, "M P"]) -> Float[Array, "L M d d"]:
        """Return the prior covariance of the signals at each location."""
        if not self.kernels:
            return np.zeros((len(self.B), len(x), *self.noise.shape))
        return prior_covariance(self.B, np.stack([kernel.diag(x) for kernel in self.kernels]))

    def to(self, device: str) -> tuple[Float[Array, "L q d d"], Float[Array, "d d"]]:
        """Copy the coregionalisation matrices and the noise covariance to a device."""
        return to_device(self.B, device), to_device(self.noise, device)


@dataclass(frozen=True)
class LMCModel:
    """A linear model of coregionalisation with the weights of L ensemble members.

    cov[y_d(x), y_e(x')] = Σ_q (W_q W_qᵀ)[d, e] k_q(x, x') + [x = x'] noise[d, e]
    """

    kernels: tuple[Kernel, ...]
    weights: Float[Array, "L Q D k"]
    noise: Float[Array, "D D"]

    @cached_property
    def B(self) -> Float[Array, "L Q D D"]:
        """Coregionalisation matrices W_q W_qᵀ of every member."""
        return coregionalization(self.weights)

    @cached_property
    def n_dims(self) -> list[int]:
        """Number of log hyper-parameters of each kernel."""
        return [kernel.n_dims for kernel in self.kernels]

    @property
    def n_members(self) -> int:
        """Number of ensemble members, L."""
        return len(self.weights)

    @property
    def correlated_noise(self) -> bool:
        """Whether the noise terms of different outputs are correlated."""
        return bool(np.count_nonzero(self.noise - np.diag(np.diagonal(self.noise))))

    def members(self, which: Sequence[int]) -> "LMCModel":
        """Return the model with the weights of these members only."""
        return LMCModel(self.kernels, self.weights[list(which)], self.noise)

    def separate_output(self, d: int) -> "LMCModel":
        """Return the model of output d and latent process d only."""
        at = slice(d, d + 1)
        return LMCModel(self.kernels[at], self.weights[:, at, at], self.noise[at, at])

    def prior_covariance(self, x: Float[Array, "M P"]) -> Float[Array, "L M D D"]:
        """Return the prior covariance of the signals at each location."""
        prior = np.zeros((self.n_members, len(x), *self.noise.shape))
        for group in self.coupled_outputs():
            prior[:, :, group.outputs[:, None], group.outputs] = group.prior_covariance(x)
        return prior

    def coupled_outputs(self) -> Iterator[CoupledOutputs]:
        """Yield groups of coupled outputs, such that different groups are independent.

        Predicting each group separately is exact and much faster. Without transfer, each output is
        a group of its own.
        """
        strength = np.abs(self.weights)
        by_output = np.moveaxis(strength, 2, 0).reshape(len(self.noise), -1)
        coupled = by_output @ by_output.T + np.abs(self.noise) > 0
        n, label = connected_components(coupled, directed=False)
        for group in range(n):
            d = np.flatnonzero(label == group)
            q = np.flatnonzero(strength[:, :, d].any(axis=(0, 2, 3)))
            B = coregionalization(self.weights[:, q][:, :, d])
            yield CoupledOutputs(d, q, [self.kernels[i] for i in q], B, self.noise[np.ix_(d, d)])

    def group_sizes(self, observations: Observations) -> list[int]:
        """Return the number of readings of each group of coupled outputs."""
        groups = (group.outputs for group in self.coupled_outputs())
        return [int(observations.observed[outputs].sum()) for outputs in groups]

    def directions_of(
        self, group: CoupledOutputs, directions: ParameterDirections | None
    ) -> GroupDirections | None:
        """Return the changes of the parameters of a group; None if there are no directions."""
        if directions is None or not len(directions):
            return None
        return directions.restrict(self.n_dims, self.weights[0], group.latents, group.outputs)

    def predict_groups(
        self, n_locations: int, predict: Callable[[CoupledOutputs], tuple[Array, Array]]
    ) -> GaussianMixture:
        """Predict each group of coupled outputs separately; combine the results for all outputs."""
        L, D = self.n_members, len(self.noise)
        mean, cov = np.zeros((L, n_locations, D)), np.zeros((L, n_locations, D, D))
        for group in self.coupled_outputs():
            d = group.outputs
            mean[..., d], cov[:, :, d[:, None], d] = predict(group)
        return GaussianMixture(mean, cov)


def factor_readings(
    table: Observations,
    B: Float[Array, "q d d"],
    noise: Float[Array, "d d"],
    K: Float[Array, "*b q N N"],
) -> CholeskyFactor:
    """Return the Cholesky factor of the covariance of readings in a table or stack of tables."""
    if table.x.ndim > 2:
        what = f"covariance of {table.n_sites} neighbouring sites"
    else:
        what = f"covariance of the {table.n_readings} readings used for the prediction"
    return cholesky(partial(observation_covariance, table, B, noise, K)).checked(what)


def condition(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    *,
    with_cov: bool = True,
    directions: ParameterDirections | None = None,
    device: str = "cpu",
) -> GaussianMixture:
    """Return the distribution of the signals at x given all readings, for every member.

    If `with_cov` is False, only the means are computed, and the covariances are set to zero. With
    `directions`, the covariances of a single member include the uncertainty of the parameters.
    """

    def predict(group: CoupledOutputs) -> tuple[Array, Array]:
        changes = model.directions_of(group, directions if with_cov else None)
        mean, cov, slopes = _condition(observations, x, group, with_cov, changes, device)
        return mean, cov if changes is None else changes.increase(cov, slopes, group.noise)

    return model.predict_groups(len(x), predict)


def mean_derivatives(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    directions: ParameterDirections,
    *,
    device: str = "cpu",
) -> Float[Array, "M D r"]:
    """Return the derivatives of the posterior mean at x given all readings, along directions.

    The model must have one member.
    """
    found = np.zeros((len(x), len(model.noise), len(directions)))
    for group in model.coupled_outputs():
        changes = model.directions_of(group, directions)
        found[:, group.outputs] = _condition(observations, x, group, False, changes, device)[2]
    return found


def _condition(
    observations: Observations,
    x: Float[Array, "M P"],
    group: CoupledOutputs,
    with_cov: bool,
    directions: GroupDirections | None,
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"], Float[Array, "M D r"]]:
    """Return means, covariances for fixed parameters, and derivatives of the means."""
    table, kernels, (L, _, D, _) = group.readings(observations), group.kernels, group.B.shape
    M, N = len(x), table.n_sites
    mean = np.zeros((L, M, D))
    cov = group.prior_covariance(x) if with_cov else np.zeros((L, M, D, D))
    of_prior = np.zeros((D, 0)) if directions is None else directions.of_prior
    slopes = np.tile(of_prior, (M, 1, 1))
    if not N or not kernels:
        return mean, cov, slopes
    table, new, (B, noise) = table.to(device), to_device(x, device), group.to(device)
    xp = namespace(new)
    K = kernel_matrices(kernels, table.x)
    step = max(1, int(chunk_bytes(device) // (8 * N * (D * D + len(kernels) + x.shape[1]))))
    observed = table.observed.reshape(-1, 1)
    for member in range(L):
        L_factor = factor_readings(table, B[member], noise, K)
        gamma = L_factor.solve(table.stacked[:, None])
        derivative = None
        if directions is not None:
            derivative = MeanDerivative(
                table, kernels, B[member], K, L_factor, gamma, directions.to(device)
            )
        for start in range(0, M, step):
            at = slice(start, start + step)
            Kx = kernel_matrices(kernels, table.x, new[at])
            cross = cross_covariance(B[member], Kx).reshape(D * N, -1) * observed
            mean[member, at] = to_numpy(cross.T @ gamma).reshape(D, -1).T
            if with_cov:
                half = L_factor.half_solve(cross).reshape(D * N, D, -1)
                cov[member, at] -= to_numpy(xp.einsum("ndm,nem->mde", half, half))
            if derivative is not None:
                slopes[at] = to_numpy(derivative.at(new[at], Kx))
    return mean, cov, slopes


def condition_on_sample(
    signals: GaussianMixture, noise: Float[Array, "D D"], sample: Float[Array, "M D"]
) -> GaussianMixture:
    """Condition the signals at each location on the readings at this location (NaN if missing).

    >>> signals = GaussianMixture(np.zeros((1, 1, 2)), np.array([[[[1.0, 0.5], [0.5, 1.0]]]]))
    >>> given = condition_on_sample(signals, np.eye(2), np.array([[2.0, np.nan]]))
    >>> given.mean[0, 0], given.cov[0, 0].diagonal()
    (array([1. , 0.5]), array([0.5  , 0.875]))
    """
    mean, cov = signals.mean.copy(), signals.cov.copy()
    for rows, s, _ in _patterns(sample):
        cross = cov[:, rows][:, :, s]
        gain = solve(cross[..., s] + noise[np.ix_(s, s)], cross)
        residual = sample[rows[:, None], s] - mean[:, rows[:, None], s]
        mean[:, rows] += np.einsum("lms,lmsd->lmd", residual, gain)
        cov[:, rows] -= np.swapaxes(cross, -1, -2) @ gain
    return GaussianMixture(mean, cov)


def noise_given_sample(
    signals: GaussianMixture,
    prior: Float[Array, "*l M D D"],
    noise: Float[Array, "D D"],
    sample: Float[Array, "M D"] | None = None,
) -> tuple[GaussianMixture, Float[Array, "*l M D D"], Float[Array, "M D D"]]:
    """Return the distribution of y − ε, its prior covariance, and the covariance of ε.

    The symbols are explained in the module docstring. At each location, the outputs of one sample
    are predicted. `sample` holds the outputs that were already measured on these samples, NaN where
    they were not measured. It is None if nothing was measured.

    >>> signals = GaussianMixture(np.zeros((1, 1, 2)), np.eye(2)[None, None])
    >>> noise = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> sample = np.array([[2.0, np.nan]])
    >>> given, _, remaining = noise_given_sample(signals, np.eye(2)[None], noise, sample)
    >>> given.mean[0, 0], remaining[0].diagonal()
    (array([0., 1.]), array([1.  , 0.75]))
    """
    M, D = signals.mean.shape[1:]
    remaining = np.broadcast_to(noise, (M, D, D))
    correlated = np.count_nonzero(noise - np.diag(np.diagonal(noise))) > 0
    if sample is None or not correlated or np.isnan(sample).all():
        return signals, prior, remaining
    mean, cov, prior, remaining = (
        part.copy() for part in (signals.mean, signals.cov, prior, remaining)
    )
    for rows, s, u in _patterns(sample):
        A = solve(noise[np.ix_(s, s)], noise[np.ix_(s, u)]).T
        T = np.eye(D)
        T[np.ix_(u, s)] = -A
        mean[:, rows] = mean[:, rows] @ T.T
        mean[:, rows[:, None], u] += sample[rows[:, None], s] @ A.T
        cov[:, rows] = T @ cov[:, rows] @ T.T
        prior[..., rows, :, :] = T @ prior[..., rows, :, :] @ T.T
        conditional = np.zeros((D, D))
        conditional[np.ix_(s, s)] = noise[np.ix_(s, s)]
        conditional[np.ix_(u, u)] = noise[np.ix_(u, u)] - A @ noise[np.ix_(s, u)]
        remaining[rows] = conditional
    return GaussianMixture(mean, cov), prior, remaining


def _patterns(
    sample: Float[Array, "M D"],
) -> Iterator[tuple[Int[Array, " m"], Int[Array, " s"], Int[Array, " u"]]]:
    """Group rows by their measured outputs; yield rows, measured outputs and missing outputs."""
    measured = ~np.isnan(sample)
    for pattern in np.unique(measured, axis=0):
        if pattern.any():
            rows = np.flatnonzero((measured == pattern).all(axis=1))
            yield rows, np.flatnonzero(pattern), np.flatnonzero(~pattern)
