"""What the report says about a model and its fit, for each kind of model.

To report on a new kind of model, register a function that returns its `Description`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from sklearn.gaussian_process.kernels import Kernel

from emgpr.estimators import CMOGP, GPRN, CoKriging, MultiOutputGP, ReadingsGP
from emgpr.report.cells import Cell, number, quantity, words
from emgpr.report.data import transform_name
from emgpr.weights import Stage

NOT_CONVERGED = (
    "Some optimisations did not converge or stopped at their bounds. Try more iterations "
    "(max_iter), more restarts (n_restarts) or wider bounds."
)


@dataclass(frozen=True)
class Description:
    """Statements about a fitted model, the results of its fit, and the values of "auto"."""

    results: Mapping[str, Cell]
    resolved: Mapping[str, str]
    # Kernel of each part of the outputs' variance except the noise; None if outputs differ.
    kernels: Sequence[Kernel | None]
    sentence: str = ""  # about the model; empty: that of linear models of coregionalisation
    optimisation: str = ""  # sentence about the fit; empty: a sentence about the stages
    processes: tuple[str, str] = ("latent process", "latent processes")  # singular and plural
    n_processes: int = 1
    stages: list[Stage] | None = None
    conditioned_on: str = "all readings"
    uses_neighbours: bool = False
    n_members: int = 1
    n_failed: int = 0
    if_not_converged: str = NOT_CONVERGED


@singledispatch
def describe(model: MultiOutputGP | ReadingsGP) -> Description:
    """Describe a fitted model."""
    raise TypeError(f"There is no description of {type(model).__name__}.")


@describe.register
def _(model: MultiOutputGP) -> Description:
    n_members, Q, _, rank = model.weights_.shape
    sizes = [len(batch) for batch in model.batches_]
    n_sites = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])
    all_sites = set(sizes) == {model.posterior_.observations.n_sites}
    conditioned_on = describe_conditioning(model.conditioning_, model.posterior_.automatic)
    stages = model.fit_summary_.history
    results = {
        "converged": _yes_or_no(model.converged_),
        "log-likelihood": number(model.log_marginal_likelihood_value_, 6),
        "iterations of the longest optimisation": number(model.n_iter_),
        "ensemble members": number(n_members),
        "members that failed and are not used": number(model.n_members_failed_),
        "sites to which each member was fitted": words(n_sites),
        "predictions are conditioned on": words(conditioned_on),
        "rows of the table without readings": number(model.n_rows_ignored_),
    }
    resolved = {
        "kernel": ", ".join(sorted({type(kernel).__name__ for kernel in model.kernels_})),
        "n_latents": str(Q),
        "rank": str(rank),
        "noise": "correlated" if model.resolved_params_.correlated else "independent",
        "batch_size": "all sites" if all_sites else " or ".join(map(str, sorted(set(sizes)))),
        "n_members": str(n_members),
        "conditioning": str(model.conditioning_),
        "refine": "joint" if len(stages or ()) > 1 else "0",
        "output_transform": _transforms(model),
    }
    return Description(
        results, resolved, model.kernels_, n_processes=Q, stages=stages,
        conditioned_on=conditioned_on, uses_neighbours=isinstance(model.conditioning_, int),
        n_members=n_members, n_failed=model.n_members_failed_,
    )  # fmt: skip


@describe.register
def _(model: CMOGP) -> Description:
    Q, searches = len(model.kernels_), model.searches_
    n_best = int((searches["log_density"] > searches["log_density"].max() - 0.1).sum())
    own = ", a process of its own for each output" if model.own_kernels_ else ""
    results = {
        "converged": _yes_or_no(model.converged_),
        "log-likelihood": number(model.log_marginal_likelihood_value_, 6),
        "iterations of the best search": number(model.n_iter_),
        "starting points": number(len(searches)),
        "predictions are conditioned on": words("all readings"),
        "rows of the table without readings": number(model.n_rows_ignored_),
    }
    return Description(
        results,
        {"output_transform": _transforms(model)},
        [*model.kernels_, *([None] if model.own_kernels_ else [])],
        f"The model is CMOGP with {quantity(Q, 'latent process', 'latent processes')} that each "
        f"output smooths differently{own} and independent noise.",
        f"All parameters were optimised together from {quantity(len(searches), 'starting point')}; "
        f"{n_best} of the searches ended within 0.1 of the highest log density.",
        n_processes=Q,
    )


@describe.register
def _(model: GPRN) -> Description:
    Q, searches, kernel = len(model.kernels_), model.searches_, model.weight_kernel_
    weights = "constant weights" if kernel is None else "weights that change over the region"
    results = {
        "converged": _yes_or_no(model.converged_),
        "lower bound on the log-likelihood": number(model.bound_, 6),
        "iterations of the search that was kept": number(model.n_iter_),
        "searches": number(len(searches)),
        "predictions are conditioned on": words("all readings"),
        "rows of the table without readings": number(model.n_rows_ignored_),
    }
    return Description(
        results,
        {"output_transform": _transforms(model)},
        model.kernels_,
        f"The model is GPRN with {quantity(Q, 'latent process', 'latent processes')}, {weights} "
        "and independent noise. Correlations and shares of variance are averaged over the sites.",
        "Latent processes and weights were fitted by variational Bayes.",
        n_processes=Q,
        if_not_converged="The search did not converge. Try more iterations (max_iter).",
    )


@describe.register
def _(model: CoKriging) -> Description:
    Q = len(model.kernels_)
    conditioned_on = describe_conditioning(model.conditioning_, model.posterior_.automatic)
    results = {
        "converged": _yes_or_no(model.converged_),
        "weighted sum of squares of the variograms": number(model.misfit_, 6),
        "iterations of the search for ranges": number(model.n_iter_),
        "predictions are conditioned on": words(conditioned_on),
        "rows of the table without readings": number(model.n_rows_ignored_),
    }
    return Description(
        results,
        {"output_transform": _transforms(model), "conditioning": str(model.conditioning_)},
        model.kernels_,
        f"The model is CoKriging with a nugget and {quantity(Q, 'structure')}.",
        "Ranges and sills were fitted to direct and cross-variograms by weighted least squares.",
        ("structure", "structures"),
        Q,
        conditioned_on=conditioned_on,
        uses_neighbours=isinstance(model.conditioning_, int),
        if_not_converged="The fit to the variograms did not converge. Try another variogram model, "
        "fewer structures or another max_lag.",
    )


def describe_conditioning(conditioning: int | str, automatic: bool) -> str:
    """Describe the readings that predictions are conditioned on.

    >>> describe_conditioning("all", True), describe_conditioning(16, False)
    ('all readings', 'the 16 nearest readings of each output')
    """
    names = {"all": "all readings", "batch": "the readings in each member's batch"}
    if isinstance(conditioning, str):
        return names[conditioning]
    if automatic:
        return f"{conditioning} or more readings of each output in all directions"
    return f"the {conditioning} nearest readings of each output"


def _transforms(model: MultiOutputGP | ReadingsGP) -> str:
    names = [transform_name(transform) for transform in model.transforms_]
    return names[0] if len(set(names)) == 1 else ", ".join(names)


def _yes_or_no(condition: bool) -> Cell:
    return words("yes" if condition else "no")
