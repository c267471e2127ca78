"""How the outputs go together: correlations, latent processes and what each brings."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from emgpr.geo import is_geographic
from emgpr.plots.labels import DIVERGING
from emgpr.report.tables import Cell, Table, name, number, percent, words

STEPS = 21  # colours from −1 to 1
PARTS = 8  # latents up to which each one's part is shown


def correlation_tables(model: Any) -> list[Table]:
    """Of the signals and, where it was learned, of the noises; as heat maps."""
    names = model.output_names_
    if len(names) < 2:
        return []
    parts = model.signal_correlations()
    tables = [
        heat_map("Correlation of the signals at a place", parts.sum(axis=0), names),
    ]
    noise = np.asarray(model.noise_)
    if noise.ndim == 2:
        spread = np.sqrt(np.diagonal(noise))
        with np.errstate(invalid="ignore", divide="ignore"):
            table = noise / np.outer(spread, spread)
        tables.append(heat_map("Correlation of the noises of a sample", table, names))
    return tables


def part_tables(model: Any) -> list[Table]:
    """What each of a few latents brings to the correlations: they sum to that of the signals."""
    parts = model.signal_correlations()
    if model.n_outputs_ < 2 or not 1 < len(parts) <= PARTS:
        return []
    return [
        heat_map(f"Part of latent {q} in it", part, model.output_names_)
        for q, part in enumerate(parts)
    ]


def heat_map(caption: str, values: np.ndarray, names: Sequence[str]) -> Table:
    """Numbers between −1 and 1, coloured."""
    rows = [
        (name(row), *(_heat(value) for value in line))
        for row, line in zip(names, values, strict=True)
    ]
    return Table(caption, ("", *names), rows, is_heat_map=True)


def _heat(value: float) -> Cell:
    if not np.isfinite(value):
        return Cell("–", mark="heat")
    step = round((np.clip(value, -1, 1) + 1) / 2 * (STEPS - 1))
    text = f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")  # no −0.00
    return Cell(text, float(value), f"heat h{step}")


def heat_style() -> str:
    """Rules of a style sheet for the colours of a heat map."""
    colours = matplotlib.colormaps[DIVERGING](np.linspace(0, 1, STEPS))
    light = colours[:, :3] ** 2.2 @ [0.2126, 0.7152, 0.0722]  # luminance, as contrast is told
    return "".join(
        f".h{step}{{background:{to_hex(colour)};color:{'#111' if light[step] > 0.2 else '#fff'}}}\n"
        for step, colour in enumerate(colours)
    )


def latent_table(model: Any, units: Mapping[str, str]) -> Table:
    """Every latent: its kernel, length-scale, and share of each output's variance; then noise."""
    shares = model.variance_shares_
    rows = [
        (
            name(column),
            *_kernel(model.kernels_[q] if q < len(model.kernels_) else None),
            *(percent(shares.loc[output, column]) for output in shares.index),
        )
        for q, column in enumerate(shares.columns)
    ]
    unit = scale_unit(model, units)
    heads = (
        "process", "kernel", f"length-scale ({unit})" if unit else "length-scale",
        *(f"of {output}" for output in shares.index),
    )  # fmt: skip
    return Table(
        "Latent processes, and their share of the variance of every output",
        heads,
        rows,
        "Shares are on the scale that the model works on, after transforms.",
    )


def scale_unit(model: Any, units: Mapping[str, str]) -> str:
    """The unit of length-scales: km on the globe, else that of all inputs if they share one."""
    if is_geographic(model.crs):
        return "km" if model.n_features_in_ == 2 else ""
    X, _ = model.training_data()
    of = {units.get(column, "") for column in X.columns}
    return of.pop() if len(of) == 1 else ""


def _kernel(kernel: Any) -> tuple[Cell, Cell]:
    """Of noise there is none."""
    if kernel is None:
        return words(""), words("")
    scale = kernel.get_params().get("length_scale")
    if scale is None:
        return words(repr(kernel), "code"), words("–", "number")
    if np.ndim(scale) == 0:
        return words(repr(kernel), "code"), number(scale)
    return words(repr(kernel), "code"), words(
        " × ".join(number(one).text for one in scale), "number"
    )
