"""What every fitted model can do: predict, as arrays or as a frame, and score itself."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from emgpr.covariance.dense import coregionalization
from emgpr.ensemble import mixture
from emgpr.estimators.door import enter_inputs, enter_known, enter_outputs
from emgpr.execution import chunks, each, threads_for
from emgpr.observations import Observations
from emgpr.prediction import Belief, condition, condition_on_neighbours, coupled
from emgpr.weights import FittedWeights, Mixture

Array = np.ndarray

AFFORDABLE = 3e11  # operations: about ten seconds on one core
NEIGHBOURS = 16


class Predictor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The fitted half of an estimator."""

    conditioning: Literal["auto", "all", "batch"] | int
    n_jobs: int | None
    verbose: int
    n_iter_: int
    _rows: Int[Array, " N"]

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        observed: Any = None,
        include_noise: bool = True,
    ) -> Array | tuple[Array, Array]:
        """Predict every output at the sites X (M, P).

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
            Whether the uncertainty is that of a reading (True: intervals cover new
            measurements) or of the signal beneath it.

        Returns
        -------
        mean : (M, D), or (M,) if the model was fitted to a 1-D y. The median where a
            transform is in use.
        std or cov : if asked for, on the scale of the outputs.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov are both True; ask for return_cov, whose diagonal "
                "holds the squares of the standard deviations."
            )
        x = enter_inputs(self, X, fitting=False)
        mean, cov = mixture(*self._believe(x, observed, with_cov=return_std or return_cov))
        if include_noise:
            np.einsum("mdd->md", cov)[...] += self.noise_
        mean, cov = self._scale.back(mean, cov)
        if self._flat:
            mean = mean[:, 0]
        if return_cov:
            return mean, cov
        if return_std:
            std = np.sqrt(np.maximum(np.einsum("mdd->md", cov), 0.0))
            return mean, std[:, 0] if self._flat else std
        return mean

    def predict_frame(
        self, X: Any, *, observed: Any = None, include_noise: bool = True
    ) -> pd.DataFrame:
        """Predictions as a DataFrame: each output and, beside it, its `<output>_std`.

        The index is that of X, if X has one.
        """
        answer = self.predict(X, return_std=True, observed=observed, include_noise=include_noise)
        mean, std = (np.reshape(part, (-1, self.n_outputs_)) for part in answer)
        columns = {}
        for d, name in enumerate(self.output_names_):
            columns[name], columns[f"{name}_std"] = mean[:, d], std[:, d]
        if len(columns) != 2 * self.n_outputs_:
            raise ValueError(
                f"Outputs {self.output_names_} and their '<output>_std' share a name; rename an "
                "output, or use predict."
            )
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(columns, index=index)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean over the outputs of R², each over the readings that were made."""
        prediction = self.predict(X)
        if isinstance(y, pd.DataFrame) and set(map(str, y.columns)) == set(self.output_names_):
            y = y.set_axis(list(map(str, y.columns)), axis=1)[self.output_names_]
        truth, _, _ = enter_outputs(y, len(prediction))
        if truth.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {truth.shape[1]} columns; this model predicts {self.n_outputs_} outputs: "
                f"{self.output_names_}."
            )
        mean = np.reshape(prediction, truth.shape)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scores = []
        for d in range(truth.shape[1]):
            made = ~np.isnan(truth[:, d])
            if made.sum() < 2:  # not measured in this fold, or once: there is no R²
                continue
            own = None if weight is None else weight[made]
            scores.append(r2_score(truth[made, d], mean[made, d], sample_weight=own))
        return float(np.mean(scores)) if scores else float("nan")

    def _remember(
        self,
        seen: Observations,
        parts: list[Int[Array, " _"]],
        mixture: Mixture,
        members: FittedWeights,
    ) -> Self:
        self._seen = seen
        self._parts = parts
        self.batches_ = [self._rows[part] for part in parts]
        self.kernels_ = list(mixture.kernels)
        self.noise_ = mixture.noise
        self.weights_ = members.W
        self.coregionalization_ = coregionalization(members.W).mean(axis=0)
        self.log_marginal_likelihood_value_ = float(members.log_likelihood.sum())
        self.n_iter_ = max(self.n_iter_, int(members.n_iter.max()), 1)
        self.conditioning_ = self._affordable(seen)
        return self

    def _affordable(self, known: Observations) -> Literal["all", "batch"] | int:
        """What to condition on, where this is known: as the user said, or what is cheap enough."""
        if self.conditioning != "auto":
            return self.conditioning
        B = coregionalization(self.weights_)
        sizes = [float(known.seen[tasks].sum()) for tasks, _ in coupled(B)]
        if len(B) * sum(n**3 / 3 for n in sizes) <= AFFORDABLE:
            return "all"
        warnings.warn(
            f'conditioning="auto": {len(B)} members × {known.n_readings} readings are too many to '
            f"condition on at once; predictions use the {NEIGHBOURS} nearest readings of each "
            f'output. Set conditioning={NEIGHBOURS} to accept this, or "all".',
            UserWarning,
            stacklevel=4,
        )
        return NEIGHBOURS

    def _believe(
        self, x: Float[Array, "M P"], observed: Any, with_cov: bool
    ) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
        """Every member's belief about the signals at x."""
        extra = None
        if observed is not None:
            known = enter_known(observed, len(x), self.output_names_, self._flat)
            extra = Observations.from_table(x, self._scale.forward(known, self.output_names_))
        everything = self._seen if extra is None else self._seen.extended(extra)
        how = self.conditioning_
        if extra is not None and how == "all":  # what is known there may make it dear
            how = self._affordable(everything)

        def believe(members: Sequence[int]) -> Belief:
            known = everything
            if how == "batch":
                known = self._seen.at(self._parts[members[0]])
                known = known if extra is None else known.extended(extra)
            W = self.weights_[list(members)]
            if isinstance(how, str):
                return condition(known, x, self.kernels_, W, self.noise_, with_cov=with_cov)
            return condition_on_neighbours(known, x, self.kernels_, W, self.noise_, how)

        L = len(self.weights_)
        apart = how == "batch" or self.verbose > 0
        runs = [range(i, i + 1) for i in range(L)] if apart else chunks(L, 1.0, self.n_jobs)
        label = "Predicting: members"
        with threads_for(everything.n_readings if isinstance(how, str) else 0):
            beliefs = each(believe, runs, n_jobs=self.n_jobs, label=label, verbose=self.verbose)
        return (
            np.concatenate([belief.mean for belief in beliefs]),
            np.concatenate([belief.cov for belief in beliefs]),
        )
