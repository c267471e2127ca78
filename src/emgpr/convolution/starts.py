"""Starting points of the search for the parameters of convolved processes.

The likelihood has several maxima. The first starting point has the length-scales and noise that
were found for each output alone. In the others, length-scales are random, from the distance between
neighbouring sites to a quarter of the region's extent. The range is divided into equal intervals on
the log scale, and each length-scale is in each interval once. The weights of the latent processes
are the principal components of the outputs, which are rotated at random.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh
from emgpr.convolution.covariance import ConvolvedCovariance
from emgpr.convolution.parameters import ConvolutionParameters, ConvolutionVector
from emgpr.latents import Latent, typical_distances
from emgpr.observations import Observations
from emgpr.weights import output_correlation

Array = np.ndarray

SIGNAL_SHARE = 0.7  # of the variance; with own processes, half of it is due to these
MIN_EIGENVALUE = 0.05  # of the correlation of the outputs, so that no latent process has no weight
NOISE_STARTS = (0.05, 0.4)  # range of the noise variances
WIDTH_STARTS = (0.1, 1.0)  # range of the widths, relative to the distance between neighbours
LONGEST_START = 0.25  # length-scale, relative to the extent


def starting_points(
    observations: Observations,
    latents: Sequence[Latent],
    vector: ConvolutionVector,
    n: int,
    rng: np.random.Generator,
) -> Float[Array, "n p"]:
    """Return n vectors of parameters; `latents` were fitted to each output alone."""
    Q, D, n_own = vector.sizes[:3]
    spacing, extent = typical_distances(observations.x)
    short, long = np.log(spacing), np.log(max(spacing, LONGEST_START * extent))
    strata = rng.permuted(np.tile(np.arange(n), (Q + n_own, 1)), axis=1).T
    scales = np.exp(short + (strata + rng.uniform(size=(n, Q + n_own))) / n * (long - short))
    widths = spacing * rng.uniform(*WIDTH_STARTS, size=(n, D))
    noise = rng.uniform(*NOISE_STARTS, size=(n, D))
    alone = np.array([float(np.exp(latent.kernel.theta[0])) for latent in latents])
    scales[0, Q:] = alone[:n_own]
    scales[0, :Q] = np.exp(np.quantile(np.log(alone), np.linspace(0, 1, Q)))
    noise[0] = [latent.noise for latent in latents]
    noise[:, observations.constant] = noise[0, observations.constant]
    share = SIGNAL_SHARE / (1 + vector.own)
    own_weights = np.where(observations.constant, 0.0, np.sqrt(share))[:n_own]
    points = []
    for i in range(n):
        rotation = np.eye(Q) if i == 0 else np.linalg.qr(rng.normal(size=(Q, Q)))[0]
        weights = rotation @ _components(observations, Q) * np.sqrt(share)
        covariance = ConvolvedCovariance(
            scales[i, :Q], widths[i], weights, vector.n_inputs, scales[i, Q:], own_weights
        )
        points.append(vector.pack(ConvolutionParameters(covariance, noise[i])))
    return np.array(points)


def _components(observations: Observations, Q: int) -> Float[Array, "Q D"]:
    """Return the first Q principal components of the outputs, again from the first if Q > D."""
    values, vectors = eigh(output_correlation(observations))
    values, vectors = np.maximum(values[::-1], MIN_EIGENVALUE), vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary; choose the one with a positive sum.
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
    components = (vectors * np.sqrt(values)).T[np.arange(Q) % len(values)]
    return np.where(observations.constant, 0.0, components)
