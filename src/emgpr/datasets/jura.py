"""The Jura data: heavy metals in the topsoil of the Swiss Jura."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool
from pandas.api.types import is_integer_dtype
from sklearn.utils import Bunch

from emgpr.datasets.embedded import read_description, read_embedded

COORDINATES = ("Xloc", "Yloc")
METALS = ("Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn")

# Names for the codes 1, 2, … in the two tables of sites. The table of the grid contains names.
CATEGORIES = {
    "Landuse": ("Forest", "Pasture", "Meadow", "Tillage"),
    "Rock": ("Argovian", "Kimmeridgian", "Sequanian", "Portlandian", "Quaternary"),
}


@dataclass(frozen=True)
class JuraTable:
    """Inputs and outputs at 359 sites: 259 prediction sites, then 100 validation sites."""

    X: pd.DataFrame  # (359, 2), km
    Y: pd.DataFrame  # (359, D), mg/kg; NaN where withheld
    test: Bool[np.ndarray, " 359"]  # True at the 100 validation sites
    truth: pd.DataFrame  # (100, D), mg/kg; readings at the validation sites, with the index of Y


def load_jura() -> Bunch:
    """Load seven heavy metals at 359 sites in the Swiss Jura, and a grid for maps.

    Returns a Bunch with

    - `train`, `test`: data frames of the 259 prediction sites and the 100 validation sites, with
      columns Xloc, Yloc (km), Landuse, Rock (categories), Cd, Co, Cr, Cu, Ni, Pb, Zn (mg/kg)
    - `grid`: data frame of 5957 nodes, with columns Xloc, Yloc, Landuse, Rock
    - `coordinates`, `metals`: names of the columns with coordinates and metals
    - `units`: unit of each measured column
    - `DESCR`: description of the data, its source and the references to cite

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
        train=_with_names(read_embedded("jura_prediction.csv")),
        test=_with_names(read_embedded("jura_validation.csv")),
        grid=_with_names(read_embedded("jura_grid.csv.gz")),
        coordinates=COORDINATES,
        metals=METALS,
        units=dict.fromkeys(COORDINATES, "km") | dict.fromkeys(METALS, "mg/kg"),
        DESCR=read_description("Jura"),
    )


def jura_table(
    metals: Sequence[str] = ("Cd", "Ni", "Zn"), withheld: str | None = "Cd"
) -> JuraTable:
    """Return the Jura data with one metal withheld at the 100 validation sites.

    The defaults are those of the usual experiment: cadmium at the validation sites is predicted
    from nickel and zinc at the same sites and from all three metals at the other 259 sites.
    `withheld` is one of `metals`, "all", or None.

    >>> jura = jura_table()
    >>> jura.X.shape, jura.Y.shape, jura.truth.shape
    ((359, 2), (359, 3), (100, 3))
    >>> jura.Y.isna().sum().to_dict()
    {'Cd': 100, 'Ni': 0, 'Zn': 0}
    >>> jura.Y[jura.test].index.equals(jura.truth.index)
    True
    """
    metals = _check_metals(metals, withheld)
    train, test = read_embedded("jura_prediction.csv"), read_embedded("jura_validation.csv")
    sites = pd.concat([train, test], ignore_index=True)
    is_test = np.arange(len(sites)) >= len(train)

    Y = sites[metals].copy()
    if withheld is not None:
        Y.loc[is_test, metals if withheld == "all" else [withheld]] = np.nan
    return JuraTable(sites[list(COORDINATES)], Y, is_test, sites.loc[is_test, metals])


def _check_metals(metals: Sequence[str], withheld: str | None) -> list[str]:
    # Strings are sequences, too: "Cd" would otherwise be read as the metals "C" and "d".
    names = [metals] if isinstance(metals, str) else list(metals)
    unknown = [name for name in names if name not in METALS]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(
            f"metals is {metals!r}; expected one or more of {', '.join(METALS)}, without "
            "repetition."
        )
    if withheld not in (None, "all", *names):
        raise ValueError(
            f"withheld is {withheld!r}, which is not among the requested metals "
            f"({', '.join(names)}); expected one of them, 'all', or None."
        )
    return names


def _with_names(sites: pd.DataFrame) -> pd.DataFrame:
    """Replace the codes of land use and rock type with names, if the table contains codes."""
    for column, names in CATEGORIES.items():
        if is_integer_dtype(sites[column]):
            sites[column] = sites[column].map(dict(enumerate(names, start=1)))
        sites[column] = pd.Categorical(sites[column], categories=list(names))
    return sites
