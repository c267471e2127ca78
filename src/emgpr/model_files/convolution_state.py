"""Storage of fitted convolved processes in a model file."""

from typing import Any

import numpy as np

from emgpr.convolution import ConvolvedCovariance, SearchResult
from emgpr.fitting.convolution import FittedCMOGP, SearchSummary
from emgpr.fitting.fit import independent_model
from emgpr.inputs import InputSpec
from emgpr.latents import Latent
from emgpr.model_files.checks import (
    check_kernels,
    check_noise,
    expect,
    expect_fields,
    expect_type,
)
from emgpr.model_files.table_state import (
    TABLE_FIELDS,
    check_table_state,
    table_from_state,
    table_state,
)
from emgpr.prediction import DensePosterior
from emgpr.transforms import OutputScaler

# Arrays of the covariance, in which O is D, or 0 if the outputs have no processes of their own.
COVARIANCE = {
    "length_scales": "Q",
    "widths": "D",
    "weights": "Q D",
    "own_length_scales": "O",
    "own_weights": "O",
}
SHAPES = {**COVARIANCE, "noise": "D", "alone_noise": "D"}
SEARCH_FIELDS = ("log_density", "log_likelihood", "n_iter", "converged")
FIELDS = TABLE_FIELDS | SHAPES.keys() | {"alone_kernels", "searches", *SEARCH_FIELDS[1:]}


def convolution_state(
    settings: dict[str, Any],
    inputs: InputSpec,
    scaler: OutputScaler,
    posterior: DensePosterior,
    summary: SearchSummary,
) -> dict[str, Any]:
    """Return everything that is needed to rebuild a fitted model, as a dict."""
    covariance, alone = posterior.covariance, posterior.independent
    return {
        **table_state(settings, inputs, scaler, posterior.observations),
        **{name: getattr(covariance, name) for name in COVARIANCE},
        "noise": posterior.noise,
        "alone_kernels": list(alone.kernels),
        "alone_noise": np.diagonal(alone.noise).copy(),
        "log_likelihood": float(summary.log_likelihood),
        "n_iter": int(summary.n_iter),
        "converged": bool(summary.converged),
        "searches": [
            (float(s.log_density), float(s.log_likelihood), int(s.n_iter), bool(s.converged))
            for s in summary.searches
        ],
    }


def check_convolution_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` if a field is invalid."""
    expect_fields(state.keys(), FIELDS)
    axes = check_table_state(state, SHAPES)
    expect(axes["Q"] > 0, "there is no latent process")
    expect(axes["O"] in (0, axes["D"]), "not every output has a process of its own")
    for name in ("length_scales", "own_length_scales"):
        expect(bool((state[name] > 0).all()), f"{name!r} are not positive")
    expect(bool((state["widths"] >= 0).all()), "'widths' are negative")
    check_noise(np.diag(state["noise"]), state["alone_noise"])
    check_kernels("alone_kernels", state["alone_kernels"], axes["D"], state["x"])
    _check_search({name: state[name] for name in SEARCH_FIELDS[1:]})
    for search in expect_type(state, "searches", list):
        valid = isinstance(search, tuple) and len(search) == len(SEARCH_FIELDS)
        expect(valid, "'searches' contains an invalid search")
        _check_search(dict(zip(SEARCH_FIELDS, search, strict=True)))


def convolution_from_state(state: dict[str, Any], estimator: str) -> tuple[InputSpec, FittedCMOGP]:
    """Rebuild the inputs and the fitted model from a state that has been checked."""
    inputs, observations = table_from_state(state, estimator)
    alone = zip(state["alone_kernels"], state["alone_noise"], strict=True)
    latents = [Latent(kernel, float(noise), 0.0) for kernel, noise in alone]
    covariance = ConvolvedCovariance(
        **{name: state[name] for name in COVARIANCE}, n_inputs=observations.x.shape[1]
    )
    posterior = DensePosterior(
        observations, covariance, state["noise"], independent_model(latents, observations)
    )
    searches = [
        SearchResult(np.empty(0), **dict(zip(SEARCH_FIELDS, search, strict=True)))
        for search in state["searches"]
    ]
    summary = SearchSummary(state["log_likelihood"], state["converged"], state["n_iter"], searches)
    return inputs, FittedCMOGP(state["scaler"], posterior, summary)


def _check_search(search: dict[str, Any]) -> None:
    for name in search.keys() & {"log_density", "log_likelihood"}:
        expect_type(search, name, float)
    expect_type(search, "n_iter", int)
    expect_type(search, "converged", bool)
