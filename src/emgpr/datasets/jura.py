"""The Jura data: heavy metals in the topsoil of the Swiss Jura."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool
from pandas.api.types import is_integer_dtype
from sklearn.utils import Bunch

from emgpr.datasets._embedded import description, table

COORDINATES = ("Xloc", "Yloc")
METALS = ("Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn")

# In the order of the codes 1, 2, … that the two tables of sites use; the grid has the names.
CATEGORIES = {
    "Landuse": ("Forest", "Pasture", "Meadow", "Tillage"),
    "Rock": ("Argovian", "Kimmeridgian", "Sequanian", "Portlandian", "Quaternary"),
}


@dataclass(frozen=True)
class JuraTable:
    """Inputs and outputs at all 359 sites, the 259 prediction sites first."""

    X: pd.DataFrame  # (359, 2), km
    Y: pd.DataFrame  # (359, D), mg/kg; NaN where withheld
    test: Bool[np.ndarray, " 359"]  # True at the 100 validation sites
    truth: pd.DataFrame  # (100, D), mg/kg; what was measured there, rows labelled as in Y


def load_jura() -> Bunch:
    """Seven heavy metals at 359 sites of the Swiss Jura, and the grid to map them on.

    Returns a Bunch with

    - `train`, `test`: data frames of the 259 prediction and the 100 validation sites, with
      columns Xloc, Yloc (km), Landuse, Rock (categories), Cd, Co, Cr, Cu, Ni, Pb, Zn (mg/kg)
    - `grid`: data frame of 5957 nodes, with columns Xloc, Yloc, Landuse, Rock
    - `coordinates`, `metals`: the names of the columns
    - `units`: the unit of each measured column
    - `DESCR`: what the data are, where they come from and whom to cite

    >>> jura = load_jura()
    >>> jura.train.shape, jura.test.shape, jura.grid.shape
    ((259, 11), (100, 11), (5957, 4))
    >>> jura.train.loc[0, ["Landuse", "Rock"]].tolist()
    ['Meadow', 'Sequanian']
    >>> jura.train["Cd"].head(3).tolist()
    [1.74, 1.335, 1.61]
    >>> jura.units["Cd"]
    'mg/kg'
    """
    return Bunch(
        train=_named(table("jura_prediction.csv")),
        test=_named(table("jura_validation.csv")),
        grid=_named(table("jura_grid.csv.gz")),
        coordinates=COORDINATES,
        metals=METALS,
        units=dict.fromkeys(COORDINATES, "km") | dict.fromkeys(METALS, "mg/kg"),
        DESCR=description("Jura"),
    )


def jura_table(
    metals: Sequence[str] = ("Cd", "Ni", "Zn"), withheld: str | None = "Cd"
) -> JuraTable:
    """Metals at all 359 sites, one of them withheld at the 100 validation sites.

    The defaults are the usual experiment: predict cadmium there from nickel and zinc there and
    from all three at the other 259. `withheld` is one of `metals`, "all", or None.

    >>> jura = jura_table()
    >>> jura.X.shape, jura.Y.shape, jura.truth.shape
    ((359, 2), (359, 3), (100, 3))
    >>> jura.Y.isna().sum().to_dict()
    {'Cd': 100, 'Ni': 0, 'Zn': 0}
    >>> jura.Y[jura.test].index.equals(jura.truth.index)
    True
    """
    metals = _checked(metals, withheld)
    train, test = table("jura_prediction.csv"), table("jura_validation.csv")
    sites = pd.concat([train, test], ignore_index=True)
    is_test = np.arange(len(sites)) >= len(train)

    Y = sites[metals].copy()
    if withheld is not None:
        Y.loc[is_test, metals if withheld == "all" else [withheld]] = np.nan
    return JuraTable(sites[list(COORDINATES)], Y, is_test, sites.loc[is_test, metals])


def _checked(metals: Sequence[str], withheld: str | None) -> list[str]:
    # A string is a sequence too: "Cd" would otherwise be taken for the metals C and d.
    names = [metals] if isinstance(metals, str) else list(metals)
    unknown = [name for name in names if name not in METALS]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(
            f"metals is {metals!r}; name one or more of {', '.join(METALS)}, each once."
        )
    if withheld not in (None, "all", *names):
        raise ValueError(
            f"withheld is {withheld!r}, which is not among the metals asked for "
            f"({', '.join(names)}). Withhold one of them, 'all', or None."
        )
    return names


def _named(sites: pd.DataFrame) -> pd.DataFrame:
    """Land use and rock type by name, whether they came as codes or as names."""
    for column, names in CATEGORIES.items():
        if is_integer_dtype(sites[column]):
            sites[column] = sites[column].map(dict(enumerate(names, start=1)))
        sites[column] = pd.Categorical(sites[column], categories=list(names))
    return sites
