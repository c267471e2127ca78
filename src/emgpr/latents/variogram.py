"""Step 1 by a weighted least-squares fit to the variogram, as is usual in geostatistics.

The variogram γ(h) is half the mean squared difference between readings at distance h. The kernel
and the noise variance are fitted to the empirical values γ̂_j in distance bins by minimising

    Σ_j n_j (γ̂_j / γ_j − 1)²     over bins j with n_j pairs (Cressie's weights)

where γ_j is the value of the model. Bins are narrower at short distances. For a kernel with a
length-scale for each column, each column has its own bins, which contain the pairs of sites that
differ more in this column than in any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.latents.base import BaseLearner, Evaluations, Latent, Work
from emgpr.latents.maximum_likelihood import (
    split_signal_kernel,
)
from emgpr.latents.product_of_experts import PoE, batch_log_likelihood
from emgpr.latents.search_end import describe_end, white_noise_log_likelihood
from emgpr.latents.search_space import (
    SiteDistances,
    column_scales,
    is_length_scale,
    search_space,
    typical_distances,
)
from emgpr.observations import Observations
from emgpr.optimize import Objective, minimize
from emgpr.sampling import clustered_batches
from emgpr.variograms import Lags, empirical_variogram

Array = np.ndarray

N_STARTS = 5  # number of starting values for length-scales
MIN_SEMIVARIANCE = 1e-6  # of a standardised output; smaller values are replaced by this one
# Measured values for planning: total number of evaluations from all starting points, time for each
# pair of sites relative to that for a kernel value, and overhead relative to that of a likelihood.
EVALUATIONS, TIME_PER_PAIR, OVERHEAD = 450, 8 / 6, 0.5


@dataclass
class Variogram(BaseLearner):
    """Learner that fits the empirical variogram by weighted least squares.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 60, size=(300, 1))
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.3 * rng.normal(size=300)
    >>> latent = Variogram().learn(x, y, RBF())
    >>> 0.5 < latent.noise**0.5 / 0.3 < 2
    True
    """

    n_lags: int = 15  # number of distance bins
    n_sites: int = 600  # maximum number of sites used
    max_iter: int = 120  # maximum number of iterations from each starting point

    min_settings: ClassVar[Mapping[str, int]] = {"n_sites": 2}

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to the variogram of readings y at sites x."""
        self.check_settings()
        signal, white = split_signal_kernel(kernel)
        search = search_space(signal, white, SiteDistances(x), N_STARTS, np.random.default_rng(0))
        sites = np.arange(len(x))
        if len(x) > self.n_sites:
            n_batches = -(-len(x) // self.n_sites)
            (sites,) = clustered_batches(x, n_batches, np.random.default_rng(0), wanted=1)
        misfit = self._misfit(x[sites], y[sites], signal)
        result = minimize(misfit, search.starts, bounds=search.bounds, max_iter=self.max_iter)
        end = result.problem(int(np.argmin(result.value)))
        fitted, noise = signal.clone_with_theta(end.x[0, :-1]), float(np.exp(end.x[0, -1]))
        log_likelihood, n = batch_log_likelihood(x, y, fitted, noise)
        only_noise = log_likelihood / n < white_noise_log_likelihood(y, search) / len(y)
        message = describe_end(end, search, self.max_iter, only_noise=only_noise)
        n_iter = int(end.n_iter[0])
        return Latent(fitted, noise, log_likelihood, search.noise_bounds, n_iter, message, n)

    def _misfit(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Objective:
        """Return the weighted sum of squares as a function of the log parameters."""
        table = Observations.of_one_output(x, y)
        by_column = any(
            parameter.n_elements > 1 and is_length_scale(kernel, parameter.name)
            for parameter in kernel.hyperparameters
        )
        bins = _lags(x, self.n_lags, by_column=by_column)
        observed = [empirical_variogram(table, lags, 0, 0) for lags in bins]
        pairs, ends = Pairs(x), bins[0].ends

        def misfit(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
            values, gradients = np.zeros(len(params)), np.empty_like(params)
            for b, row in enumerate(params):
                K, pullback = evaluate_kernel(kernel, row[:-1], pairs)
                variances, noise = np.diagonal(K), np.exp(row[-1])
                semivariances = 0.5 * (variances[ends[0]] + variances[ends[1]]) - K[ends]
                of_pairs, of_noise = np.zeros(len(semivariances)), 0.0
                for lags, (_, gamma, n) in zip(bins, observed, strict=True):
                    expected = np.maximum(lags.mean(semivariances)[1] + noise, MIN_SEMIVARIANCE)
                    error = np.where(n > 0, gamma / expected - 1, 0.0)
                    slope = np.where(n > 0, -2 * error * (error + 1) / expected, 0.0)  # per pair
                    values[b] += np.sum(n * error**2, where=n > 0)
                    of_noise += float(np.sum(n * slope))
                    of_pairs += np.append(slope, 0.0)[np.minimum(lags.bin, lags.n_lags)]
                G = squareform(-0.5 * of_pairs)
                np.fill_diagonal(G, -G.sum(axis=1))
                gradients[b] = np.append(pullback(G), of_noise * noise)
            return values, gradients

        return misfit

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        n_sites = min(n, self.n_sites)
        L, size = PoE().batch_counts(n)
        parts = (
            Evaluations(EVALUATIONS, kernel_values=TIME_PER_PAIR * n_sites**2, calls=OVERHEAD),
            Evaluations(1, likelihoods=L, n_readings=size, calls=float(L)),
        )
        matrices = ((n_sites, 1), (size, L))
        return Work("variogram, least squares", n_sites, 1, EVALUATIONS, parts, matrices)

    def describe_approximation(self, n: int) -> str:
        """Describe the fit that replaces maximum likelihood for n readings."""
        n_sites = min(n, self.n_sites)
        return f"a least-squares fit to the variogram of {n_sites} of {n} readings"


def _lags(x: Float[Array, "n P"], n_lags: int, *, by_column: bool) -> list[Lags]:
    """Return distance bins with edges on a log scale, up to half the extent of the region.

    With `by_column`, each column has its own bins, which contain the pairs of sites that differ
    more in this column than in any other.
    """
    scaled = x / column_scales(x) if by_column else x
    distance = pdist(scaled)
    spacing, extent = typical_distances(scaled)
    edges = np.append(0.0, np.geomspace(min(spacing, 0.1 * extent), 0.5 * extent, n_lags))
    lags = Lags.binned(len(x), distance, edges)
    if not by_column:
        return [lags]
    i, j = lags.ends
    longest = np.argmax(np.abs(scaled[i] - scaled[j]), axis=1)
    return [
        replace(lags, bin=np.where(longest == p, lags.bin, lags.n_lags)) for p in range(x.shape[1])
    ]
