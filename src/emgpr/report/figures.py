"""Figures of `emgpr.plots`, embedded in the page as images."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from emgpr import plots
from emgpr.cross_validation import CrossValidation
from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.inspection import variogram_warnings
from emgpr.plots.latents import strongest_processes
from emgpr.plots.panels import keep_first
from emgpr.plots.surface import Locations
from emgpr.plots.variograms import pairs_of
from emgpr.report.charts import MAX_OUTPUTS, nodes_per_side

MAX_COLUMNS = 3  # number of panels side by side; with more, the text would be too small
MAX_LATENTS = 6
MAX_NODES_SIDE = 72  # number of nodes along the longer side of a map of a latent process
PADDING = 0.1  # inches around each panel; browsers may use wider fonts than matplotlib
MIN_VARIOGRAM_SITES = 3
MAX_SVG_POINTS = 1500  # With more points, an SVG image is larger than a PNG image.
MAX_PHONE_WIDTH = 600  # pixels; text in wider figures is illegible when scaled to fit a phone
STYLE = {
    "svg.fonttype": "none",  # Text is drawn in the browser's fonts, which have all characters.
    "svg.hashsalt": "emgpr",
    "font.family": "sans-serif",
}


@dataclass(frozen=True)
class Image:
    """An image as a data URL, with its size in pixels."""

    source: str
    width: int
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether the image scrolls on a narrow screen instead of being scaled down."""
        return self.width > MAX_PHONE_WIDTH


def create_images(
    model: MultiOutputGP | ReadingsGP,
    outputs: Sequence[str],
    results: CrossValidation,
    units: Mapping[str, str],
) -> tuple[dict[str, Image | None], list[str]]:
    """Draw all figures of the page; return them, and warnings about the variograms.

    A figure is None if the inputs do not allow it.
    """
    names = list(outputs[:MAX_OUTPUTS])
    n, n_readings = len(names), int(results.truth[names].count().sum())
    images = {
        "coverage": _draw(
            1, (5.4, 4.4), lambda axes: plots.coverage(results, outputs=names, ax=axes[0])
        ),
        "pit": _draw(n, (3.4, 2.6), lambda axes: plots.pit(results, outputs=names, axes=axes)),
        "measured_against_predicted": _draw(
            n,
            (3.4, 3.4),
            lambda axes: plots.measured_against_predicted(
                results, outputs=names, units=units, axes=axes
            ),
            as_png=n_readings > MAX_SVG_POINTS,
        ),
        "variance_shares": _draw(
            1,
            (8.6, 1.2 + 0.42 * len(outputs)),
            lambda axes: plots.variance_shares(model, outputs=outputs, ax=axes[0]),
        ),
        "latents": _draw_latents(model, outputs, units),
    }
    variograms = _draw_variograms(model, names, units)
    messages = [] if variograms is None else variogram_warnings(model.variograms())
    return {**images, "variograms": variograms}, messages


def _draw_latents(
    model: MultiOutputGP | ReadingsGP, outputs: Sequence[str], units: Mapping[str, str]
) -> Image | None:
    if model.n_features_in_ > 2 or not isinstance(model, MultiOutputGP):
        return None
    is_map = model.input_spec_.n_features == 2
    resolution = min(MAX_NODES_SIDE, nodes_per_side(model)) if is_map else None
    locations = Locations.build(model, resolution=resolution)
    height = 0.8 if locations.is_line else locations.aspect(units)[1]
    return _draw(
        len(strongest_processes(model.weights_, None, MAX_LATENTS)),
        (3.9, 0.9 + 2.6 * height),
        lambda axes: plots.latents(
            model, locations.nodes, limit=MAX_LATENTS, outputs=outputs, units=units, axes=axes
        ),
        as_png=not locations.is_line,
    )


def _draw_variograms(
    model: MultiOutputGP | ReadingsGP, names: list[str], units: Mapping[str, str]
) -> Image | None:
    X, _ = model.training_data()
    has_distance = X.shape[1] <= 2 or model.input_spec_.coordinates.degrees
    if not has_distance or len(X.drop_duplicates()) < MIN_VARIOGRAM_SITES:
        return None
    return _draw(
        len(pairs_of(names)),
        (3.4, 2.6),
        lambda axes: plots.variograms(model, outputs=names, units=units, axes=axes),
    )


def _draw(
    n: int, size: tuple[float, float], draw: Callable[[np.ndarray], Any], *, as_png: bool = False
) -> Image:
    """Draw a figure with n panels. It is not registered with pyplot, so that no window opens."""
    columns = min(n, MAX_COLUMNS)
    rows = -(-n // columns)
    with _default_style():
        layout = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout=layout)
        draw(keep_first(figure.subplots(rows, columns, squeeze=False), n))
        file = io.BytesIO()
        if as_png:
            figure.savefig(file, format="png", dpi=144, transparent=True)
        else:
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    kind = "png" if as_png else "svg+xml"
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return Image(source, width, height)


@contextmanager
def _default_style() -> Iterator[None]:
    """Use matplotlib's defaults instead of the user's settings, and ignore warnings.

    Warnings about fonts are of no use, and those about variograms are on the page.
    """
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from|The fitted variogram is")
        yield
