"""The ascent continued from where the two steps ended: in sweeps, or everything at once.

Kernels and noise are shared by all members and maximise the sum of the likelihoods of their
batches, and the prior on the noise if there is one; each member keeps weights of its own. With
one part it is the maximum likelihood of the whole table. A sweep learns kernels and noise given
the weights, then the weights given those; the joint ascent moves them together.

Where noise may be correlated, a latent whose range ends between neighbouring sites is noise by
another name. It is given to the noise, if that costs less likelihood than it had weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import fetch, like, room
from emgpr.checkpoint import NOTHING_KEPT, Ledger, digest
from emgpr.covariance import log_likelihood
from emgpr.covariance.dense import coregionalization
from emgpr.execution import chunks, counter
from emgpr.kernels import matrix
from emgpr.latents import is_length_scale, noise_prior, search_space, variances
from emgpr.observations import Observations
from emgpr.optimize import Memory, Minima, State, minimize
from emgpr.sampling import with_nearest
from emgpr.weights.fit import FittedWeights, fit_weights, thinned
from emgpr.weights.noise import NoiseParameters
from emgpr.weights.start import Mixture
from emgpr.weights.together import Together

Array = np.ndarray

SILENT = 0.05  # correlation between neighbours below which a latent is noise
SPARED = np.log(5.0)  # above the least length-scale: half the distance of neighbours
FLAT = 5e-6  # for each reading: what one of two steps must gain to be followed by a third,
CLOSE = 3e-6  # and the next must promise to be made at all,
WAY = 2e-4  # on some of the sites
LARGE = 500  # readings of a part, of which the CPU works on one at a time in any case


class Stage(NamedTuple):
    """A point of the ascent: what was just learned, and the height it reached.

    That is the log-likelihood; with a prior, less by what the prior holds against the noise.
    """

    learned: str
    log_likelihood: float


@dataclass(frozen=True)
class Refined:
    """Where the ascent ended, the way there, and what went wrong (empty if nothing)."""

    mixture: Mixture
    members: FittedWeights
    history: list[Stage]
    trouble: str


def refine(
    seen: Observations,
    parts: Sequence[Int[Array, " _"]],
    start: Mixture,
    fitted: FittedWeights,
    *,
    sweeps: int | Literal["joint"],
    correlated: bool = False,
    weak_prior: bool = False,
    max_iter: int,
    n_jobs: int | None = None,
    device: str = "cpu",
    names: Sequence[str] | None = None,
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> Refined:
    """`sweeps` further rounds over (kernels, noise) and weights, or the joint ascent."""
    ascent = _Ascent(seen, parts, start, correlated, weak_prior, names, device, ledger=ledger)
    if sweeps == "joint":
        mixture, W, memory = start, fitted.W, None
        few = thinned(seen, parts, ascent.noise.size + sum(ascent.sizes) + start.W.size)
        if sum(map(len, few)) < sum(map(len, parts)):  # most of the way on some of the sites
            # There, what varies between neighbours looks like noise: no latent may shrink to that.
            coarse = _Ascent(
                seen, few, start, correlated, weak_prior, names, device, ledger=ledger, spared=True
            )
            end = coarse.climb(mixture, W, True, max_iter, "everything, some sites", [], verbose)
            mixture, W = coarse.mixture(end.x[0], W)
            memory = end.memory.of([0], ascent.n_readings / coarse.n_readings)
        history: list[Stage] = []
        end = ascent.climb(mixture, W, True, max_iter, "everything", history, verbose, memory)
        mixture, W = ascent.mixture(end.x[0], W)
        quiet = _is_noise(mixture, W, seen) if correlated else np.zeros(len(mixture.kernels), bool)
        if quiet.any():
            again: list[Stage] = []
            told = _given_to_the_noise(mixture, W, quiet, seen)
            other = ascent.climb(*told, True, max_iter, "everything", again, verbose)
            if other.value[0] <= end.value[0] + quiet.sum() * W[0, 0].size:
                end, history = other, again
                mixture, W = ascent.mixture(end.x[0], W)
        values, _ = ascent.terms(end.x[0], W)
        members = FittedWeights(
            W, values, np.repeat(end.converged, len(parts)), np.repeat(end.n_iter, len(parts))
        )
        return Refined(mixture, members, history, ascent.trouble(end, max_iter))

    believed = float(ascent.prior(start.noise)[0])
    history = [Stage("weights", _height(fitted) + believed)]
    mixture, members, trouble = start, fitted, ""
    for _ in range(sweeps):
        end = ascent.climb(mixture, members.W, False, max_iter, "kernels and noise", [], verbose)
        mixture, _ = ascent.mixture(end.x[0], members.W)
        history.append(Stage("kernels and noise", -float(end.value[0])))
        trouble = ascent.trouble(end, max_iter)
        members = fit_weights(
            seen, parts, replace(mixture, W=start.W), W=members.W, max_iter=max_iter,
            n_jobs=n_jobs, device=device, verbose=verbose, ledger=ledger,
        )  # fmt: skip
        believed = float(ascent.prior(mixture.noise)[0])
        history.append(Stage("weights", _height(members) + believed))
    lost = int((~members.converged).sum())
    if lost:
        short = f"the weights of {lost} of {len(parts)} members did not converge within {max_iter=}"
        trouble = "; ".join(filter(None, [trouble, short]))
    return Refined(mixture, members, history, trouble)


def _height(members: FittedWeights) -> float:
    """The log-likelihood of the members that stand."""
    return float(members.log_likelihood[members.stands].sum())


def _is_noise(
    mixture: Mixture, W: Float[Array, "L Q D k"], seen: Observations
) -> Bool[Array, " Q"]:
    """Latents that are heard, and have nothing to say from a site to the nearest other."""
    sites, nearest = with_nearest(seen.x)
    if not len(sites):
        return np.zeros(len(mixture.kernels), bool)
    pairs = np.stack([sites, nearest], axis=1)
    shared = [np.median(matrix(k, pairs)[:, 0, 1] / k.diag(sites)) for k in mixture.kernels]
    return (np.array(shared) < SILENT) & W.any(axis=(0, 2, 3))


def _given_to_the_noise(
    mixture: Mixture, W: Float[Array, "L Q D k"], quiet: Bool[Array, " Q"], seen: Observations
) -> tuple[Mixture, Float[Array, "L Q D k"]]:
    """What these latents say becomes noise. At weights of zero they have no slope, and stay off."""
    B = coregionalization(W).mean(axis=0)
    power = np.array([kernel.diag(seen.x).mean() for kernel in mixture.kernels])
    noise = mixture.noise + np.einsum("qde,q->de", B[quiet], power[quiet])
    return replace(mixture, noise=noise), np.where(quiet[:, None, None], 0.0, W)


class _Ascent:
    """The summed log-likelihood of the parts as a function of one row of numbers.

    The row holds the kernels' log hyper-parameters, then the noise, then, if they are
    learned too, the weights of every member.
    """

    def __init__(
        self,
        seen: Observations,
        parts: Sequence[Int[Array, " _"]],
        start: Mixture,
        correlated: bool,
        weak_prior: bool,
        names: Sequence[str] | None,
        device: str,
        *,
        ledger: Ledger,
        spared: bool = False,  # on some of the sites
    ) -> None:
        D = seen.n_tasks
        self.parts, self.ledger = parts, ledger
        n = D * max(map(len, parts))
        self.start = start
        one_by_one = device == "cpu" and n > LARGE
        self.runs = chunks(len(parts), 32.0 * n * n, 1, 0.0 if one_by_one else room(device))
        # One table needs no batch axis: it leaves out what was not read, and has a fast form if
        # it is complete and has one latent.
        alone = one_by_one or len(parts) == 1
        self.tables = [
            (seen.at(parts[run[0]]) if alone else seen.batches([parts[i] for i in run])).on(device)
            for run in self.runs
        ]
        self.n_readings = sum(table.n_readings for table in self.tables)
        self.promise = (WAY if spared else CLOSE) * self.n_readings
        self.latents = [Together(start.kernels, table.x) for table in self.tables]
        self.sizes = [kernel.n_dims for kernel in start.kernels]
        self.noise = NoiseParameters(D, correlated)
        self.prior = noise_prior(variances(seen), weak_prior)
        x = seen.at(np.concatenate(parts)).x
        searches = [
            search_space(kernel, None, x, 1, np.random.default_rng(0)) for kernel in start.kernels
        ]
        bounds = start.noise_bounds.copy()
        if correlated:  # noise that is all but gone, yet correlated, would be believed too much
            least = np.minimum(0.1 * np.diagonal(start.noise), bounds[:, 1])
            bounds[:, 0] = np.maximum(bounds[:, 0], least)
        of_noise = self.noise.bounds(bounds)
        row, column = np.tril_indices(D, -1)
        still = fetch(seen.silent)
        if correlated:  # what never varies has no noise that others could share
            of_noise[D:][still[row] | still[column]] = 0.0
        self.bounds = np.concatenate([*(search.bounds[:-1] for search in searches), of_noise])
        if spared:
            scales = [
                is_length_scale(kernel, name.partition("[")[0])
                for kernel, search in zip(start.kernels, searches, strict=True)
                for name in search.names[:-1]
            ]
            low, high = self.bounds[: len(scales)].T
            self.bounds[: len(scales), 0] = np.where(scales, np.minimum(low + SPARED, high), low)
        self.named = [
            f"latent {q}'s {s.names[i]}"
            for q, s in enumerate(searches)
            for i in range(self.sizes[q])
        ] + [f"the noise of output {name!r}" for name in names or range(D)]
        self.named += [
            "a correlation between noises (set noise='independent' if sites are few)"
        ] * (self.noise.size - D)

    def climb(
        self,
        mixture: Mixture,
        W: Float[Array, "L Q D k"],
        with_weights: bool,
        max_iter: int,
        label: str,
        history: list[Stage],
        verbose: int,
        memory: Memory | None = None,
    ) -> Minima:
        """Up from here, the weights held or not; with the memory of a climb on some of the data."""
        thetas = [kernel.theta for kernel in mixture.kernels]
        x0 = np.concatenate([*thetas, self.noise.of(mixture.noise)])
        # A start beyond its bounds (a borrowed regressor's alpha) is not paid for with likelihood.
        low, high = np.minimum(self.bounds[:, 0], x0), np.maximum(self.bounds[:, 1], x0)
        if with_weights:
            x0 = np.concatenate([x0, W.ravel()])
            low = np.concatenate([low, np.full(W.size, -np.inf)])
            high = np.concatenate([high, np.full(W.size, np.inf)])

        noise = slice(sum(self.sizes), sum(self.sizes) + self.noise.size)

        def loss(rows: Float[Array, "1 p"], _: Array) -> tuple[Array, Array]:
            values, gradient = self.terms(rows[0], W)
            believed, slope = self.prior(self.noise.matrix(rows[0, noise]))
            gradient[noise] += self.noise.pullback(rows[0, noise], slope)
            return -values.sum(keepdims=True) - believed, -gradient[None, : rows.shape[1]]

        bounds = np.column_stack([low, high])
        heights: list[float] = []
        key, resume = "", None
        if self.ledger.path is not None:
            # All that the climb depends on, beside the table and the settings.
            own = self.start.kernels, self.start.free, self.parts, self.noise
            key = f"Refining: {label} {digest(x0, W, bounds, max_iter, memory, own)}"
            resume, heights = self.ledger.find(key) or (None, [])
        if not heights:
            heights.append(-float(loss(x0[None], np.arange(1))[0][0]))
        with counter(max_iter, f"Refining: {label}", verbose) as count:
            for _ in heights[1:]:
                count()

            def watch(values: Float[Array, " 1"]) -> None:
                heights.append(-float(values[0]))
                count()

            def keep(state: State) -> None:
                if self.ledger.due or not state.going.any():
                    self.ledger.keep(key, (state, heights))

            end = minimize(
                loss, x0[None], bounds=bounds, max_iter=max_iter, ftol=FLAT,
                unit=float(self.n_readings), promise=self.promise, memory=memory, watch=watch,
                keep=keep, resume=resume,
            )  # fmt: skip
        self.ledger.settle()
        history += [Stage("start", heights[0]), *(Stage(label, height) for height in heights[1:])]
        return end

    def terms(self, row: Float[Array, " p"], W: Float[Array, "L Q D k"]) -> tuple[Array, Array]:
        """Log-likelihood of every part, and the gradient of their sum; W where the row has none."""
        _, noise_row, W = self._split(row, W)
        noise = self.noise.matrix(noise_row)
        values, of_W = [], []
        of_noise = np.zeros_like(noise)
        of_theta = np.zeros(sum(self.sizes))
        for run, table, latents in zip(self.runs, self.tables, self.latents, strict=True):
            K, pullback = latents.evaluate(row[: len(of_theta)])
            weights = W[list(run)] if table.x.ndim == 3 else W[run[0]]
            fit = log_likelihood(table, like(weights, K), like(noise, K), K, of_kernels=True)
            assert fit.of_kernels is not None
            gradient = fetch(pullback(fit.of_kernels))
            of_theta += gradient.sum(axis=tuple(range(gradient.ndim - 1)))
            values.append(np.atleast_1d(fetch(fit.value)))
            of_W.append(self.start.learned(fetch(fit.of_weights)).reshape(-1))
            of_noise += fetch(fit.of_noise).reshape(-1, *noise.shape).sum(0)
        slopes = [of_theta, self.noise.pullback(noise_row, of_noise), *of_W]
        return np.concatenate(values), np.concatenate(slopes)

    def mixture(self, row: Float[Array, " p"], W: Array) -> tuple[Mixture, Array]:
        """Kernels, noise and weights of a row."""
        thetas, noise_row, W = self._split(row, W)
        kernels = tuple(
            kernel.clone_with_theta(theta)
            for kernel, theta in zip(self.start.kernels, thetas, strict=True)
        )
        return replace(self.start, kernels=kernels, noise=self.noise.matrix(noise_row)), W

    def trouble(self, end: Minima, max_iter: int) -> str:
        """What the user should know of how a climb ended."""
        words = []
        if end.cut_off[0]:
            words.append(
                "the likelihood could not be evaluated around a point, and the ascent went on from "
                "the best one"
            )
        elif not end.converged[0]:
            words.append(f"it did not converge within max_iter={max_iter}; try more")
        fixed = self.bounds[:, 0] == self.bounds[:, 1]
        hit = end.at_bound[0][: len(fixed)] & ~fixed
        upper = end.x[0][: len(fixed)] >= self.bounds.mean(axis=1)
        idle = [name.endswith("]") for name in self.named]  # a column that does not matter
        hit &= ~(upper & idle)
        ended = dict.fromkeys(name for name, at in zip(self.named, hit, strict=True) if at)
        if ended:
            words.append(f"at a bound: {', '.join(ended)}")
        return "; ".join(words)

    def _split(self, row: Float[Array, " p"], W: Array) -> tuple[list[Array], Array, Array]:
        ends = np.cumsum([*self.sizes, self.noise.size])
        *thetas, noise_row, weights = np.split(row, ends)
        return thetas, noise_row, weights.reshape(W.shape) if len(weights) else W
