"""Storage of fitted Gaussian process regression networks in a model file.

The posterior of the weights follows from the moments of the nodes and the parameters, and that of
the nodes from the weights, so that only these moments and parameters are stored.
"""

from typing import Any

import numpy as np

from emgpr.fitting.fit import independent_model
from emgpr.fitting.regression_network import FittedGPRN, NetworkSummary
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
from emgpr.regression_network import (
    MAX_SITES,
    Moments,
    NetworkKernels,
    NetworkParameters,
    NetworkPosterior,
    NetworkSearch,
)
from emgpr.transforms import OutputScaler

PARAMETERS = {"length_scales": "Q", "weight_variance": "D Q", "noise": "D"}
MOMENTS = {"node_mean": "N Q", "node_cov": "N Q Q"}
SHAPES = {**PARAMETERS, **MOMENTS, "alone_noise": "D"}
SEARCH_FIELDS = ("start", "bound", "n_iter", "converged")
FIELDS = TABLE_FIELDS | SHAPES.keys()
FIELDS |= {"weight_length_scale", "alone_kernels", "searches", *SEARCH_FIELDS[1:]}


def network_state(
    settings: dict[str, Any],
    inputs: InputSpec,
    scaler: OutputScaler,
    posterior: NetworkPosterior,
    summary: NetworkSummary,
) -> dict[str, Any]:
    """Return everything that is needed to rebuild a fitted model, as a dict."""
    parameters, alone = posterior.parameters, posterior.independent
    constant = parameters.constant_weights
    return {
        **table_state(settings, inputs, scaler, posterior.observations),
        **{name: getattr(parameters, name) for name in PARAMETERS},
        "weight_length_scale": None if constant else float(parameters.weight_length_scale),
        "node_mean": posterior.given.mean,
        "node_cov": posterior.given.cov,
        "alone_kernels": list(alone.kernels),
        "alone_noise": np.diagonal(alone.noise).copy(),
        "bound": float(summary.bound),
        "n_iter": int(summary.n_iter),
        "converged": bool(summary.converged),
        "searches": [
            (str(s.start), float(s.bound), int(s.n_iter), bool(s.converged))
            for s in summary.searches
        ],
    }


def check_network_state(state: dict[str, Any]) -> None:
    """Raise `ModelFileError` if a field is invalid."""
    expect_fields(state.keys(), FIELDS)
    axes = check_table_state(state, SHAPES)
    expect(axes["Q"] > 0, "there is no latent process")
    expect(axes["N"] <= MAX_SITES, f"there are {axes['N']} sites; expected at most {MAX_SITES}")
    for name in PARAMETERS:
        expect(bool((state[name] > 0).all()), f"{name!r} are not positive")
    scale = expect_type(state, "weight_length_scale", float, type(None))
    expect(scale is None or 0 < scale < np.inf, "'weight_length_scale' is not positive")
    constant = bool(state["settings"].get("constant_weights"))
    expect(constant == (scale is None), "'constant_weights' and 'weight_length_scale' differ")
    cov = state["node_cov"]
    symmetric = bool(np.allclose(cov, np.swapaxes(cov, 1, 2)))
    expect(symmetric and bool((np.einsum("nqq->nq", cov) >= 0).all()), "'node_cov' is invalid")
    check_noise(np.diag(state["noise"]), state["alone_noise"])
    check_kernels("alone_kernels", state["alone_kernels"], axes["D"], state["x"])
    _check_search({name: state[name] for name in SEARCH_FIELDS[1:]})
    for search in expect_type(state, "searches", list):
        valid = isinstance(search, tuple) and len(search) == len(SEARCH_FIELDS)
        expect(valid and isinstance(search[0], str), "'searches' contains an invalid search")
        _check_search(dict(zip(SEARCH_FIELDS, search, strict=True)))


def network_from_state(
    state: dict[str, Any], kernels: NetworkKernels, estimator: str
) -> tuple[InputSpec, FittedGPRN]:
    """Rebuild the inputs and the fitted model from a state that has been checked."""
    inputs, observations = table_from_state(state, estimator)
    alone = zip(state["alone_kernels"], state["alone_noise"], strict=True)
    latents = [Latent(kernel, float(noise), 0.0) for kernel, noise in alone]
    scale = state["weight_length_scale"]
    parameters = NetworkParameters(
        weight_length_scale=np.inf if scale is None else scale,
        **{name: state[name] for name in PARAMETERS},
    )
    posterior = NetworkPosterior(
        observations,
        kernels,
        parameters,
        Moments(state["node_mean"], state["node_cov"]),
        independent_model(latents, observations),
    )
    searches = [NetworkSearch(*search) for search in state["searches"]]
    summary = NetworkSummary(state["bound"], state["converged"], state["n_iter"], searches)
    return inputs, FittedGPRN(state["scaler"], posterior, summary)


def _check_search(search: dict[str, Any]) -> None:
    expect_type(search, "bound", float)
    expect_type(search, "n_iter", int)
    expect_type(search, "converged", bool)
