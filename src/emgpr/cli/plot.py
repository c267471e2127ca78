"""The command `emgpr plot`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from emgpr.cli.errors import UsageError, reading_data
from emgpr.cli.files import check_output, read_model_with_data
from emgpr.cli.options import Force, ModelFile, Outputs, Resolution, Units
from emgpr.cli.parsing import parse_names, parse_units
from emgpr.printable import escape_controls

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from emgpr.estimators import MultiOutputGP, ReadingsGP

Picture = Literal[
    "maps", "latents", "weights", "coregionalization", "variograms", "shares", "predictions",
    "calibration",
]  # fmt: skip
MAPS = ("maps", "latents")  # which have a resolution
ENDINGS = (".png", ".pdf", ".svg")


def plot(
    model: ModelFile,
    what: Annotated[Picture, typer.Argument(help="The figure to draw.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The figure: .png, .pdf or .svg.")],
    outputs: Outputs = None,
    units: Units = None,
    resolution: Resolution = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a .png file.")] = 150,
    force: Force = False,
) -> None:
    """Draw a figure of a model.

    \b
    maps               every output and its standard deviation, with the readings
    latents            the latent processes, their length-scales and largest weights
    weights            the weights of every member of the ensemble
    coregionalization  correlations between outputs, and the contribution of each latent process
    variograms         empirical and fitted variograms and cross-variograms
    shares             shares of each output's variance due to latent processes and noise
    predictions        each reading against its cross-validated prediction
    calibration        coverage of the prediction intervals, and PIT histograms

    \b
    Examples:
      emgpr plot jura.emgpr maps --units Cd=mg/kg,Ni=mg/kg,Zn=mg/kg,Xloc=km,Yloc=km -o maps.png
      emgpr plot jura.emgpr latents --resolution 120 -o latents.png
      emgpr plot jura.emgpr variograms -o variograms.png
      emgpr plot jura.emgpr calibration -o calibration.pdf
    """
    if resolution is not None and what not in MAPS:
        raise UsageError(f"--resolution applies only to {' and '.join(MAPS)}. Leave it out.")
    check_output(out, force, ENDINGS)
    fitted = read_model_with_data(model, "a figure")
    names = fitted.output_names_
    shown = parse_names(outputs, "--outputs", names) or None
    by_name = parse_units(units, names, fitted.training_data()[0].columns)
    with reading_data():
        figure = _draw(fitted, what, shown, by_name, resolution)

        from emgpr.plots.save import save_figure

        save_figure(figure, out, dpi)
    typer.echo(escape_controls(f"{what} of {', '.join(shown or names)}: {out}"))


def _draw(
    model: "MultiOutputGP | ReadingsGP",
    what: Picture,
    outputs: Sequence[str] | None,
    units: dict[str, str] | None,
    resolution: int | None,
) -> "Figure":
    import matplotlib

    matplotlib.use("Agg")  # This backend works without a display.
    import numpy as np

    from emgpr import plots

    shown: dict[str, Any] = {"outputs": outputs, "units": units}
    functions: dict[Picture, Callable[[], Any]] = {
        "maps": lambda: plots.maps(model, resolution=resolution, **shown),
        "latents": lambda: plots.latents(model, resolution=resolution, **shown),
        "weights": lambda: plots.member_weights(model, outputs=outputs),
        "coregionalization": lambda: plots.coregionalization(model, outputs=outputs),
        "variograms": lambda: plots.variograms(model, **shown),
        "shares": lambda: plots.variance_shares(model, outputs=outputs),
        "predictions": lambda: plots.measured_against_predicted(model, **shown),
        "calibration": lambda: _draw_calibration(model, outputs),
    }
    axes = np.ravel(functions[what]())[0]
    return axes.figure.figure  # the whole figure, even if the axes are in a subfigure


def _draw_calibration(model: "MultiOutputGP | ReadingsGP", outputs: Sequence[str] | None) -> Any:
    """Draw the coverage of prediction intervals, with a PIT histogram for each output below it."""
    import matplotlib.pyplot as plt
    import numpy as np

    from emgpr import plots
    from emgpr.plots.panels import keep_first

    results = model.cross_validate()
    n = len(model.output_names_ if outputs is None else outputs)
    n_columns = min(n, 4)
    n_rows = -(-n // n_columns)
    size = (max(2.8 * n_columns, 5.2), 4.6 + 2.4 * n_rows)
    figure = plt.figure(figsize=size, layout="constrained")
    above, below = np.asarray(figure.subfigures(2, 1, height_ratios=[4.6, 2.4 * n_rows]))
    plots.coverage(results, outputs=outputs, ax=above.subplots())
    axes = below.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    return plots.pit(results, outputs=outputs, axes=keep_first(axes, n))
