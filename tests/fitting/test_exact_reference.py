"""The exact model that an approximate one is compared with."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.fitting.exact_reference import exact_params, fit_quietly
from emgpr.latents import PoE

TRANSFORMS = ["log", None]


def changed(model, **options):
    given = {"kernels": None, "transforms": TRANSFORMS, "outputs": None, "refine": "joint"}
    return exact_params(model.get_params(deep=False), **(given | options))


def test_nothing_is_approximated():
    model = EMGPR(latent_learner=PoE(60), conditioning=8, batch_size=40, n_members=3, verbose=1)
    params = changed(model)
    assert params["latent_learner"] == "exact"
    assert params["conditioning"] == "all"
    assert params["batch_size"] is None
    assert params["n_members"] is None
    assert params["refine"] == "joint"
    assert params["output_transform"] == TRANSFORMS
    assert (params["checkpoint"], params["verbose"]) == (None, 0)
    assert "kernel" not in params
    model.set_params(**params)


def test_listed_kernels_are_those_of_the_latents_or_of_the_outputs():
    kernels = [RBF(0.1), RBF(0.2), RBF(0.3)]
    joint = changed(EMGPR(kernels))
    assert joint["kernel"] == kernels
    assert joint["n_latents"] == 3
    independent = changed(IndependentGP(kernels), outputs=[0, 2])
    assert independent["kernel"] == [kernels[0], kernels[2]]
    assert "n_latents" not in independent
    external = changed(EMGPR(RBF()), kernels=kernels[:2])
    assert external["kernel"] == kernels[:2]
    assert external["n_latents"] == 2


class Model:
    def fit(self, X, y):
        warnings.warn("Output 'Cd' was measured only 3 times", UserWarning, stacklevel=2)
        warnings.warn("did not converge", ConvergenceWarning, stacklevel=2)


def test_only_warnings_of_optimisations_are_returned():
    model = Model()
    assert fit_quietly(model, None, None) == (model, ["did not converge"])


def test_errors_are_raised():
    with pytest.raises(ValueError, match="y is None"):
        fit_quietly(IndependentGP(), [[0.0], [1.0]], None)
