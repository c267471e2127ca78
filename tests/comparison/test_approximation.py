"""What the approximations of a model cost, measured against an exact model."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR, ICM, IndependentGP
from emgpr.comparison import approximation
from emgpr.latents import Borrowed, PoE
from tests.simulated import with_weights, world

pytestmark = pytest.mark.slow

MADE = world(np.random.default_rng(5), N=260, D=2, Q=2, k=1, missing=0.2, noise=0.05)
Split = approximation._Split


def frames(made=MADE):
    X = pd.DataFrame(made.X, columns=["east", "north"])
    Y = pd.DataFrame(made.Y, columns=["Cd", "Zn"])
    read = Y.notna().any(axis=1)
    return X[read], Y[read]


def paper(**changes):
    settings = {"latent_learner": PoE(60, 2), "conditioning": 8, "batch_size": 40, "n_members": 3}
    return EMGPR.paper(random_state=0, **(settings | changes))


@pytest.fixture(scope="module")
def model():
    return paper().fit(*frames())


@pytest.fixture(scope="module")
def report(model):
    return model.approximation_report(200)


def test_the_table_summarises_the_predictions(report):
    table, found = report.table, report.found
    assert list(table.index) == [(o, loss) for o in ("Cd", "Zn") for loss in ("mae", "nlpd")]
    for (output, loss), row in table.iterrows():
        there = found["exact"].truth[output].notna()
        assert row["n"] == there.sum()
        for way, column in (("fitted", "fitted"), ("from all", "from_all"), ("exact", "exact")):
            own = found[way]
            values = own.residual[output].abs() if loss == "mae" else own.nlpd[output]
            assert row[column] == pytest.approx(values[there].mean())
        assert row["difference"] == pytest.approx(row["fitted"] - row["exact"])
        assert row["difference"] == pytest.approx(row["conditioning"] + row["learning"])
    left_out = int(found["exact"].truth.count().sum())
    assert left_out + report.n_known == pytest.approx(200, rel=0.2)
    assert len(report.rows()) == 3 * left_out
    # Readings are those of the training table, in original units.
    pd.testing.assert_frame_equal(
        found["fitted"].truth, frames()[1].loc[found["fitted"].truth.index], rtol=1e-9
    )


def test_the_three_ways_to_predict(model, report):
    """Each written out: a model of the known readings, and a fit to them."""
    X, Y = frames()
    split = Split.draw(model.posterior_.observations, 200, np.random.default_rng(0))
    known, left_out = (X.index[model.input_spec_.rows[sites]] for sites in split)
    assert set(left_out) == set(report.found["exact"].truth.index)
    assert not set(left_out) & set(known)
    there = Y.loc[left_out].notna().to_numpy()

    def assert_predictions(way, predicted):
        expected = np.where(there, predicted, np.nan)
        assert_allclose(report.found[way].prediction, expected, rtol=1e-6)

    settings = {"batch_size": None, "conditioning": "all", "latent_learner": "exact"}
    exact = EMGPR.paper(random_state=0, **settings).fit(X.loc[known], Y.loc[known])
    assert_predictions("exact", exact.predict(X.loc[left_out]))
    rest = copy(model)
    table = model.posterior_.observations.at(split.known)
    for way, conditioning in (("from all", "all"), ("fitted", 8)):
        rest.posterior_ = replace(model.posterior_, observations=table, conditioning=conditioning)
        assert_predictions(way, rest.predict(X.loc[left_out]))
    assert (report.found["fitted"].prediction != report.found["from all"].prediction).any(axis=None)


def test_wrong_noise_is_found_as_a_loss_by_learning(report):
    wrong = paper().fit(*frames())
    wrong = with_weights(wrong, wrong.weights_, 0.002 * wrong.posterior_.model.noise)
    found = wrong.approximation_report(400)
    assert found.losing == ["Cd", "Zn"]
    assert (found.table["learning"].xs("nlpd", level="loss") > 1).all()
    assert found.sentence == "Cd, Zn lose by learning."
    assert not set(report.losing) & {"Cd", "Zn"}


def test_too_few_neighbours_are_found_as_a_loss_by_conditioning():
    found = paper(conditioning=1).fit(*frames()).approximation_report(500)
    parts = found.table.xs("nlpd", level="loss")
    assert (parts["conditioning"] > 3 * parts["conditioning_error"]).any()
    assert "by conditioning" in found.sentence


@pytest.mark.parametrize(
    "exact",
    [
        ICM(RBF(0.4, "fixed"), max_iter=500, n_neighbours=None, random_state=0),
        EMGPR.paper(batch_size=None, random_state=0),
        IndependentGP(latent_learner=PoE(1000), conditioning=1000, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_exact_model_is_not_compared(exact, monkeypatch):
    exact.fit(*frames())
    monkeypatch.setattr(type(exact), "fit", lambda *_: pytest.fail("fitted again"))
    found = exact.approximation_report()
    assert found.approximations == ()
    assert found.table.empty


@pytest.mark.parametrize(
    "settings",
    [
        {"combine": "grbcm", "conditioning": "batch"},
        {"output_transform": ["log", "yeo-johnson"], "transfer": "auto"},
        {"device": "torch"},
    ],
    ids=str,
)
def test_predictions_stay_close_to_exact_ones_with_other_settings(settings):
    if "device" in settings:
        pytest.importorskip("torch")
    X, Y = frames()
    found = paper(**settings).fit(X, np.exp(Y / 4)).approximation_report(250)
    assert np.isfinite(found.table.drop(columns="verdict").to_numpy(float)).all()
    assert (found.table["apart"] < 2).all()


def test_a_loaded_model_and_the_same_seed_give_the_same_report(model, report, tmp_path):
    model.save(tmp_path / "m.emgpr")
    again = EMGPR.load(tmp_path / "m.emgpr").approximation_report(200)
    pd.testing.assert_frame_equal(report.table, again.table)
    other = model.approximation_report(200, random_state=1)
    assert not report.found["exact"].truth.index.equals(other.found["exact"].truth.index)


def test_outputs_with_few_readings_are_not_compared():
    X, Y = frames()
    Y = Y.assign(Ni=np.where(np.arange(len(Y)) % 40 == 0, Y["Cd"].fillna(0.0), np.nan))
    with pytest.warns(UserWarning, match="'Ni' was measured only 7 times"):
        rare = paper(kernel=[RBF(0.3), RBF(0.4), RBF(0.5)]).fit(X, Y)
    found = rare.approximation_report(200)
    assert found.not_compared == ("Ni",)
    assert set(found.table.index.get_level_values("output")) == {"Cd", "Zn"}


def test_rows_of_one_location_are_left_out_together(model):
    observations = model.posterior_.observations
    twice = replace(
        observations,
        x=np.tile(observations.x, (2, 1)),
        y=np.tile(observations.y, (1, 2)),
        observed=np.tile(observations.observed, (1, 2)),
    )
    known, left_out = Split.draw(twice, 300, np.random.default_rng(0))
    locations = [set(map(tuple, twice.x[sites])) for sites in (known, left_out)]
    assert not locations[0] & locations[1]
    assert len(locations[1]) < len(left_out)  # some with both of their rows


def test_a_table_without_enough_readings_cannot_be_compared(model):
    observations = model.posterior_.observations.at(np.arange(6))
    split = Split(np.arange(3), np.arange(3, 6))
    with pytest.raises(
        ValueError, match=r"In a sample of 6 sites, no output has 5 .* table is too small"
    ):
        split.comparable_outputs(observations)
    with pytest.raises(ValueError, match=r"no output has 5 readings.* pass a larger n_readings"):
        split.comparable_outputs(model.posterior_.observations)


def test_constant_outputs_cannot_be_compared(model):
    observations = model.posterior_.observations
    split = Split.draw(observations, 120, np.random.default_rng(0))
    constant = replace(observations, y=np.zeros_like(observations.y))
    with pytest.raises(ValueError, match=r"All readings of each output are equal.* nothing to"):
        split.comparable_outputs(constant)
    y = np.zeros_like(observations.y)
    y[:, split.left_out] = observations.y[:, split.left_out]
    with pytest.raises(ValueError, match="no output varies; pass a larger n_readings"):
        split.comparable_outputs(replace(observations, y=y))


def test_an_external_learner_gives_the_exact_model_its_kernels():
    """Their form need not be that of the parameter."""
    lender = Borrowed(
        lambda x, y: GaussianProcessRegressor(Matern(0.5, nu=1.5), alpha=0.1).fit(x[:40], y[:40])
    )
    found = paper(latent_learner=lender).fit(*frames()).approximation_report(200)
    assert found.approximations[0].startswith("step 1: fitted elsewhere")
    assert (found.table["apart"] < 1).all()


def test_an_exact_model_that_did_not_converge_is_noted():
    with pytest.warns(ConvergenceWarning):
        hasty = paper(max_iter=2).fit(*frames())
    found = hasty.approximation_report(200)
    assert any("did not converge within max_iter=2" in note for note in found.notes)


def test_a_one_dimensional_y_can_be_compared():
    X, Y = frames()
    y = Y["Cd"].fillna(0.0).to_numpy()
    single = IndependentGP(latent_learner=PoE(60, 2), random_state=0).fit(X.to_numpy(), y)
    assert single.approximation_report(150).table["n"].min() > 20


def test_too_few_readings_for_a_comparison_are_refused(model):
    with pytest.raises(ValueError, match="n_readings=10; expected a whole number of at least 60"):
        model.approximation_report(10)
    with pytest.raises(NotFittedError):
        EMGPR().approximation_report()
