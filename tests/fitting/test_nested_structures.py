"""Two nested structures of a single output, where they describe the readings better than one."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import emgpr
from emgpr import EMGPR
from emgpr.fitting import nested_structures as module

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SETTINGS = {"output_transform": None, "output_bounds": None, "random_state": 0}


def series(*parts, n=700, noise=0.02):
    """Readings of a sum of processes, given by variance and kernel, at times between 0 and 10."""
    rng = np.random.default_rng(2)
    t = np.sort(rng.uniform(0, 10, n))[:, None]
    K = sum(variance * kernel(t) for variance, kernel in parts) + 1e-8 * np.eye(n)
    y = np.linalg.cholesky(K) @ rng.normal(size=n) + noise * rng.normal(size=n)
    return t, y[:, None]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(module, "MIN_READINGS", 500)


TWO = (0.2, Matern(0.05, nu=1.5)), (1.0, Matern(5.0, nu=0.5))


def test_two_structures_are_found_and_predict_better_in_a_gap(few, monkeypatch):
    t, y = series(*TWO)
    gap = (t[:, 0] > 4) & (t[:, 0] < 5)
    two = EMGPR(**SETTINGS).fit(t[~gap], y[~gap])
    monkeypatch.setattr(module, "MIN_READINGS", 10_000)
    one = EMGPR(**SETTINGS).fit(t[~gap], y[~gap])
    short, long = (kernel.length_scale for kernel in two.kernels_)
    assert short < 0.2
    assert long > 5 * short
    assert len(one.kernels_) == 1
    assert two.history_[-1].log_likelihood > one.history_[-1].log_likelihood + 20
    errors = [np.abs(model.predict(t[gap]) - y[gap]).mean() for model in (one, two)]
    assert errors[1] < 0.9 * errors[0]


def test_one_structure_is_kept_where_it_is_sufficient(few):
    t, y = series((1.0, RBF(0.6)), noise=0.1)
    model = EMGPR(**SETTINGS).fit(t, y)
    assert len(model.kernels_) == 1


@pytest.mark.parametrize(
    "settings", [{"kernel": "matern32"}, {"n_latents": 1}, {"transfer": "none"}]
)
def test_settings_of_the_user_are_kept(few, settings):
    t, y = series(*TWO, n=520)
    model = EMGPR(**SETTINGS | {"max_iter": 5}, **settings).fit(t, y)
    assert len(model.kernels_) == 1


def test_a_model_with_two_structures_can_be_saved_and_inspected(few, tmp_path):
    t, y = series(*TWO, n=520)
    model = EMGPR(**SETTINGS).fit(t, y)
    assert len(model.kernels_) == 2
    assert np.isclose(model.variance_shares_.to_numpy().sum(), 1.0)
    model.save(tmp_path / "two.emgpr")
    loaded = emgpr.load(tmp_path / "two.emgpr")
    np.testing.assert_allclose(loaded.predict(t[:5] + 0.01), model.predict(t[:5] + 0.01))
    assert np.isfinite(model.cross_validate().summary().to_numpy(float)).all()
