"""The section on model structure: correlations between outputs, and latent processes."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.colors import to_hex
from sklearn.gaussian_process.kernels import Kernel

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.plots.coregionalization import noise_correlation
from emgpr.plots.labels import DIVERGING
from emgpr.plots.panels import output_positions
from emgpr.report.cells import MISSING, Cell, Table, name
from emgpr.report.columns import latent_columns

N_COLOURS = 21  # for correlations from −1 to 1
MAX_LATENTS_SHOWN = 8  # number of latents, each of which has its own table
MIN_LIGHT = 0.2  # On a background with a higher luminance, text is black.


def correlation_tables(model: MultiOutputGP | ReadingsGP, names: Sequence[str]) -> list[Table]:
    """Return a table of the signal correlations and, if fitted, one of the noise correlations."""
    if len(names) < 2:
        return []
    signals = _between(model, names, model.signal_correlations().sum(axis=0))
    tables = [heat_map("Correlation of the signals at a location", signals, names)]
    noise = noise_correlation(model)
    if noise is not None:
        tables.append(
            heat_map(
                "Correlation of the noise within a sample", _between(model, names, noise), names
            )
        )
    return tables


def contribution_tables(model: MultiOutputGP | ReadingsGP, names: Sequence[str]) -> list[Table]:
    """Return a table of each latent's contribution, or [] if there are too many latents."""
    parts = model.signal_correlations()
    if len(names) < 2 or not 1 < len(parts) <= MAX_LATENTS_SHOWN:
        return []
    return [
        heat_map(f"Contribution of {label}", _between(model, names, part), names)
        for label, part in zip(model.variance_shares_, parts, strict=False)
    ]


def _between(
    model: MultiOutputGP | ReadingsGP, names: Sequence[str], values: Float[np.ndarray, "D D"]
) -> Float[np.ndarray, "d d"]:
    """Return the correlations between these outputs."""
    kept = output_positions(model.output_names_, names)
    return values[np.ix_(kept, kept)]


def heat_map(caption: str, values: Float[np.ndarray, "D D"], names: Sequence[str]) -> Table:
    """Return a table of correlations with coloured cells."""
    rows = [
        (name(output), *map(_heat_cell, row)) for output, row in zip(names, values, strict=True)
    ]
    return Table(caption, ("", *names), rows, is_heat_map=True)


def _heat_cell(value: float) -> Cell:
    if not np.isfinite(value):
        return Cell(MISSING, style="heat")
    step = round((np.clip(value, -1, 1) + 1) / 2 * (N_COLOURS - 1))
    text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")  # Adding 0 avoids −0.00.
    return Cell(text, float(value), f"heat h{step}")


def heat_map_style() -> str:
    """Return the CSS rules for the colours of heat maps."""
    colours = matplotlib.colormaps[DIVERGING](np.linspace(0, 1, N_COLOURS))
    luminance = colours[:, :3] ** 2.2 @ [0.2126, 0.7152, 0.0722]
    inks = np.where(luminance > MIN_LIGHT, "#111", "#fff")
    return "".join(
        f".h{step}{{background:{to_hex(colour)};color:{ink}}}\n"
        for step, (colour, ink) in enumerate(zip(colours, inks, strict=True))
    )


def latent_table(
    model: MultiOutputGP | ReadingsGP,
    kernels: Sequence[Kernel | None],
    outputs: Sequence[str],
    units: Mapping[str, str],
) -> Table:
    """Return a table of the latents and the noise, with their kernels and variance shares."""
    shares = model.variance_shares_
    rows = [
        {"process": column, "kernel": kernel, "shares": shares[column]}
        for column, kernel in zip(shares.columns, (*kernels, None), strict=True)
    ]
    return Table.build(
        "Latent processes and their shares of each output's variance",
        latent_columns(outputs, length_scale_unit(model, units)),
        rows,
        "The shares refer to the transformed and standardised outputs.",
    )


def length_scale_unit(model: MultiOutputGP | ReadingsGP, units: Mapping[str, str]) -> str:
    """Return the unit of length-scales: km for inputs in degrees, otherwise the inputs' unit."""
    X, _ = model.training_data()
    if model.input_spec_.coordinates.degrees:
        return "km" if X.shape[1] == 2 else ""
    input_units = {units.get(column, "") for column in X.columns}
    return input_units.pop() if len(input_units) == 1 else ""
