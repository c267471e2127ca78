"""Kernels, noise and weights learned from sums over places: nothing here grows with their number.

The start is the two steps on some hundreds of sites. From there everything is learned jointly, in
waves; should the kernels turn out shorter than those the waves were chosen for, once more. What
waves leave out of the latents varies from place to place without a memory: it is heard as they are,
and is noise to all that is said of other places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance import Basis, Expansion, Fineness, Sums, at_a_place, basis_for
from emgpr.covariance.dense import coregionalization
from emgpr.estimators.switch_off import variance_shares
from emgpr.execution import counter, threads_for
from emgpr.latents import fit_latents, search_space
from emgpr.observations import Observations
from emgpr.optimize import Minima, Objective, minimize
from emgpr.weights import Mixture, Stage, arrange, fit_weights, silenced
from emgpr.weights.noise import NoiseParameters

Array = np.ndarray

ROUNDS = 3  # choices of waves
CLOSE = 0.02  # log units that the next step must promise to be made,
FLAT = 0.005  # and one of two must gain to be followed by a third


@dataclass(frozen=True)
class Learned:
    """Where the ascent ended, the waves it ended in, the way there, and what went wrong."""

    mixture: Mixture
    basis: Basis
    history: list[Stage]
    n_iter: int
    trouble: str


def two_steps(
    seen: Observations,
    kernels: Sequence[Kernel],
    n_latents: int,
    rank: int,
    *,
    own_kernels: bool,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    n_jobs: int | None,
    verbose: int,
) -> Mixture:
    """Kernels, noise and weights from which to start."""
    tasks = fit_latents(
        seen, kernels, n_restarts=n_restarts, max_iter=max_iter, rng=rng, n_jobs=n_jobs,
        verbose=verbose,
    )  # fmt: skip
    start = arrange(tasks, seen, n_latents, rank, own_kernels=own_kernels)
    start = silenced(start, seen.silent)
    everywhere = [np.arange(seen.n_sites)]
    members = fit_weights(seen, everywhere, start, max_iter=max_iter, loosely=True, n_jobs=n_jobs)
    return replace(start, W=members.W[0]) if members.stands[0] else start


def enough_of_each(
    seen: Bool[Array, "D N"],
    sites: Int[Array, " n"],
    least: int,
    rng: np.random.Generator,
) -> Int[Array, " _"]:
    """These sites, and others, until `least` readings of each output are there, or all.

    >>> seen = np.array([[True] * 1000, [False] * 997 + [True] * 3])
    >>> sites = enough_of_each(seen, np.arange(10), 3, np.random.default_rng(0))
    >>> len(sites), int(seen[1, sites].sum())
    (13, 3)
    """
    for own in seen:
        short = least - int(own[sites].sum())
        if short > 0:
            others = np.setdiff1d(np.flatnonzero(own), sites)
            sites = np.append(sites, rng.permutation(others)[:short])
    return np.sort(sites)


def shares_of(mixture: Mixture, n_inputs: int) -> Float[Array, "D Q"]:
    """Shares of every output's variance that come from each latent."""
    origin = np.zeros((1, n_inputs))
    return variance_shares(mixture.kernels, mixture.W[None], mixture.noise, origin)[:, :-1]


def left_out(mixture: Mixture, basis: Basis) -> tuple[Float[Array, "D D"], Float[Array, " D"]]:
    """Covariance of the outputs at a place that the waves have not, and its share of variances."""
    B = coregionalization(mixture.W)
    missing = np.einsum("qde,q->de", B, basis.left_out(mixture.kernels))
    signal = np.einsum("qdd,q->d", B, at_a_place(mixture.kernels, basis.lattice))
    return missing, np.diagonal(missing) / (signal + np.diagonal(mixture.noise))


@dataclass(frozen=True)
class Ascent:
    """The joint ascent: one row of numbers for kernels, noise and weights, and its bounds."""

    start: Mixture  # of which weights that are not learned, and kernels but for their numbers, stay
    noise: NoiseParameters
    bounds: Float[Array, "p 2"]
    named: tuple[str, ...]  # numbers before the weights, as far as they have names

    @classmethod
    def around(
        cls, start: Mixture, seen: Observations, correlated: bool, names: Sequence[str]
    ) -> "Ascent":
        """Bounds as some sites suggest them, where the user set none."""
        D = seen.n_tasks
        noise = NoiseParameters(D, correlated)
        searches = [
            search_space(kernel, None, seen.x, 1, np.random.default_rng(0))
            for kernel in start.kernels
        ]
        of_noise = noise.bounds(start.noise_bounds)
        row, column = np.tril_indices(D, -1)
        if correlated:  # what never varies has no noise that others could share
            of_noise[D:][seen.silent[row] | seen.silent[column]] = 0.0
        free = np.tile([-np.inf, np.inf], (start.W.size, 1))
        parts = [*(search.bounds[:-1] for search in searches), of_noise]
        named = [
            f"latent {q}'s {search.names[i]}"
            for q, search in enumerate(searches)
            for i in range(start.kernels[q].n_dims)
        ] + [f"the noise of output {name!r}" for name in names]
        return cls(start, noise, np.concatenate([*parts, free]), tuple(named))

    def learn(
        self,
        sums: Sums,
        mixture: Mixture,
        basis: Basis,
        fineness: Fineness,
        max_iter: int,
        verbose: int,
    ) -> Learned:
        """The likeliest kernels, noise and weights, from these on."""
        D = len(mixture.noise)
        history: list[Stage] = []
        for _ in range(ROUNDS):
            expansion = Expansion(sums, basis, D)
            end = self._climb(expansion, mixture, max_iter, history, verbose)
            mixture = self._mixture(end.x[0])
            shares = shares_of(mixture, sums.lattice.n_inputs).max(axis=0)
            finer = basis_for(sums.lattice, basis.strides, mixture.kernels, shares, fineness)
            short, better = (left_out(mixture, each)[1].max() for each in (basis, finer))
            if short <= fineness.tolerance or better > 0.9 * short:
                break
            basis = finer
        trouble = self._trouble(end, max_iter)
        return Learned(mixture, basis, history, int(end.n_iter[0]), trouble)

    def objective(self, expansion: Expansion) -> Objective:
        """The negative log-likelihood of a row of numbers, and its slopes."""
        basis = expansion.basis

        def loss(rows: Float[Array, "1 p"], _: Array) -> tuple[Array, Array]:
            at = self._mixture(rows[0])
            each, whole = (
                [of(kernel, q) for q, kernel in enumerate(at.kernels)]
                for of in (basis.variance, basis.with_all_waves)
            )
            s, left = np.stack([own for own, _ in each]), basis.left_out(at.kernels)
            fit = expansion.log_likelihood(at.W, at.noise + left_out(at, basis)[0], s)
            relative = np.divide(fit.of_log_variances, s, out=np.zeros_like(s), where=s > 0)
            of_left = np.einsum("de,qde->q", fit.of_noise, coregionalization(at.W)) * (left > 0)
            of_theta = [
                slopes @ own + of_left[q] * (whole[q][1] - 2 * slopes.sum(axis=1))
                for q, ((_, slopes), own) in enumerate(zip(each, relative, strict=True))
            ]
            of_noise = self.noise.pullback(self._split(rows[0])[1], fit.of_noise)
            of_W = fit.of_weights + 2 * left[:, None, None] * (fit.of_noise @ at.W)
            gradient = np.concatenate([*of_theta, of_noise, self.start.learned(of_W).ravel()])
            return -np.array([fit.value]), -gradient[None]

        return loss

    def _climb(
        self,
        expansion: Expansion,
        mixture: Mixture,
        max_iter: int,
        history: list[Stage],
        verbose: int,
    ) -> Minima:
        loss, n = self.objective(expansion), expansion.n_readings
        x0 = self.row(mixture)
        x0 = np.clip(x0, *self.bounds.T)
        heights = [-float(loss(x0[None], np.arange(1))[0][0])]
        label = "Learning from sums"
        with (
            threads_for(2 * len(expansion.basis.m) * len(mixture.noise)),
            counter(max_iter, label, verbose) as count,
        ):

            def watch(values: Float[Array, " 1"]) -> None:
                heights.append(-float(values[0]))
                count()

            end = minimize(
                loss, x0[None], bounds=self.bounds, max_iter=max_iter, ftol=FLAT / n,
                unit=float(n), promise=CLOSE, watch=watch,
            )  # fmt: skip
        history += [Stage("start", heights[0]), *(Stage("everything", h) for h in heights[1:])]
        return end

    def row(self, mixture: Mixture) -> Float[Array, " p"]:
        """Kernels, noise and weights as numbers."""
        thetas = [kernel.theta for kernel in mixture.kernels]
        return np.concatenate([*thetas, self.noise.of(mixture.noise), mixture.W.ravel()])

    def _split(self, row: Float[Array, " p"]) -> tuple[list[Array], Array, Array]:
        ends = np.cumsum([*(kernel.n_dims for kernel in self.start.kernels), self.noise.size])
        *thetas, of_noise, W = np.split(row, ends)
        return thetas, of_noise, W.reshape(self.start.W.shape)

    def _mixture(self, row: Float[Array, " p"]) -> Mixture:
        thetas, of_noise, W = self._split(row)
        kernels = tuple(
            kernel.clone_with_theta(theta)
            for kernel, theta in zip(self.start.kernels, thetas, strict=True)
        )
        return replace(self.start, kernels=kernels, noise=self.noise.matrix(of_noise), W=W)

    def _trouble(self, end: Minima, max_iter: int) -> str:
        """What the user should know of how the last climb ended."""
        words = []
        if end.cut_off[0]:
            words.append("the likelihood could not be evaluated around a point on the way")
        elif not end.converged[0]:
            words.append(f"it did not converge within max_iter={max_iter}; try more")
        n = len(self.named)
        fixed = self.bounds[:n, 0] == self.bounds[:n, 1]
        hit = np.flatnonzero(end.at_bound[0][:n] & ~fixed)
        if len(hit):
            words.append(f"at a bound: {', '.join(self.named[i] for i in hit)}")
        return "; ".join(words)
