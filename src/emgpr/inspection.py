"""Inspection of a fitted model: its training data, latent processes and variograms."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.arrays import limit_threads
from emgpr.inputs import InputSpec
from emgpr.observations import Observations
from emgpr.parallel import Execution, parallel_map
from emgpr.prediction import LMCModel, LMCPosterior, condition_latents
from emgpr.stacking import CANDIDATES, StackedPosterior
from emgpr.transforms import OutputScaler
from emgpr.variograms import (
    Kind,
    Lags,
    ModelVariogram,
    default_kind,
    empirical_variogram,
    far_ratio,
)
from emgpr.weights import aligned

Array = np.ndarray
ExpectedVariogram = Callable[[int, int, Kind], Array]
VariogramOf = Callable[[Array, Lags], ExpectedVariogram]

MAX_VARIOGRAM_SITES = 1200  # 0.7 million pairs
# If the ratio of fitted to empirical semivariances at large lags is larger than this, or smaller
# than its reciprocal, there is a warning. Chance alone seldom changes these averages as much.
MAX_FAR_RATIO = 2.0


def training_data(
    observations: Observations, inputs: InputSpec, scaler: OutputScaler
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return inputs and outputs in original units, without rows where nothing was measured."""
    index = inputs.index[inputs.rows]
    names = inputs.feature_names or [f"x{p}" for p in range(inputs.n_features)]
    X = pd.DataFrame(inputs.to_user(observations.x), index=index, columns=list(names))
    Y = np.where(observations.observed.T, scaler.to_original(observations.y.T), np.nan)
    return X, pd.DataFrame(Y, index=index, columns=list(scaler.names))


def stacking_weights(posterior: LMCPosterior, names: Sequence[str]) -> pd.DataFrame:
    """Return the weights of the candidates for each pattern of known outputs."""
    rows: list[tuple[tuple[str, str, str], Array]] = []
    if isinstance(posterior, StackedPosterior):
        for d, found in enumerate(posterior.stack.unknown):
            if found.has_gaps:
                rows.append(((names[d], "", "near"), found.near))
                rows.append(((names[d], "", "far"), found.far))
            else:
                rows.append(((names[d], "", "any"), found.near))
        for (d, known), found in posterior.stack.known.items():
            others = ", ".join(names[e] for e in known)
            rows.append(((names[d], others, "near"), found.near))
            rows.append(((names[d], others, "far"), found.far))
    levels = ["output", "known", "distance"]
    index = pd.MultiIndex.from_tuples([key for key, _ in rows] or [("", "", "")], names=levels)
    values = [weights for _, weights in rows] or [np.full(len(CANDIDATES), np.nan)]
    table = pd.DataFrame(values, index=index, columns=list(CANDIDATES))
    return table if rows else table.iloc[:0]


def regressions(posterior: LMCPosterior, names: Sequence[str]) -> pd.DataFrame:
    """Return the settings of every regression, with their weights and variances."""
    found = posterior.stack.regressions if isinstance(posterior, StackedPosterior) else {}
    rows = [
        (names[d], ", ".join(names[e] for e in known), *residual, *prior, *weights, *variances)
        for (d, known), fitted in found.items()
        for (residual, prior), weights, variances in zip(
            fitted.kept, fitted.weights.T, fitted.variances.T, strict=True
        )
    ]
    columns = [
        "output", "known", "length_scale", "residual_share", "varying_variance", "linear_variance",
        "smooth_share", "weight_near", "weight_far", "variance_near", "variance_far",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).set_index(["output", "known"])


def latent_processes(
    posterior: LMCPosterior, x: Float[Array, "M P"], execution: Execution
) -> tuple[Float[Array, "M Q k"], Float[Array, "M Q k"]]:
    """Return mean and standard deviation of each latent process under the mixture of members."""
    model, conditioning = posterior.model, posterior.conditioning
    W = aligned(model.weights)
    n_neighbours = conditioning if isinstance(conditioning, int) else None
    observations, device = posterior.observations, execution.device

    def predict(member: int) -> tuple[Array, Array]:
        on_batch = conditioning == "batch"
        table = observations.at(posterior.batch_sites(member)) if on_batch else observations
        member_model = LMCModel(model.kernels, W[[member]], model.noise)
        return condition_latents(table, x, member_model, n_neighbours=n_neighbours, device=device)

    with limit_threads(observations.n_readings if n_neighbours is None else 0):
        parts = parallel_map(predict, range(len(W)), execution, label="Latents: members")
    means, variances = (np.stack(part) for part in zip(*parts, strict=True))
    return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


def signal_correlations(
    B: Float[Array, "Q D D"], variances: Float[Array, " Q"]
) -> Float[Array, "Q D D"]:
    """Return the contribution of each latent process to the correlations between signals.

    `variances` are k_q(x, x). The contributions of all latent processes add up to the correlations.
    Correlations with an output without a signal are NaN.

    >>> w = np.array([[1.0, 1.0], [0.0, 1.0]])[:, :, None]
    >>> signal_correlations(w @ w.swapaxes(1, 2), np.ones(2)).sum(axis=0).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    parts = B * variances[:, None, None]
    std = np.sqrt(np.einsum("qdd->d", parts))
    std = np.where(std > 0, std, np.nan)
    return parts / std / std[:, None]


def lmc_variogram(posterior: LMCPosterior) -> VariogramOf:
    """Return the function that computes the variograms of a linear model of coregionalisation."""
    model = posterior.model
    B = model.B.mean(axis=0)

    def expected(x: Float[Array, "N P"], lags: Lags) -> ExpectedVariogram:
        averages = ModelVariogram.from_kernels(model.kernels, x, lags)
        return partial(averages.expected, B, model.noise)

    return expected


def variograms(
    observations: Observations,
    model_variogram: VariogramOf,
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None,
    *,
    n_lags: int,
    max_lag: float | None,
    kind: Literal["auto", "cross", "pseudo"],
) -> pd.DataFrame:
    """Return empirical and model variograms of all outputs or of `pairs`, one row for each lag.

    `model_variogram(x, lags)` returns a function of two outputs and a kind of variogram.
    """
    chosen = [(name, name) for name in names] if pairs is None else list(pairs)
    unknown = [name for pair in chosen for name in pair if name not in names]
    if unknown:
        raise ValueError(
            f"pairs contains {unknown[0]!r}, which is not an output; expected names from "
            f"{list(names)}."
        )
    if kind not in ("auto", "cross", "pseudo"):
        raise ValueError(f"kind={kind!r}; expected 'auto', 'cross' or 'pseudo'.")
    table = observations.at(observations.subsample(MAX_VARIOGRAM_SITES))
    lags = Lags.between(table.x, n_lags, max_lag)
    expected = model_variogram(table.x, lags)
    index = {name: d for d, name in enumerate(names)}
    parts = []
    for first, second in chosen:
        pair = index[first], index[second]
        pair_kind: Literal["cross", "pseudo"] = "cross"
        if kind == "auto":
            pair_kind = default_kind(table, *pair)
        elif first != second:
            pair_kind = kind
        lag, value, n = empirical_variogram(table, lags, *pair, pair_kind)
        columns = {
            "first": first, "second": second, "kind": pair_kind, "lag": lag, "pairs": n,
            "empirical": value, "model": expected(*pair, pair_kind),
        }  # fmt: skip
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def variogram_warnings(variograms: pd.DataFrame) -> list[str]:
    """Return warnings about outputs whose fitted variogram is far from that of the readings.

    `variograms` is a result of the function `variograms`; cross-variograms are not checked.
    """
    ratios = {}
    for (first, second), part in variograms.groupby(["first", "second"], sort=False):
        columns = (part[name].to_numpy() for name in ("pairs", "empirical", "model"))
        if first == second:
            ratios[str(first)] = far_ratio(*columns)
    high = {name: ratio for name, ratio in ratios.items() if ratio > MAX_FAR_RATIO}
    low = {name: ratio for name, ratio in ratios.items() if ratio < 1 / MAX_FAR_RATIO}
    return [
        f"The fitted variogram is far {side} the readings at large lags (by a factor of "
        f"{', '.join(f'{ratio:.2g} for {name}' for name, ratio in found.items())}), so prediction "
        f"intervals far from all sites may be too {width}."
        for side, width, found in (("above", "wide", high), ("below", "narrow", low))
        if found
    ]
