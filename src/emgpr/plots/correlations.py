"""Maps of the correlation of two outputs, for models in which it changes over the region."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from emgpr.estimators import GPRN
from emgpr.plots import labels
from emgpr.plots.labels import Units, known_units, shorten
from emgpr.plots.panels import create_panels, output_positions
from emgpr.plots.surface import Locations, draw_surface, label_map_axes


def correlation_map(
    model: GPRN,
    first: str,
    second: str,
    nodes: Any = None,
    *,
    include_noise: bool = False,
    units: Units = None,
    resolution: int | None = None,
    ax: Any = None,
) -> Axes:
    """Draw the correlation of two outputs of a regression network, and the training sites.

    `nodes`, `units` and `resolution` are those of `maps`. The correlation is that of the signals
    or, if `include_noise` is True, of readings, on the standardised scale. For a model with one
    input, it is drawn as a line. Returns the axes.
    """
    if not isinstance(model, GPRN):
        raise TypeError(
            f"correlation_map draws models of class GPRN, not {type(model).__name__}, in which "
            "correlations do not depend on the location; use coregionalization."
        )
    d, e = output_positions(model.output_names_, [first, second])
    locations, units = Locations.build(model, nodes, resolution), known_units(model, units)
    values = model.correlations(locations.X, include_noise=include_noise)[:, d, e]
    title = f"{shorten(first)} and {shorten(second)}: correlation"
    if locations.is_line:
        (panel,) = create_panels(1, ax, (4.2, 3.0))
        panel.axhline(0.0, color="0.7", linewidth=0.8)
        panel.plot(locations.nodes.iloc[:, 0], values, color=labels.BLUE)
        panel.set(ylim=(-1.05, 1.05), ylabel="correlation")
        panel.set_xlabel(labels.with_unit(locations.sites.columns[0], units))
        labels.set_title(panel, title)
        return panel
    aspect, height = locations.aspect(units)
    panels = create_panels(1, ax, (3.6, 0.7 + 2.4 * height))
    panel = panels[0]
    draw_surface(panel, locations, values, labels.DIVERGING, Normalize(-1.0, 1.0), "neither")
    x, y = locations.sites[locations.axes].to_numpy(dtype=float).T
    panel.plot(x, y, "k.", markersize=2)
    labels.set_title(panel, title)
    panel.set_aspect(aspect)
    label_map_axes(np.array(panels), locations, units)
    return panel
