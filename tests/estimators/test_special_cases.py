"""Models that are fitted like EMGPR with other settings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from tests.simulated import smooth_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {
    "kernel": RBF(0.4, "fixed"),
    "output_transform": None,
    "max_iter": 8,
    "n_restarts": 1,
    "random_state": 0,
}
JOINT = {
    "noise": "independent",
    "prior": None,
    "transfer": "full",
    "refine": "joint",
    "batch_size": None,
}
X, Y = smooth_table(np.random.default_rng(20171), N=24)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (LMC(n_latents=2, rank=2, prior=None), {"n_latents": 2, "rank": 2}),
        (SLFM(n_latents=2, prior=None), {"n_latents": 2, "rank": 1}),
    ],
    ids=["LMC", "SLFM"],
)
def test_models_that_emgpr_can_fit_are_fitted_alike(model, settings):
    model.set_params(**QUICK).fit(X, Y)
    same = EMGPR(**JOINT | settings, **QUICK).fit(X, Y)
    assert_allclose(model.weights_, same.weights_)
    assert_allclose(model.predict(X + 0.05), same.predict(X + 0.05))
    assert_allclose(model.noise_, same.noise_)


def test_an_intrinsic_model_has_one_kernel_and_a_full_coregionalisation_matrix():
    model = ICM(rank=1, **QUICK).fit(X, Y)
    assert model.coregionalization_.shape == (1, 3, 3)
    assert np.linalg.matrix_rank(model.coregionalization_[0]) == 3


def test_independent_outputs_do_not_depend_on_each_other():
    joint = IndependentGP(**QUICK).fit(X, Y)
    assert not hasattr(joint, "history_")  # no optimisation follows step 1
    for d in range(3):
        single = IndependentGP(**QUICK).fit(X, Y[:, d])
        predicted = joint.predict(X + 0.05, return_std=True)
        for one, other in zip(predicted, single.predict(X + 0.05, return_std=True), strict=True):
            assert_allclose(one[:, d], other, rtol=1e-6)


@pytest.mark.parametrize(
    ("Estimator", "absent"),
    [
        (IndependentGP, {"n_latents", "rank", "combine", "batch_size", "refine", "noise"}),
        (ICM, {"n_latents", "combine", "batch_size", "refine", "noise"}),
        (SLFM, {"rank", "combine", "batch_size", "refine", "noise"}),
        (LMC, {"combine", "batch_size", "refine", "noise", "transfer"}),
    ],
)
def test_settings_that_define_a_model_are_no_parameters(Estimator, absent):
    assert not absent & set(Estimator().get_params())
