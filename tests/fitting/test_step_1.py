"""The learner of step 1, and the seed with which it draws mini-batches."""

import numpy as np
import pytest

from emgpr import IndependentGP
from emgpr.fitting.step_1 import seeded_learner
from emgpr.latents import SVI, Exact


def test_a_learner_given_by_its_name_has_the_seed_of_the_estimator(rng):
    assert seeded_learner("svi", 3, rng) == SVI(random_state=3)
    assert seeded_learner("svi", np.int64(3), rng) == SVI(random_state=3)
    assert seeded_learner(SVI(random_state=7), 3, rng) == SVI(random_state=7)


def test_without_a_number_the_seed_is_drawn():
    first, again, other = (
        seeded_learner("svi", None, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_learners_without_a_seed_draw_no_number():
    rng = np.random.default_rng(0)
    assert seeded_learner("exact", None, rng) == Exact()
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.slow
def test_other_seeds_have_other_mini_batches(rng):
    X = rng.uniform(0, 20, size=(1100, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=1100)
    settings = {"kernel": "rbf", "latent_learner": "svi", "output_transform": None}
    first, other = (
        IndependentGP(**settings, random_state=seed).fit(X, y).noise_ for seed in (0, 1)
    )
    assert first != other
