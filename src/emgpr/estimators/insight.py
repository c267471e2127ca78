"""What a fitted model is made of, to look at: its data, latent processes, variograms."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from emgpr.covariance import correlation_parts
from emgpr.estimators.door import enter_inputs, input_names
from emgpr.execution import each, threads_for
from emgpr.geo import Places
from emgpr.prediction import condition_latents
from emgpr.variograms import Lags, Structure, empirical, kind_of
from emgpr.weights import aligned

Array = np.ndarray

MOST_SITES = 1200  # in a variogram: 0.7 million pairs


class Insight:
    """What there is to see in a fitted estimator."""

    def training_data(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Inputs and outputs that the model was fitted to, on your scale, NaN where not measured.

        Rows where nothing was measured are left out.
        """
        check_is_fitted(self)
        model: Any = self
        seen, index = model._seen, model._index[model._rows]
        places = Places.of(input_names(model), model.crs)
        names = getattr(model, "feature_names_in_", [f"x{p}" for p in range(model.n_features_in_)])
        Y = np.where(seen.seen.T, model._scale.to_user(seen.y.T), np.nan)
        outputs = pd.DataFrame(Y, index=index, columns=model.output_names_)
        return pd.DataFrame(places.back(seen.x), index=index, columns=list(names)), outputs

    def predict_latents(
        self, X: Any, return_std: bool = False
    ) -> Float[Array, "M Q k"] | tuple[Float[Array, "M Q k"], Float[Array, "M Q k"]]:
        """The latent processes at the sites X, given the readings: means (M, Q, k), and deviations.

        Latent q has k processes with kernel `kernels_[q]` (its rank; with parts of each output's
        own, as in `ICM`, D at most), and an output is their sum with its weights, on the
        standardised scale. Only W_q W_qᵀ is learned: processes are those
        of weights turned to principal axes (`emgpr.weights.aligned`), the first with the
        most variance. An ensemble's are those of the mixture of its members.

        >>> from emgpr import ICM
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> Y = np.sin(X) * [1, -2] + 0.1 * np.random.default_rng(0).normal(size=(40, 2))
        >>> model = ICM(rank=1, random_state=0).fit(X, Y)
        >>> latent = model.predict_latents(X)
        >>> latent.shape, bool(abs(np.corrcoef(latent[:, 0, 0], np.sin(X[:, 0]))[0, 1]) > 0.98)
        ((40, 1, 2), True)
        """
        check_is_fitted(self)
        model: Any = self
        x = enter_inputs(model, X)
        how, W = model.conditioning_, aligned(model.weights_)
        n_neighbours = how if isinstance(how, int) else None

        def believe(member: int) -> tuple[Array, Array]:
            known = model._seen.at(model._batch(member)) if how == "batch" else model._seen
            given = known, x, model.kernels_, W[member], model._noise
            return condition_latents(*given, n_neighbours=n_neighbours, device=model._device)

        with threads_for(model._seen.n_readings if n_neighbours is None else 0):
            told = each(
                believe, range(len(W)), n_jobs=model._processes, label="Latents: members",
                verbose=model.verbose,
            )  # fmt: skip
        means, variances = (np.stack(part) for part in zip(*told, strict=True))
        mean = means.mean(axis=0)
        if not return_std:
            return mean
        return mean, np.sqrt(variances.mean(axis=0) + means.var(axis=0))

    def signal_correlations(self) -> Float[Array, "Q D D"]:
        """The part of the correlation of every two signals at a place that each latent brings.

        Their sum over the latents is the correlation. NaN for an output without a signal.
        """
        check_is_fitted(self)
        model: Any = self
        spread = np.array([kernel.diag(model._seen.x).mean() for kernel in model.kernels_])
        return correlation_parts(model.coregionalization_, spread)

    def variograms(
        self,
        pairs: Sequence[tuple[str, str]] | None = None,
        *,
        n_lags: int = 15,
        max_lag: float | None = None,
        kind: Literal["auto", "cross", "pseudo"] = "auto",
    ) -> pd.DataFrame:
        """Empirical variograms beside the model's, a row a lag: of every output, or of `pairs`.

        They are on the scale that the model works on: transformed, of variance 1. Columns are
        first, second, kind, lag (mean distance), pairs (of sites), empirical, model.
        "auto" takes the pseudo cross-variogram where fewer than 20 sites have both outputs;
        `emgpr.variograms` says what these are. Of many sites, 1200 are taken at random.
        """
        check_is_fitted(self)
        model: Any = self
        names = model.output_names_
        chosen = [(name, name) for name in names] if pairs is None else list(pairs)
        unknown = [name for pair in chosen for name in pair if name not in names]
        if unknown:
            raise ValueError(f"pairs names {unknown[0]!r}, which is no output; there are {names}.")
        if kind not in ("auto", "cross", "pseudo"):
            raise ValueError(f"kind={kind!r}; expected 'auto', 'cross' or 'pseudo'.")
        seen = model._seen.at(model._seen.some(MOST_SITES))
        lags = Lags.between(seen.x, n_lags, max_lag)
        structure = Structure.of(model.kernels_, seen.x, lags)
        parts = []
        for first, second in chosen:
            which = names.index(first), names.index(second)
            same = first == second
            own = kind_of(seen, *which) if kind == "auto" else "cross" if same else kind
            lag, value, n = empirical(seen, lags, *which, own)
            expected = structure.expected(model.coregionalization_, model._noise, *which, own)
            part = {"first": first, "second": second, "kind": own, "lag": lag, "pairs": n}
            parts.append(pd.DataFrame(part | {"empirical": value, "model": expected}))
        return pd.concat(parts, ignore_index=True)
