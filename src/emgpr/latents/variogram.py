"""Step 1 by the variogram, as geostatisticians do: weighted least squares, no likelihood.

γ(h) is half the mean square of differences between readings h apart. What a kernel and a noise
expect of it, in bins of the distance, is brought near to what the readings show:

    Σ_j n_j (γ̂_j / γ_j − 1)²     over bins j with n_j pairs (Cressie's weights)

Bins are narrow where distances are short. A kernel with a length-scale for each column has bins for
the pairs that lie along each.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import Pairs, evaluate
from emgpr.latents.climb import signal_of, trouble, white
from emgpr.latents.latent import Latent
from emgpr.latents.learner import check_counts
from emgpr.latents.poe import likelihood_of_batches
from emgpr.latents.search import distances, is_length_scale, search_space
from emgpr.observations import Observations
from emgpr.optimize import Objective, minimize
from emgpr.sampling import in_clusters
from emgpr.variograms import Lags, empirical

Array = np.ndarray

STARTS = 5  # length-scales
LEAST = 1e-6  # a semivariance that is as good as none


@dataclass(frozen=True)
class Variogram:
    """Weighted least squares on the empirical variogram of some of the sites.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 60, size=(300, 1))
    >>> y = np.sqrt(2) * np.sin(x[:, 0]) + 0.3 * rng.normal(size=300)
    >>> latent = Variogram().learn(x, y, RBF())
    >>> 0.5 < latent.noise**0.5 / 0.3 < 2
    True
    """

    n_lags: int = 15
    n_sites: int = 600  # at most
    max_iter: int = 120

    def __post_init__(self) -> None:
        check_counts(self)

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Kernel and noise whose variogram is nearest to that of the readings."""
        bare, nugget = signal_of(kernel)
        search = search_space(bare, nugget, x, STARTS, np.random.default_rng(0))
        some = np.arange(len(x))
        if len(x) > self.n_sites:
            n_batches = -(-len(x) // self.n_sites)
            (some,) = in_clusters(x, n_batches, np.random.default_rng(0), wanted=1)
        misfit = self._misfit(x[some], y[some], bare)
        ends = minimize(misfit, search.starts, bounds=search.bounds, max_iter=self.max_iter)
        end = ends.problem(int(np.argmin(ends.value)))
        found, noise = bare.clone_with_theta(end.x[0, :-1]), float(np.exp(end.x[0, -1]))
        height, n = likelihood_of_batches(x, y, found, noise)
        idle = height / n < white(y, search) / len(y)
        said = trouble(end, search, self.max_iter, idle=idle)
        return Latent(found, noise, height, search.noise_bounds, int(end.n_iter[0]), said, n)

    def _misfit(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Objective:
        """What is to be as small as possible, at rows of (log hyper-parameters, log noise)."""
        table = Observations(x, y[None], np.ones((1, len(y)), bool))
        several = any(
            parameter.n_elements > 1 and is_length_scale(kernel, parameter.name)
            for parameter in kernel.hyperparameters
        )
        bins = _lags(x, self.n_lags, by_column=several)
        shown = [empirical(table, lags, 0, 0) for lags in bins]
        pairs, ends = Pairs(x), bins[0].ends

        def misfit(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
            values, slopes = np.zeros(len(params)), np.empty_like(params)
            for b, row in enumerate(params):
                K, pullback = evaluate(kernel, row[:-1], pairs)
                own, noise = np.diagonal(K), np.exp(row[-1])
                fall = 0.5 * (own[ends[0]] + own[ends[1]]) - K[ends]
                of_pairs, of_noise = np.zeros(len(fall)), 0.0
                for lags, (_, gamma, n) in zip(bins, shown, strict=True):
                    expected = np.maximum(lags.mean(fall)[1] + noise, LEAST)
                    off = np.where(n > 0, gamma / expected - 1, 0.0)
                    slope = np.where(n > 0, -2 * off * (off + 1) / expected, 0.0)  # of a pair
                    values[b] += np.sum(n * off**2, where=n > 0)
                    of_noise += float(np.sum(n * slope))
                    of_pairs += np.append(slope, 0.0)[np.minimum(lags.bin, lags.n_lags)]
                G = squareform(-0.5 * of_pairs)
                np.fill_diagonal(G, -G.sum(axis=1))
                slopes[b] = np.append(pullback(G), of_noise * noise)
            return values, slopes

        return misfit


def _lags(x: Float[Array, "n P"], n_lags: int, *, by_column: bool) -> list[Lags]:
    """Bins from the distance of neighbours to half of the extent, evenly in logarithm.

    With `by_column`, apart for the pairs of sites that differ most in each column.
    """
    spread = np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
    scaled = x / spread if by_column else x
    distance = pdist(scaled)
    near, far = distances(scaled)
    edges = np.append(0.0, np.geomspace(min(near, 0.1 * far), 0.5 * far, n_lags))
    lags = Lags.binned(len(x), distance, edges)
    if not by_column:
        return [lags]
    i, j = lags.ends
    longest = np.argmax(np.abs(scaled[i] - scaled[j]), axis=1)
    return [
        replace(lags, bin=np.where(longest == p, lags.bin, lags.n_lags)) for p in range(x.shape[1])
    ]
