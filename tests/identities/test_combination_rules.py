"""Combination rules through an estimator: predictions in original units, samples, leave-out."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr.ensemble import RULES, mixture
from emgpr.prediction import GaussianMixture, condition
from tests.simulated import agrees, paper, smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK = {
    "kernel": RBF(0.4, "fixed") + WhiteKernel(0.1, "fixed"),
    "max_iter": 8,
    "n_restarts": 1,
    "random_state": 0,
}
RNG = np.random.default_rng(12)
X, Y = smooth_table(RNG, N=27)
Y[3:9, 0] = np.nan
X_NEW = np.vstack([RNG.uniform(size=(4, 2)), X[:1], [[50.0, 50.0]]])  # one site, one far away


def most_certain(means, covs, prior):
    """The prediction of the member with the least variance."""
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    location = np.arange(len(best))
    return means[best, location], covs[best, location]


ALL_RULES = {name: name for name in RULES} | {"a function": most_certain}
each_rule = pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES)


@pytest.fixture(scope="module")
def fitted():
    """Ensembles of three members; the rule takes part in predictions only."""
    models = {
        (how, size): paper(**QUICK, conditioning=how, batch_size=size).fit(X, Y)
        for how in ("all", "batch")
        for size in (9, None)
    }

    def with_rule(rule, conditioning="all", batch_size=9):
        return copy(models[conditioning, batch_size]).set_params(combine=rule)

    return with_rule


@pytest.mark.parametrize("conditioning", ["all", "batch"])
@each_rule
def test_predictions_are_those_of_the_combined_posterior_in_original_units(
    fitted, rule, conditioning
):
    model = fitted(rule, conditioning)
    assert len(model.weights_) == 3
    expected = model.posterior_.with_rule(rule).predict(X_NEW)
    mean, cov = mixture(expected.mean, expected.cov)
    scale, shift = model.output_scaler_.scale, model.output_scaler_.shift
    predicted = model.predict(X_NEW, return_cov=True, statistic="mean")
    assert_allclose(predicted[0], mean * scale + shift, rtol=1e-6)
    assert_allclose(
        predicted[1], cov * np.outer(scale, scale), rtol=1e-6, atol=1e-9 * scale.min() ** 2
    )
    _, std = model.predict(X_NEW, return_std=True)
    assert_allclose(std**2, np.einsum("mdd->md", predicted[1]), rtol=1e-6)
    observed = np.tile([1.0, np.nan, 0.0], (6, 1))
    known = model.predict(X_NEW, return_cov=True, include_noise=False, observed=observed)
    assert np.isfinite(known[0]).all()
    assert np.linalg.eigvalsh(known[1] / np.outer(scale, scale)).min() > -1e-9


def test_the_mean_has_the_moments_and_the_median_of_the_mixture(fitted):
    model = fitted("mean", "batch")
    parts = [
        condition(
            model.posterior_.observations.at(batch), X_NEW, model.posterior_.model.members([i])
        )
        for i, batch in enumerate(model.posterior_.batches)
    ]
    means, covs = (np.concatenate([getattr(p, name) for p in parts]) for name in ("mean", "cov"))
    scale, shift = model.output_scaler_.scale, model.output_scaler_.shift
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean")
    assert_allclose(mean, means.mean(axis=0) * scale + shift)
    inside = np.einsum("lmdd->lmd", covs).mean(axis=0) + model.noise_
    assert_allclose(std, np.sqrt(inside + means.var(axis=0)) * scale)
    median = model.predict(X_NEW)
    scaler, members = model.output_scaler_, GaussianMixture(means, covs + np.diag(model.noise_))
    assert_allclose(scaler.cdf(members, median), 0.5, atol=1e-9)


def test_the_rules_differ(fitted):
    """But for the average, which has the moments of the mean."""
    rules = [rule for rule in RULES if rule != "average"]
    stds = [fitted(rule, "batch").predict(X_NEW[:4], return_std=True)[1] for rule in rules]
    stds = np.array(stds) / np.nanstd(Y, axis=0)
    differences = np.abs(stds[:, None] - stds).max(axis=(2, 3))[np.triu_indices(len(stds), 1)]
    assert differences.min() > 1e-3


@pytest.mark.parametrize("conditioning", ["all", "batch"])
def test_a_single_member_is_predicted_alike_by_every_rule(fitted, conditioning):
    expected = fitted("mean", conditioning, None).predict(X_NEW, return_cov=True)
    for rule in ALL_RULES.values():
        model = fitted(rule, conditioning, None)
        mean, cov = model.predict(X_NEW, return_cov=True)
        assert_allclose(mean, expected[0], rtol=1e-6)
        assert_allclose(cov, expected[1], rtol=1e-5, atol=1e-9)
        assert_allclose(model.predict(X_NEW), expected[0], rtol=1e-6)


@pytest.mark.parametrize("rule", ["median", None, True, 3])
def test_an_unknown_rule_is_refused_with_the_choices(rule):
    choices = ", ".join(f"'{name}'" for name in RULES)
    with pytest.raises(ValueError, match=f"combine={rule!r}; expected one of {choices}"):
        paper(**QUICK, combine=rule).fit(X, Y)


def test_the_rule_takes_no_part_in_the_fit(fitted):
    model = paper(**QUICK, batch_size=9, combine=most_certain).fit(X, Y)
    expected = fitted(most_certain).predict(X_NEW, return_std=True)
    assert_allclose(model.predict(X_NEW, return_std=True), expected)


def test_a_function_is_given_members_and_prior(fitted):
    given = []

    def first(means, covs, prior):
        given.append((means.shape, covs.shape, prior.shape))
        return means[0], covs[0]

    mean, std = fitted(first).predict(X_NEW, return_std=True)
    assert given == [((3, 6, 3), (3, 6, 3, 3), (6, 3, 3))]
    assert mean.shape == std.shape == (6, 3)


@pytest.mark.parametrize("rule", ["mean", "gpoe", "bcm", "rbcm", "barycenter"])
def test_far_from_all_readings_the_prior_remains(fitted, rule):
    """For "poe" and "grbcm" this is known not to hold if members differ."""
    model = fitted(rule)
    mean, cov = model.predict(X_NEW[-1:], return_cov=True, include_noise=False)
    scale, shift = model.output_scaler_.scale, model.output_scaler_.shift
    assert_allclose(mean[0], shift, atol=1e-9 * scale.max())
    if rule != "barycenter":
        prior = model.coregionalization_.sum(axis=0)
        assert_allclose(cov[0] / np.outer(scale, scale), prior, rtol=1e-6, atol=1e-9)


def test_the_batches_of_an_estimator_are_rows_of_its_table(fitted):
    model = fitted("grbcm", "batch")
    assert_array_equal(np.sort(np.concatenate(model.batches_)), np.arange(27))
    assert len(model.posterior_.with_rule("grbcm").batch_sites(2)) == 18


@each_rule
def test_cross_validation_works_with_every_rule(fitted, rule):
    for conditioning in ("all", "batch"):
        summary = fitted(rule, conditioning).cross_validate().summary()
        assert summary["n"].tolist() == [21, 27, 27]
        assert np.isfinite(summary.to_numpy()).all()
    assert np.all(fitted(rule).cross_validate().summary()["smse"] < 1.5)


@pytest.mark.parametrize("rule", ["mean", "rbcm"])
def test_samples_in_original_units_have_the_predicted_moments(fitted, rule):
    """12 means and 24 covariances within 5 standard errors: once in 48,000 runs."""
    model, x = fitted(rule), X_NEW[:4]
    mean, cov = model.predict(x, return_cov=True, statistic="mean")
    drawn = model.sample_y(x, 5000, random_state=3)
    assert drawn.shape == (4, 3, 5000)
    for i in range(4):
        assert agrees(drawn[i].T, mean[i], cov[i])
