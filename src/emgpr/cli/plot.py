"""`emgpr plot`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import progress, reading
from emgpr.cli.files import read_model, to_write

Picture = Literal[
    "maps",
    "latents",
    "weights",
    "coregionalization",
    "variograms",
    "shares",
    "predictions",
    "calibration",
]
ENDINGS = (".png", ".pdf", ".svg")


def plot(
    model: given.ModelFile,
    what: Annotated[Picture, typer.Argument(help="Which picture.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file: .png, .pdf or .svg.")],
    outputs: Annotated[
        str | None,
        typer.Option(help="Some of the outputs, of maps, variograms, predictions, calibration."),
    ] = None,
    units: given.Units = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a .png.")] = 150,
    force: given.Force = False,
) -> None:
    """Draw a picture of a model.

    \b
    maps               every output and its standard deviation, with the data
    latents            the latent processes, their length-scales and who hears them
    weights            the weights of every member of the ensemble
    coregionalization  correlations of the outputs, and what each latent brings to them
    variograms         empirical variograms and cross-variograms, and the model's
    shares             each output's variance, by latent and noise
    predictions        each reading against what was predicted when it was left out
    calibration        whether the uncertainty is honest: coverage, and PIT of each output

    \b
    Examples:
      emgpr plot jura.emgpr maps --units Cd=mg/kg,Ni=mg/kg,Zn=mg/kg,Xloc=km,Yloc=km -o maps.png
      emgpr plot jura.emgpr variograms -o variograms.png
      emgpr plot jura.emgpr calibration -o calibration.pdf
    """
    to_write(out, force, ENDINGS)
    fitted = read_model(model, for_readings="a picture")
    fitted.verbose = progress()
    chosen = None if outputs is None else given.words(outputs, "--outputs")
    of = given.units_of(units)
    of = dict.fromkeys(fitted.output_names_, of) if isinstance(of, str) else of
    given.known_to(fitted, chosen, "--outputs")
    given.known_to(fitted, of, "--units", inputs=True)
    with reading():
        from emgpr.io.files import writing

        figure = _drawn(fitted, what, chosen, of)
        with writing(out) as partial:
            figure.savefig(partial, dpi=dpi, format=out.suffix[1:].lower())
    typer.echo(f"{what} of {', '.join(fitted.output_names_)}: {out}")


def _drawn(
    model: Any, what: Picture, chosen: list[str] | None, units: dict[str, str] | None
) -> Any:
    """The figure."""
    import matplotlib

    matplotlib.use("Agg")  # no window, on machines that have no screen either
    import matplotlib.pyplot as plt
    import numpy as np

    from emgpr import plots

    draw: dict[str, Any] = {
        "maps": lambda: plots.maps(model, outputs=chosen, units=units),
        "latents": lambda: plots.latents(model, units=units),
        "weights": lambda: plots.member_weights(model),
        "coregionalization": lambda: plots.coregionalization(model),
        "variograms": lambda: plots.variograms(model, outputs=chosen, units=units),
        "shares": lambda: plots.variance_shares(model),
        "predictions": lambda: plots.measured_against_predicted(model, outputs=chosen, units=units),
        "calibration": lambda: _calibration(plots, plt, model, chosen),
    }
    axes = np.ravel(draw[what]())[0]
    return axes.figure.figure  # of a part of a figure, the whole; of a whole one, itself


def _calibration(plots: Any, plt: Any, model: Any, chosen: list[str] | None) -> Any:
    """Coverage, and below it the PIT of each output."""
    checked = model.cross_validate()
    n = len(model.output_names_ if chosen is None else chosen)
    columns = min(n, 4)
    rows = -(-n // columns)
    figure = plt.figure(figsize=(max(2.8 * columns, 5.2), 4.6 + 2.4 * rows), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[4.6, 2.4 * rows])
    plots.coverage(checked, outputs=chosen, ax=above.subplots())
    axes = below.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for spare in axes[n:]:
        spare.remove()
    return plots.pit(checked, outputs=chosen, axes=axes[:n])
