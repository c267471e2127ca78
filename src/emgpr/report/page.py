"""The content of a report, and its rendering as an HTML page."""

import base64
import copy
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.io.files import check_folder_exists, file_ending, replace_when_complete
from emgpr.mapping.variables import units_by_name
from emgpr.optional_imports import import_optional
from emgpr.persistence import PathLike
from emgpr.plots.panels import output_positions, select_outputs
from emgpr.plots.surface import check_resolution, continuous_longitudes
from emgpr.printable import escape_controls
from emgpr.progress import progress_counter
from emgpr.report import data, fit, structure
from emgpr.report.accuracy import Accuracy
from emgpr.report.cells import Cell, Table, join_names, number, percent, quantity
from emgpr.report.charts import create_charts
from emgpr.report.description import Description, describe
from emgpr.report.figures import create_images
from emgpr.report.provenance import Source, provenance_table
from emgpr.report.stacking import transfer_statements, transfer_table

SUFFIXES = (".html", ".htm")
# Each script uses definitions from the scripts before it.
SCRIPTS = ("numbers", "plot", "map", "line", "main")


def write_report(
    model: MultiOutputGP | ReadingsGP | PathLike,
    path: PathLike,
    *,
    outputs: Sequence[str] | str | None = None,
    title: str | None = None,
    units: str | Mapping[str, str] | None = None,
    resolution: int | None = None,
    verbose: int = 0,
) -> Path:
    """Write a report on a fitted model to one HTML file, and return its path.

    The report shows the training data, cross-validated errors, calibration, interactive maps, and
    the structure, parameters and provenance of the model. The file opens offline in any browser.
    Requires `pip install 'emgpr[report]'`.

    Parameters
    ----------
    model : fitted estimator, or path of a file written by `save`
        If a path is given, the report includes the name, size and checksum of the file.
    path : path ending in .html
        An existing file is replaced.
    outputs : list of str, optional
        Outputs to report on, by default all. Predictions use the readings of all outputs.
    title : str, optional
        By default, the title consists of the outputs and the number of sites.
    units : str or dict, optional
        One unit for all outputs, or a dict with the units of outputs and inputs. Other units are
        those stored in the model (`units_`).
    resolution : int, optional
        Number of grid nodes along the longer side of the maps. By default, it is chosen from the
        number of sites and the cost of predictions: 40 to 200.
    verbose : int
        Use 1 to show progress.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from emgpr import IndependentGP
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table(["Ni"], withheld=None)
    >>> model = IndependentGP(random_state=0).fit(jura.X[:60], jura.Y[:60])
    >>> with TemporaryDirectory() as here:
    ...     page = write_report(model, f"{here}/report.html", units="mg/kg").read_text("utf-8")
    >>> page[:15], len(page) < 8e6
    ('<!doctype html>', True)
    """
    check_resolution(resolution)
    target = Path(path)
    file_ending(target, SUFFIXES)
    check_folder_exists(target)
    jinja2 = import_optional("jinja2", "A report", "report")
    source = Source.read(model)
    check_is_fitted(source.model)
    kept = select_outputs(source.model.output_names_, outputs)
    page = _render(jinja2, _content(source, kept, title, units, resolution, verbose))
    with replace_when_complete(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _content(
    source: Source,
    outputs: list[str],
    title: str | None,
    units: Any,
    resolution: int | None,
    verbose: int,
) -> dict[str, Any]:
    """Return the variables of the template."""
    model = copy.copy(source.model)
    model.verbose = 0  # Show the progress of the report, but not that of single predictions.
    X, Y = model.training_data()
    Y, n_repeated = Y[outputs], int(X.duplicated().sum())
    X = continuous_longitudes(X, model.input_spec_)
    units = units_by_name(units, model.output_names_, list(X.columns), model.units_)
    with progress_counter(3, "Report: parts", verbose) as count:
        accuracy = Accuracy.evaluate(model).for_outputs(outputs)
        count()
        charts = create_charts(model, units, resolution, outputs)
        count()
        images, variogram_warnings = create_images(model, outputs, accuracy.errors["site"], units)
        count()
    description = describe(model)
    stages = description.stages
    transforms = [model.transforms_[d] for d in output_positions(model.output_names_, outputs)]
    return {
        "title": title or data.default_title(outputs, len(X)),
        "file_name": source.file_name,
        "model": model,
        "description": description,
        "summary": [
            data.data_sentence(X, Y, units),
            f"{accuracy.error_sentence(units)} {accuracy.transfer_sentence()}",
        ],
        "statements": transfer_statements(model, outputs),
        "readings_used": transfer_table(model, outputs),
        "key_figures": _key_figures(description, Y, accuracy),
        "n_repeated": n_repeated,
        "charts": charts,
        "images": images,
        "variogram_warnings": variogram_warnings,
        "errors": accuracy.error_tables(units),
        "transfer": accuracy.transfer_tables(units),
        "correlations": structure.correlation_tables(model, outputs),
        "contributions": structure.contribution_tables(model, outputs),
        "latents": structure.latent_table(model, description.kernels, outputs, units),
        "outputs": data.output_table(Y, transforms, units),
        "inputs": data.input_table(X, units),
        "fit": Table.of_facts("Result of the fit", description.results),
        "stages": stages,
        "trace": [stage._asdict() for stage in stages] if stages and len(stages) > 1 else None,
        "parameters": fit.parameter_table(model, description.resolved),
        "provenance": provenance_table(source),
    }


def _key_figures(
    description: Description, Y: pd.DataFrame, accuracy: Accuracy
) -> list[tuple[str, Cell]]:
    """Return the key figures at the top of the page, as pairs of label and value."""
    summary = accuracy.summary
    D, Q, share = Y.shape[1], description.n_processes, float(Y.isna().to_numpy().mean())
    coverage = (summary["coverage"] * summary["n"]).sum() / max(summary["n"].sum(), 1)
    return [
        ("sites", number(len(Y))),
        ("outputs" if D > 1 else "output", number(D)),
        (f"readings, {percent(share).text if share else 'none'} missing", number(Y.count().sum())),
        (
            "of variance explained" + (" (median output)" if D > 1 else ""),
            percent((1 - summary["smse"]).median()),
        ),
        ("of readings inside their 95% intervals", percent(coverage)),
        (description.processes[Q > 1], number(Q)),
    ]


def _render(jinja2: Any, content: dict[str, Any]) -> str:
    """Return the page as HTML, with a security policy that allows only its own script and style."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "quantity": quantity,
        "join_names": join_names,
        "number": lambda value, digits: number(value, digits).text,
    }
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    parts = "\n".join(_read(f"script/{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n{{\n{parts}}}\n'
    style = _read("style.css") + structure.heat_map_style()
    policy = (
        f"default-src 'none'; img-src data:; script-src 'sha256-{_sha256(script)}'; "
        f"style-src 'sha256-{_sha256(style)}'; base-uri 'none'; form-action 'none'"
    )
    template = environment.get_template("template.html")
    return escape_controls(template.render(content, script=script, style=style, policy=policy))


def _read(name: str) -> str:
    return files("emgpr.report").joinpath(name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
