"""Predictions in original units, block by block."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr import IndependentGP, predictor
from emgpr.parallel import Execution
from emgpr.prediction import LMCPosterior
from emgpr.predictor import Predictor
from emgpr.statistics import requested
from emgpr.transforms import OutputScaler
from tests.simulated import smooth_table

X, Y = smooth_table(np.random.default_rng(5), N=20)
Y[3, 1] = np.nan
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(20)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)


@pytest.fixture(scope="module")
def model():
    settings = {"output_transform": None, "random_state": 0}
    return IndependentGP(RBF(0.4, "fixed"), **settings).fit(SITES, METALS)


@pytest.fixture
def pieces(model):
    return Predictor(model.input_spec_, model.output_scaler_, model.posterior_, Execution())


@pytest.fixture
def blocks_of_7(monkeypatch):
    """Predict seven rows at a time, and return the numbers of rows that were predicted."""
    sizes = []
    predict = LMCPosterior.predict

    def counted(self, x, *args, **options):
        sizes.append(len(x))
        return predict(self, x, *args, **options)

    monkeypatch.setattr(LMCPosterior, "predict", counted)
    monkeypatch.setattr(
        predictor,
        "chunks",
        lambda n, *_, **__: [range(i, min(i + 7, n)) for i in range(0, n, 7)],
    )
    return sizes


PREDICTIONS = {
    "frame": lambda model: model.predict_frame(SITES, quantiles=[0.9]),
    "median": lambda model: model.predict(SITES),
    "mean": lambda model: model.predict(SITES, statistic="mean", include_noise=False),
    "std": lambda model: np.hstack(model.predict(SITES, return_std=True)),
    "cov": lambda model: model.predict(SITES, return_cov=True)[1],
    "quantiles": lambda model: model.predict_quantiles(SITES, [0.1, 0.9]),
    "exceedance": lambda model: model.predict_exceedance(SITES, {"Ni": 0.25}),
}


@pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS)
def test_blocks_of_rows_are_predicted_one_after_another(model, prediction, request):
    whole = prediction(model)
    sizes = request.getfixturevalue("blocks_of_7")
    assert_allclose(prediction(model), whole, rtol=1e-12)
    assert sizes == [7, 7, 6]


def test_observed_outputs_inform_all_rows_and_are_not_divided_into_blocks(model, request):
    observed = np.full((len(SITES), 3), np.nan)
    observed[0, 1] = 520.0
    whole = model.predict(SITES, observed=observed)
    sizes = request.getfixturevalue("blocks_of_7")
    assert_array_equal(model.predict(SITES, observed=observed), whole)
    assert sizes == [20]
    assert np.any(whole[8:, 1] != model.predict(SITES)[8:, 1])


def test_progress_counts_blocks_if_verbose(pieces, monkeypatch, capsys):
    monkeypatch.setattr(predictor, "PROGRESS_LOCATIONS", 10)
    loud = Predictor(pieces.inputs, pieces.scaler, pieces.posterior, Execution(verbose=1))
    loud.evaluate(SITES, [OutputScaler.median])
    assert "Predicting: blocks of locations" in capsys.readouterr().err
    pieces.evaluate(SITES, [OutputScaler.median])
    assert capsys.readouterr().err == ""


def test_the_distribution_is_on_the_standardised_scale(model, pieces):
    distribution = pieces.distribution(SITES)
    mean, std = model.predict(SITES, return_std=True)
    assert_allclose(pieces.scaler.to_original(distribution.mean[0]), mean)
    own = np.sqrt(np.einsum("mdd->md", distribution.cov[0])) * pieces.scaler.scale
    assert_allclose(own, std)


def test_observed_outputs_are_standardised_and_checked_for_codes(pieces):
    given = pd.DataFrame({"Ni": [500.0, np.nan]})
    z = pieces.read_observed(given, 2)
    assert np.isnan(z[:, [0, 2]]).all()
    assert_allclose(pieces.scaler.to_original(z)[0, 1], 500.0)
    assert pieces.read_observed(None, 2) is None
    with pytest.warns(UserWarning, match="observed 'Ni' contains -9999"):
        pieces.read_observed(pd.DataFrame({"Ni": [-9999.0, 500.0]}), 2)


def test_a_worker_predicts_the_same_alone(pieces):
    worker = Predictor(
        pieces.inputs, pieces.scaler, pieces.posterior, Execution(n_jobs=2, verbose=1)
    ).for_worker()
    assert (worker.execution.n_jobs, worker.execution.verbose) == (1, 0)
    values = [one.evaluate(SITES, [OutputScaler.std])[0] for one in (pieces, worker)]
    assert_array_equal(*values)


def test_columns_of_a_frame_are_named_once(pieces):
    statistics = requested(pieces.scaler.names, quantiles=[0.5], exceedance={"Zn": -1.0})
    columns = pieces.frame_columns(statistics)
    assert columns == [
        "Cd", "Cd_std", "Cd_q0.5", "Ni", "Ni_std", "Ni_q0.5", "Zn", "Zn_std", "Zn_q0.5",
        "Zn_above_-1",
    ]  # fmt: skip
    values = pieces.frame_values(SITES, statistics)
    assert values.shape == (20, len(columns))
    assert_allclose(values[:, 2], values[:, 0])
    twice = requested(pieces.scaler.names, quantiles=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"columns with the names \['Cd_q0.5', .*rename an output"):
        pieces.frame_columns(twice)


def test_samples_are_in_original_units(pieces):
    samples = pieces.sample(SITES[:2], 400, 0)
    assert samples.shape == (2, 3, 400)
    (std,) = pieces.evaluate(SITES[:2], [OutputScaler.std])
    (mean,) = pieces.evaluate(SITES[:2], [OutputScaler.mean])
    assert np.all(np.abs(samples.mean(axis=-1) - mean[0]) < 5 * std[0] / np.sqrt(400))
