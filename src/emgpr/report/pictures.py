"""Pictures of `emgpr.plots` as part of a page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from emgpr import plots
from emgpr.geo import is_geographic
from emgpr.plots.latents import strongest
from emgpr.plots.surface import as_on_paper, nodes_over, running_on, shape_of
from emgpr.plots.variograms import FEW
from emgpr.report.charts import ACROSS, MOST_OUTPUTS
from emgpr.report.names import Named

ABREAST = 3  # panels beside each other, so that letters stay large enough
DENSE = 1500  # points beyond which a drawing takes more than an image
WIDE = 600  # pixels beyond which letters of a picture that must fit a phone are too small
COARSE = 36  # nodes along a map of a latent
FEWEST = 3  # sites that a variogram needs
STYLE = {
    "svg.fonttype": "none",  # letters of the reader's machine: sharp, small, and every script
    "svg.hashsalt": "emgpr",
    "text.parse_math": False,  # a name with dollars is a name
    "font.family": "sans-serif",
}


@dataclass(frozen=True)
class Picture:
    """An image as a data address, what it shows in words, and its size in pixels."""

    source: str
    alt: str
    width: int
    height: int
    is_wide: bool  # on a narrow screen it scrolls


def calibration(of: Named) -> list[Picture]:
    """Coverage, PIT, and predictions against what was measured."""
    found, units = of.found, of.units
    names = list(found.truth.columns[:MOST_OUTPUTS])
    n = int(found.truth[names].count().sum())
    return [
        _drawn(
            1,
            (5.4, 4.4),
            lambda axes: plots.coverage(found, outputs=names, ax=axes[0]),
            "Share of readings inside their prediction intervals, for intervals of every level, by "
            "output; on the diagonal if the uncertainty is honest.",
        ),
        _drawn(
            len(names),
            (3.4, 2.6),
            lambda axes: plots.pit(found, outputs=names, axes=axes),
            "Histograms, by output, of the probability that was given to values below each "
            "reading; level if the uncertainty is honest.",
        ),
        _drawn(
            len(names),
            (3.4, 3.4),
            lambda axes: plots.measured_against_predicted(
                found, outputs=names, units=units, axes=axes
            ),
            "Every reading against what was predicted of it when its site was left out, with 95% "
            "intervals, by output.",
            dense=n > DENSE,
        ),
    ]


def variograms(of: Named) -> Picture | None:
    """Of the readings and the model, where places have a distance."""
    model = of.model
    X, _ = model.training_data()
    names = model.output_names_[:MOST_OUTPUTS]
    if not (X.shape[1] <= 2 or is_geographic(model.crs)) or len(X.drop_duplicates()) < FEWEST:
        return None
    pairs = len(names) * (len(names) + 1) // 2
    n = pairs if len(names) <= FEW else len(names)
    return _drawn(
        n,
        (3.4, 2.6),
        lambda axes: plots.variograms(model, outputs=names, units=of.units, axes=axes),
        "Variograms of the readings as points and of the model as lines, by distance.",
    )


def shares(of: Named) -> Picture:
    """What every output is made of."""
    height = 1.2 + 0.42 * of.model.n_outputs_
    return _drawn(
        1,
        (8.6, height),
        lambda axes: plots.variance_shares(of.model, ax=axes[0]),
        "Share of every output's variance from each latent process and from noise; the same "
        "numbers are in the table of latent processes.",
    )


def latents(of: Named) -> Picture | None:
    """The latent processes over the places, of one or two inputs."""
    model = of.model
    X, _ = model.training_data()
    if X.shape[1] > 2:
        return None
    nodes, height = None, 0.8
    if X.shape[1] == 2:
        nodes = nodes_over(running_on(model, X), COARSE, at_least=ACROSS)
        _, height = shape_of(as_on_paper(nodes), of.units)
    most = 2 * ABREAST
    return _drawn(
        len(strongest(model, limit=most)),
        (3.9, 0.9 + 2.6 * height),
        lambda axes: plots.latents(model, nodes, limit=most, units=of.units, axes=axes),
        "The latent processes that bring the outputs the most variance, given the readings, with "
        "length-scales and the outputs that hear them most.",
        dense=X.shape[1] == 2,
    )


def _drawn(
    n: int,
    size: tuple[float, float],
    draw: Callable[[np.ndarray], Any],
    alt: str,
    *,
    dense: bool = False,
) -> Picture:
    """n panels on a figure that pyplot, and so the user's screen, knows nothing of."""
    columns = min(n, ABREAST)
    rows = -(-n // columns)
    with _styled():
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for spare in grid.flat[n:]:
            spare.remove()
        draw(np.array(grid.flat[:n], dtype=object))
        file = io.BytesIO()
        if dense:
            figure.savefig(file, format="png", dpi=144, transparent=True)
        else:
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    kind = "png" if dense else "svg+xml"
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return Picture(source, alt, width, height, width > WIDE)


@contextmanager
def _styled() -> Iterator[None]:
    """matplotlib as it comes, whatever the user made of it, and names of any script."""
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield
