"""The page: everything there is to say of a model, put into one file."""

import base64
import copy
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from emgpr.estimators.wanted import units_by_name
from emgpr.execution import counter
from emgpr.geo import needed
from emgpr.io.files import PathLike, folder, kind, writing
from emgpr.plots.surface import running_on
from emgpr.report import accuracy, data, fit, pictures, structure
from emgpr.report.charts import charts
from emgpr.report.names import Named
from emgpr.report.provenance import Source, provenance
from emgpr.report.settings import settings_table
from emgpr.report.tables import Cell, number, percent

ENDINGS = (".html", ".htm")
SCRIPT = ("numbers", "plot", "map", "line", "start")  # of the page, in this order


def write_report(
    model: Any,
    path: PathLike,
    *,
    title: str | None = None,
    units: str | Mapping[str, str] | None = None,
    verbose: int = 0,
) -> Path:
    """Write one HTML file about a fitted model, and give its path.

    It holds what was measured and how well it is predicted, maps that show their values under the
    pointer, calibration, what was learned, settings and provenance. It opens offline, in any
    browser, and fetches nothing. Needs `pip install 'emgpr[report]'`.

    Parameters
    ----------
    model : fitted estimator, or path of a file that `save` wrote
        Of a file, its name, size and checksum are in the report.
    path : path ending in .html
        A file that is there is replaced.
    title : str, optional
        Instead of the names of the outputs.
    units : str or dict, optional
        Units of the outputs: one for all, or by name; those of inputs may be there too.
    verbose : int
        1 shows progress.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from emgpr import EMGPR
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()
    >>> model = EMGPR.paper(transform="log", n_members=3).fit(jura.X[:60], jura.Y[:60])
    >>> with TemporaryDirectory() as here:
    ...     page = write_report(model, f"{here}/report.html", units="mg/kg").read_text("utf-8")
    >>> page[:15], len(page) < 8e6
    ('<!doctype html>', True)
    """
    target = Path(path)
    kind(target, ENDINGS)
    folder(target)
    jinja2 = needed("jinja2", "A report", "report")
    source = Source.of(model)
    check_is_fitted(source.model)
    page = _rendered(jinja2, _content(source, title, units, verbose))
    with writing(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _content(source: Source, title: str | None, units: Any, verbose: int) -> dict[str, Any]:
    """Everything that the template shows."""
    model = copy.copy(source.model)
    model.verbose = 0  # one bar, of the parts of the page
    X, Y = model.training_data()
    around = running_on(model, X)
    units = units_by_name(units, model.output_names_, list(X.columns))
    steps: dict[str, Callable[[], Any]] = {
        "checks": lambda: accuracy.Checks.of(model),
        "named": lambda: Named.of(model, made["checks"].found["site"], units),
        "charts": lambda: charts(model, X, Y, units),
        "calibration": lambda: pictures.calibration(made["named"]),
        "variograms": lambda: pictures.variograms(made["named"]),
        "latents": lambda: pictures.latents(made["named"]),
        "shares": lambda: pictures.shares(made["named"]),
        "provenance": lambda: provenance(source),
    }
    made: dict[str, Any] = {}
    with counter(len(steps), "Report: parts", verbose) as count:
        for part, make in steps.items():
            made[part] = make()
            count()
    checks = made["checks"]
    return made | {
        "title": title or data.titled(model),
        "kind": type(model).__name__,
        "what": data.what_where(model, around, Y, units),
        "which": fit.model_sentence(model),
        "good": accuracy.how_good(checks, units),
        "gave": accuracy.what_transfer_gave(checks),
        "figures": _figures(model, Y, checks),
        "notices": fit.notices(model, data.repeated_sites(X)),
        "outputs": data.outputs_table(model, Y, units),
        "inputs": data.inputs_table(around, units),
        "settings": settings_table(model),
        "fit": fit.fit_table(model),
        "trace": fit.trace(model),
        "trace_sentence": fit.trace_sentence(model),
        "errors": [accuracy.error_table(found, units) for found in checks.found.values()],
        "transfer": [accuracy.transfer_table(one, units) for one in checks.transfer.values()],
        "correlations": structure.correlation_tables(model),
        "parts": structure.part_tables(model),
        "latent_table": structure.latent_table(model, units),
        "is_alone": model.n_outputs_ == 1,
    }


def _figures(model: Any, Y: Any, checks: accuracy.Checks) -> list[tuple[str, Cell]]:
    """A few numbers, large."""
    summary = checks.found["site"].summary()
    n, missing = int(Y.notna().to_numpy().sum()), float(Y.isna().to_numpy().mean())
    several, Q = len(summary) > 1, len(model.kernels_)
    return [
        ("sites", number(len(Y))),
        ("outputs" if several else "output", number(len(summary))),
        (f"readings, {percent(missing).text if missing else 'none'} missing", number(n)),
        (
            "of variance explained" + (" (median output)" if several else ""),
            percent(float((1 - summary["smse"]).median())),
        ),
        ("of readings inside their 95% intervals", percent(_inside(checks, n))),
        ("latent process" + ("es" if Q > 1 else ""), number(Q)),
    ]


def _inside(checks: accuracy.Checks, n: int) -> float:
    summary = checks.found["site"].summary()
    return float((summary["coverage"] * summary["n"]).sum() / max(n, 1))


def _rendered(jinja2: Any, content: dict[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    parts = "\n".join(_text(f"script/{part}.js") for part in SCRIPT)
    script = f'"use strict";\n{{\n{parts}}}\n'
    style = _text("style.css") + structure.heat_style()
    return environment.get_template("template.html").render(
        content,
        script=script,
        style=style,
        policy="; ".join(
            [
                "default-src 'none'",
                "img-src data:",
                f"script-src 'sha256-{_hash(script)}'",
                f"style-src 'sha256-{_hash(style)}'",
                "base-uri 'none'",
                "form-action 'none'",
            ]
        ),
    )


def _text(name: str) -> str:
    return files("emgpr.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
