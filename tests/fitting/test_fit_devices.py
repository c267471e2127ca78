"""Fits on a device."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    ExpSineSquared,
    Matern,
)

from emgpr import EMGPR, ICM, IndependentGP
from emgpr.fitting import step_1 as module
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

MODELS = {
    "two steps, stacked": (EMGPR, {"refine": 0, "batch_size": None, "transfer": "auto"}),
    "an ensemble": (EMGPR, {"refine": 0, "batch_size": 20, "partition": "strided"}),
    "sweeps": (EMGPR, {"refine": 1, "batch_size": None}),
    "joint": (EMGPR, {"rank": 2, "noise": "correlated"}),
    "joint, batches": (EMGPR, {"batch_size": 20, "refine": "joint", "conditioning": "batch"}),
    "latents removed": (EMGPR, {"n_latents": "auto", "rank": 1}),
    "neighbours": (EMGPR, {"refine": 0, "batch_size": None, "conditioning": 8}),
    "a kernel evaluated by scikit-learn": (
        IndependentGP,
        {"kernel": Matern(nu=1.5) * ExpSineSquared(1.0, 3.0, "fixed", "fixed")},
    ),
    "ICM": (ICM, {}),
}


@pytest.fixture
def gappy(rng):
    X, Y = smooth_table(rng, N=40)
    Y[::7, 2] = np.nan
    return X, Y


def fit_on(device, Estimator, given, table):
    """Fit with a few iterations: on a flat maximum, rounding decides where a search ends."""
    usual = {"kernel": Matern(nu=1.5), "output_transform": None, "random_state": 0, "max_iter": 8}
    usual |= {"transfer": "full", "noise": "independent"} if Estimator is EMGPR else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Estimator(**(usual | given), device=device).fit(*table)


@pytest.mark.parametrize(("Estimator", "given"), MODELS.values(), ids=MODELS)
def test_a_fit_on_a_device_gives_the_same_model(gappy, device, Estimator, given, rng):
    cpu, other = (fit_on(where, Estimator, given, gappy) for where in ("cpu", device))
    assert_allclose(
        cpu.log_marginal_likelihood_value_, other.log_marginal_likelihood_value_, rtol=1e-6
    )
    X, scale = rng.uniform(size=(15, 2)), np.nanstd(gappy[1], axis=0)
    for one, two in zip(*(m.predict(X, return_std=True) for m in (cpu, other)), strict=True):
        assert isinstance(two, np.ndarray)
        assert_allclose(two / scale, one / scale, rtol=0, atol=1e-5)
    # The same parameters predict the same on both.
    moved = pickle.loads(pickle.dumps(other)).set_params(device="cpu")
    for result in (
        lambda m: m.predict(X, return_cov=True)[1],
        lambda m: m.predict(X, observed=np.where(np.arange(3) == 1, gappy[1][:15], np.nan)),
        lambda m: m.cross_validate("output").nlpd.to_numpy(),
    ):
        largest = np.nanmax(np.abs(result(moved)))
        assert_allclose(result(other), result(moved), rtol=1e-6, atol=1e-7 * largest)


@pytest.mark.parametrize(
    ("Estimator", "given", "tolerance"),
    [(ICM, {"n_neighbours": None}, 1e-6), (EMGPR, {"refine": 0, "batch_size": None}, 1e-3)],
    ids=["ICM", "two steps"],
)
def test_optimisations_on_a_device_converge_to_the_same_model(
    gappy, device, Estimator, given, tolerance
):
    given = given | {"max_iter": 200}
    cpu, other = (fit_on(where, Estimator, given, gappy) for where in ("cpu", device))
    values = [model.log_marginal_likelihood_value_ for model in (cpu, other)]
    assert_allclose(*values, atol=tolerance)
    scale = np.nanstd(gappy[1], axis=0)
    predicted = [model.predict(gappy[0] + 0.02) / scale for model in (cpu, other)]
    assert_allclose(*predicted, rtol=0, atol=tolerance)


def test_samples_on_a_device_are_the_same_and_a_fitted_model_holds_no_tensor(
    gappy, device, monkeypatch
):
    model = fit_on(device, EMGPR, {"refine": 0, "batch_size": None}, gappy)
    X = gappy[0][:6] + 0.01
    there = model.sample_y(X, 400, random_state=1)
    model.cross_validate()
    packed = pickle.dumps(model)
    assert_allclose(
        there, model.set_params(device="cpu").sample_y(X, 400, random_state=1), rtol=1e-6
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    loaded = pickle.loads(packed)
    with pytest.raises(ImportError, match=r"emgpr\[torch\]"):
        loaded.predict(gappy[0][:2])
    assert np.isfinite(loaded.set_params(device="cpu").predict(gappy[0][:2])).all()


def test_on_a_device_one_process_fits(gappy, device, monkeypatch):
    def stop(*_, execution, **__):
        assert execution.processes == 1
        raise StopIteration

    monkeypatch.setattr(module, "fit_latents", stop)
    with pytest.raises(StopIteration):
        IndependentGP(device=device, n_jobs=2).fit(*gappy)


def test_one_site_is_fitted_on_a_device(device, rng):
    """With one block of one site, slices of arrays are contiguous, and shared if reshaped."""
    table = rng.uniform(size=(1, 2)), rng.normal(size=(1, 3))
    on_cpu, on_device = (fit_on(where, EMGPR, {"rank": 1}, table) for where in ("cpu", device))
    new = np.array([[0.5, 0.5]])
    assert_allclose(on_device.predict(new), on_cpu.predict(new), rtol=1e-6)
