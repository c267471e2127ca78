"""Predictions of a fitted estimator: centres, spreads, quantiles, samples, frames and scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.ensemble import mixture
from emgpr.prediction import condition
from tests.simulated import paper, smooth_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(0.4, "fixed") + WhiteKernel(0.1, "fixed")
QUICK = {"kernel": KERNEL, "max_iter": 8, "n_restarts": 1, "random_state": 0}
RNG = np.random.default_rng(11)
X, LEVELS = smooth_table(RNG, N=27)
Y = np.exp(0.5 * (LEVELS - LEVELS.mean(0)) / LEVELS.std(0)) * [1.0, 100.0, 0.01]
X_NEW = RNG.uniform(size=(4, 2))
OBSERVED = np.full((4, 3), np.nan)
OBSERVED[:3, 0] = Y[:3, 0]
OBSERVED[1, 2] = Y[1, 2]
FIVE = 5  # standard errors
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(27)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)
METALS.iloc[3, 1] = np.nan
OPTIONS = {
    "readings": {},
    "signals": {"include_noise": False},
    "observed": {"observed": OBSERVED},
}
CASES = [
    ("none", 1, "readings"),
    ("log", 1, "readings"),
    ("one each", 3, "readings"),
    ("one each", 3, "signals"),
    ("one each", 3, "observed"),
]
each_case = pytest.mark.parametrize(("transform", "members", "options"), CASES)


@pytest.fixture(scope="module")
def fitted():
    """Models by transform and number of members, each fitted once."""
    transforms = {"none": None, "log": "log", "one each": [None, "log", "normal-score"]}
    made = {}

    def model(transform="none", members=1):
        if (transform, members) not in made:
            made[transform, members] = paper(
                **QUICK, output_transform=transforms[transform], batch_size=27 // members
            ).fit(X, Y)
            assert len(made[transform, members].weights_) == members
        return made[transform, members]

    return model


@pytest.fixture(scope="module")
def one_output():
    """A model of a 1-D y."""
    return paper(**QUICK, output_transform="log").fit(X, Y[:, 0])


@pytest.fixture(scope="module")
def framed():
    """A model of frames with names and an index."""
    return IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS)


# --- centre and spread


def test_the_diagonal_of_the_covariance_is_the_variance(fitted):
    model = fitted(members=3)
    mean, cov = model.predict(X_NEW, return_cov=True)
    same, std = model.predict(X_NEW, return_std=True)
    assert cov.shape == (4, 3, 3)
    assert_array_equal(mean, same)
    assert_array_equal(mean, model.predict(X_NEW))
    assert_allclose(np.einsum("mdd->md", cov), std**2)
    assert np.all(np.linalg.eigvalsh(cov) > 0)


def test_return_std_and_return_cov_exclude_each_other(fitted):
    with pytest.raises(ValueError, match="return_std and return_cov are both True"):
        fitted().predict(X_NEW, return_std=True, return_cov=True)


def test_an_ensemble_predicts_the_mixture_of_its_members_in_original_units(fitted):
    model = fitted(members=3)
    standardised = (Y - Y.mean(0)) / Y.std(0)
    observations, lmc = model.posterior_.observations, model.posterior_.model
    assert_allclose(observations.y, standardised.T, atol=1e-7)  # the mean has eight digits
    signals = condition(observations, X_NEW, lmc)
    mean, cov = mixture(signals.mean, signals.cov)
    cov = cov + np.diag(model.noise_)
    predicted = model.predict(X_NEW, return_cov=True, statistic="mean")
    assert_allclose(predicted[0], mean * Y.std(0) + Y.mean(0))
    assert_allclose(predicted[1], cov * np.outer(Y.std(0), Y.std(0)))


def test_a_prediction_does_not_depend_on_the_other_rows(fitted):
    model = fitted(members=3)
    assert_allclose(model.predict(X_NEW)[2:3], model.predict(X_NEW[2:3]), rtol=1e-10)


def test_one_gaussian_without_a_transform_has_one_centre(fitted):
    model = fitted()
    median, mean = (model.predict(X_NEW, statistic=s) for s in ("median", "mean"))
    assert_allclose(median, mean, rtol=1e-12)
    assert_array_equal(model.predict(X_NEW), median)


@pytest.mark.parametrize(("transform", "members"), [("none", 3), ("log", 1), ("one each", 3)])
def test_mean_and_std_are_integrals_of_the_quantiles(fitted, transform, members):
    model = fitted(transform, members)
    edges = norm.cdf(np.linspace(-7, 7, 1401))
    q = norm.cdf(np.linspace(-6.995, 6.995, 1400))
    values = model.predict_quantiles(X_NEW, q)
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean")
    assert_allclose(np.einsum("k,kmd->md", np.diff(edges), values), mean, rtol=1e-4)
    squares = np.einsum("k,kmd->md", np.diff(edges), (values - mean) ** 2)
    assert_allclose(np.sqrt(squares), std, rtol=2e-3)


def test_of_logs_the_median_is_that_of_the_log_and_the_mean_is_above_it():
    small = LEVELS / LEVELS.std(axis=0) * 0.5
    settings = {"kernel": RBF(0.3, "fixed"), "random_state": 0}
    of_logs = IndependentGP(**settings, output_transform=None).fit(X, small)
    model = IndependentGP(**settings, output_transform="log").fit(X, np.exp(small))
    log_mean, log_std = of_logs.predict(X_NEW, return_std=True)
    median, std = model.predict(X_NEW, return_std=True)
    assert_allclose(median, np.exp(log_mean))
    mean = np.exp(log_mean + log_std**2 / 2)
    assert_allclose(model.predict(X_NEW, statistic="mean"), mean)
    assert_allclose(std, mean * np.sqrt(np.expm1(log_std**2)))
    observed = RNG.normal(size=(4, 3)) * 0.5  # in original units
    assert_allclose(
        model.predict(X_NEW, observed=np.exp(observed)),
        np.exp(of_logs.predict(X_NEW, observed=observed)),
    )


@pytest.mark.parametrize("statistic", ["mode", None])
def test_an_unknown_centre_is_refused(fitted, statistic):
    with pytest.raises(ValueError, match=f"statistic={statistic!r}; expected 'median' or 'mean'"):
        fitted().predict(X_NEW, statistic=statistic)


def test_outputs_observed_with_a_one_dimensional_y_may_be_a_vector(one_output):
    vector = np.array([1.0, np.nan, 2.0, np.nan])
    informed = one_output.predict(X_NEW, observed=vector)
    assert informed.shape == (4,)
    assert_allclose(informed, one_output.predict(X_NEW, observed=vector[:, None]))
    assert not np.allclose(informed, one_output.predict(X_NEW))


# --- quantiles and exceedance


def test_quantiles_have_one_table_for_each_probability(fitted, one_output):
    assert fitted().predict_quantiles(X_NEW, 0.9).shape == (4, 3)
    assert fitted().predict_quantiles(X_NEW, [0.9]).shape == (1, 4, 3)
    assert fitted().predict_quantiles(X_NEW, []).shape == (0, 4, 3)
    assert fitted().predict_quantiles(X_NEW, np.array([0.1, 0.9])).shape == (2, 4, 3)
    assert one_output.predict_quantiles(X_NEW, 0.9).shape == (4,)
    assert one_output.predict_quantiles(X_NEW, [0.1, 0.9]).shape == (2, 4)


def test_quantiles_of_one_gaussian_are_scipys(fitted):
    model, q = fitted(), np.array([0.9, 0.01, 0.5])
    mean, std = model.predict(X_NEW, return_std=True)
    expected = mean + norm.ppf(q)[:, None, None] * std
    assert_allclose(model.predict_quantiles(X_NEW, q), expected, rtol=1e-10)
    assert_allclose(model.predict_quantiles(X_NEW, 0.01), expected[1], rtol=1e-10)


@each_case
def test_quantiles_increase_and_the_middle_one_is_the_prediction(
    fitted, transform, members, options
):
    model, options = fitted(transform, members), OPTIONS[options]
    values = model.predict_quantiles(X_NEW, [0.05, 0.3, 0.5, 0.7, 0.95], **options)
    assert np.all(np.diff(values, axis=0) > 0)
    assert_allclose(values[2], model.predict(X_NEW, **options), rtol=1e-9)


def test_intervals_are_shorter_for_signals_and_with_observed_outputs(fitted):
    readings, signals, observed = (
        np.diff(fitted().predict_quantiles(X_NEW, [0.1, 0.9], **options), axis=0)[0]
        for options in OPTIONS.values()
    )
    assert np.all(signals < readings)
    assert np.all(observed < readings)


@pytest.mark.parametrize("q", [0, 1, -0.1, np.nan, [0.5, 1.0]])
def test_q_outside_0_and_1_is_refused(fitted, q):
    with pytest.raises(ValueError, match=r"q=.*; expected probabilities between 0 and 1"):
        fitted().predict_quantiles(X_NEW, q)


def test_q_with_two_axes_is_refused(fitted):
    with pytest.raises(ValueError, match=r"q has shape \(1, 1\); expected a probability or"):
        fitted().predict_quantiles(X_NEW, [[0.5]])


@each_case
def test_a_quantile_is_exceeded_with_its_probability(fitted, transform, members, options):
    model, options = fitted(transform, members), OPTIONS[options]
    low, high = model.predict_quantiles(X_NEW, [0.05, 0.8], **options)
    chances = model.predict_exceedance(X_NEW, [low[1, 0], high[1, 1], high[1, 2]], **options)
    assert_allclose(chances[1], [0.95, 0.2, 0.2], atol=1e-7)


def test_thresholds_are_one_for_all_one_for_each_or_by_name(fitted, one_output):
    model = fitted("one each", 3)
    every = model.predict_exceedance(X_NEW, 1.0)
    assert every.shape == (4, 3)
    assert_array_equal(every, model.predict_exceedance(X_NEW, [1.0, 1.0, 1.0]))
    higher = model.predict_exceedance(X_NEW, [1.5, 1.0, 1.0])
    assert np.all(higher[:, 0] < every[:, 0])
    assert_array_equal(higher[:, 1:], every[:, 1:])
    by_name = model.predict_exceedance(X_NEW, {model.output_names_[0]: 1.5})
    assert_array_equal(by_name[:, 0], higher[:, 0])
    assert np.isnan(by_name[:, 1:]).all()
    single = one_output.predict_exceedance(X_NEW, 1.0)
    assert single.shape == (4,)
    assert_array_equal(single, one_output.predict_exceedance(X_NEW, [1.0]))


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ([1.0, 2.0], r"threshold has shape \(2,\); expected one .* or 3: one for each"),
        (np.ones((1, 3)), r"threshold has shape \(1, 3\)"),
        ({"Pb": 1.0}, r"threshold has thresholds for \['Pb'\]; expected names of outputs"),
    ],
)
def test_thresholds_of_other_outputs_are_refused(fitted, threshold, message):
    with pytest.raises(ValueError, match=message):
        fitted().predict_exceedance(X_NEW, threshold)


# --- samples


def test_samples_have_scikit_learns_shape(fitted, one_output):
    assert fitted().sample_y(X_NEW).shape == (4, 3, 1)
    assert fitted("one each", 3).sample_y(X_NEW, 7).shape == (4, 3, 7)
    assert fitted().sample_y(X_NEW, np.int64(2)).shape == (4, 3, 2)
    assert one_output.sample_y(X_NEW, n_samples=7).shape == (4, 7)


def test_a_seed_gives_the_same_samples(fitted):
    model = fitted("one each", 3)
    first = model.sample_y(X_NEW, 5, random_state=3)
    assert_array_equal(first, model.sample_y(X_NEW, 5, random_state=3))
    assert not np.array_equal(first, model.sample_y(X_NEW, 5, random_state=4))
    assert_array_equal(model.sample_y(X_NEW, 5), model.sample_y(X_NEW, 5, random_state=0))
    unseeded = [model.sample_y(X_NEW, 5, random_state=None) for _ in range(2)]
    assert not np.array_equal(*unseeded)


@each_case
def test_samples_are_distributed_as_predicted(fitted, transform, members, options):
    """Shares below three quantiles, means and variances of 4 × 3 values, each within 5
    standard errors. No false alarm in 60 seeds of readings by each of 14 models."""
    n, model, options = 3000, fitted(transform, members), OPTIONS[options]
    samples = model.sample_y(X_NEW, n, random_state=1, **options)
    q = np.array([0.1, 0.5, 0.9])
    values = model.predict_quantiles(X_NEW, q, **options)
    below = (samples < values[..., None]).mean(axis=-1)
    error = np.sqrt(q * (1 - q) / n)[:, None, None]
    assert np.all(np.abs(below - q[:, None, None]) < FIVE * error)
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean", **options)
    assert np.all(np.abs(samples.mean(axis=-1) - mean) < FIVE * std / np.sqrt(n))
    squares = (samples - mean[..., None]) ** 2
    assert np.all(np.abs(squares.mean(-1) - std**2) < FIVE * squares.std(-1) / np.sqrt(n))


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_a_number_of_samples_below_1_is_refused(fitted, n):
    with pytest.raises(ValueError, match=f"n_samples={n!r}; expected a whole number of at least 1"):
        fitted().sample_y(X_NEW, n)


# --- names, shapes and frames


def test_a_frame_gives_the_numbers_of_an_array(framed):
    plain = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(X, METALS.to_numpy())
    assert_allclose(framed.predict(SITES), plain.predict(X), rtol=1e-10)
    assert list(plain.predict_frame(X[:1])) == ["0", "0_std", "1", "1_std", "2", "2_std"]
    assert not hasattr(plain, "feature_names_in_")


def test_names_of_columns_are_attributes(framed):
    assert_array_equal(framed.feature_names_in_, ["east", "north"])
    assert framed.output_names_ == ["Cd", "Ni", "Zn"]
    assert (framed.n_features_in_, framed.n_outputs_) == (2, 3)


def test_predict_frame_has_names_index_and_standard_deviations(framed):
    known = METALS[["Zn"]][5:9] + 0.001
    for options in ({}, {"observed": known, "include_noise": False}):
        frame = framed.predict_frame(SITES[5:9], **options)
        assert list(frame.columns) == ["Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
        assert list(frame.index) == ["site 5", "site 6", "site 7", "site 8"]
        mean, std = framed.predict(SITES[5:9], return_std=True, **options)
        assert_array_equal(frame[["Cd", "Ni", "Zn"]], mean)
        assert_array_equal(frame[["Cd_std", "Ni_std", "Zn_std"]], std)


def test_predict_frame_has_columns_for_quantiles_and_exceedance(framed):
    frame = framed.predict_frame(SITES[:4], quantiles=[0.05, 0.95], exceedance={"Ni": 0.25})
    assert [name for name in frame if name.startswith("Ni")] == [
        "Ni", "Ni_std", "Ni_q0.05", "Ni_q0.95", "Ni_above_0.25",
    ]  # fmt: skip
    assert [name for name in frame if "above" in name] == ["Ni_above_0.25"]
    assert_array_equal(frame["Zn_q0.95"], framed.predict_quantiles(SITES[:4], 0.95)[:, 2])
    assert_array_equal(frame["Ni_above_0.25"], framed.predict_exceedance(SITES[:4], 0.25)[:, 1])
    with pytest.raises(ValueError, match=r"quantiles=\[5, 95\]; expected .* between 0 and 1"):
        framed.predict_frame(SITES[:4], quantiles=[5, 95])


def test_outputs_whose_columns_would_clash_are_refused():
    names = METALS.set_axis(["Cd", "Cd_std", "Zn"], axis=1)
    model = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, names)
    with pytest.raises(ValueError, match=r"columns with the names \['Cd_std'\].*rename an output"):
        model.predict_frame(SITES)


def test_predictions_have_the_shape_of_y():
    models = [
        IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, y)
        for y in (METALS["Zn"], METALS[["Zn"]])
    ]
    vector, column = (model.predict(SITES[:4], return_std=True) for model in models)
    assert [part.shape for part in vector] == [(4,), (4,)]
    assert [part.shape for part in column] == [(4, 1), (4, 1)]
    assert_array_equal(vector[0], column[0][:, 0])
    assert list(models[0].predict_frame(SITES[:2])) == ["Zn", "Zn_std"]


# --- scores


def test_the_score_is_r2_over_the_readings_of_each_output(framed):
    truth, mean = METALS.to_numpy(), framed.predict(SITES)
    r2 = 1 - np.nansum((truth - mean) ** 2, axis=0) / np.nansum(
        (truth - np.nanmean(truth, axis=0)) ** 2, axis=0
    )
    assert_allclose(framed.score(SITES, METALS), r2.mean())
    assert_allclose(framed.score(SITES, METALS[["Zn", "Cd", "Ni"]]), r2.mean())  # found by name


def test_the_score_takes_weights(framed):
    half = np.r_[np.ones(13), np.zeros(14)]
    assert_allclose(
        framed.score(SITES, METALS, sample_weight=half), framed.score(SITES[:13], METALS[:13])
    )


def test_an_output_without_readings_does_not_count_in_the_score(framed):
    fold = METALS[:8].assign(Zn=np.nan)
    two = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS[["Cd", "Ni"]])
    assert_allclose(framed.score(SITES[:8], fold), two.score(SITES[:8], fold[["Cd", "Ni"]]))


def test_the_score_of_another_number_of_outputs_is_refused(framed):
    with pytest.raises(ValueError, match=r"y has 2 columns; expected 3 outputs"):
        framed.score(SITES, METALS[["Cd", "Ni"]])


# --- the fitted estimator


def test_an_estimator_that_is_not_fitted_says_so():
    model = EMGPR()
    for method in (
        lambda: model.predict(X_NEW),
        lambda: model.predict_quantiles(X_NEW, 0.5),
        lambda: model.predict_exceedance(X_NEW, 1.0),
        lambda: model.predict_frame(X_NEW),
        lambda: model.sample_y(X_NEW),
        lambda: model.predict_grid(1.0),
        lambda: model.save("model"),
    ):
        with pytest.raises(NotFittedError):
            method()
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(AttributeError, match="This EMGPR is not fitted yet"):
        _ = model.output_names_


def test_a_pickled_model_predicts_the_same(fitted):
    model = fitted("one each", 3)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X_NEW), model.predict(X_NEW))
    assert again.get_params()["output_transform"] == [None, "log", "normal-score"]
