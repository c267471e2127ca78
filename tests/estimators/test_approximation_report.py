"""What the approximations of a model cost, measured beside an exact one."""

import numpy as np
import pandas as pd
import pytest
from simulated import world
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR, ICM, IndependentGP
from emgpr.estimators import ApproximationReport
from emgpr.estimators.against_exact import _Split
from emgpr.latents import Borrowed, PoE

MADE = world(np.random.default_rng(5), N=260, D=2, Q=2, k=1, missing=0.2, noise=0.05)


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


def test_the_table_holds_what_was_predicted(model):
    report = model.approximation_report(200)
    assert isinstance(report, ApproximationReport)
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
    asked = int(found["exact"].truth.count().sum())
    assert asked + report.n_known == pytest.approx(200, rel=0.2)
    assert len(report.rows()) == 3 * asked
    # Readings are those of the training table, on the user's scale.
    pd.testing.assert_frame_equal(
        found["fitted"].truth, frames()[1].loc[found["fitted"].truth.index], rtol=1e-9
    )


def test_each_way_is_what_it_says(model):
    """Written out: a model that knows only what is known, and a fit to that."""
    report = model.approximation_report(200)
    X, Y = frames()
    split = _Split.drawn(model._seen, 200, np.random.default_rng(0))
    known, asked = (X.index[model._rows[rows]] for rows in split)
    assert set(asked) == set(report.found["exact"].truth.index)
    assert not set(asked) & set(known)
    there = Y.loc[asked].notna().to_numpy()

    def agree(way, predicted):
        expected = np.where(there, predicted, np.nan)
        np.testing.assert_allclose(report.found[way].prediction, expected, rtol=1e-6)

    exact = {"batch_size": None, "conditioning": "all", "latent_learner": "exact"}
    anew = EMGPR.paper(random_state=0, **exact).fit(X.loc[known], Y.loc[known])
    agree("exact", anew.predict(X.loc[asked]))
    rest = paper(conditioning="all").fit(X, Y)
    rest._seen = rest._seen.at(split.known)
    agree("from all", rest.predict(X.loc[asked]))
    rest.conditioning_ = 8
    agree("fitted", rest.predict(X.loc[asked]))
    assert (report.found["fitted"].prediction != report.found["from all"].prediction).any(axis=None)


def test_a_model_forced_to_wrong_noise_is_found_out(model):
    honest = model.approximation_report(400)
    forced = paper().fit(*frames())
    forced._noise = 0.002 * forced._noise
    report = forced.approximation_report(400)
    assert report.losing == ["Cd", "Zn"]
    assert (report.table["learning"].xs("nlpd", level="loss") > 1).all()
    assert report.sentence == "Cd, Zn lose by learning."
    assert str(report).endswith("Cd, Zn lose by learning.")
    assert "lose by learning" in report._repr_html_()
    assert not set(honest.losing) & {"Cd", "Zn"}


def test_too_few_neighbours_are_found_out():
    lonely = paper(conditioning=1).fit(*frames())
    report = lonely.approximation_report(500)
    parts = report.table.xs("nlpd", level="loss")
    assert (parts["conditioning"] > 3 * parts["conditioning_error"]).any()
    assert "by conditioning" in report.sentence


@pytest.mark.parametrize(
    "exact",
    [
        IndependentGP(random_state=0),
        ICM(random_state=0),
        EMGPR.paper(batch_size=None, random_state=0),
        IndependentGP(latent_learner=PoE(1000), conditioning=1000, random_state=0),
    ],
)
def test_where_nothing_is_approximated_it_says_so_and_works_nothing_out(exact, monkeypatch):
    exact.fit(*frames())
    monkeypatch.setattr(type(exact), "fit", lambda *_: pytest.fail("learned again"))
    report = exact.approximation_report()
    assert report.approximations == ()
    assert report.table.empty
    assert report.rows().empty
    assert report.losing == []
    assert str(report) == report.sentence
    assert str(report).startswith("Nothing is approximated")
    assert "Nothing is approximated" in report._repr_html_()


@pytest.mark.parametrize(
    "settings",
    [
        {"conditioning": "batch"},
        {"transform": ["log", "yeo-johnson"]},
        {"combine": "grbcm", "conditioning": "batch"},
        {"transfer": "safe"},
        {"device": "torch"},
    ],
    ids=str,
)
def test_it_is_measured_whatever_the_settings(settings):
    if "device" in settings:
        pytest.importorskip("torch")
    X, Y = frames()
    report = paper(**settings).fit(X, np.exp(Y / 4)).approximation_report(250)
    assert np.isfinite(report.table.drop(columns="verdict").to_numpy(float)).all()
    assert (report.table["apart"] < 2).all()


def test_the_same_from_a_file_and_with_the_same_seed(model, tmp_path):
    model.save(tmp_path / "m.emgpr")
    again = EMGPR.load(tmp_path / "m.emgpr").approximation_report(200)
    report = model.approximation_report(200)
    pd.testing.assert_frame_equal(report.table, again.table)
    other = model.approximation_report(200, random_state=1)
    assert not report.found["exact"].truth.index.equals(other.found["exact"].truth.index)


@pytest.mark.parametrize("kernel", [None, [RBF(0.3), RBF(0.4), RBF(0.5)]])
def test_rarely_read_outputs_are_named_not_compared(kernel):
    X, Y = frames()
    Y = Y.assign(Ni=np.where(np.arange(len(Y)) % 40 == 0, Y["Cd"].fillna(0.0), np.nan))
    with pytest.warns(UserWarning, match="'Ni' was read 7 times only"):
        rare = paper(kernel=kernel).fit(X, Y)
    report = rare.approximation_report(200)
    assert report.not_compared == ("Ni",)
    assert set(report.table.index.get_level_values("output")) == {"Cd", "Zn"}
    assert "read too rarely to be compared: Ni" in report.sentence


def test_rows_of_one_place_are_left_out_together():
    X, Y = frames()
    X, Y = pd.concat([X, X], ignore_index=True), pd.concat([Y, Y + 0.01], ignore_index=True)
    twice = paper().fit(X, Y)
    known, asked = _Split.drawn(twice._seen, 300, np.random.default_rng(0))
    places = [set(map(tuple, twice._seen.x[rows])) for rows in (known, asked)]
    assert not places[0] & places[1]
    assert len(places[1]) < len(asked)  # some with both of their rows


def test_of_lent_processes_the_exact_model_has_the_kernels():
    """Their form need not be that of the setting."""
    lender = Borrowed(
        lambda x, y: GaussianProcessRegressor(Matern(0.5, nu=1.5), alpha=0.1).fit(x[:40], y[:40])
    )
    report = paper(latent_learner=lender).fit(*frames()).approximation_report(200)
    assert report.approximations[0].startswith("step 1: learned elsewhere")
    assert (report.table["apart"] < 1).all()


def test_an_exact_model_that_did_not_converge_is_not_trusted_in_silence():
    with pytest.warns(ConvergenceWarning):
        hasty = paper(max_iter=2).fit(*frames())
    report = hasty.approximation_report(200)
    assert any("did not converge within max_iter=2" in note for note in report.notes)
    assert all(f"The exact model: {note}" in str(report) for note in report.notes)


def test_one_output_as_a_line_of_numbers():
    made = frames()
    y = made[1]["Cd"].fillna(0.0).to_numpy()
    single = IndependentGP(latent_learner=PoE(60, 2), random_state=0).fit(made[0].to_numpy(), y)
    assert single.approximation_report(150).table["n"].min() > 20


def test_questions_that_mean_nothing(model):
    with pytest.raises(ValueError, match="n_readings=10; expected a whole number of at least 60"):
        model.approximation_report(10)
    with pytest.raises(NotFittedError):
        EMGPR().approximation_report()
