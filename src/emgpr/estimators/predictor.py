"""What every fitted model can do: predict, as arrays or as a frame, and score itself.

All of it follows from what is believed of the outputs at new sites, wherever that comes from.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from emgpr.estimators.door import as_table, enter_inputs, enter_outputs, ordered
from emgpr.estimators.gathered import is_lazy
from emgpr.estimators.lazy import lazy_exceedance, lazy_frame, lazy_predict, lazy_quantiles
from emgpr.estimators.wanted import quantiles_of, thresholds_of
from emgpr.execution import RandomState, chunks, generator, track
from emgpr.metrics import over_readings
from emgpr.prediction import Belief
from emgpr.transforms import Marginals

Array = np.ndarray

MANY = 10_000  # places, of which a bar is shown while they are predicted


class Predictor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The fitted half of an estimator."""

    output_names_: list[str]
    n_outputs_: int
    weights_: Float[Array, "L Q D k"]
    _scale: Marginals
    _flat: bool

    @abstractmethod
    def _believe(
        self, x: Float[Array, "M P"], observed: Any, *, with_cov: bool, include_noise: bool
    ) -> Belief:
        """What is believed of the readings at x, or of the signals beneath."""

    @abstractmethod
    def _sample(
        self,
        x: Float[Array, "M P"],
        observed: Any,
        n: int,
        rng: np.random.Generator,
        *,
        include_noise: bool,
    ) -> Float[Array, "n M D"]:
        """Joint draws over sites and outputs."""

    def _for_blocks(self) -> Self:
        """A copy for whoever has one block of many to work on: alone, without bars."""
        own: Any = copy(self)
        own.n_jobs, own.verbose = 1, 0
        return own

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        observed: Any = None,
        include_noise: bool = True,
        statistic: Literal["median", "mean"] = "median",
    ) -> Array | tuple[Array, Array]:
        """Predict every output at the sites X (M, P).

        Where X is one of Dask's arrays or frames, so is what comes back: lazy, a block for each
        of its blocks of rows. That holds for all predictions here.

        Parameters
        ----------
        X : (M, P)
            New sites, with the columns of the training inputs.
        return_std : bool
            Also the standard deviation of each prediction, (M, D).
        return_cov : bool
            Also the covariance of the outputs of each site, (M, D, D).
        observed : (M, D) array or DataFrame, optional
            Outputs already measured at these sites, NaN where unknown; a frame may hold
            only some of the outputs. They inform the prediction of the others, there and
            around; what is returned for them is what another reading there would give.
        include_noise : bool
            Whether it is a reading that is predicted (True: intervals cover new
            measurements) or the signal beneath it.
        statistic : {"median", "mean"}
            Which centre of the distribution on your scale. They differ where a transform
            is in use, and where the members of an ensemble disagree.

        Returns
        -------
        median or mean : (M, D), or (M,) if the model was fitted to a 1-D y.
        std or cov : if asked for, on the scale of the outputs.

        Notes
        -----
        A row of X that equals a training site is that sample: where noise is correlated, an
        output that was not measured there is told by the noise of those that were, and what
        `observed` repeats of the training table counts once; a row of `observed` that says more
        is another sample. Not so where several training rows have these inputs, or members
        predict from batches.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov are both True; ask for return_cov, whose diagonal "
                "holds the squares of the standard deviations."
            )
        if statistic not in ("median", "mean"):
            raise ValueError(f"statistic={statistic!r}; expected 'median' or 'mean'.")
        check_is_fitted(self)
        if is_lazy(X):
            return lazy_predict(
                self, X, observed, return_std=return_std, return_cov=return_cov,
                include_noise=include_noise, statistic=statistic,
            )  # fmt: skip
        one = len(self.weights_) == 1 and statistic == "median"
        with_cov = return_std or return_cov or not one
        centre_of = self._scale.median if statistic == "median" else self._scale.mean

        def tell(belief: Belief) -> tuple[Array, ...]:
            if not return_std and not return_cov:
                return (centre_of(belief),)
            cov = self._scale.covariance(belief)
            if return_cov:
                return centre_of(belief), cov
            return centre_of(belief), np.sqrt(np.maximum(np.einsum("mdd->md", cov), 0.0))

        centre, *spread = self._of_rows(X, observed, include_noise, tell, with_cov=with_cov)
        if self._flat:
            centre = centre[:, 0]
        if return_cov:
            return centre, spread[0]
        if return_std:
            return centre, spread[0][:, 0] if self._flat else spread[0]
        return centre

    def predict_quantiles(
        self, X: Any, q: Any, *, observed: Any = None, include_noise: bool = True
    ) -> Float[Array, "..."]:
        """The values that each output stays below with probabilities q, on your scale.

        Exact through the transform, and for an ensemble those of the mixture of its members.
        `q` is one probability, giving (M, D), or several, giving (len(q), M, D).

        >>> from emgpr import IndependentGP
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> y = np.exp(np.sin(X)[:, 0] + 0.1 * np.random.default_rng(0).normal(size=30))
        >>> model = IndependentGP(transform="log", random_state=0).fit(X, y)
        >>> low, high = model.predict_quantiles([[1.57]], [0.025, 0.975])[:, 0]
        >>> bool(low < np.e < high)
        True
        """
        wanted = np.asarray(q, dtype=float)
        if wanted.ndim > 1:
            raise ValueError(
                f"q has shape {wanted.shape}; expected one probability, or a list of them."
            )
        check_is_fitted(self)
        if is_lazy(X):
            self._scale.quantiles(self._blank, np.atleast_1d(wanted))  # whether q can be
            return lazy_quantiles(self, X, observed, wanted, include_noise=include_noise)

        def tell(belief: Belief) -> tuple[Array, ...]:
            return (np.moveaxis(self._scale.quantiles(belief, np.atleast_1d(wanted)), 0, -1),)

        values = np.moveaxis(self._of_rows(X, observed, include_noise, tell)[0], -1, 0)
        values = values[..., 0] if self._flat else values
        return values[0] if wanted.ndim == 0 else values

    def predict_exceedance(
        self, X: Any, threshold: Any, *, observed: Any = None, include_noise: bool = True
    ) -> Float[Array, "..."]:
        """The probability that each output is above a threshold: one for all, or one for each.

        A dict has them by name, as for maps; outputs that it leaves out are NaN.
        With `include_noise=False`, that the signal is, for which a single reading is no proof.
        """
        check_is_fitted(self)
        if isinstance(threshold, Mapping):
            threshold = thresholds_of(threshold, self.output_names_)
        if is_lazy(X):
            self._scale.exceedance(self._blank, threshold)  # whether it can be
            return lazy_exceedance(
                self, X, observed, threshold=threshold, include_noise=include_noise
            )

        def tell(belief: Belief) -> tuple[Array, ...]:
            return (self._scale.exceedance(belief, threshold),)

        (chance,) = self._of_rows(X, observed, include_noise, tell)
        return chance[:, 0] if self._flat else chance

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: RandomState = 0,
        *,
        observed: Any = None,
        include_noise: bool = True,
    ) -> Float[Array, "..."]:
        """Draw tables that the outputs at X may turn out to be: (M, D, n_samples).

        Joint over sites and outputs, so that sums, maxima and maps of a draw mean something;
        with `combine="mean"` each is of one member of the ensemble. (M, n_samples) if fitted to
        a 1-D y.
        """
        if isinstance(n_samples, bool) or int(n_samples) != n_samples or n_samples < 1:
            raise ValueError(f"n_samples={n_samples!r}; expected a whole number of at least 1.")
        check_is_fitted(self)
        x = enter_inputs(self, X)
        rng = generator(random_state)
        drawn = self._sample(x, observed, int(n_samples), rng, include_noise=include_noise)
        drawn = np.moveaxis(self._scale.to_user(drawn), 0, -1)
        return drawn[:, 0] if self._flat else drawn

    @property
    def _blank(self) -> Belief:
        """About one place, to see whether a question can be asked."""
        D = self.n_outputs_
        return Belief(np.zeros((1, 1, D)), np.eye(D)[None, None])

    def _belief(self, X: Any, observed: Any, include_noise: bool, with_cov: bool = True) -> Belief:
        check_is_fitted(self)
        x = enter_inputs(self, X)
        return self._believe(x, observed, with_cov=with_cov, include_noise=include_noise)

    def _of_rows(
        self,
        X: Any,
        observed: Any,
        include_noise: bool,
        tell: Callable[[Belief], tuple[Array, ...]],
        *,
        with_cov: bool = True,
    ) -> tuple[Array, ...]:
        """What is told of the rows of X: some after another, unless what is known informs all."""
        check_is_fitted(self)
        x = enter_inputs(self, X)
        if observed is not None:
            return tell(self._believe(x, observed, with_cov=with_cov, include_noise=include_noise))
        beliefs = self._beliefs(x, include_noise, "Predicting: blocks of places", with_cov=with_cov)
        parts = [tell(belief) for _, belief in beliefs]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _beliefs(
        self, x: Float[Array, "M P"], include_noise: bool, label: str, *, with_cov: bool = True
    ) -> Iterator[tuple[slice, Belief]]:
        """The belief about some of the rows of x after another, so that memory does not grow."""
        how = {"with_cov": with_cov, "include_noise": include_noise}
        n, each = len(x), 64.0 * len(self.weights_) * self.n_outputs_**2
        blocks = chunks(n, each, 1) if n else []
        if self.verbose and len(blocks) == 1 and n > MANY:
            blocks = chunks(n, 1.0, 1, budget=n / 10)
        if len(blocks) == 1:
            yield slice(0, n), self._believe(x, None, **how)
            return
        quiet = copy(self)
        quiet.verbose = 0  # one bar, of blocks
        for run in track(blocks, len(blocks), label, self.verbose):
            block = slice(run.start, run.stop)
            yield block, quiet._believe(x[block], None, **how)

    def predict_frame(
        self,
        X: Any,
        *,
        observed: Any = None,
        include_noise: bool = True,
        quantiles: Any = None,
        exceedance: Any = None,
    ) -> pd.DataFrame:
        """Predictions as a DataFrame: each output and, beside it, its `<output>_std`.

        `quantiles` adds columns such as `<output>_q0.95`; `exceedance`, a threshold for all
        outputs, a list with one for each or a dict for some, adds the chance to be above it,
        `<output>_above_0.8`. The index is that of X, if X has one.
        """
        check_is_fitted(self)
        q = np.empty(0) if quantiles is None else quantiles_of(quantiles)
        above = thresholds_of(np.nan if exceedance is None else exceedance, self.output_names_)
        columns = self._columns(q, above)
        if is_lazy(X):
            settings = {"quantiles": quantiles, "exceedance": exceedance}
            return lazy_frame(self, X, observed, columns, include_noise=include_noise, **settings)
        X = as_table(X)

        def tell(belief: Belief) -> tuple[Array, ...]:
            return (self._values(belief, q, above),)

        (values,) = self._of_rows(X, observed, include_noise, tell)
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=columns)

    def _columns(self, q: Float[Array, " k"], above: Float[Array, " D"]) -> list[str]:
        """Names of what is told of each output, once each."""
        columns: list[str] = []
        for name, limit in zip(self.output_names_, above, strict=True):
            columns += [name, f"{name}_std", *(f"{name}_q{p:g}" for p in q)]
            columns += [] if np.isnan(limit) else [f"{name}_above_{limit:g}"]
        twice = sorted({column for column in columns if columns.count(column) > 1})
        if twice:
            raise ValueError(
                f"Outputs {self.output_names_} and what is told of them, such as '<output>_std', "
                f"share the names {twice}; rename an output, or use predict."
            )
        return columns

    def _values(
        self, belief: Belief, q: Float[Array, " k"], above: Float[Array, " D"]
    ) -> Float[Array, "M columns"]:
        """What is told of each output, column after column."""
        scale = self._scale
        centre, variance = scale.median(belief), np.einsum("mdd->md", scale.covariance(belief))
        std, quantiles = np.sqrt(np.maximum(variance, 0.0)), scale.quantiles(belief, q)
        chance = above if np.isnan(above).all() else scale.exceedance(belief, above)
        values: list[Array] = []
        for d in range(self.n_outputs_):
            values += [centre[:, d], std[:, d], *quantiles[:, :, d]]
            values += [] if np.isnan(above[d]) else [chance[:, d]]
        return np.column_stack(values)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean over the outputs of R², each over the readings that were made."""
        prediction, y = np.asarray(self.predict(X)), as_table(y)
        truth, _, _ = enter_outputs(ordered(y, self.output_names_), len(prediction))
        if truth.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {truth.shape[1]} columns; this model predicts {self.n_outputs_} outputs: "
                f"{self.output_names_}."
            )
        # Not measured in this fold, or once: there is no R².
        r2 = over_readings(r2_score, least=2)
        return r2(truth, np.reshape(prediction, truth.shape), sample_weight=sample_weight)
