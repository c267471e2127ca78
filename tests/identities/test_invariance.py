"""What must not matter: the order of sites and outputs, units, and missing readings."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from emgpr import ICM, LMC, IndependentGP
from tests.simulated import known_model, paper, smooth_table, world

# A few iterations: the whole path must be the same, not only its end.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Nothing was measured in"),
]
FEW = {"max_iter": 4, "n_restarts": 2, "random_state": 0}
AS_THEY_ARE = {"kernel": None, "output_transform": None}  # shifted outputs may be negative
FAMILY = [
    paper(batch_size=None, refine=1, **FEW),
    ICM(rank=2, **FEW, **AS_THEY_ARE),
    LMC(**FEW, **AS_THEY_ARE),
    IndependentGP(**FEW, **AS_THEY_ARE),
]
RNG = np.random.default_rng(3)
X, Y = smooth_table(RNG, N=27)
Y[:5, 1] = np.nan
X_NEW = RNG.uniform(size=(6, 2))


def predicted(model, X, Y, x_new=X_NEW):
    return clone(model).fit(X, Y).predict(x_new, return_std=True)


@pytest.fixture(scope="module", params=FAMILY, ids=lambda model: type(model).__name__)
def model_and_plain(request):
    """An estimator, and its predictions from the table as it is."""
    return request.param, predicted(request.param, X, Y)


def check_same(ours, theirs, rtol=1e-5):
    """Assert that means agree relative to the standard deviations, and these do too."""
    (mean, std), (their_mean, their_std) = ours, theirs
    assert np.all(np.abs(mean - their_mean) <= rtol * their_std)
    assert_allclose(std, their_std, rtol=rtol)


def test_the_order_of_the_sites_does_not_matter(model_and_plain, rng):
    model, plain = model_and_plain
    shuffled = rng.permutation(len(X))
    check_same(predicted(model, X[shuffled], Y[shuffled]), plain)


def test_the_order_of_the_outputs_does_not_matter(model_and_plain):
    model, plain = model_and_plain
    order = [2, 0, 1]
    check_same(predicted(model, X, Y[:, order]), [part[:, order] for part in plain])


def test_units_and_origins_of_inputs_and_outputs_do_not_matter(model_and_plain):
    model, (mean, std) = model_and_plain
    scale, shift = np.array([1e-3, 7.0, 1e5]), np.array([1.0, -20.0, 3e4])
    moved = predicted(model, 1e4 * X - 3e5, Y * scale + shift, 1e4 * X_NEW - 3e5)
    check_same(moved, (mean * scale + shift, std * scale))


def test_an_empty_site_does_not_matter(model_and_plain):
    model, plain = model_and_plain
    again = X[[4, 9, 4]]
    empty = np.full((3, 3), np.nan)
    check_same(predicted(model, np.vstack([again, X]), np.vstack([empty, Y])), plain)


def test_an_empty_site_does_not_matter_in_an_ensemble():
    model = paper(batch_size=9, partition="strided", **FEW)
    empty = np.full((9, 3), np.nan)
    with_empty = predicted(model, np.vstack([X, X[:9]]), np.vstack([Y, empty]))
    check_same(with_empty, predicted(model, X, Y))


@pytest.mark.parametrize(
    ("conditioning", "correlated"), [("all", True), ("batch", False), (5, True)]
)
def test_an_empty_site_does_not_matter_at_known_parameters(rng, conditioning, correlated):
    made = world(rng, k=1, missing=0.3, correlated=correlated)
    made = made.table(np.where(np.arange(12)[:, None] % 4 == 0, np.nan, made.Y))
    rows = ~np.isnan(made.Y).all(axis=1)
    absent = replace(made, X=made.X[rows], Y=made.Y[rows])
    assert len(absent.X) <= 9
    ours, theirs = (
        known_model(w, conditioning=conditioning).predict(X_NEW, return_std=True)
        for w in (made, absent)
    )
    check_same(ours, theirs, rtol=1e-9)
