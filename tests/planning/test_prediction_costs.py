"""Plans of predictions and of stacking have the sizes of the fit."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.observations import Observations
from emgpr.prediction.neighbours import neighbouring_sites


def test_few_readings_are_all_conditioned_on(big):
    plan = IndependentGP().plan(*big(2000))
    assert plan.prediction.method == "from all 6000 readings"
    assert plan.prediction.side == 2000  # outputs are independent
    coupled = EMGPR(conditioning="all").plan(*big(200))
    assert coupled.prediction.side == 600


def test_members_predict_from_their_batches_if_requested(big):
    plan = EMGPR.paper(conditioning="batch").plan(*big(300))
    assert plan.prediction.side == 30
    assert plan.prediction.method == "from 30 readings of each member"


def test_very_many_readings_are_predicted_from_neighbours(big):
    plan = EMGPR().plan(*big(12000))
    stacking = plan.steps[-1]
    assert plan.prediction.method == "from at least 16 neighbours of each output"
    assert stacking.name == "stacking"
    assert stacking.n_readings == 3 * 100  # without missing readings: of the same sites
    alone = IndependentGP().plan(*big(12000)).prediction
    assert alone.side == 16
    assert alone.n_matrices == 3 * 1000


def test_stacking_uses_all_sites_of_a_small_table(big):
    exact, nearest = (EMGPR(conditioning=how).plan(*big(150)).steps[-1] for how in ("all", 10))
    assert exact.approximation == ""
    assert nearest.approximation == "predicted from neighbours"
    assert exact.n_readings == nearest.n_readings == 450
    larger = EMGPR().plan(*big(300)).steps[-1]
    assert larger.approximation == "predicted from neighbours"
    assert larger.n_readings == 900


def test_the_sites_around_a_location_are_as_many_as_in_the_prediction(big):
    """Where a third of the readings is missing, the solves of predictions are larger."""
    X, Y = big(3000)
    Y[np.random.default_rng(1).uniform(size=Y.shape) < 0.3] = np.nan
    model = EMGPR.paper(conditioning=16, latent_learner="variogram", n_members=2)
    side = model.plan(X, Y).prediction.side
    observations = Observations.from_table(X, Y)
    places = np.random.default_rng(2).uniform(size=(60, 1, 2))
    width = max(len(neighbouring_sites(observations, x, [RBF()], 16)) for x in places)
    assert side == pytest.approx(3 * width, rel=0.2)
