"""Joint distributions of the signals at many locations, and samples from them."""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh, namespace, to_device, to_numpy
from emgpr.covariance import cross_covariance
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction.exact import LMCModel, factor_readings
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray

MAX_JOINT_VALUES = 6000  # in a joint sample, which then takes a minute and a gigabyte


def check_joint_size(M: int, D: int) -> None:
    """Raise ValueError if a joint sample of D outputs at M locations would be too large."""
    if M * D > MAX_JOINT_VALUES:
        raise ValueError(
            f"A joint sample of {M} locations × {D} outputs has {M * D} values; at most "
            f"{MAX_JOINT_VALUES} are allowed. Sample fewer locations at a time."
        )


def condition_jointly(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    *,
    device: str = "cpu",
) -> tuple[Float[Array, "D M"], Float[Array, "D M D M"]]:
    """Return the joint mean and covariance of the signals at all locations, for a single member."""
    D, M = len(model.noise), len(x)
    mean, cov = np.zeros((D, M)), np.zeros((D, M, D, M))
    new = to_device(x, device)
    for group in model.coupled_outputs():
        if not group.kernels:
            continue
        d, n = group.outputs, len(group.outputs)
        (B,), noise = group.to(device)
        table = group.readings(observations).to(device)
        at = np.ix_(d, np.arange(M), d, np.arange(M))
        cov[at] = to_numpy(cross_covariance(B, kernel_matrices(group.kernels, new)))
        if not table.n_sites:
            continue
        L = factor_readings(table, B, noise, kernel_matrices(group.kernels, table.x))
        cross = cross_covariance(B, kernel_matrices(group.kernels, table.x, new))
        cross = cross.reshape(-1, n * M) * table.observed.reshape(-1, 1)
        half = L.half_solve(namespace(cross).concat([cross, table.stacked[:, None]], axis=1))
        half, target = half[:, :-1], half[:, -1]
        mean[d] = to_numpy(half.T @ target).reshape(n, M)
        cov[at] -= to_numpy(half.T @ half).reshape(n, M, n, M)
    return mean, cov


def sample_gaussian(
    cov: Float[Array, "m m"], n: int, rng: np.random.Generator
) -> Float[Array, "n m"]:
    """Draw n samples from N(0, cov); cov can be singular."""
    return rng.normal(size=(n, len(cov))) @ root(cov).T


def sample_each_location(
    covs: Float[Array, "M D D"], n: int, rng: np.random.Generator
) -> Float[Array, "n M D"]:
    """Draw n samples from N(0, cov) for each location, independently of all other locations."""
    return np.einsum("mde,nme->nmd", root(covs), rng.normal(size=(n, *covs.shape[:2])))


def root(cov: Float[Array, "*b m m"]) -> Float[Array, "*b m m"]:
    """Return R with R Rᵀ = cov; cov can be singular."""
    values, vectors = eigh(cov)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def location_blocks(cov: Float[Array, "DM DM"], M: int) -> Float[Array, "M D D"]:
    """Extract the covariance of the outputs at each location from the joint covariance."""
    D = len(cov) // M
    return np.einsum("imjm->mij", cov.reshape(D, M, D, M))


def transport_map(S: Float[Array, "M D D"], C: Float[Array, "M D D"]) -> Float[Array, "M D D"]:
    """Return the symmetric A with A S A = C, the optimal transport from N(0, S) to N(0, C)."""
    values, vectors = eigh(S)
    positive = values > 1e-10 * np.maximum(values[:, -1:], np.finfo(float).tiny)
    root = np.sqrt(np.where(positive, values, 0.0))
    reciprocal = np.where(positive, 1 / np.sqrt(np.where(positive, values, 1.0)), 0.0)
    half = (vectors * root[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    inverse = (vectors * reciprocal[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    values, vectors = eigh(half @ C @ half)
    middle = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return inverse @ middle @ inverse


def match_marginals(
    signals: Float[Array, "n D M"], cov: Float[Array, "DM DM"], predicted: GaussianMixture
) -> Float[Array, "n M D"]:
    """Transform samples from N(0, cov) to the predicted mean and covariance at each location."""
    A = transport_map(location_blocks(cov, signals.shape[-1]), predicted.cov[0])
    return predicted.mean[0] + np.einsum("mde,nem->nmd", A, signals)
