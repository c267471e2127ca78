"""Models compared by fits without the readings that they predict."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP, compare
from emgpr.metrics import paired_difference
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(8)
X, Y = smooth_table(RNG, N=36)
Y[3, 1] = np.nan
Y[7] = np.nan  # nothing was measured there
SITES = pd.DataFrame(X, columns=["east", "north"], index=[f"site {i}" for i in range(36)])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=SITES.index)
QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 3, "random_state": 0}


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def comparison(by="site", n_folds=3, X=SITES, Y=METALS, **settings):
    models = {"EMGPR": EMGPR.paper(**QUICK), "independent": IndependentGP(**QUICK)}
    return compare(models, X, Y, by=by, n_folds=n_folds, **settings)


@pytest.fixture(scope="module")
def compared():
    """Comparisons by site, block and output, each made once."""
    made = {}

    def by(what, n_folds=3):
        if what not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                made[what] = comparison(what, n_folds=2 if what == "block" else n_folds)
        return made[what]

    return by


@pytest.mark.parametrize("by", ["site", "block", "output", "gap"])
def test_each_reading_is_predicted_once_by_a_fit_without_it(by, compared):
    result = compared(by)
    assert list(result.found) == ["EMGPR", "independent"]
    for one in result.found.values():
        assert_array_equal(one.prediction.notna(), METALS.drop("site 7").notna())
        assert_array_equal(one.truth, METALS.drop("site 7"))
    fold = result.fold.to_numpy()
    for k in range(result.n_folds):
        known = METALS.drop("site 7").mask(fold == k)
        kept = known.notna().any(axis=1)
        model = IndependentGP(**QUICK).fit(SITES.drop("site 7")[kept], known[kept])
        out = (fold == k).any(axis=1)
        expected = model.predict(SITES.drop("site 7")[out])
        prediction = result.found["independent"].prediction[out].to_numpy()
        assert_allclose(prediction[fold[out] == k], expected[fold[out] == k], rtol=1e-9)


def test_by_site_all_rows_of_a_location_are_left_out_together():
    twice = pd.concat([SITES, SITES.iloc[:9]], ignore_index=True)
    again = pd.concat([METALS, METALS.iloc[:9] + 0.01], ignore_index=True)
    fold = comparison(X=twice, Y=again).fold
    assert (fold.max(axis=1) == fold.min(axis=1)).all()  # all outputs
    for i in range(9):
        if i != 7:
            assert fold.loc[i].max() == fold.loc[36 + i].max()


def test_by_output_no_two_readings_of_a_site_are_left_out_together(compared):
    assert (compared("output").fold.nunique(axis=1) == METALS.drop("site 7").count(axis=1)).all()


def test_by_block_several_blocks_of_neighbours_make_a_fold(compared):
    groups = compared("block").group.to_numpy()
    assert len(np.unique(groups)) == 8
    x = SITES.drop("site 7").to_numpy()
    distance = np.linalg.norm(x[:, None] - x, axis=-1)
    same = groups[:, None] == groups
    assert distance[same].mean() < 0.6 * distance[~same].mean()


def test_differences_are_paired_and_averaged_in_each_group(compared):
    result = compared("block")
    errors = {name: one.residual["Cd"].abs() for name, one in result.found.items()}
    by_group = [error.groupby(result.group.to_numpy()).mean() for error in errors.values()]
    expected = paired_difference(*(part.to_numpy() for part in by_group))
    row = result.table().loc[("Cd", "independent")]
    assert row["difference"] == pytest.approx(expected.mean)
    assert row["standard_error"] == pytest.approx(expected.standard_error)
    assert expected.n == 8
    assert np.isnan(result.table().loc[("Cd", "EMGPR"), "difference"])


def test_the_table_summarises_the_rows(compared):
    result = compared("site")
    rows, table = result.rows(), result.table()
    assert len(rows) == 2 * int(METALS.count().sum())
    error = (rows["truth"] - rows["prediction"]).abs()
    mae = error.groupby([rows["output"], rows["model"]]).mean()
    assert_allclose(mae.loc[table.index], table["mae"])
    inside = (rows["lower"] <= rows["truth"]) & (rows["truth"] <= rows["upper"])
    coverage = inside.groupby([rows["output"], rows["model"]]).mean()
    assert_allclose(coverage.loc[table.index], table["coverage"])
    assert "EMGPR compared with independent:" in repr(result)


def test_a_model_that_uses_a_nearly_equal_output_is_found_to_be_better():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(60, 2))
    level = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1]) + rng.normal(size=60)
    Y = np.column_stack([level, -level + 0.01 * rng.normal(size=60)])
    result = compare(
        {"EMGPR": EMGPR(None, output_transform=None, rank=1), "independent": IndependentGP()},
        X, Y, by="output", n_folds=2,
    )  # fmt: skip
    assert result.verdict("independent") == "EMGPR compared with independent: better for 0, 1."


def test_warnings_of_the_fits_are_counted_and_not_issued():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = comparison(n_folds=2)
    assert any("converge" in note for note in result.notes)
    assert max(result.notes.values()) <= 2


def test_two_processes_give_the_same(compared):
    again = comparison(n_jobs=2)
    pd.testing.assert_frame_equal(compared("site").table(), again.table())


def test_a_reading_that_is_impossible_under_a_model_is_scored():
    """All positive but one: of a fit to the logarithms of the others, its density is zero."""
    positive = np.random.default_rng(2).lognormal(size=(60, 1))
    positive[0] = -0.1
    X = np.random.default_rng(3).uniform(size=(60, 2))
    result = compare(
        {"log": IndependentGP(**QUICK, output_transform="auto")}, X, positive, n_folds=2
    )
    assert np.isposinf(result.found["log"].nlpd.loc[0, "0"])
    assert np.isfinite(result.found["log"].prediction.loc[0, "0"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "row"}, "by='row'; expected 'site', 'block', 'output' or 'gap'"),
        ({"n_folds": 1}, "n_folds=1; expected a whole number of at least 2"),
        ({"n_folds": np.inf}, "n_folds=inf; expected a whole number of at least 2"),
        ({"verbose": "yes"}, "verbose='yes'; expected 0, or 1"),
        ({"n_folds": 99}, "n_folds=99, but there are only 35 locations"),
        ({"Y": METALS.iloc[:1].reindex(METALS.index)}, "only 1 locations"),
        ({"Y": METALS.assign(Zn=METALS["Zn"].where(np.arange(36) == 0))}, "'Zn'.*in the same fold"),
    ],
)
def test_folds_that_cannot_be_made_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        comparison(**options)


def test_a_comparison_needs_a_model():
    with pytest.raises(ValueError, match="models is empty; pass at least one"):
        compare({}, SITES, METALS)
