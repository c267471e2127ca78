"""Data at the edge of sense: no crash, finite answers, and sensible ones."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import known_model, smooth_table, world
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, SLFM, IndependentGP
from emgpr.arrays import JitterWarning, NumericalError
from emgpr.latents import exact, starts

# They are told, rightly, of bounds reached, of jitter and so on; here only the answer matters.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::emgpr.arrays.JitterWarning"),
    pytest.mark.filterwarnings("ignore:Outputs? .* one value only"),
    pytest.mark.filterwarnings("ignore:Batches of .* sites are small"),
]
RNG = np.random.default_rng(17)
X, Y = smooth_table(RNG, N=12)
X_NEW = np.vstack([X[:3], RNG.uniform(size=(3, 2)), [[50.0, -50.0]]])
every_estimator = pytest.mark.parametrize("Estimator", [EMGPR, ICM, SLFM])


def predicted(Estimator, X, Y, x_new=X_NEW, **settings):
    """Mean and standard deviation at sites old, new and far away; both finite."""
    model = Estimator(max_iter=5, n_restarts=2, random_state=0, **settings).fit(X, Y)
    mean, std = model.predict(x_new, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.all(std > 0)
    return mean, std


@every_estimator
def test_a_single_site_is_predicted_everywhere(Estimator):
    mean, _ = predicted(Estimator, X[:1], Y[:1])
    assert_allclose(mean, np.tile(Y[:1], (len(X_NEW), 1)), rtol=1e-6)


@pytest.mark.parametrize("Estimator", [EMGPR.paper, ICM, SLFM])
def test_two_sites_are_met_and_far_away_is_their_mean(Estimator):
    """Correlated noise would explain two samples as well as a process does."""
    mean, _ = predicted(Estimator, X[:2], Y[:2])
    spread = np.ptp(Y[:2], axis=0)
    assert np.all(np.abs(mean[:2] - Y[:2]) < 0.2 * spread)
    assert np.all(np.abs(mean[-1] - Y[:2].mean(axis=0)) < 0.01 * spread)


@every_estimator
def test_a_constant_output_is_predicted_as_its_constant(Estimator):
    mean, _ = predicted(Estimator, X, np.column_stack([Y[:, 0], np.full(12, 7.3)]))
    assert_allclose(mean[:, 1], 7.3, atol=0.01)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6])
def test_any_constant_is_a_constant(constant):
    mean, _ = predicted(IndependentGP, X, np.full(12, constant))
    assert_allclose(mean, constant, rtol=1e-9, atol=1e-9)


@every_estimator
def test_outputs_that_are_all_constant(Estimator):
    mean, _ = predicted(Estimator, X, np.tile([1.0, -2.0], (12, 1)))
    assert_allclose(mean, np.tile([1.0, -2.0], (len(X_NEW), 1)), atol=1e-4)


@every_estimator
def test_sites_measured_twice(Estimator):
    mean, _ = predicted(Estimator, np.vstack([X, X]), np.vstack([Y, Y]))
    if Estimator not in (ICM, SLFM):  # which have fewer latents than these outputs need
        assert np.all(np.abs(mean[:3] - Y[:3]) < 0.5 * Y.std(axis=0))


@every_estimator
def test_sites_measured_twice_with_contradicting_results(Estimator):
    _, std = predicted(Estimator, np.vstack([X, X]), np.vstack([Y, Y[::-1]]))
    assert np.all(std[:3] > 0.1 * Y.std(axis=0))


@every_estimator
def test_all_sites_equal_give_the_mean_of_what_was_read(Estimator):
    mean, std = predicted(Estimator, np.ones((12, 2)), Y, np.ones((1, 2)))
    assert np.all(np.abs(mean[0] - Y.mean(axis=0)) < 0.1 * Y.std(axis=0))
    assert_allclose(std[0], Y.std(axis=0), rtol=0.2)


@pytest.mark.parametrize("Estimator", [EMGPR, ICM])
def test_a_constant_input_column_says_nothing(Estimator):
    wide, wide_new = (np.column_stack([x, np.full(len(x), 4.0)]) for x in (X, X_NEW))
    with_constant, _ = predicted(Estimator, wide, Y, wide_new)
    assert_allclose(with_constant, predicted(Estimator, X, Y)[0], rtol=1e-6)
    predicted(Estimator, wide, Y, wide_new, kernel=RBF([1.0, 1.0, 1.0]))


@every_estimator
def test_fewer_sites_than_outputs(Estimator):
    wide = RNG.normal(size=(3, 5))
    predicted(Estimator, X[:3], wide)


@every_estimator
def test_an_output_read_once_is_predicted_as_that_reading(Estimator):
    once = np.column_stack([Y[:, 0], np.r_[5.0, np.full(11, np.nan)]])
    mean, _ = predicted(Estimator, X, once)
    assert_allclose(mean[:, 1], 5.0, atol=0.5)


@every_estimator
def test_outputs_never_read_at_the_same_site(Estimator):
    apart = np.where((np.arange(12) % 3)[:, None] == np.arange(3), Y, np.nan)
    mean, _ = predicted(Estimator, X, apart)
    assert np.all(np.abs(mean - np.nanmean(apart, axis=0)) < 4 * np.nanstd(apart, axis=0))


@pytest.mark.parametrize("Estimator", [EMGPR, ICM])
def test_outputs_of_wildly_different_size(Estimator):
    scale = np.array([1e-150, 1.0, 1e150])
    mean, std = predicted(Estimator, X, Y / Y.std(axis=0) * scale)
    plain, plain_std = predicted(Estimator, X, Y / Y.std(axis=0))
    assert_allclose(mean / scale, plain, rtol=1e-3, atol=1e-4)
    assert_allclose(std / scale, plain_std, rtol=1e-3)


@pytest.mark.parametrize("conditioning", [1, 3, "batch"])
def test_little_to_condition_on(conditioning):
    predicted(EMGPR, X, Y, batch_size=4, conditioning=conditioning)


@pytest.mark.filterwarnings("ignore:Output '2' was read 3 times only")
def test_batches_that_lack_an_output():
    rare = Y.copy()
    rare[3:, 2] = np.nan
    mean, _ = predicted(EMGPR, X, rare, batch_size=4, partition="strided")
    assert np.all(np.abs(mean[:, 2] - np.nanmean(rare[:, 2])) < 5 * np.nanstd(rare[:, 2]))


@pytest.mark.parametrize("readings", [[3.0], [3.0, 3.0, 3.0]])
def test_an_output_of_one_value_is_named(readings):
    once = np.full(len(Y), np.nan)
    once[: len(readings)] = readings
    with pytest.warns(UserWarning, match=rf"Output '1' has one value only \({len(readings)} r"):
        EMGPR(max_iter=5, random_state=0).fit(X, np.column_stack([Y[:, 0], once]))


@every_estimator
def test_a_third_of_the_readings_missing(Estimator):
    X, Y = smooth_table(np.random.default_rng(5), N=40)
    gaps = np.where(np.random.default_rng(6).uniform(size=Y.shape) < 0.3, np.nan, Y)
    gaps[np.isnan(gaps).all(axis=1)] = Y[np.isnan(gaps).all(axis=1)]
    model = Estimator(max_iter=20, n_restarts=2, random_state=0).fit(X, gaps)
    told = np.abs(model.predict(X) - Y)[np.isnan(gaps)]
    spread = np.broadcast_to(Y.std(axis=0), Y.shape)[np.isnan(gaps)]
    assert np.sqrt(np.mean((told / spread) ** 2)) < 0.7  # 1 is to know nothing
    assert model.n_rows_ignored_ == 0


@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper, ICM, IndependentGP])
def test_two_identical_outputs_are_predicted_alike(make):
    model = make(random_state=0).fit(X, Y[:, [0, 0]])
    mean, std = model.predict(X_NEW, return_std=True)
    assert_allclose(mean[:, 0], mean[:, 1], atol=1e-3 * Y[:, 0].std())
    assert_allclose(std[:, 0], std[:, 1], rtol=1e-3)


@pytest.mark.parametrize("apart", [0.0, 1e-12])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper])
def test_sites_read_twice_or_almost_at_one_place(make, apart, same):
    """Equal readings are met; of others their mean is, within what they differ by."""
    again = Y if same else Y + 0.3 * Y.std(axis=0)
    mean, std = predicted(make, np.vstack([X, X + apart]), np.vstack([Y, again]), batch_size=None)
    assert np.all(np.abs(mean[:3] - (Y + again)[:3] / 2) < 0.8 * Y.std(axis=0))
    assert np.all(std[:3] < 1.2 * Y.std(axis=0))


@pytest.mark.parametrize("apart", [0.0, 1e-12])
def test_contradicting_readings_at_one_place_without_noise(apart):
    """No noise is next to none: the mean of both is met, and the doubt is in the noise."""
    kernel = RBF(0.3, "fixed") + WhiteKernel(0.0, "fixed")
    model = EMGPR.paper(kernel=kernel, batch_size=None, max_iter=5)
    model.fit(np.vstack([X, X + apart]), np.vstack([Y, Y + 1.0]))
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, Y + 0.5, atol=0.02 * Y.std(axis=0).max())
    assert np.all(np.isfinite(std))
    assert np.all(std > 0)


def test_a_covariance_that_needs_help_is_told_and_one_beyond_it_is_named():
    """Every site twice without noise, and a noise that is none."""
    made = known_model(world(np.random.default_rng(0), N=6, k=1))
    made._seen = made._seen.at(np.repeat(np.arange(6), 2))
    made._noise = 1e-30 * np.eye(3)
    helped = r"covariance of the .* readings .*1e-1[0-2] of its mean was added"
    with pytest.warns(JitterWarning, match=helped):
        _, std = made.predict(X_NEW, return_std=True)
    assert np.all(std >= 0)
    made._noise = -3.0 * np.eye(3)
    beyond = r"covariance of the .* readings .*not positive definite.*Look for duplicated sites"
    with pytest.raises(NumericalError, match=beyond):
        made.predict(X_NEW)


@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper])
def test_a_likelihood_that_breaks_on_the_way_is_told_and_the_best_point_kept(make, monkeypatch):
    """From the second evaluation of step 1 there is no value: the search keeps what it had."""
    calls = iter(range(10**6))
    sound = exact.loss_of

    def broken(*arguments, **settings):
        loss = sound(*arguments, **settings)

        def faulty(params, which):
            value, gradient = loss(params, which)
            return (value if next(calls) < 1 else np.full_like(value, np.nan)), gradient

        return faulty

    monkeypatch.setattr(exact, "loss_of", broken)
    monkeypatch.setattr(starts, "FEW", 1)  # which leaves something to search for
    with pytest.warns(ConvergenceWarning, match=r"Step 1 of output '\d'.*could not be evaluated"):
        model = make(random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X_NEW)).all()
    assert not model.converged_


def test_an_ascent_that_breaks_on_the_way_is_told_and_the_best_point_kept(monkeypatch):
    ascent = import_module("emgpr.weights.refine")._Ascent
    sound, fine = ascent.terms, []

    def faulty(self, row, W):
        """Beyond the first three points nothing can be evaluated."""
        values, gradient = sound(self, row, W)
        if len(fine) < 3:
            fine.append(row.copy())
        known = any(np.array_equal(row, point) for point in fine)
        return (values if known else np.full_like(values, np.nan)), gradient

    monkeypatch.setattr(ascent, "terms", faulty)
    with pytest.warns(ConvergenceWarning, match="Refinement: .*could not be evaluated around"):
        model = ICM(random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X_NEW)).all()
