"""What the page draws itself and answers the pointer on: maps of two inputs, lines of one.

Predictions are made on a grid that is as fine as time and the size of the page allow. The page
gets 32-bit numbers, seven digits, as base64.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator

from emgpr.geo import is_geographic
from emgpr.plots.labels import is_log
from emgpr.plots.maps import PREDICTION_COLOURS, STD_COLOURS
from emgpr.plots.surface import as_fitted, as_on_paper, mesh, nodes_over, running_on, scale_of
from emgpr.report.tables import Cell, Table, counted, name, number, plain, words

Array = np.ndarray

MOST_OUTPUTS = 30  # that are drawn
MOST_SITES = 4000  # that are marked on a map
FINEST, COARSEST = 80, 24  # nodes along the longer side of a map
ACROSS = 12  # nodes along the shorter, at least
WORK = 3e10  # operations: some seconds on one core
BAND = (0.025, 0.975)
STRETCH = 6.0  # sides more unequal than this are not drawn to scale


@dataclass(frozen=True)
class Charts:
    """For the script of the page: `data`, or why there is none; for readers, a table."""

    data: dict[str, Any] | None
    table: Table | None = None
    why: str = ""


def charts(model: Any, X: pd.DataFrame, Y: pd.DataFrame, units: Mapping[str, str]) -> Charts:
    """A map or a line of every output, where the inputs allow one."""
    if X.shape[1] > 2:
        return Charts(
            None,
            why=f"The model has {X.shape[1]} inputs ({', '.join(map(str, X.columns))}), and a map "
            "shows two: there is none here. predict_dataset predicts on a grid of all of them, of "
            "which any slice can be drawn.",
        )
    shown = list(Y.columns[:MOST_OUTPUTS])
    made = _line(model, X, Y, shown, units) if X.shape[1] == 1 else _map(model, X, Y, shown, units)
    if len(shown) < Y.shape[1]:
        why = f"The first {len(shown)} of {Y.shape[1]} outputs are drawn."
        return Charts(made.data, made.table, why)
    return made


def side_of(model: Any) -> int:
    """Nodes along the longer side of a map: as many as there is time for."""
    L, _, D, _ = model.weights_.shape
    _, Y = model.training_data()
    how = model.conditioning_
    n = how * D if isinstance(how, int) else int(Y.notna().to_numpy().sum())
    a_node = L * (n**3 / 3 if isinstance(how, int) else D * n**2)
    return int(np.clip(np.sqrt(WORK / max(a_node, 1)), COARSEST, FINEST))


def _map(
    model: Any, X: pd.DataFrame, Y: pd.DataFrame, shown: list[str], units: Mapping[str, str]
) -> Charts:
    X = running_on(model, X)
    nodes = nodes_over(X, side_of(model), at_least=ACROSS)
    centre, std = _predicted(model, nodes)
    paper = as_on_paper(nodes)
    at = paper.to_numpy(dtype=float)
    x, y, _ = mesh(at, centre[:, 0])
    marked = _marked(len(X))
    sites = X[paper.columns].to_numpy(dtype=float)[marked]
    outputs, rows = [], []
    for output in shown:
        d = list(Y.columns).index(output)
        readings = Y[output].to_numpy(dtype=float)
        scale = scale_of(readings, (0.02, 0.98), is_log(model, output))
        outputs.append(
            {
                "name": output,
                "unit": units.get(output, ""),
                "centre": packed(mesh(at, centre[:, d])[2]),
                "std": packed(mesh(at, std[:, d])[2]),
                "readings": packed(readings[marked]),
                "scale": _scale(scale),
                "std_scale": _scale(scale_of(std[:, d], (0, 0.99), False)),
            }
        )
        rows.append(_extremes(output, at, centre[:, d], std[:, d]))
    data = {
        "kind": "map",
        "inputs": [{"name": str(c), "unit": units.get(c, "")} for c in paper.columns],
        "degrees": is_geographic(model.crs),
        "aspect": _aspect(model, x, y, units, list(paper.columns)),
        "x": _axis(x),
        "y": _axis(y),
        "sites": {"x": packed(sites[:, 0], "<f8"), "y": packed(sites[:, 1], "<f8")},
        "outputs": outputs,
        "colours": {"centre": _colours(PREDICTION_COLOURS), "std": _colours(STD_COLOURS)},
    }
    note = f"Maps have {counted(len(nodes), 'cell')}, {len(x)} × {len(y)} less those outside the "
    note = f"{note}outline of the sites.{_some(marked, X)}"
    return Charts(data, _extreme_table(rows, paper, note))


def _line(
    model: Any, X: pd.DataFrame, Y: pd.DataFrame, shown: list[str], units: Mapping[str, str]
) -> Charts:
    nodes = nodes_over(X)
    at = nodes.to_numpy(dtype=float)
    centre, std = _predicted(model, nodes)
    ends = model.predict_quantiles(as_fitted(model, nodes), list(BAND))
    low, high = np.reshape(ends, (2, len(nodes), -1))
    marked = _marked(len(X))
    outputs, rows = [], []
    for output in shown:
        d = list(Y.columns).index(output)
        outputs.append(
            {
                "name": output,
                "unit": units.get(output, ""),
                "centre": packed(centre[:, d]),
                "std": packed(std[:, d]),
                "low": packed(low[:, d]),
                "high": packed(high[:, d]),
                "readings": packed(Y[output].to_numpy(dtype=float)[marked]),
                "log": is_log(model, output),
            }
        )
        rows.append(_extremes(output, at, centre[:, d], std[:, d]))
    data = {
        "kind": "line",
        "inputs": [{"name": str(c), "unit": units.get(c, "")} for c in X.columns],
        "x": packed(at[:, 0], "<f8"),
        "sites": {"x": packed(X.iloc[marked, 0].to_numpy(dtype=float), "<f8")},
        "outputs": outputs,
    }
    note = f"Lines have {counted(len(nodes), 'place')}.{_some(marked, X)}"
    return Charts(data, _extreme_table(rows, nodes, note))


def _marked(n: int) -> Array:
    """Sites that are marked: all, or evenly some of very many."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_SITES)).astype(int))


def _some(marked: Array, X: pd.DataFrame) -> str:
    return "" if len(marked) == len(X) else f" {len(marked)} of {len(X)} sites are marked."


def _predicted(model: Any, nodes: pd.DataFrame) -> tuple[Array, Array]:
    answer = model.predict(as_fitted(model, nodes), return_std=True)
    centre, std = (np.reshape(part, (len(nodes), -1)) for part in answer)
    return centre, std


def _aspect(
    model: Any, x: Array, y: Array, units: Mapping[str, str], names: list[str]
) -> float | None:
    """Height over width of a map to scale; none where the inputs are not lengths alike."""
    width, height = np.ptp(x), np.ptp(y)
    alike = len({units[name] for name in names if name in units}) < 2
    if is_geographic(model.crs):
        width, alike = width * np.cos(np.radians(np.clip(y.mean(), -85, 85))), True
    ratio = height / width
    return float(ratio) if alike and 1 / STRETCH <= ratio <= STRETCH else None


def packed(values: Array, kind: str = "<f4") -> str:
    """Numbers as the script unpacks them."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def _axis(positions: Array) -> dict[str, float]:
    n = len(positions)
    step = (positions[-1] - positions[0]) / (n - 1) if n > 1 else 1.0
    return {"first": float(positions[0]), "step": float(step), "n": n}


def _scale(scale: Normalize) -> dict[str, Any]:
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 0.0)
    log = isinstance(scale, LogNorm)
    if log:
        subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 8 * low else (1.0, 2.0, 5.0)
        ticks = LogLocator(subs=subs).tick_values(low, high)
    else:
        ticks = MaxNLocator(5).tick_values(low, high)
    inside = [float(tick) for tick in ticks if low <= tick <= high]
    return {"low": low, "high": high, "log": log, "ticks": inside}


def _colours(of: str) -> str:
    """256 colours, three bytes each."""
    table = matplotlib.colormaps[of](np.arange(256), bytes=True)[:, :3]
    return packed(table, "|u1")


def _extremes(output: str, at: Array, centre: Array, std: Array) -> tuple[Cell, ...]:
    low, high = int(np.argmin(centre)), int(np.argmax(centre))
    return (
        name(output),
        number(centre[low]),
        words(_at(at[low])),
        number(centre[high]),
        words(_at(at[high])),
        number(float(np.median(std))),
        number(float(std.max())),
    )


def _at(place: Array) -> str:
    return ", ".join(plain(value, 4).text for value in place)


def _extreme_table(rows: list[tuple[Cell, ...]], nodes: pd.DataFrame, note: str) -> Table:
    where = ", ".join(map(str, nodes.columns))
    heads = (
        "output", "lowest", f"at {where}", "highest", f"at {where}", "median sd", "largest sd",
    )  # fmt: skip
    return Table("Lowest and highest predictions", heads, rows, note)
