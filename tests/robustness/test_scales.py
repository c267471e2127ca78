"""Units, origins and order: what must not matter does not, to 1e-6 of a standard deviation.

Numbers are rounded to steps that stay exact when an origin is added, so that nothing is lost
before the model sees them. `transform="auto"` is left out: it asks whether outputs are positive,
which an origin decides.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import smooth_table
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.latents.latent import NOISE_BOUNDS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(37)
X, Y = smooth_table(RNG, N=20)
X_NEW = RNG.uniform(size=(4, 2))
X, X_NEW, Y = (np.round(a * 2**20) / 2**20 for a in (X, X_NEW, Y / Y.std(axis=0)))
MODELS = {
    "defaults": lambda: EMGPR(transform=None, random_state=0),
    "paper": lambda: EMGPR.paper(batch_size=None, random_state=0),
}
each_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def plain():
    return {name: predicted(name, X, Y) for name in MODELS}


def predicted(model, X, Y, x_new=X_NEW):
    return MODELS[model]().fit(X, Y).predict(x_new, return_std=True)


def check_same(ours, theirs, rtol=1e-6):
    assert np.all(np.abs(ours[0] - theirs[0]) <= rtol * theirs[1])
    assert_allclose(ours[1], theirs[1], rtol=rtol)


@each_model
@pytest.mark.parametrize("unit", [1e-6, 1e6, 2.0**-300, 2.0**300])
def test_the_unit_of_the_inputs(model, unit, plain):
    check_same(predicted(model, unit * X, Y, unit * X_NEW), plain[model])


@each_model
@pytest.mark.parametrize("origin", [5e6, -5e6, 2.0**30])
def test_the_origin_of_the_inputs(model, origin, plain):
    check_same(predicted(model, X + origin, Y, X_NEW + origin), plain[model])


@each_model
@pytest.mark.parametrize("unit", [1e-150, 1e150, 1e-6, 1e6])
def test_the_unit_of_the_outputs(model, unit, plain):
    """A unit rounds every value anew; weights that are all but undetermined amplify that."""
    mean, std = predicted(model, X, unit * Y)
    rtol = 1e-6 if model == "defaults" else 1e-5
    check_same((mean / unit, std / unit), plain[model], rtol)


@each_model
@pytest.mark.parametrize("unit", [2.0**-500, 2.0**500])
def test_a_unit_that_rounds_nothing_changes_nothing(model, unit, plain):
    mean, std = predicted(model, X, unit * Y)
    check_same((mean / unit, std / unit), plain[model], 1e-12)


@each_model
@pytest.mark.parametrize("origin", [1e8, -1e8])
def test_the_origin_of_the_outputs(model, origin, plain):
    mean, std = predicted(model, X, Y + origin)
    check_same((mean - origin, std), plain[model])


@each_model
def test_the_sign_of_the_outputs(model, plain):
    mean, std = predicted(model, X, -Y)
    check_same((-mean, std), plain[model])


@each_model
def test_the_order_of_the_rows(model, plain):
    """With one batch: sites are dealt to several by their order."""
    order = RNG.permutation(20)
    check_same(predicted(model, X[order], Y[order]), plain[model])


@pytest.mark.parametrize("change", ["unit of X", "origin of X", "unit of Y", "origin of Y"])
def test_units_and_origins_in_an_ensemble_of_small_batches(change):
    """To 1e-3: a batch of nine sites leaves directions of its weights all but undetermined, and
    how far the search goes along them hangs on the last digit. Each member fits as well as before.
    """
    unit, origin = (1e6, 0.0) if "unit" in change else (1.0, 1e6)
    same, other = (1.0, 0.0), (unit, origin)
    inputs, outputs = (other, same) if "X" in change else (same, other)
    plain, changed = (
        EMGPR.paper(random_state=0).fit(a * X + b, c * Y + d)
        for (a, b), (c, d) in ((same, same), (inputs, outputs))
    )
    mean, std = plain.predict(X_NEW, return_std=True)
    theirs, spread = changed.predict(inputs[0] * X_NEW + inputs[1], return_std=True)
    assert np.all(np.abs((theirs - outputs[1]) / outputs[0] - mean) < 1e-3 * std)
    assert_allclose(spread / outputs[0], std, rtol=1e-3)
    heights = [model.log_marginal_likelihood_value_ for model in (changed, plain)]
    assert_allclose(*heights, atol=1e-4)


def test_a_thousand_outputs_of_the_largest_size_do_not_overflow():
    """The sum of their squares would."""
    x = np.linspace(0, 1, 1000)[:, None]
    y = 9e152 * np.sin(20 * x[:, 0])
    kernel = RBF(0.1, "fixed") + WhiteKernel(1e-4, "fixed")
    mean, std = IndependentGP(kernel, max_iter=1).fit(x, y).predict([[0.5]], return_std=True)
    assert_allclose(mean, 9e152 * np.sin(10.0), rtol=1e-3)
    assert np.all(np.isfinite(std))


@each_model
def test_far_away_is_the_mean_and_spread_of_no_readings_at_all(model):
    """The prior mean is that of the readings; its variance is what the weights and noise add to."""
    fitted = MODELS[model]().fit(X, Y)
    fitted._lost = {}
    mean, std = fitted.predict([[1e6, -1e6], [1e90, 1e90]], return_std=True, statistic="mean")
    assert_allclose(mean, np.tile(Y.mean(axis=0), (2, 1)), rtol=1e-6)
    B = np.einsum("lqdk,lqdk->ld", fitted.weights_, fitted.weights_)
    noise = fitted.noise_ if fitted.noise_.ndim == 1 else np.diagonal(fitted.noise_)
    assert_allclose(std[0], Y.std(axis=0) * np.sqrt(B.mean(axis=0) + noise), rtol=1e-6)
    assert_array_equal(std[0], std[1])


def test_readings_free_of_noise_end_at_the_floor_and_that_is_said():
    y = np.sin(6 * X[:, 0])
    with pytest.warns(ConvergenceWarning, match="its lower bound .*look free of noise"):
        model = IndependentGP(random_state=0).fit(X, y)
    assert_allclose(model.noise_, NOISE_BOUNDS[0], rtol=1e-9)


@pytest.mark.parametrize(("level", "noise"), [(0.0, 1e-8), (1e-8, 1e-8), (0.3, 0.3), (50.0, 50.0)])
def test_noise_that_is_held_is_held(level, noise):
    kernel = RBF(0.3, "fixed") + WhiteKernel(level, "fixed")
    model = EMGPR.paper(kernel=kernel, batch_size=None, random_state=0).fit(X, Y)
    assert_allclose(model.noise_, noise, rtol=1e-12)


@pytest.mark.parametrize(("bounds", "end"), [((0.8, 0.9), 0.8), ((1e-4, 1e-3), 1e-3)])
def test_a_floor_and_a_ceiling_of_the_users_are_kept(bounds, end, rng):
    noisy = Y + 0.3 * rng.normal(size=Y.shape)
    kernel = RBF(0.3, "fixed") + WhiteKernel(np.mean(bounds), bounds)
    model = EMGPR.paper(kernel=kernel, batch_size=None, random_state=0).fit(X, noisy)
    assert_allclose(model.noise_, end, rtol=1e-9)
