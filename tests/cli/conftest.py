"""Files of the examples and models fitted to them, made once."""

import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from emgpr import EMGPR, IndependentGP, OnePassGP

from .commands import QUICK, succeed

N_ROWS = 87  # of jura.csv here: every third of 259


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The example files with a third of the Jura table, and models.

    jura.emgpr is fitted on the command line, nameless.emgpr to arrays, exact.emgpr without
    approximations, and sums.emgpr contains no training data.
    """
    folder = tmp_path_factory.mktemp("files")
    succeed("example", "--out", folder)
    jura = pd.read_csv(folder / "jura.csv").iloc[::3]
    jura.to_csv(folder / "jura.csv", index=False)
    succeed("fit", folder / "jura.csv", *QUICK, "-o", folder / "jura.emgpr")
    X, cadmium = jura[["Xloc", "Yloc"]], jura[["Cd"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimisation is stopped early
        nameless = EMGPR.paper(max_iter=2, random_state=0)
        nameless.fit(X.to_numpy(), cadmium.to_numpy()).save(folder / "nameless.emgpr")
    IndependentGP(random_state=0).fit(X, cadmium).save(folder / "exact.emgpr")
    smooth = pd.DataFrame({"Cd": np.sin(X["Xloc"]) + 0.01 * cadmium["Cd"]})
    OnePassGP(n_functions=50, random_state=0).fit(X, smooth).save(folder / "sums.emgpr")
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A working folder with copies of the files."""
    for file in files.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
