"""The section on parameters and fit: settings, values chosen automatically, and results."""

import inspect
import re
from typing import Any

from emgpr.estimators import MultiOutputGP
from emgpr.report.cells import Table, number, words
from emgpr.report.columns import PARAMETERS
from emgpr.report.data import transform_name

MEMORY_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def parameter_table(model: MultiOutputGP) -> Table:
    """Return a table of the parameters and their defaults, with changed parameters first."""
    defaults = type(model)().get_params(deep=False)
    resolved = resolved_parameters(model)
    rows = []
    for name, value in model.get_params(deep=False).items():
        text, default = as_code(value), as_code(defaults[name])
        is_open = value is None or (isinstance(value, str) and value == "auto")
        rows.append(
            {
                "name": name,
                "value": text,
                "default": default,
                "is_changed": text != default,
                "resolved": resolved.get(name, "") if is_open else "",
            }
        )
    rows.sort(key=lambda row: not row["is_changed"])
    n = sum(row["is_changed"] for row in rows)
    note = f"{n} of {len(rows)} parameters differ from their defaults."
    return Table.build(f"Parameters of {type(model).__name__}", PARAMETERS, rows, note)


def as_code(value: Any) -> str:
    """Return a value as it would be written in code."""
    if inspect.isroutine(value):
        return f"{value.__name__}()"
    return MEMORY_ADDRESS.sub("", " ".join(repr(value).split()))


def resolved_parameters(model: MultiOutputGP) -> dict[str, str]:
    """Return the values used in the fit for parameters that can be "auto" or None."""
    L, Q, _, rank = model.weights_.shape
    sizes = sorted({len(batch) for batch in model.batches_})
    n_sites = model.posterior_.observations.n_sites
    transforms = [transform_name(transform) for transform in model.transforms_]
    return {
        "kernel": ", ".join(sorted({type(kernel).__name__ for kernel in model.kernels_})),
        "n_latents": str(Q),
        "rank": str(rank),
        "noise": "correlated" if model.resolved_params_.correlated else "independent",
        "batch_size": "all sites" if sizes == [n_sites] else " or ".join(map(str, sizes)),
        "n_members": str(L),
        "conditioning": str(model.conditioning_),
        "refine": "joint" if len(model.fit_summary_.history or ()) > 1 else "0",
        "output_transform": transforms[0] if len(set(transforms)) == 1 else ", ".join(transforms),
    }


def result_table(model: MultiOutputGP) -> Table:
    """Return a table of the results of the fit."""
    sizes = [len(batch) for batch in model.batches_]
    n_sites = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])
    facts = {
        "converged": words("yes" if model.converged_ else "no"),
        "log-likelihood": number(model.log_marginal_likelihood_value_, 6),
        "iterations of the longest optimisation": number(model.n_iter_),
        "ensemble members": number(len(model.weights_)),
        "members that failed and are not used": number(model.n_members_failed_),
        "sites to which each member was fitted": words(n_sites),
        "predictions are conditioned on": words(conditioned_on(model)),
        "rows of the table without readings": number(model.n_rows_ignored_),
    }
    return Table.of_facts("Result of the fit", facts)


def conditioned_on(model: MultiOutputGP) -> str:
    """Describe the readings that predictions are conditioned on."""
    names = {"all": "all readings", "batch": "the readings in each member's batch"}
    conditioning = model.conditioning_
    if isinstance(conditioning, str):
        return names[conditioning]
    if model.posterior_.automatic:
        return f"{conditioning} or more readings of each output in all directions"
    return f"the {conditioning} nearest readings of each output"
