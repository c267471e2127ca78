"""device: the same model wherever it is learned, of NumPy arrays wherever it is used."""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import smooth_table
from sklearn.gaussian_process.kernels import ExpSineSquared, Matern

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Batches of"),
]
MODELS = {
    "two steps": (EMGPR, {"refine": 0, "batch_size": None, "transfer": "safe"}),
    "an ensemble": (EMGPR, {"refine": 0, "batch_size": 20, "partition": "strided"}),
    "sweeps": (EMGPR, {"refine": 1, "batch_size": None}),
    "joint": (EMGPR, {"rank": 1, "noise": "correlated"}),
    "joint, of batches": (EMGPR, {"batch_size": 20, "refine": "joint", "conditioning": "batch"}),
    "latents switched off": (EMGPR, {"n_latents": "auto", "rank": 1}),
    "neighbours": (EMGPR, {"refine": 0, "batch_size": None, "conditioning": 8}),
    "a kernel of scikit-learn's": (
        IndependentGP,
        {"kernel": Matern(nu=1.5) * ExpSineSquared(1.0, 3.0, "fixed", "fixed")},
    ),
    "no transfer": (IndependentGP, {}),
    "ICM": (ICM, {}),
    "SLFM": (SLFM, {}),
    "LMC": (LMC, {"rank": 2}),
}


@pytest.fixture
def table(rng):
    X, Y = smooth_table(rng, N=40)
    Y[::7, 2] = np.nan
    return X, Y


def learned(Estimator, settings, table, device):
    """After a few steps: where a long search on a flat top ends, rounding decides."""
    given = {"kernel": Matern(nu=1.5), "transform": None, "random_state": 0, "max_iter": 8}
    given |= {"transfer": "full", "noise": "independent"} if Estimator is EMGPR else {}
    return Estimator(**(given | settings), device=device).fit(*table)


@pytest.mark.parametrize(("Estimator", "settings"), MODELS.values(), ids=MODELS.keys())
def test_learned_on_a_device_it_is_the_same_model(table, device, Estimator, settings, rng):
    here, there = (learned(Estimator, settings, table, where) for where in ("cpu", device))
    values = [model.log_marginal_likelihood_value_ for model in (here, there)]
    assert_allclose(*values, rtol=1e-6)
    new, spread = rng.uniform(size=(15, 2)), np.nanstd(table[1], axis=0)
    for one, other in zip(*(m.predict(new, return_std=True) for m in (here, there)), strict=True):
        assert isinstance(other, np.ndarray)
        assert_allclose(other / spread, one / spread, rtol=0, atol=1e-5)
    # What it learned there it says there and here alike.
    again = pickle.loads(pickle.dumps(there)).set_params(device="cpu")
    for ask in (
        lambda m: m.predict(new, return_cov=True)[1],
        lambda m: m.predict(new, observed=np.where(np.arange(3) == 1, table[1][:15], np.nan)),
        lambda m: m.cross_validate("output").nlpd.to_numpy(),
    ):
        scale = np.nanmax(np.abs(ask(again)))
        assert_allclose(ask(there), ask(again), rtol=1e-6, atol=1e-7 * scale)


TO_THE_END = {
    "no transfer": (IndependentGP, {}, 1e-6),
    "one latent": (ICM, {}, 1e-6),
    "two steps": (EMGPR, {"refine": 0, "batch_size": None}, 1e-3),
}


@pytest.mark.parametrize(
    ("Estimator", "settings", "tolerance"), TO_THE_END.values(), ids=TO_THE_END.keys()
)
def test_searches_end_alike(table, device, Estimator, settings, tolerance):
    to_the_end = settings | {"max_iter": 200}
    here, there = (learned(Estimator, to_the_end, table, where) for where in ("cpu", device))
    values = [model.log_marginal_likelihood_value_ for model in (here, there)]
    assert_allclose(*values, atol=tolerance)
    spread = np.nanstd(table[1], axis=0)
    predicted = [model.predict(table[0] + 0.02) / spread for model in (here, there)]
    assert_allclose(*predicted, rtol=0, atol=tolerance)


def test_draws_are_the_same(table, device):
    model = learned(EMGPR, {"refine": 0, "batch_size": None}, table, device)
    X = table[0][:6] + 0.01
    there = model.sample_y(X, 400, random_state=1)
    here = model.set_params(device="cpu").sample_y(X, 400, random_state=1)
    assert_allclose(there, here, rtol=1e-6)


def test_a_fitted_model_holds_no_tensor_and_needs_no_torch(table, device, monkeypatch):
    model = learned(EMGPR, {"rank": 1}, table, device)
    model.cross_validate()
    packed = pickle.dumps(model)
    monkeypatch.setitem(sys.modules, "torch", None)
    alone = pickle.loads(packed)
    with pytest.raises(ImportError, match=r"emgpr\[torch\]"):
        alone.predict(table[0][:2])
    assert np.isfinite(alone.set_params(device="cpu").predict(table[0][:2])).all()


@pytest.mark.parametrize("Estimator", [EMGPR, ICM, LMC, SLFM, IndependentGP])
def test_every_estimator_has_the_parameter_and_checks_it_when_fitted(Estimator, table):
    assert Estimator().get_params()["device"] == "cpu"
    with pytest.raises(ValueError, match=r"device='mps'.*64 bits"):
        Estimator(device="mps").fit(*table)


def test_on_a_device_workers_are_not_asked_for(table, device, monkeypatch):
    def refuse(*_, n_jobs, **__):
        assert n_jobs == 1
        raise StopIteration

    monkeypatch.setattr("emgpr.estimators.learning.fit_latents", refuse)
    with pytest.raises(StopIteration):
        IndependentGP(device=device, n_jobs=2).fit(*table)
