"""transfer="safe": outputs that lose by transfer keep to their own process, the others do not."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.prediction import condition, condition_jointly

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(0.2, "fixed") + WhiteKernel(0.1, "fixed")
QUICK = {"kernel": KERNEL, "n_restarts": 1, "max_iter": 20, "random_state": 0}
NAMES = ["Cd", "Ni", "pH"]
FIVE = 5  # standard errors


def related(seed, N=30):
    """Two outputs that are nearly one, and a third that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    f, g = (np.linalg.cholesky(RBF(0.2)(X) + 1e-9 * np.eye(N)) @ rng.normal(size=(N, 2))).T
    Y = np.column_stack([f, f, g]) + 0.3 * rng.normal(size=(N, 3))
    return X, pd.DataFrame(Y * [1.0, 10.0, 0.1] + [0.0, 5.0, 7.0], columns=NAMES)


X, Y = related(0)
Y.iloc[4:9, 0] = np.nan
X_NEW = np.random.default_rng(1).uniform(size=(4, 2))
WAYS = {
    "one member": {"batch_size": None},
    "three members": {"batch_size": 10},
    "of a committee": {"batch_size": 10, "combine": "rbcm"},
    "joined noise": {"batch_size": None, "refine": 1, "noise": "correlated"},
    "neighbours": {"batch_size": None, "conditioning": 5},
    "batches": {"batch_size": 10, "conditioning": "batch"},
}


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def model(way, site=(), output=()):
        """A model for which these outputs lost, by hand."""
        if way not in made:
            made[way] = EMGPR.paper(**QUICK | WAYS[way], transfer="safe").fit(X, Y)
        forced = copy(made[way])
        forced._lost = {"site": np.array(site, int), "output": np.array(output, int)}
        return forced

    return model


@pytest.fixture(scope="module")
def apart():
    """The outputs on their own."""
    return IndependentGP(KERNEL, n_restarts=1, random_state=0).fit(X, Y)


def full(model):
    """The same model, in which nobody lost."""
    other = copy(model)
    other._lost = {}
    return other


each_way = pytest.mark.parametrize("way", WAYS)


@each_way
def test_who_loses_is_predicted_alone_and_the_others_as_ever(fitted, apart, way):
    if way == "neighbours":
        apart = copy(apart).set_params(conditioning=5)
        apart.conditioning_ = 5
    model = fitted(way, site=[2])
    for noisy in (True, False):
        asked = {"include_noise": noisy, "statistic": "mean", "return_cov": True}
        mean, cov = model.predict(X_NEW, **asked)
        with_transfer, alone = full(model).predict(X_NEW, **asked), apart.predict(X_NEW, **asked)
        assert_allclose(mean[:, 2], alone[0][:, 2])
        assert_allclose(cov[:, 2, 2], alone[1][:, 2, 2])
        assert_allclose(mean[:, :2], with_transfer[0][:, :2], rtol=1e-12)
        assert_allclose(cov[:, :2, :2], with_transfer[1][:, :2, :2], rtol=1e-12)
        assert_allclose(cov[:, 2, :2], 0, atol=1e-15)
        assert_allclose(cov[:, :2, 2], 0, atol=1e-15)
        assert not np.allclose(with_transfer[0][:, 2], alone[0][:, 2], rtol=1e-4)
    assert_allclose(model.predict(X_NEW)[:, 2], alone[0][:, 2])


def test_alone_is_what_step_one_learned(fitted):
    model = fitted("one member", site=[0, 1, 2])
    own = model._apart
    belief = condition(model._seen, X_NEW, own.kernels, own.W[None], own.noise)
    mean, cov = model.predict(X_NEW, return_cov=True)
    scale, shift = model._scale.scale, model._scale.shift
    assert_allclose(mean, belief.mean[0] * scale + shift)
    assert_allclose(cov, (belief.cov[0] + own.noise) * np.outer(scale, scale))
    assert_array_equal(cov[:, ~np.eye(3, dtype=bool)], 0)


@each_way
def test_where_nobody_loses_it_is_full_transfer(fitted, way):
    model = fitted(way)
    for asked in ({}, {"include_noise": False}):
        assert_allclose(
            model.predict(X_NEW, return_std=True, **asked),
            full(model).predict(X_NEW, return_std=True, **asked),
        )


@each_way
def test_where_other_outputs_are_known_the_other_verdict_counts(fitted, way):
    """Rows: nothing known, the loser itself, another output, both: then it is read, not told."""
    observed = np.full((4, 3), np.nan)
    observed[[1, 3], 2], observed[[2, 3], 0] = 7.1, 0.4
    ask = {"observed": observed, "return_cov": True, "statistic": "mean"}
    blind, told = fitted(way, site=[2]), fitted(way, output=[2])
    transfer, alone = full(blind).predict(X_NEW, **ask), fitted(way, [2], [2]).predict(X_NEW, **ask)
    for model, own in [(blind, [True, True, False, True]), (told, [False, False, True, False])]:
        mean, cov = model.predict(X_NEW, **ask)
        assert_allclose(mean[:, 2], np.where(own, alone[0][:, 2], transfer[0][:, 2]))
        assert_allclose(cov[:, 2, 2], np.where(own, alone[1][:, 2, 2], transfer[1][:, 2, 2]))
        assert_allclose(mean[:, :2], transfer[0][:, :2])
        assert_array_equal(np.abs(cov[:, 2, 0]) < 1e-12, own)


def test_alone_it_still_hears_its_own_readings_there(fitted, apart):
    observed = np.full((4, 3), np.nan)
    observed[:2, 2], observed[:2, 0] = 7.3, 0.4
    told = fitted("one member", [2], [2]).predict(X_NEW, observed=observed, return_std=True)
    alone = apart.predict(X_NEW, observed=observed, return_std=True)
    assert_allclose(np.array(told)[..., 2], np.array(alone)[..., 2])
    assert not np.allclose(told[0][:, 2], apart.predict(X_NEW)[:, 2], rtol=1e-4)


@pytest.mark.parametrize("way", ["one member", "joined noise"])
def test_a_training_site_is_a_sample_whose_other_outputs_are_known(fitted, way):
    """Of sites 4 to 8 all but Cd was read."""
    model = fitted(way, site=[0])
    assert_allclose(model.predict(X[4:9]), full(model).predict(X[4:9]))
    model = fitted(way, output=[0])
    alone = fitted(way, [0], [0])
    assert_allclose(model.predict(X[4:9]), alone.predict(X[4:9]))
    assert not np.allclose(model.predict(X[4:9])[:, 0], full(model).predict(X[4:9])[:, 0])


def test_joined_noise_is_not_joined_to_who_is_alone(fitted):
    model = fitted("joined noise", site=[1], output=[1])
    observed = np.tile([0.4, np.nan, 7.2], (4, 1))
    for asked in ({}, {"observed": observed}):
        cov = model.predict(X_NEW, return_cov=True, **asked)[1]
        signals = model.predict(X_NEW, return_cov=True, include_noise=False, **asked)[1]
        noise = (cov - signals) / np.outer(model._scale.scale, model._scale.scale)
        assert_allclose(noise[:, 1], np.tile([0, model._apart.noise[1, 1], 0], (4, 1)), atol=1e-9)
        assert np.all(np.abs(noise[:, 0, 2]) > 1e-6)


@pytest.mark.parametrize("way", ["one member", "three members"])
def test_quantiles_and_chances_are_its_own_too(fitted, apart, way):
    model = fitted(way, site=[2])
    q, threshold = [0.05, 0.5, 0.9], Y.median().to_numpy()
    for ask, what in [("predict_quantiles", q), ("predict_exceedance", threshold)]:
        ours, alone, transfer = (
            getattr(each, ask)(X_NEW, what) for each in (model, apart, full(model))
        )
        assert_allclose(ours[..., 2], alone[..., 2], rtol=1e-8)
        assert_allclose(ours[..., :2], transfer[..., :2], rtol=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_cross_validation_is_of_what_is_predicted(fitted, apart, way):
    """By site and in groups the one verdict, by output the other."""
    if way == "neighbours":
        apart = copy(apart)
        apart.conditioning_ = 5
    model = fitted(way, site=[2], output=[1])
    groups = np.arange(30) % 3
    for by, lost in [("site", 2), (groups, 2), ("output", 1)]:
        ours, alone, transfer = (each.cross_validate(by) for each in (model, apart, full(model)))
        others = [d for d in range(3) if d != lost]
        for name in ("prediction", "std", "nlpd", "pit"):
            table = getattr(ours, name).to_numpy()
            assert_allclose(table[:, lost], getattr(alone, name).to_numpy()[:, lost], rtol=1e-6)
            expected = getattr(transfer, name).to_numpy()[:, others]
            assert_allclose(table[:, others], expected, rtol=1e-9)


@pytest.mark.parametrize("way", ["one member", "three members", "of a committee", "joined noise"])
def test_draws_are_of_what_is_predicted(fitted, way):
    """6 means and 14 covariances, each within 5 standard errors: once in 87,000 runs."""
    model, n = fitted(way, site=[2]), 8000
    x = X_NEW[:2]
    drawn = model.sample_y(x, n, random_state=1)
    mean, cov = model.predict(x, return_cov=True, statistic="mean")
    for site in range(2):
        apart = drawn[site].T - mean[site]
        products = apart[:, :, None] * apart[:, None, :]
        error = products.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(apart.mean(0)) < FIVE * np.sqrt(np.diag(cov[site]) / n))
        assert np.all(np.abs(products.mean(axis=0) - cov[site]) < FIVE * error)
    scaled = (drawn - mean[..., None]) / drawn.std(axis=-1, keepdims=True)
    across = np.mean(scaled[0, 2] * scaled[1, :2], axis=-1)  # of the loser with others, elsewhere
    assert np.all(np.abs(across) < FIVE / np.sqrt(n))


def test_draws_of_who_is_alone_are_joint_over_sites(fitted):
    """Of its own process: 10 covariances within 5 standard errors, once in 170,000 runs."""
    model, n = fitted("three members", site=[2]), 10_000
    own = model._apart
    mean, cov = condition_jointly(model._seen, X_NEW, own.kernels, own.W, own.noise)
    drawn = model.sample_y(X_NEW, n, random_state=2, include_noise=False)[:, 2]
    apart = (drawn - model._scale.shift[2]) / model._scale.scale[2] - mean[2][:, None]
    expected = cov[2, :, 2]
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n)
    assert np.all(np.abs(apart @ apart.T / n - expected) < FIVE * error)


def test_observed_rows_are_drawn_by_the_other_verdict(fitted):
    model = fitted("one member", site=[2])
    observed = np.tile([0.4, np.nan, np.nan], (4, 1))
    ask = {"observed": observed, "random_state": 3}
    drawn = model.sample_y(X_NEW, 4000, **ask)
    mean, std = full(model).predict(X_NEW, observed=observed, return_std=True)
    assert np.all(np.abs(drawn.mean(axis=-1) - mean) < FIVE * std / np.sqrt(4000))


# --- who loses is found by fit


def test_fit_finds_the_output_that_has_nothing_to_do_with_the_others():
    """Seed 3 of eight tried; with few sites the others may be thought to gain nothing, too."""
    X, Y = related(3)
    safe = EMGPR.paper(**QUICK, batch_size=None, transfer="safe").fit(X, Y)
    assert safe.alone_ == {"site": ["pH"], "output": ["pH"]}
    plain = EMGPR.paper(**QUICK, batch_size=None).fit(X, Y)
    alone = IndependentGP(KERNEL, n_restarts=1, random_state=0).fit(X, Y)
    told = [each.predict(X_NEW, return_std=True) for each in (safe, plain, alone)]
    ours, transfer, apart = np.array(told)
    assert_allclose(ours[..., 2], apart[..., 2], rtol=1e-6)
    assert_allclose(ours[..., :2], transfer[..., :2])


@pytest.mark.parametrize("seed", [0, 2])
def test_it_is_those_whose_score_is_not_lower_beyond_doubt(seed):
    """By more than a standard error of the difference, over the readings of the output."""
    X, Y = related(seed)
    Y.iloc[::4, 0] = np.nan
    model = EMGPR.paper(**QUICK, batch_size=None, transfer="safe").fit(X, Y)
    alone = IndependentGP(KERNEL, n_restarts=1, random_state=0).fit(X, Y)
    for by in ("site", "output"):
        gain = alone.cross_validate(by).crps - full(model).cross_validate(by).crps
        lost = ~(gain.mean() > gain.sem())
        assert model.alone_[by] == lost.index[lost].tolist()


def test_copies_of_one_output_are_worth_sharing():
    X, Y = related(1)
    noise = 0.3 * np.random.default_rng(2).normal(size=(30, 3))
    copies = Y[["Cd", "Cd", "Cd"]].to_numpy() + noise
    model = EMGPR.paper(**QUICK, batch_size=None, transfer="safe").fit(X, copies)
    assert model.alone_["output"] == []


def test_through_transforms_it_is_on_the_users_scale():
    X, Y = related(5, N=40)
    positive = np.exp((Y - Y.mean()) / Y.std())
    settings = QUICK | {"kernel": RBF(0.2, "fixed"), "transform": "log"}
    model = EMGPR.paper(**settings, batch_size=None, transfer="safe").fit(X, positive)
    model._lost = {"site": np.array([2]), "output": np.array([2])}
    alone = IndependentGP(RBF(0.2, "fixed"), transform="log", n_restarts=1, random_state=0)
    alone.fit(X, positive)
    for statistic in ("median", "mean"):
        ours, apart = (
            np.array(each.predict(X_NEW, return_std=True, statistic=statistic))[..., 2]
            for each in (model, alone)
        )
        assert_allclose(ours, apart, rtol=1e-6)
