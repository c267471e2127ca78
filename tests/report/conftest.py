"""Models to report on: gaps and an ensemble, six outputs, one, one input, three, the globe."""

import copy
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.datasets import jura_table, load_amsua
from emgpr.report import charts, write_report

from .page_reader import Page

MODELS = ["metals", "joint", "channels", "cadmium", "core", "soil", "globe", "hostile"]
TITLE, UNIT = "<b>Jura</b> & more", "<i>mg</i>/kg"
HOSTILE_OUTPUTS = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "$\\bad$ a\"b'c&d <!-- {{ 7 * 7 }} " + "long" * 30,
)
HOSTILE_INPUTS = ('"><script>alert(3)</script>', "&lt;y&gt;")


def fitted(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few iterations
        return model.set_params(random_state=0, max_iter=15, n_restarts=1).fit(X, Y)


@pytest.fixture(scope="session")
def metals():
    """Cd, Ni and Zn on logarithms at 90 sites, Cd missing at a third: an ensemble of three."""
    jura = jura_table()
    rows = np.r_[100:160, 270:300]
    model = EMGPR.paper(kernel=Matern(0.3, "fixed", nu=1.5), output_transform="log", batch_size=30)
    return fitted(model, jura.X.iloc[rows], jura.Y.iloc[rows])


@pytest.fixture(scope="session")
def joint():
    """Two metals with joint optimisation, correlated noise and a row without readings."""
    jura = jura_table(["Ni", "Zn"], withheld=None)
    Y = jura.Y[:60].copy()
    Y.iloc[7] = np.nan
    kernel = Matern(0.3, "fixed", nu=1.5)
    model = EMGPR(kernel, noise="correlated", refine="joint", n_neighbours=None)
    return fitted(model, jura.X[:60], Y)


@pytest.fixture(scope="session")
def channels():
    """Six channels of AMSU-A at 60 sites, a fifth of the readings missing."""
    swath = load_amsua()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(630)[:60])
    Y = swath.Y.iloc[rows, :6].mask(rng.uniform(size=(60, 6)) < 0.2)
    kernels = [RBF(scale, "fixed") for scale in np.linspace(2, 8, 6)]
    return fitted(EMGPR.paper(kernel=kernels, batch_size=30), swath.X.iloc[rows], Y)


@pytest.fixture(scope="session")
def cadmium():
    """One output, a 1-D y, from arrays without names."""
    jura = jura_table(["Cd"], withheld=None)
    kernel = Matern(0.3, "fixed", nu=1.5)
    X, y = jura.X[100:150].to_numpy(), jura.Y["Cd"][100:150].to_numpy()
    return fitted(IndependentGP(kernel), X, y)


@pytest.fixture(scope="session")
def core():
    """Two outputs of one input, iron on logarithms and not measured in the middle."""
    rng = np.random.default_rng(0)
    depth = np.sort(rng.uniform(0, 10, 40))
    noise = 0.2 * rng.normal(size=(2, 40))
    Y = pd.DataFrame(
        {"clay": np.sin(depth) + noise[0], "iron": np.exp(1 + np.sin(depth) + noise[1])}
    )
    Y.loc[10:20, "iron"] = np.nan
    model = EMGPR.paper(kernel=RBF(1.3, "fixed"), output_transform={"iron": "log"}, batch_size=None)
    return fitted(model, pd.DataFrame({"depth": depth}), Y)


@pytest.fixture(scope="session")
def soil():
    """Two outputs of three inputs, one of them constant."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(0, 3, (30, 3)), columns=["x", "y", "depth"])
    Y = pd.DataFrame({"sand": np.sin(X["x"]) + X["depth"], "zero": np.zeros(30)})
    return fitted(IndependentGP(RBF(1.0, "fixed")), X, Y)


@pytest.fixture(scope="session")
def globe():
    """One output across the date line."""
    pytest.importorskip("pyproj")
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"lat": rng.uniform(50, 55, 40), "lon": rng.uniform(176, 184, 40)})
    X["lon"] = (X["lon"] + 180) % 360 - 180
    Y = pd.DataFrame({"ozone": np.sin(X["lat"]) + 0.1 * rng.normal(size=40)})
    return fitted(IndependentGP(RBF(200.0, "fixed"), crs="EPSG:4326"), X, Y)


@pytest.fixture(scope="session")
def hostile(metals):
    """Names that would be code if the page did not escape them."""
    model = copy.copy(metals)
    model.output_scaler_ = replace(metals.output_scaler_, names=HOSTILE_OUTPUTS)
    model.input_spec_ = replace(metals.input_spec_, feature_names=HOSTILE_INPUTS)
    return model


@pytest.fixture(scope="session")
def failed(metals):
    """An ensemble that did not converge and of which two members failed."""
    model = copy.copy(metals)
    model.fit_summary_ = replace(metals.fit_summary_, n_members_failed=2, converged=False)
    return model


@pytest.fixture(params=MODELS)
def model(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """The report on a model or file, made once; title and units are as hostile as names."""
    made = {}

    def report(model) -> Page:
        key = model if isinstance(model, Path) else id(model)
        if key not in made:
            path = tmp_path_factory.mktemp("report") / "report.html"
            X, Y = (emgpr.load(model) if isinstance(model, Path) else model).training_data()
            units = {Y.columns[0]: UNIT, X.columns[0]: "km"}
            with pytest.MonkeyPatch.context() as coarse:
                coarse.setattr(charts, "MAX_LONGER_SIDE", 24)
                made[key] = Page.read(write_report(model, path, title=TITLE, units=units))
        return made[key]

    return report
