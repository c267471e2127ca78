"""What the model was asked to be, and what that came to."""

import inspect
import re
from typing import Any

import numpy as np

from emgpr.report.data import transform_name
from emgpr.report.tables import Table, name, words

ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")  # in memory: says nothing to a reader
OPEN = ("auto", None)  # settings that the data decide


def settings_table(model: Any) -> Table:
    """Every setting, its default, and what "auto" and None came to; the changed ones are marked."""
    defaults = {
        key: parameter.default
        for key, parameter in inspect.signature(type(model).__init__).parameters.items()
    }
    decided = came_to(model)
    rows = []
    for key, value in model.get_params(deep=False).items():
        text, default = shown(value), shown(defaults.get(key))
        mark = "changed" if text != default else ""
        is_open = value is None or (isinstance(value, str) and value in OPEN)
        rows.append(
            (
                name(key),
                words(text, f"code {mark}".strip()),
                words(default, "code"),
                words(decided.get(key, "") if is_open else ""),
            )
        )
    rows.sort(key=lambda row: "changed" not in row[1].mark)
    n = sum("changed" in row[1].mark for row in rows)
    told = f"{n} of {len(rows)} settings differ from the defaults" if n else "All are the defaults"
    return Table(
        f"Settings of {type(model).__name__}",
        ("setting", "value", "default", "came to"),
        rows,
        f"{told}.",
    )


def shown(value: Any) -> str:
    """A setting as one would write it."""
    if inspect.isroutine(value):
        return f"{value.__name__}()"
    return ADDRESS.sub("", " ".join(repr(value).split()))


def came_to(model: Any) -> dict[str, str]:
    """What the settings that were left open are in the fitted model."""
    L, Q, _, rank = model.weights_.shape
    sizes = sorted({len(batch) for batch in model.batches_})
    n_sites = len(model.training_data()[0])
    kernels = sorted({type(kernel).__name__ for kernel in model.kernels_})
    transforms = [transform_name(transform) for transform in model.transforms_]
    same = len(set(transforms)) == 1
    return {
        "kernel": ", ".join(kernels),
        "n_latents": str(Q),
        "rank": str(rank),
        "noise": "correlated" if np.ndim(model.noise_) == 2 else "independent",
        "batch_size": "all sites" if sizes == [n_sites] else " or ".join(map(str, sizes)),
        "n_members": str(L),
        "conditioning": str(model.conditioning_),
        "refine": "joint" if len(getattr(model, "history_", ())) > 1 else "0",
        "transform": transforms[0] if same else ", ".join(transforms),
    }
