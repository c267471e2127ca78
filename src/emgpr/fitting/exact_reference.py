"""Fitting the exact counterpart of an approximate model: the same model without approximations."""

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

Model = TypeVar("Model")


def exact_params(
    params: Mapping[str, Any],
    *,
    kernels: list[Kernel] | None,
    transforms: list[Any],
    outputs: list[int] | None,
    refine: Any,
) -> dict[str, Any]:
    """Return a dict of parameter changes that make a fit to some of the outputs exact.

    If `kernels` is not None, it replaces the user's kernels. If there is one kernel per output,
    `outputs` lists the outputs whose kernels are kept; otherwise, `outputs` is None.
    """
    changed: dict[str, Any] = {
        "latent_learner": "exact",
        "conditioning": "all",
        "checkpoint": None,
        "verbose": 0,
        "output_transform": transforms,
    }
    kernel = params["kernel"] if kernels is None else kernels
    listed = isinstance(kernel, list | tuple)
    if listed:
        changed["kernel"] = kernel if outputs is None else [kernel[d] for d in outputs]
    ensemble = {
        "batch_size": None,
        "n_members": None,
        "n_neighbours": None,
        "refine": refine,
        "n_latents": len(kernel) if listed else params.get("n_latents"),
    }
    return changed | {name: value for name, value in ensemble.items() if name in params}


def fit_quietly(model: Model, X: Any, y: Any) -> tuple[Model, list[str]]:
    """Fit a model without issuing warnings; return it and the messages about its convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, y)  # type: ignore[attr-defined]
    # Warnings about the data have already been issued for the whole table.
    messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return model, messages
