"""Tables in, tables out: names, indices and shapes are kept."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import paper, smooth_table
from sklearn.gaussian_process.kernels import RBF

from emgpr import IndependentGP

RNG = np.random.default_rng(5)
X, Y = smooth_table(RNG, N=20)
Y[3, 1] = np.nan
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(20)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)


def fitted(X, Y):
    return IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def model():
    return fitted(SITES, METALS)


def test_a_frame_gives_the_numbers_that_an_array_gives(model):
    assert_allclose(model.predict(SITES), fitted(X, Y).predict(X), rtol=1e-10)


def test_names_of_columns_are_remembered(model):
    assert_array_equal(model.feature_names_in_, ["east", "north"])
    assert model.output_names_ == ["Cd", "Ni", "Zn"]
    assert (model.n_features_in_, model.n_outputs_) == (2, 3)


def test_a_frame_comes_back_with_names_index_and_standard_deviations(model):
    frame = model.predict_frame(SITES[5:9])
    assert list(frame.columns) == ["Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    assert list(frame.index) == ["site 5", "site 6", "site 7", "site 8"]
    mean, std = model.predict(SITES[5:9], return_std=True)
    assert_array_equal(frame[["Cd", "Ni", "Zn"]], mean)
    assert_array_equal(frame[["Cd_std", "Ni_std", "Zn_std"]], std)


def test_the_frame_knows_what_was_observed_and_whether_noise_counts(model):
    known = METALS[["Zn"]][:4] + 0.01
    frame = model.predict_frame(SITES[:4], observed=known, include_noise=False)
    mean, std = model.predict(SITES[:4], return_std=True, observed=known, include_noise=False)
    assert_array_equal(frame["Zn"], mean[:, 2])
    assert_array_equal(frame["Zn_std"], std[:, 2])


def test_a_vector_comes_back_as_a_vector_and_a_column_as_a_column():
    vector = fitted(X, Y[:, 0]).predict(X[:4], return_std=True)
    column = fitted(X, Y[:, :1]).predict(X[:4], return_std=True)
    assert [part.shape for part in vector] == [(4,), (4,)]
    assert [part.shape for part in column] == [(4, 1), (4, 1)]
    assert_array_equal(vector[0], column[0][:, 0])


def test_a_series_lends_its_name():
    model = fitted(SITES, METALS["Zn"])
    assert list(model.predict_frame(SITES[:2]).columns) == ["Zn", "Zn_std"]
    assert model.predict(SITES[:2]).shape == (2,)


def test_outputs_without_names_are_numbered():
    assert list(fitted(X, Y[:, :2]).predict_frame(X[:1])) == ["0", "0_std", "1", "1_std"]


@pytest.mark.parametrize(
    "same",
    [
        lambda table: table.tolist(),
        lambda table: np.asfortranarray(table),
        lambda table: np.repeat(table, 2, axis=0)[::2],
        lambda table: pd.DataFrame(table).astype(object),
        lambda table: pd.DataFrame(table).astype("Float64"),
    ],
    ids=["list", "Fortran order", "strided", "objects", "nullable"],
)
def test_any_table_of_numbers_will_do(same):
    expected = fitted(X, Y).predict(X)
    assert_allclose(fitted(same(X), same(Y)).predict(same(X)), expected, rtol=1e-10)


def test_whole_numbers_and_truth_values_are_numbers():
    table = pd.DataFrame({"depth": np.arange(20), "forest": np.arange(20) % 3 == 0})
    counts = np.arange(20) ** 2
    assert np.isfinite(fitted(table, counts).predict(table)).all()


def test_nothing_that_was_passed_in_is_changed():
    given = X.copy(), Y.copy(), X[:4] + 0.01, Y[:4].copy()
    kept = [part.copy() for part in given]
    for part in given:
        part.flags.writeable = False
    fitted(*given[:2]).predict(given[2], observed=given[3])
    for part, before in zip(given, kept, strict=True):
        assert_array_equal(part, before)


def test_the_score_counts_only_readings_that_were_made(model):
    truth, mean = METALS.to_numpy(), model.predict(SITES)
    r2 = 1 - np.nansum((truth - mean) ** 2, axis=0) / np.nansum(
        (truth - np.nanmean(truth, axis=0)) ** 2, axis=0
    )
    assert_allclose(model.score(SITES, METALS), r2.mean())


def test_the_score_takes_weights(model):
    half = np.r_[np.ones(10), np.zeros(10)]
    assert_allclose(
        model.score(SITES, METALS, sample_weight=half), model.score(SITES[:10], METALS[:10])
    )


def test_an_output_that_was_not_read_in_a_fold_has_no_part_in_its_score(model):
    fold = METALS[:8].assign(Zn=np.nan)
    both = fitted(SITES, METALS[["Cd", "Ni"]])
    assert_allclose(model.score(SITES[:8], fold), both.score(SITES[:8], fold[["Cd", "Ni"]]))


def test_the_score_of_other_outputs_is_refused(model):
    with pytest.raises(ValueError, match="3 outputs"):
        model.score(SITES, METALS[["Cd", "Ni"]])


def test_an_ensemble_keeps_names_too():
    model = paper(RBF(0.4, "fixed"), batch_size=9, max_iter=2, random_state=0)
    with pytest.warns(UserWarning, match="did not converge"):
        frame = model.fit(SITES, METALS).predict_frame(SITES)
    assert frame.index.equals(SITES.index)


def test_the_frame_may_hold_quantiles_and_chances_too(model):
    frame = model.predict_frame(SITES[:4], quantiles=[0.05, 0.95], exceedance={"Ni": 0.25})
    assert [name for name in frame if name.startswith("Ni")] == [
        "Ni", "Ni_std", "Ni_q0.05", "Ni_q0.95", "Ni_above_0.25",
    ]  # fmt: skip
    assert [name for name in frame if "above" in name] == ["Ni_above_0.25"]
    assert_array_equal(frame["Zn_q0.95"], model.predict_quantiles(SITES[:4], 0.95)[:, 2])
    assert_array_equal(frame["Ni_above_0.25"], model.predict_exceedance(SITES[:4], 0.25)[:, 1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_frame(SITES[:4], quantiles=[5, 95])


@pytest.mark.parametrize(
    "told",
    [
        lambda model: model.predict_frame(SITES, quantiles=[0.9]),
        lambda model: model.predict(SITES),
        lambda model: model.predict(SITES, statistic="mean", include_noise=False),
        lambda model: np.hstack(model.predict(SITES, return_std=True)),
        lambda model: model.predict(SITES, return_cov=True)[1],
        lambda model: model.predict_quantiles(SITES, [0.1, 0.9]),
        lambda model: model.predict_quantiles(SITES, 0.5),
        lambda model: model.predict_exceedance(SITES, {"Ni": 0.25}),
    ],
)
def test_many_places_are_predicted_in_blocks(model, monkeypatch, told):
    whole = told(model)
    sizes = []
    believe = type(model)._believe
    monkeypatch.setattr(
        type(model),
        "_believe",
        lambda self, x, *args, **how: sizes.append(len(x)) or believe(self, x, *args, **how),
    )
    monkeypatch.setattr(
        "emgpr.estimators.predictor.chunks",
        lambda n, *_, **__: [range(i, min(i + 7, n)) for i in range(0, n, 7)],
    )
    assert_allclose(told(model), whole, rtol=1e-12)
    assert sum(sizes) == len(SITES)
    assert max(sizes) == 7


def test_a_known_output_informs_places_of_every_block(model, monkeypatch):
    known = np.full((len(SITES), 3), np.nan)
    known[0, 1] = 9.0
    whole = model.predict(SITES, observed=known)
    monkeypatch.setattr(
        "emgpr.estimators.predictor.chunks",
        lambda n, *_, **__: [range(i, min(i + 7, n)) for i in range(0, n, 7)],
    )
    assert_array_equal(model.predict(SITES, observed=known), whole)
