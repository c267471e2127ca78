"""n_latents="auto": latent processes that are not needed are removed."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SETTINGS = {
    "kernel": RBF(0.25, "fixed"),
    "n_restarts": 1,
    "max_iter": 30,
    "n_latents": "auto",
    "random_state": 0,
}


def simulated(seed, n, N=40):
    """Three outputs that share one process, or have one of three each."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    f = np.linalg.cholesky(RBF(0.25)(X) + 1e-9 * np.eye(N)) @ rng.normal(size=(N, n))
    return X, (f * [1.0, -1.0, 0.7] if n == 1 else f) + 0.2 * rng.normal(size=(N, 3))


@pytest.mark.parametrize("refine", [0, "joint"])
def test_only_latents_that_improve_predictions_are_kept(refine):
    settings = SETTINGS | {"refine": refine, "batch_size": None}
    one = EMGPR.paper(**settings).fit(*simulated(0, 1))
    three = EMGPR.paper(**settings).fit(*simulated(0, 3))
    assert len(one.kernels_) == one.weights_.shape[1] == 1
    assert len(three.kernels_) == three.weights_.shape[1] == 3
    values = [stage.log_likelihood for stage in one.history_]
    assert np.all(np.diff(values) >= -1e-6)


def test_members_of_an_ensemble_keep_the_same_latents():
    model = EMGPR.paper(**SETTINGS, batch_size=20).fit(*simulated(1, 1))
    assert model.weights_.shape == (2, 1, 3, 1)
    assert model.coregionalization_.shape == (1, 3, 3)


def test_one_output_keeps_its_latent():
    X, Y = simulated(0, 1)
    model = EMGPR.paper(**SETTINGS).fit(X, Y[:, 0])
    assert len(model.kernels_) == 1
