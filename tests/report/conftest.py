"""Models to report on: gaps and an ensemble, fourteen outputs, one, one input, three, the globe."""

import copy
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_reader import Page
from sklearn.gaussian_process.kernels import RBF, Matern

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.datasets import jura_table, load_amsua
from emgpr.report import charts, write_report

TITLE, UNIT = "<b>Jura</b> & more", "<i>mg</i>/kg"
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "a\"b'c&d <!-- {{ 7 * 7 }} $\\bad$ " + "long" * 30,
)


def fitted(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations are few
        return model.set_params(random_state=0, max_iter=15, n_restarts=1).fit(X, Y)


@pytest.fixture(scope="session")
def metals():
    """Cd, Ni and Zn on logarithms at 90 sites, Cd missing at a third: an ensemble of three."""
    jura = jura_table()
    rows = np.r_[100:160, 270:300]
    model = EMGPR.paper(kernel=Matern(0.3, "fixed", nu=1.5), transform="log", batch_size=30)
    return fitted(model, jura.X.iloc[rows], jura.Y.iloc[rows])


@pytest.fixture(scope="session")
def joint():
    """Two metals by the joint ascent, with correlated noise and a row without readings."""
    jura = jura_table(["Ni", "Zn"], withheld=None)
    Y = jura.Y[:60].copy()
    Y.iloc[7] = np.nan
    kernel = Matern(0.3, "fixed", nu=1.5)
    return fitted(EMGPR(kernel, noise="correlated", refine="joint"), jura.X[:60], Y)


@pytest.fixture(scope="session")
def channels():
    """All 14 channels of AMSU-A at 60 sites, a fifth of the readings missing."""
    swath = load_amsua()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(630)[:60])
    Y = swath.Y.iloc[rows].mask(rng.uniform(size=(60, 14)) < 0.2)
    kernels = [RBF(scale, "fixed") for scale in np.linspace(2, 8, 14)]
    return fitted(EMGPR.paper(kernel=kernels, batch_size=30), swath.X.iloc[rows], Y)


@pytest.fixture(scope="session")
def cadmium():
    """One output, a flat y, from arrays without names."""
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
    model = EMGPR.paper(kernel=RBF(1.3, "fixed"), transform={"iron": "log"}, batch_size=None)
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
    """Names that would be code if a page let them."""
    X, Y = metals.training_data()
    X = X.set_axis(['"><script>alert(3)</script>', "&lt;y&gt;"], axis=1)
    return fitted(EMGPR.paper(kernel=RBF(0.3, "fixed")), X, Y.set_axis(list(HOSTILE), axis=1))


@pytest.fixture(scope="session")
def broken(metals):
    """An ensemble of which two members failed, and that did not converge."""
    model = copy.copy(metals)
    model.n_members_failed_, model.converged_ = 2, False
    return model


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """The report on a model or a file of one, made once; with a title and units as bad as names."""
    made = {}

    def report(model) -> Page:
        key = model if isinstance(model, Path) else id(model)
        if key not in made:
            path = tmp_path_factory.mktemp("report") / "report.html"
            X, Y = (emgpr.load(model) if isinstance(model, Path) else model).training_data()
            units = {Y.columns[0]: UNIT, X.columns[0]: "km"}
            with pytest.MonkeyPatch.context() as coarse:
                coarse.setattr(charts, "FINEST", 24)
                made[key] = Page.read(write_report(model, path, title=TITLE, units=units))
        return made[key]

    return report
