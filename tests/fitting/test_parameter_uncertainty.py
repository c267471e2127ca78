"""The uncertainty of the parameters of a fitted model: from the fit to predictions and files."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP, ModelFileError
from emgpr.fitting.output_order import OutputOrder
from emgpr.fitting.parameter_uncertainty import (
    average_covariance,
    mean_covariance,
    with_parameter_uncertainty,
)
from emgpr.model_files.lmc_state import check_lmc_state, lmc_state
from emgpr.noise import output_variances
from emgpr.prediction import LMCModel
from emgpr.prediction.joint_samples import sample_gaussian
from emgpr.weights import ParameterVector
from tests.simulated import lmc_posterior, some_directions, start_of, world

pytestmark = pytest.mark.slow


def fitted_parts(rng, **settings):
    """A posterior, an information matrix and the vector of its parameters."""
    made = world(rng, **settings)
    correlated = settings.get("correlated", False)
    posterior = lmc_posterior(made)
    vector = ParameterVector.around(start_of(made), made.observations, correlated=correlated)
    p = len(vector.pack(start_of(made), made.W[None]))
    A = rng.normal(size=(p, p))
    return posterior, 100.0 * A @ A.T / p, vector


def an_uncertain_model(rng):
    """A fitted estimator whose posterior has directions."""
    X = rng.uniform(size=(25, 2))
    Y = np.exp(np.sin(4 * X @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(25, 3)))
    settings = {"output_transform": "log", "transfer": "full", "n_latents": 2, "rank": 1}
    model = EMGPR(RBF(), random_state=0, n_restarts=1, **settings).fit(X, Y)
    posterior = model.posterior_
    model.posterior_ = replace(
        posterior,
        directions=some_directions(rng, posterior.model, means=True),
        independent_directions=some_directions(rng, posterior.independent, means=True),
    )
    return model, X, Y


@pytest.mark.parametrize("correlated", [False, True])
def test_predictions_become_less_certain(rng, correlated):
    posterior, information, vector = fitted_parts(rng, correlated=correlated)
    uncertain = with_parameter_uncertainty(posterior, information, vector)
    x = rng.uniform(size=(5, 2))
    more = uncertain.predict(x).cov - posterior.predict(x).cov
    assert (np.einsum("mdd->md", more[0]) > 0).all()
    alone = (
        uncertain.without_transfer().predict(x).cov - posterior.without_transfer().predict(x).cov
    )
    assert (np.einsum("mdd->md", alone[0]) > 0).all()
    assert_allclose(alone[0][:, 0, 1], 0.0, atol=1e-12)


def test_without_an_information_matrix_nothing_changes(rng):
    posterior, information, vector = fitted_parts(rng)
    assert with_parameter_uncertainty(posterior, None, vector) is posterior
    assert with_parameter_uncertainty(posterior, np.nan * information, vector) is posterior
    several = replace(posterior, model=LMCModel(
        posterior.model.kernels, np.tile(posterior.model.weights, (2, 1, 1, 1)),
        posterior.model.noise,
    ))  # fmt: skip
    assert with_parameter_uncertainty(several, information, vector) is several


def test_fixed_parameters_are_known(rng):
    posterior, information, vector = fitted_parts(rng)
    free = np.ones(vector.start.W.shape, bool)
    free[0, 1] = False
    bounds = vector.bounds.copy()
    bounds[0] = vector.bounds[0, 0]
    vector = replace(vector, start=replace(vector.start, free=free), bounds=bounds)
    directions = with_parameter_uncertainty(posterior, information, vector).directions
    assert not directions.W[:, 0, 1].any()
    assert directions.W[:, 0, 0].any()
    assert not directions.theta[:, 0].any()


def test_the_order_of_the_columns_is_restored(rng):
    made = world(rng, missing=0.2)
    posterior = lmc_posterior(made)
    posterior = replace(
        posterior,
        directions=some_directions(rng, made.model),
        independent_directions=some_directions(rng, posterior.independent),
    )
    columns = np.array([1, 2, 0])
    restored = OutputOrder(columns).restored_posterior(posterior)
    x = rng.uniform(size=(4, 2))
    for before, after in (
        (posterior, restored),
        (posterior.without_transfer(), restored.without_transfer()),
    ):
        cov = after.predict(x).cov[:, :, columns[:, None], columns]
        assert_allclose(cov, before.predict(x).cov, rtol=1e-8)


def test_models_are_saved_and_pickled_with_their_uncertainty(rng, tmp_path):
    model, X, _ = an_uncertain_model(rng)
    model.save(tmp_path / "a.emgpr")
    for other in (emgpr.load(tmp_path / "a.emgpr"), pickle.loads(pickle.dumps(model))):
        for name in ("directions", "independent_directions"):
            found, kept = getattr(other.posterior_, name), getattr(model.posterior_, name)
            for part in ("theta", "W", "noise", "mean", "inflation"):
                assert_array_equal(getattr(found, part), getattr(kept, part))
        assert_array_equal(
            other.predict(X + 0.01, return_std=True)[1], model.predict(X + 0.01, return_std=True)[1]
        )


def test_files_with_invalid_directions_are_refused(rng, tmp_path):
    model, _, _ = an_uncertain_model(rng)
    posterior = model.posterior_
    wrong = {
        "theta": posterior.directions.theta[:, :1],
        "W": np.repeat(posterior.directions.W, 2, axis=3),
        "noise": posterior.directions.noise + np.triu(np.ones((3, 3)), 1),
        "inflation": np.array([1.0, 0.9, 1.0]),
    }
    for name, value in wrong.items():
        changed = replace(posterior.directions, **{name: value})
        model.posterior_ = replace(posterior, directions=changed)
        with pytest.raises(ModelFileError, match="directions"):
            model.save(tmp_path / "b.emgpr")


def test_files_without_uncertain_means_can_be_read(rng):
    model, _, _ = an_uncertain_model(rng)
    state = lmc_state(
        model.get_params(), model.input_spec_, model.output_scaler_, model.resolved_params_,
        model.posterior_, model.fit_summary_,
    )  # fmt: skip
    for name in ("directions", "own_directions"):
        for part in ("mean", "inflation"):
            del state[name][part]
    check_lmc_state(state)
    for name in ("directions", "own_directions"):
        assert not state[name]["mean"].any()
        assert_array_equal(state[name]["inflation"], 1.0)


def test_the_covariance_of_the_means_is_that_of_averages(rng):
    """From 4000 simulated tables with gaps; 5 standard errors: a false alarm in 300,000 runs."""
    made = world(rng, N=8, correlated=True, missing=0.3)
    (W,), observed = made.model.weights, ~np.isnan(made.Y)
    n, D = 4000, len(made.noise)
    y = sum(
        np.einsum(
            "dk,nik->nid", W[q], sample_gaussian(kernel(made.X), n * W.shape[2], rng)
            .reshape(n, W.shape[2], 8).swapaxes(1, 2),
        )
        for q, kernel in enumerate(made.kernels)
    )  # fmt: skip
    y = y + rng.normal(size=(n, 8, D)) @ np.linalg.cholesky(made.noise).T
    averages = (y * observed).sum(axis=1) / observed.sum(axis=0)
    V = average_covariance(made.observations, made.model)
    error = np.sqrt((V**2 + np.outer(np.diagonal(V), np.diagonal(V))) / n)
    assert (np.abs(averages.T @ averages / n - V) < 5 * error).all()


def test_means_are_no_more_uncertain_than_readings_vary(rng):
    """The posterior precision of the means is that of the averages plus that of the prior."""
    made = world(rng, N=8, correlated=True, missing=0.3)
    V = average_covariance(made.observations, made.model)
    S = np.diag(output_variances(made.observations))
    found = mean_covariance(made.observations, made.model)
    assert_allclose(np.linalg.inv(found), np.linalg.inv(V) + np.linalg.inv(S), rtol=1e-8)


def test_means_are_known_without_normalisation(rng):
    X = rng.uniform(size=(20, 1))
    Y = np.sin(6 * X) + 0.1 * rng.normal(size=(20, 1))
    for normalize_y in (True, False):
        model = IndependentGP(RBF(), normalize_y=normalize_y, n_restarts=1).fit(X, Y)
        assert model.posterior_.directions.mean.any() == normalize_y


def test_statistics_in_original_units_are_less_certain(rng):
    model, X, _ = an_uncertain_model(rng)
    x = X + 0.03
    known = pickle.loads(pickle.dumps(model))
    known.posterior_ = replace(known.posterior_, directions=None)
    assert (model.predict(x, return_std=True)[1] > known.predict(x, return_std=True)[1]).all()
    widths = [np.subtract(*each.predict_quantiles(x, [0.975, 0.025])) for each in (model, known)]
    assert (widths[0] > widths[1]).all()
    observed = np.full((25, 3), np.nan)
    observed[:, 0] = 1.0
    uncertain, certain = (
        each.predict(x, observed=observed, return_std=True)[1] for each in (model, known)
    )
    assert (uncertain[:, 1:] >= certain[:, 1:]).all()


def test_the_setting_exists_in_the_whole_family_and_is_off_in_the_paper():
    for Estimator in (EMGPR, IndependentGP, ICM, SLFM, LMC):
        assert Estimator().parameter_uncertainty is True
        assert Estimator(parameter_uncertainty=False).fit_settings().parameter_uncertainty is False
    assert EMGPR.paper().parameter_uncertainty is False


def test_the_setting_is_true_or_false():
    with pytest.raises(ValueError, match="parameter_uncertainty='yes'"):
        EMGPR(parameter_uncertainty="yes").fit_settings()
