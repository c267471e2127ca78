"""What every posterior promises, checked on each that there is."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import OnePassGP
from emgpr.model_files.stack_state import stack_of_earlier_version
from emgpr.prediction import GaussianMixture, Posterior
from emgpr.stacking import StackedPosterior
from tests.simulated import agrees, lmc_posterior, smooth_table, world
from tests.stacking.stacked import stacked_posterior

NAN = np.nan
M = 5


def lmc(**settings):
    rng = np.random.default_rng(8)
    made = world(rng, k=1, missing=0.3, correlated=True)
    return lmc_posterior(made, made.W + 0.3 * rng.normal(size=(2, *made.W.shape)), **settings)


def partial_transfer():
    """Some outputs are predicted by the joint model, and others by their own processes."""
    without_gain = {"site": np.array([1]), "output": np.array([2])}
    return StackedPosterior.extending(lmc(), stack_of_earlier_version(without_gain, 12, 3))


def stacked():
    """All outputs are predicted by a mixture of three candidates."""
    return stacked_posterior(n_members=2)[1]


def fourier():
    X, Y = smooth_table(np.random.default_rng(8), N=60)
    return OnePassGP(random_state=0, max_iter=5).fit(X, Y).posterior_


KINDS = {
    "all readings": lmc,
    "batches, combined": lambda: lmc(conditioning="batch", combine="rbcm"),
    "neighbours": lambda: lmc(conditioning=4),
    "partial transfer": partial_transfer,
    "mixture of candidates": stacked,
    "Fourier features": fourier,
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module", params=KINDS)
def posterior(request):
    return KINDS[request.param]()


@pytest.fixture
def x(rng, posterior):
    low, high = posterior.extent.min(axis=0), posterior.extent.max(axis=0)
    return rng.uniform(low, high, size=(M, len(low)))


@pytest.fixture
def observed(rng):
    values = rng.normal(size=(M, 3))
    values[0] = values[1, 1] = values[3, :2] = NAN
    return values


def test_it_satisfies_the_protocol(posterior):
    assert isinstance(posterior, Posterior)
    assert not isinstance(object(), Posterior)


def test_its_sizes_are_those_of_its_readings(posterior):
    assert posterior.n_outputs == 3
    assert posterior.n_components >= 1
    assert posterior.n_sites in (12, 40, 60)
    assert posterior.extent.ndim == posterior.reference_values.ndim == 2
    assert posterior.extent.shape[1] == 2
    assert posterior.reference_values.shape[1] == 3


@pytest.mark.parametrize("include_noise", [True, False])
def test_predictions_are_mixtures_of_gaussians(posterior, x, observed, include_noise):
    for known in (None, observed):
        predicted = posterior.predict(x, known, include_noise=include_noise)
        assert isinstance(predicted, GaussianMixture)
        C = len(predicted.mean)
        assert 1 <= C <= posterior.n_components
        assert predicted.mean.shape == (C, M, 3)
        assert predicted.cov.shape == (C, M, 3, 3)
        assert_allclose(predicted.cov, np.swapaxes(predicted.cov, -1, -2), atol=1e-12)
        assert np.linalg.eigvalsh(predicted.cov).min() > -1e-9


def test_the_order_of_locations_does_not_matter(posterior, x, observed, rng):
    order = rng.permutation(M)
    for known, permuted in ((None, None), (observed, observed[order])):
        one, other = posterior.predict(x, known), posterior.predict(x[order], permuted)
        assert_allclose(other.mean, one.mean[:, order], rtol=1e-7, atol=1e-9)
        assert_allclose(other.cov, one.cov[:, order], rtol=1e-7, atol=1e-9)


def test_each_location_is_predicted_as_if_alone(posterior, x):
    together = posterior.predict(x)
    for i in range(M):
        alone = posterior.predict(x[[i]])
        assert_allclose(alone.mean[:, 0], together.mean[:, i], rtol=1e-7, atol=1e-9)


def test_means_do_not_need_covariances(posterior, x):
    means = posterior.predict(x, with_cov=False).mean
    assert_allclose(means, posterior.predict(x).mean, rtol=1e-7, atol=1e-9)


def test_readings_vary_more_than_signals(posterior, x):
    readings, signals = (posterior.predict(x, include_noise=noise).cov for noise in (True, False))
    assert np.all(np.einsum("cmdd->cmd", readings) > np.einsum("cmdd->cmd", signals))


def test_observed_outputs_narrow_the_signals_there(posterior, x, observed):
    before, after = (posterior.predict(x, known, include_noise=False) for known in (None, observed))
    if before.weights is not None or len(before.mean) < posterior.n_components:
        return  # mixtures and rules may widen where members differ
    wide, narrow = (np.einsum("cmdd->cmd", part.cov) for part in (before, after))
    assert np.all((narrow < wide)[:, ~np.isnan(observed)])


def test_nothing_observed_is_like_none(posterior, x):
    one, other = (posterior.predict(x, known) for known in (None, np.full((M, 3), NAN)))
    assert_allclose(other.mean, one.mean, rtol=1e-9)
    assert_allclose(other.cov, one.cov, rtol=1e-9)


def test_samples_have_the_predicted_moments(posterior, x):
    """6 means and 12 covariances for each kind, within 5 standard errors: once in 97,000 runs."""
    for include_noise in (True, False):
        drawn = posterior.sample(x[:2], 4000, np.random.default_rng(4), include_noise=include_noise)
        assert drawn.shape == (4000, 2, 3)
        predicted = posterior.predict(x[:2], include_noise=include_noise)
        mean, cov = predicted.moments()
        for i in range(2):
            assert agrees(drawn[:, i], mean[i], cov[i])


def test_samples_depend_on_the_seed_alone(posterior, x):
    first, again, other = (posterior.sample(x, 2, np.random.default_rng(s)) for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_worker_predicts_the_same(posterior, x):
    one, other = posterior.predict(x), posterior.for_worker().predict(x)
    assert_allclose(other.mean, one.mean, rtol=1e-12)
    assert_allclose(other.cov, one.cov, rtol=1e-12)


def keeps_no_readings(posterior):
    """Whether it can leave nothing out, and says so."""
    if hasattr(posterior, "observations"):
        return False
    with pytest.raises(ValueError, match=r"Use emgpr\.compare, which refits"):
        posterior.leave_out(np.tile(np.arange(posterior.n_sites), (3, 1)))
    with pytest.raises(ValueError, match="fits outputs only jointly"):
        posterior.without_transfer()
    return True


def test_left_out_readings_are_predicted_where_they_are_kept(posterior):
    """In the same way for sets with other labels; what is left out has no influence."""
    if keeps_no_readings(posterior):
        return
    sets = np.tile(np.arange(posterior.n_sites), (3, 1))
    predicted = posterior.leave_out(sets)
    assert predicted.mean.shape[1:] == (posterior.n_sites, 3)
    assert predicted.cov.shape[1:] == (posterior.n_sites, 3, 3)
    assert np.linalg.eigvalsh(predicted.cov).min() > 0
    assert_array_equal(posterior.leave_out(100 - sets).mean, predicted.mean)
    table = posterior.observations
    y = table.y.copy()
    y[:, 3] += 10.0 * table.observed[:, 3]
    changed = type(posterior)(
        **{
            field.name: getattr(posterior, field.name)
            for field in fields(posterior)
            if field.name != "observations"
        },
        observations=type(table)(table.x, y, table.observed),
    ).leave_out(sets)
    assert_allclose(changed.mean[:, 3], predicted.mean[:, 3], rtol=1e-6, atol=1e-8)
    assert not np.allclose(changed.mean, predicted.mean, atol=1e-3)


def test_without_transfer_outputs_are_uncorrelated(posterior, x):
    if keeps_no_readings(posterior):
        return
    alone = posterior.without_transfer()
    assert_array_equal(alone.predict(x).cov[..., ~np.eye(3, dtype=bool)], 0.0)
