"""Models to draw: three outputs with gaps and an ensemble, fourteen, one, and one input."""

import copy
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR, IndependentGP
from emgpr.datasets import jura_table, load_amsua
from emgpr.plots import surface


@pytest.fixture(autouse=True)
def _defaults_on_coarse_grids(monkeypatch):
    """Use coarse grids, which are quick, and matplotlib's defaults; close all figures."""
    monkeypatch.setattr(surface, "N_NODES_SIDE", 20)
    with plt.rc_context():
        plt.rcdefaults()
        plt.rcParams["backend"] = "agg"
        yield
    plt.close("all")


@pytest.fixture(scope="session")
def metals():
    """Jura's Cd, Ni and Zn on logarithms at 90 sites, Cd missing at a third: an ensemble of 3."""
    jura = jura_table()
    rows = np.r_[100:160, 270:300]
    return fitted(
        EMGPR.paper(kernel=Matern(0.3, "fixed", nu=1.5), output_transform="log", batch_size=30),
        jura.X.iloc[rows],
        jura.Y.iloc[rows],
    )


@pytest.fixture(scope="session")
def channels():
    """All 14 channels of AMSU-A at 60 sites, a fifth of the readings missing: two members."""
    swath = load_amsua()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(630)[:60])
    Y = swath.Y.iloc[rows].mask(rng.uniform(size=(60, 14)) < 0.2)
    kernels = [RBF(scale, "fixed") for scale in np.linspace(2, 8, 14)]
    return fitted(EMGPR.paper(kernel=kernels, batch_size=30), swath.X.iloc[rows], Y)


@pytest.fixture(scope="session")
def cadmium():
    """One output, a 1-D y without a transform."""
    jura = jura_table(["Cd"], withheld=None)
    kernel = Matern(0.3, "fixed", nu=1.5)
    return fitted(
        IndependentGP(kernel, output_transform=None), jura.X[100:150], jura.Y["Cd"][100:150]
    )


@pytest.fixture(scope="session")
def core():
    """Two outputs of one input, iron on logarithms and not measured in the middle."""
    rng = np.random.default_rng(0)
    depth = np.sort(rng.uniform(0, 10, 40))
    noise = 0.2 * rng.normal(size=(2, 40))
    Y = {"clay": np.sin(depth) + noise[0], "iron": np.exp(1 + np.sin(depth) + noise[1])}
    Y = pd.DataFrame(Y)
    Y.loc[10:20, "iron"] = np.nan
    model = EMGPR.paper(kernel=RBF(1.3, "fixed"), output_transform={"iron": "log"}, batch_size=None)
    return fitted(model, pd.DataFrame({"depth": depth}), Y)


@pytest.fixture(scope="session")
def checked(metals):
    return metals.cross_validate()


def fitted(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few iterations
        return model.set_params(random_state=0, max_iter=15, n_restarts=1).fit(X, Y)


def fit_arrays(P=2, N=20, **gaps):
    """A model of three outputs, fitted to arrays; `gaps` are rows to leave out, by output."""
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(N, P))
    Y = np.sin(5 * X[:, :1]) + rng.normal(size=(N, 3))
    for d, rows in gaps.items():
        Y[rows, int(d[1:])] = np.nan
    return fitted(IndependentGP(RBF(0.4, "fixed")), X, Y)


def with_parameters(model, **changes):
    """A copy of a fitted model with other kernels, weights or noise."""
    changed = copy.copy(model)
    parameters = replace(model.posterior_.model, **changes)
    changed.posterior_ = replace(model.posterior_, model=parameters)
    if "noise" in changes:
        changed.resolved_params_ = replace(model.resolved_params_, correlated=True)
    return changed


def with_output_names(model, names):
    """A copy of a fitted model whose outputs have other names."""
    changed = copy.copy(model)
    changed.output_scaler_ = replace(model.output_scaler_, names=tuple(names))
    return changed
