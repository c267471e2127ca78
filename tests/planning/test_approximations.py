"""Approximations are described before a fit as after it."""

import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.latents import FITC, VFE, PoE


def test_the_approximations_of_very_many_readings_are_listed_by_step(big):
    plan = EMGPR().plan(*big(12000))
    assert plan.approximations == [
        "transforms: chosen on 400 of 12000 sites",
        "step 1: Vecchia, 2000 of 12000 readings, each given 20 earlier neighbours",
        "joint optimisation: Vecchia, each site given 15 earlier sites",
        "stacking: weights from 300 of 36000 readings, each predicted from neighbours",
        "1000 locations: from 16 or more readings of each output in all directions, of 36000 in "
        "total",
    ]
    assert str(plan).endswith("\n".join(f"  {line}" for line in plan.approximations))
    assert IndependentGP(output_transform=None).plan(*big(400)).approximations == []


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        ("vfe", "2500 readings is replaced by a lower bound from 300 inducing points (VFE)"),
        ("svi", "300 inducing points on the likelihood of 2500 readings, in batches of 1000"),
        (FITC(50), "2500 readings is approximated through 50 inducing points (FITC)"),
        ("variogram", "a least-squares fit to the variogram of 600 of 2500 readings"),
        (PoE(100, 1), "2500 readings is replaced by the likelihood of one batch of 100"),
        (PoE(3000), ""),
        (VFE(2500), ""),
        (GaussianProcessRegressor(), ""),
        ([GaussianProcessRegressor()] * 3, ""),
    ],
)
def test_learners_describe_what_replaces_the_likelihood(big, learner, text):
    settings = {"output_transform": None, "conditioning": "all"}
    plan = IndependentGP(latent_learner=learner, **settings).plan(*big(2500))
    assert bool(plan.approximations) == bool(text)
    assert text in "".join(plan.approximations)


def test_a_fitted_model_describes_its_approximations(small):
    fixed = RBF(0.3, "fixed")
    settings = {"batch_size": 10, "n_members": 2, "random_state": 0}
    model = EMGPR.paper(kernel=fixed, conditioning=5, latent_learner=FITC(10), **settings)
    assert model.fit(*small).approximations_ == (
        "step 1: the likelihood of 30 readings is approximated through 10 inducing points (FITC)",
        "weights: fitted to 2 batches of 10 sites, each independently; 20 of 30 sites",
        "prediction: from the 5 nearest readings of each output, of 90 in total",
    )
    batches = EMGPR.paper(kernel=fixed, conditioning="batch", **settings)
    assert batches.fit(*small).approximations_[1:] == (
        "prediction: each member predicts from the readings of its batch",
    )
    assert IndependentGP(fixed).fit(*small).approximations_ == ()
