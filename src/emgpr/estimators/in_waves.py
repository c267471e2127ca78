"""What a model in waves believes of new places: waves too, evaluated there.

Not only the expected signals are sums of waves: so are their variances and covariances at a place,
with twice the frequencies. A prediction costs as much as the waves there are, not their square.
"""

import warnings
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Complex, Float
from sklearn.utils.validation import check_is_fitted

from emgpr.covariance import Basis, Expansion, Fineness, Posterior, Sums
from emgpr.covariance.dense import coregionalization
from emgpr.estimators.door import enter_known, input_names
from emgpr.estimators.doubts import about_known
from emgpr.estimators.from_sums import Ascent, left_out, shares_of
from emgpr.estimators.mapper import Mapper
from emgpr.geo import is_geographic
from emgpr.prediction import Belief, draw_each, informed, turned_to_readings
from emgpr.weights import Mixture

Array = np.ndarray

MOST_INPUTS = 3
TOO_MUCH = 0.2  # share of an output's variance: waves that leave out more are no model of it
PADDING = 0.05  # of the extent of the box, by which the waves go on beyond every side
ROUNDED = 1e-14  # of a value: readings that are so near to each other are one value
BEYOND = 0.25  # of the room around that, in which echoes of the far side are faint yet


class InWaves(Mapper):
    """The fitted half of an estimator that keeps sums, and none of the data."""

    noise: Literal["correlated", "independent"]
    tolerance: float
    box_: Float[Array, "2 P"]
    _ranges: Float[Array, "2 D"]  # of the outputs
    _sums: Sums
    _mixture: Mixture
    _basis: Basis
    _ascent: Ascent
    _fineness: Fineness
    _told_of: float  # share of an output's variance

    def _hold(self, mixture: Mixture, basis: Basis) -> None:
        """What was learned, and all that follows from it."""
        self._mixture, self._basis = mixture, basis
        D, P = self.n_outputs_, basis.lattice.n_inputs
        self.kernels_, self._noise = list(mixture.kernels), mixture.noise
        joined = self.noise == "correlated" and D > 1
        self.noise_ = self._noise if joined else np.diagonal(self._noise).copy()
        self.weights_ = mixture.W[None]
        self.coregionalization_ = coregionalization(mixture.W)
        shares = shares_of(mixture, P)
        columns = [f"latent {q}" for q in range(len(self.kernels_))]
        self.variance_shares_ = pd.DataFrame(shares, index=self.output_names_, columns=columns)
        self.variance_shares_["noise"] = 1.0 - shares.sum(axis=1)
        self.n_functions_ = basis.n_functions
        self._missing, share = left_out(mixture, basis)
        self.left_out_ = pd.Series(share, index=self.output_names_)
        self.n_sites_, self.n_readings_ = self._sums.n_sites, self._sums.n_readings
        self._answer: tuple[float, Array, Array] | None = None
        if share.max() > max(self.tolerance, self._told_of):
            self._doubt_waves(refuse=False)

    def _answers(self) -> tuple[float, Complex[Array, "D *m"], Complex[Array, "pairs *n"]]:
        """Log-likelihood, expected signals, and their covariances: when they are first asked for.

        Between two chunks of a stream, nobody does.
        """
        if self._answer is None:
            told = self._posterior()
            self._answer = told.log_likelihood, told.mean_waves(), told.cov_waves()
        return self._answer

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Of all readings, standardised, with what was learned."""
        check_is_fitted(self)
        return self._answers()[0]

    def _posterior(self) -> Posterior:
        mixture, basis = self._mixture, self._basis
        expansion = Expansion(self._sums, basis, self.n_outputs_)
        noise = mixture.noise + self._missing
        return expansion.posterior(mixture.W, noise, basis.variances(mixture.kernels))

    def _believe(
        self, x: Float[Array, "M P"], observed: Any, *, with_cov: bool, include_noise: bool
    ) -> Belief:
        self._refuse_outside(x)
        M, D, lattice = len(x), self.n_outputs_, self._basis.lattice
        sample = None if observed is None else self._known(observed, M)
        _, mean_waves, cov_waves = self._answers()
        mean = lattice.evaluate(x, mean_waves)
        cov = np.zeros((M, D, D))
        if with_cov or sample is not None:
            row, column = np.tril_indices(D)
            cov[:, row, column] = lattice.doubled.evaluate(x, cov_waves)
            cov[:, column, row] = cov[:, row, column]
            cov += self._missing
        belief = Belief(mean[None], cov[None])
        if sample is not None:
            belief = informed(belief, self._noise, sample)
        if not include_noise:
            return belief
        belief, _, noise = turned_to_readings(belief, belief.cov, self._noise, sample)
        return Belief(belief.mean, belief.cov + noise)

    def _known(self, observed: Any, M: int) -> Float[Array, "M D"]:
        given = enter_known(observed, M, self.output_names_, self._flat)
        for doubt in about_known(given, self._ranges, self.output_names_):
            warnings.warn(doubt, UserWarning, stacklevel=5)
        return self._scale.forward(given, self.output_names_)

    def _sample(
        self,
        x: Float[Array, "M P"],
        observed: Any,
        n: int,
        rng: np.random.Generator,
        *,
        include_noise: bool,
    ) -> Float[Array, "n M D"]:
        if observed is not None:
            raise ValueError(
                "sample_y of OnePassGP takes no observed: what is known at one place informs draws "
                "at all others. Take it in with partial_fit(X, observed, learn=False), in a copy "
                "of this model if need be, and draw from that."
            )
        self._refuse_outside(x)
        drawn = self._posterior().draw(n, rng) @ self._basis.functions(x).T
        spread = self._missing + self._noise * include_noise
        each_place = np.broadcast_to(spread, (len(x), *spread.shape))
        return np.swapaxes(drawn, 1, 2) + draw_each(each_place, n, rng)

    def _for_blocks(self) -> Self:
        if hasattr(self, "weights_"):
            self._answers()  # here, and not once more in every process
        own = super()._for_blocks()
        own.__dict__.pop("_sums", None)  # all that is asked of them is answered
        return own

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def _around(self) -> Float[Array, "2 P"]:
        if is_geographic(self.crs):
            raise ValueError(
                "OnePassGP keeps no places to draw a map around; give bounds=(west, south, east, "
                "north)."
            )
        return self.box_

    @property
    def _n_sites(self) -> int:
        return self.n_sites_

    def _region(self) -> Float[Array, "2 P"]:
        """Where waves are to be as good as the model: the box, and some more on every side."""
        padding = PADDING * np.ptp(self.box_, axis=0)
        return self.box_ + np.stack([-padding, padding])

    def _refuse_outside(self, x: Float[Array, "M P"]) -> None:
        """Places at which waves repeat what they were on the other side."""
        low, high = self._region()
        periods = np.array(self._basis.lattice.period) / max(self._basis.strides)
        room = BEYOND * (periods - (high - low))
        outside = (x < low - room) | (x > high + room)
        if outside.any():
            rows, p = np.flatnonzero(outside.any(axis=1)), int(np.argmax(outside.any(axis=0)))
            names = input_names(self)
            what = f"column {names[p]!r}" if len(names) == x.shape[1] else f"coordinate {p}"
            raise ValueError(
                f"{len(rows)} of {len(x)} places are too far outside of the box, first in row "
                f"{rows[0]}: {what} goes from {self.box_[0, p]:g} to {self.box_[1, p]:g} in it, "
                f"and is {x[outside[:, p], p][0]:g} there. Leave them out, or fit with "
                "box=(lows, highs) that holds all places you will have."
            )

    def _doubt_waves(self, *, refuse: bool) -> None:
        """Tell of variance that waves leave out; raise if it is so much that they are no model."""
        share = left_out(self._mixture, self._basis)[1]
        d = int(share.argmax())
        self._told_of = float(share[d])
        kernels = ", ".join(str(kernel) for kernel in self._mixture.kernels)
        extent = " × ".join(f"{side:g}" for side in np.ptp(self.box_, axis=0))
        said = (
            f"{self._basis.n_functions} functions leave out {share[d]:.2g} of the variance of "
            f"output {self.output_names_[d]!r}, more than tolerance={self.tolerance:g}: {kernels} "
            f"are short or rough beside a region of {extent}."
        )
        if refuse and share[d] > max(TOO_MUCH, self.tolerance):
            raise ValueError(
                f"{said} That is too much. Set n_functions higher (time grows with its cube), take "
                "a smaller region or a smoother kernel, or use EMGPR, which predicts from "
                "neighbours."
            )
        if share[d] > self.tolerance:
            warnings.warn(
                f"{said} It is counted as uncertainty. Set n_functions higher (time grows with its "
                "cube), or tolerance to accept it.",
                UserWarning,
                stacklevel=5,
            )

    def _refuse_unread(self) -> None:
        read = {d for outputs in self._sums.terms for d in outputs}
        for d, name in enumerate(self.output_names_):
            if d not in read:
                raise ValueError(
                    f"No reading of output {name!r} is in the sums. Take in chunks that have some "
                    "before learning."
                )

    def _refuse_awake(self) -> None:
        """Outputs that had one value at the start: nothing can be learned of others from there."""
        mixture, scale = self._mixture, self._scale
        rounding = ROUNDED * np.abs(scale.shift) / scale.scale
        limits = 4 * np.diagonal(mixture.noise) + rounding**2
        for d, name in enumerate(self.output_names_):
            held = mixture.free is not None and not mixture.free[:, d].any()
            if held and self._sums.mean_square(d) > limits[d]:
                raise ValueError(
                    f"Output {name!r} had one value only where the start was made, and has others "
                    "now: what is known of its scale does not hold. Begin anew, with start(X, y) "
                    "of a sample in which it varies."
                )


def corners_of(box: Any, corners: Float[Array, "2 P"]) -> Float[Array, "2 P"]:
    """Lowest and highest inputs of a box: as the user said, or those of the data."""
    P = corners.shape[1]
    if P > MOST_INPUTS:
        raise ValueError(
            f"Kernels would see {P} input columns; waves are for at most {MOST_INPUTS}, since with "
            "every further one their number is multiplied. Use EMGPR, or fewer columns."
        )
    if not isinstance(box, str):
        corners = np.array(box, dtype=float)
        if corners.shape != (2, P):
            raise ValueError(
                f"box has shape {corners.shape}; expected (2, {P}): the lowest and the highest "
                "value of each input."
            )
    for p, (low, high) in enumerate(corners.T):
        if not (low < high and np.isfinite(high - low)):
            raise ValueError(
                f"Input {p} goes from {low:g} to {high:g}; expected a range. Leave out an input "
                "that has one value, or give box=(lows, highs) if others are to come."
            )
    return corners
