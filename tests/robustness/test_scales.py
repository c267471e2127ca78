"""Units, origins and the order of rows change predictions by less than 1e-6 of their std.

Numbers are rounded to steps that stay exact when an origin is added, so that nothing is lost
before the fit. `output_transform="auto"` is left out: it depends on whether outputs are positive,
which the origin changes.
"""

from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.latents.base import NOISE_BOUNDS
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
RNG = np.random.default_rng(37)
X, Y = smooth_table(RNG, N=16)
X_NEW = RNG.uniform(size=(4, 2))
X, X_NEW, Y = (np.round(a * 2**20) / 2**20 for a in (X, X_NEW, Y / Y.std(axis=0)))
MODELS = {
    "defaults": lambda: EMGPR(output_transform=None, random_state=0),
    "paper": lambda: EMGPR.paper(batch_size=None, random_state=0),
    "small batches": lambda: EMGPR.paper(batch_size=8, random_state=0),
}
each_model = pytest.mark.parametrize(
    "model", [pytest.param("defaults", marks=pytest.mark.slow), "paper"]
)


@cache
def fitted(model):
    return MODELS[model]().fit(X, Y)


@dataclass(frozen=True)
class Scale:
    """A change of units and origins: a number becomes unit * number + origin."""

    x_unit: float = 1.0
    x_origin: float = 0.0
    y_unit: float = 1.0
    y_origin: float = 0.0

    def fit(self, make):
        return make().fit(self.inputs(X), self.y_unit * Y + self.y_origin)

    def inputs(self, x):
        return self.x_unit * x + self.x_origin

    def predict(self, model):
        """Mean and standard deviation at the new locations, on the first scale."""
        mean, std = model.predict(self.inputs(X_NEW), return_std=True)
        return (mean - self.y_origin) / self.y_unit, std / abs(self.y_unit)


def check_same(ours, theirs, rtol=1e-6):
    assert np.all(np.abs(ours[0] - theirs[0]) <= rtol * theirs[1])
    assert_allclose(ours[1], theirs[1], rtol=rtol)


# Inputs and outputs change together, which takes half as many fits.
SCALES = {
    "small inputs, large outputs": Scale(x_unit=1e-6, y_unit=1e150),
    "large inputs, small outputs of other sign": Scale(x_unit=2.0**300, y_unit=-1e-150),
    "distant origins": Scale(x_origin=-(2.0**30), y_origin=1e8),
}


@each_model
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_units_and_origins_do_not_change_predictions(model, scale):
    """Units such as 1e150 round every value, which weights that are hardly determined amplify."""
    rounded = model == "paper" and abs(scale.y_unit) != 1.0
    changed = scale.predict(scale.fit(MODELS[model]))
    check_same(changed, Scale().predict(fitted(model)), 1e-5 if rounded else 1e-6)


@pytest.mark.parametrize(
    ("model", "power"),
    [pytest.param("defaults", 500, marks=pytest.mark.slow), ("paper", -500)],
)
def test_a_unit_of_the_outputs_that_rounds_nothing_changes_nothing(model, power):
    scale = Scale(y_unit=2.0**power)
    changed = scale.predict(scale.fit(MODELS[model]))
    check_same(changed, Scale().predict(fitted(model)), 1e-12)


@each_model
def test_the_order_of_the_rows_does_not_change_predictions(model):
    """With one batch: the order decides which batch a site belongs to."""
    order = np.random.default_rng(1).permutation(16)
    changed = MODELS[model]().fit(X[order], Y[order]).predict(X_NEW, return_std=True)
    check_same(changed, Scale().predict(fitted(model)))


@pytest.mark.parametrize("changed", [field.name for field in fields(Scale)])
def test_units_and_origins_hardly_change_an_ensemble_of_small_batches(changed):
    """To 1e-3: few sites leave directions of the weights almost undetermined.

    How far a search goes along them depends on the last digit. Each member is as likely as before.
    """
    scale = Scale(**{changed: 1e6})
    ours, plain = scale.fit(MODELS["small batches"]), fitted("small batches")
    check_same(scale.predict(ours), Scale().predict(plain), 1e-3)
    likelihoods = [model.log_marginal_likelihood_value_ for model in (ours, plain)]
    assert_allclose(*likelihoods, atol=1e-4)


def test_a_thousand_readings_of_the_largest_size_do_not_overflow():
    """The sum of their squares would, without standardisation."""
    x = np.linspace(0, 1, 1000)[:, None]
    y = 9e152 * np.sin(20 * x[:, 0])
    kernel = RBF(0.1, "fixed") + WhiteKernel(1e-4, "fixed")
    mean, std = IndependentGP(kernel, max_iter=1).fit(x, y).predict([[0.5]], return_std=True)
    assert_allclose(mean, 9e152 * np.sin(10.0), rtol=1e-3)
    assert np.all(np.isfinite(std))


@each_model
def test_far_from_all_sites_the_prior_is_predicted(model):
    """Its mean is that of the readings; its variance is that of the signal and of the noise."""
    model = copy(fitted(model))
    model.posterior_ = replace(model.posterior_.with_transfer(), directions=None)
    mean, std = model.predict([[1e6, -1e6], [1e90, 1e90]], return_std=True, statistic="mean")
    assert_allclose(mean, np.tile(Y.mean(axis=0), (2, 1)), rtol=1e-6)
    B = np.einsum("lqdk,lqdk->ld", model.weights_, model.weights_)
    noise = model.noise_ if model.noise_.ndim == 1 else np.diagonal(model.noise_)
    assert_allclose(std[0], Y.std(axis=0) * np.sqrt(B.mean(axis=0) + noise), rtol=1e-6)
    assert_array_equal(std[0], std[1])


def test_readings_without_noise_give_the_least_noise_and_a_warning():
    y = np.sin(6 * X[:, 0])
    with pytest.warns(ConvergenceWarning, match="its lower bound .*appear to be free of noise"):
        model = IndependentGP(random_state=0).fit(X, y)
    assert_allclose(model.noise_, NOISE_BOUNDS[0], rtol=1e-9)


@pytest.mark.parametrize(("level", "noise"), [(0.0, 1e-8), (1e-8, 1e-8), (0.3, 0.3), (50.0, 50.0)])
def test_a_fixed_noise_level_is_kept(level, noise):
    kernel = RBF(0.3, "fixed") + WhiteKernel(level, "fixed")
    model = EMGPR.paper(kernel=kernel, batch_size=None, random_state=0).fit(X, Y)
    assert_allclose(model.noise_, noise, rtol=1e-12)


@pytest.mark.parametrize(("bounds", "end"), [((0.8, 0.9), 0.8), ((1e-4, 1e-3), 1e-3)])
def test_bounds_of_the_noise_level_are_kept(bounds, end, rng):
    noisy = Y + 0.3 * rng.normal(size=Y.shape)
    kernel = RBF(0.3, "fixed") + WhiteKernel(np.mean(bounds), bounds)
    model = EMGPR.paper(kernel=kernel, batch_size=None, random_state=0).fit(X, noisy)
    assert_allclose(model.noise_, end, rtol=1e-9)


def test_values_close_to_zero_can_be_predicted_at_observed_and_scored():
    """Only training columns in which all values are tiny are refused."""
    model = IndependentGP(RBF(0.1, "fixed"), random_state=0).fit(X, Y)
    tiny = [[1e-120, 1e-300]]
    assert_allclose(model.predict(tiny), model.predict([[0.0, 0.0]]), rtol=1e-12)
    observed = np.array([[1e-200, *[np.nan] * (Y.shape[1] - 1)]])
    assert_allclose(
        model.predict(X[:1], observed=observed),
        model.predict(X[:1], observed=np.where(np.isnan(observed), np.nan, 0.0)),
        rtol=1e-12,
    )
    truth = Y[:2].copy()
    truth[:, 0] = [0.0, 1e-200]
    assert np.isfinite(model.score(X[:2], truth))
