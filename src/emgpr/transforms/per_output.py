"""The transform of each output, as requested by the user."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emgpr.parameter_checks import with_string_keys


def transform_per_output(
    transforms: Any, names: Sequence[str], default: str | None = None
) -> list[Any]:
    """Return a list with one transform for every output.

    `transforms` is one transform for all outputs, a sequence with a transform for each output, or a
    mapping from output names to transforms, with `default` for the other outputs.
    """
    D = len(names)
    if isinstance(transforms, Mapping):
        by_name = with_string_keys(transforms, "output_transform")
        unknown = [key for key in by_name if key not in names]
        if unknown:
            raise ValueError(
                f"output_transform has the keys {unknown}, which are not outputs; expected any of "
                f"{list(names)}."
            )
        return [by_name.get(name, default) for name in names]
    if not isinstance(transforms, list | tuple | np.ndarray):
        return [transforms] * D
    if len(transforms) != D:
        raise ValueError(
            f"output_transform has {len(transforms)} transforms for {D} outputs; expected one "
            "transform for all outputs, one for each output, or a dict with output names as keys."
        )
    return list(transforms)


def transforms_to_fit(
    transforms: Any, compositions: Sequence[Sequence[str]] | None, names: Sequence[str]
) -> list[Any]:
    """Return a transform for every output, which is "log" for the parts of a whole.

    Outputs that are not in a mapping are chosen automatically.

    >>> transforms_to_fit("auto", [["sand", "clay"]], ["pH", "sand", "clay"])
    ['auto', 'log', 'log']
    """
    parts = {str(part) for whole in compositions or () for part in whole}
    given = transform_per_output(transforms, names, "auto")
    automatic = [isinstance(spec, str) and spec == "auto" for spec in given]
    return [
        "log" if auto and name in parts else spec
        for auto, name, spec in zip(automatic, names, given, strict=True)
    ]
