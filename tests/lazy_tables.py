"""Tables as Dask and xarray hold them, and a model that is fitted quickly."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import xarray
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR
from tests.simulated import smooth_table

RNG = np.random.default_rng(5)
X, Y = smooth_table(RNG, N=40)
Y[3, 1] = np.nan
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(40)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)
LOCATIONS = pd.DataFrame(
    RNG.uniform(size=(90, 2)), columns=["east", "north"], index=pd.RangeIndex(0, 180, 2, name="id")
)


def estimator(**params):
    defaults = {"kernel": RBF(0.4, "fixed"), "conditioning": 8, "random_state": 0, "batch_size": 20}
    return EMGPR.paper(**(defaults | params))


def as_frame(table):
    return dd.from_pandas(table, npartitions=3, sort=False)


def as_array(table):
    return da.from_array(table.to_numpy(), chunks=(25, 1))  # columns are divided, too


def as_unknown(table):
    return as_frame(table).to_dask_array()  # the lengths of its chunks are unknown


def as_data_array(table):
    labels = {"row": table.index.to_numpy(), "column": list(table.columns)}
    return xarray.DataArray(table.to_numpy(), labels, dims=("row", "column")).chunk(row=25)


def as_dataset(table):
    return xarray.Dataset({name: ("row", table[name]) for name in table}).chunk(row=25)


def fail(block):
    raise AssertionError("this was computed")
