"""Models compared by fits that have not seen what they predict."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import smooth_table
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP, compare
from emgpr.metrics import paired_difference

RNG = np.random.default_rng(8)
X, Y = smooth_table(RNG, N=36)
Y[3, 1] = np.nan
Y[7] = np.nan  # nothing was read there
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(36)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)
QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 3, "random_state": 0}


@pytest.fixture(autouse=True)
def hushed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def models():
    return {"ours": EMGPR.paper(**QUICK), "no transfer": IndependentGP(**QUICK)}


def found(by="site", n_folds=3, X=SITES, Y=METALS, **settings):
    return compare(models(), X, Y, by=by, n_folds=n_folds, **settings)


@pytest.mark.parametrize("by", ["site", "block", "output"])
def test_every_reading_is_predicted_once_by_a_fit_that_has_not_seen_it(by):
    told = found(by)
    assert list(told.found) == ["ours", "no transfer"]
    for one in told.found.values():
        assert_array_equal(one.prediction.notna(), METALS.drop("site 7").notna())
        assert_array_equal(one.truth, METALS.drop("site 7"))
    fold = told.fold.to_numpy()
    for k in range(3):
        learned = METALS.drop("site 7").mask(fold == k)
        kept = learned.notna().any(axis=1)
        model = IndependentGP(**QUICK).fit(SITES.drop("site 7")[kept], learned[kept])
        out = (fold == k).any(axis=1)
        expected = model.predict(SITES.drop("site 7")[out])
        got = told.found["no transfer"].prediction[out].to_numpy()
        assert_allclose(got[fold[out] == k], expected[fold[out] == k], rtol=1e-9)


def test_by_site_all_of_a_place_is_left_out_and_rows_that_share_it_go_together():
    twice = pd.concat([SITES, SITES.iloc[:9]], ignore_index=True)
    again = pd.concat([METALS, METALS.iloc[:9] + 0.01], ignore_index=True)
    fold = found(X=twice, Y=again).fold
    assert (fold.max(axis=1) == fold.min(axis=1)).all()  # whatever was read of the place
    for i in range(9):
        if i != 7:
            assert fold.loc[i].max() == fold.loc[36 + i].max()


def test_by_output_no_two_readings_of_a_place_are_left_out_together():
    assert (found("output").fold.nunique(axis=1) == METALS.drop("site 7").count(axis=1)).all()


def test_blocks_are_of_neighbours_and_several_make_a_fold():
    told = found("block", n_folds=2)
    groups = told.group.to_numpy()
    assert len(np.unique(groups)) == 8
    x = SITES.drop("site 7").to_numpy()
    apart = np.linalg.norm(x[:, None] - x, axis=-1)
    same = groups[:, None] == groups
    assert apart[same].mean() < 0.6 * apart[~same].mean()


def test_differences_are_paired_and_averaged_in_each_group():
    told = found("block", n_folds=2)
    errors = {name: one.residual["Cd"].abs() for name, one in told.found.items()}
    by_group = [error.groupby(told.group.to_numpy()).mean() for error in errors.values()]
    expected = paired_difference(*(part.to_numpy() for part in by_group))
    row = told.table().loc[("Cd", "no transfer")]
    assert row["difference"] == pytest.approx(expected.mean)
    assert row["standard_error"] == pytest.approx(expected.standard_error)
    assert expected.n == 8
    assert np.isnan(told.table().loc[("Cd", "ours"), "difference"])


def test_the_table_and_the_rows_hold_the_same():
    told = found()
    rows, table = told.rows(), told.table()
    assert len(rows) == 2 * int(METALS.count().sum())
    error = (rows["truth"] - rows["prediction"]).abs()
    mae = error.groupby([rows["output"], rows["model"]]).mean()
    assert_allclose(mae.loc[table.index], table["mae"])
    inside = (rows["lower"] <= rows["truth"]) & (rows["truth"] <= rows["upper"])
    coverage = inside.groupby([rows["output"], rows["model"]]).mean()
    assert_allclose(coverage.loc[table.index], table["coverage"])
    assert "ours against no transfer:" in repr(told)


def test_a_better_model_is_told_to_be_better():
    """An output told by its noiseless double: the difference is beyond any doubt."""
    rng = np.random.default_rng(1)
    at = rng.uniform(size=(60, 2))
    level = np.sin(6 * at[:, 0]) + np.cos(5 * at[:, 1]) + rng.normal(size=60)
    table = np.column_stack([level, -level + 0.01 * rng.normal(size=60)])
    told = compare(
        {"ours": EMGPR(None, transform=None, rank=1), "alone": IndependentGP()},
        at, table, by="output", n_folds=2,
    )  # fmt: skip
    assert told.verdict("alone") == "ours against alone: better for 0, 1."


def test_what_fits_warn_of_is_counted_not_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = found(n_folds=2)
    assert any("converge" in note for note in told.notes)
    assert max(told.notes.values()) <= 2


def test_two_processes_give_the_same():
    one, two = found(n_folds=2), found(n_folds=2, n_jobs=2)
    pd.testing.assert_frame_equal(one.table(), two.table())


def test_a_value_that_cannot_be_is_scored_not_refused():
    """All positive but one, which a fit on logarithms has not seen: infinitely unlikely."""
    positive = np.random.default_rng(2).lognormal(size=(60, 1))
    positive[0] = -0.1
    at = np.random.default_rng(3).uniform(size=(60, 2))
    told = compare({"log": IndependentGP(**QUICK, transform="auto")}, at, positive, n_folds=2)
    assert np.isposinf(told.found["log"].nlpd.loc[0, "0"])
    assert np.isfinite(told.found["log"].prediction.loc[0, "0"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"by": "row"}, "expected 'site', 'block' or 'output'"),
        ({"n_folds": 1}, "at least 2"),
        ({"n_folds": 99}, "35 places cannot be left out in 99 folds"),
        ({"Y": METALS.iloc[:1].reindex(METALS.index)}, "1 places cannot be left out"),
        ({"Y": METALS.assign(Zn=METALS["Zn"].where(np.arange(36) == 0))}, "'Zn'.*together"),
    ],
)
def test_what_cannot_be_compared(asked, words):
    with pytest.raises(ValueError, match=words):
        found(**asked)
    with pytest.raises(ValueError, match="models is empty"):
        compare({}, SITES, METALS)
