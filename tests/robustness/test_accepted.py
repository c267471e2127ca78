"""A table gives the same model, bit for bit, in every form in which it may be passed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from tests.simulated import paper, with_weights

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(31)
# Whole numbers, which every type below represents exactly.
X = RNG.permutation(60)[:32].reshape(16, 2).astype(float)
Y = np.round(40 * np.column_stack([np.sin(X[:, 0] / 9), np.cos(X[:, 1] / 9), np.sin(X[:, 1] / 8)]))
GAPS = np.where(RNG.uniform(size=Y.shape) < 0.3, np.nan, Y)
GAPS[0] = Y[0]
GAPS[np.isnan(GAPS).all(axis=1)] = 1.0
HOLES = np.isnan(GAPS)
SITES, OUTPUTS = ["east", "north"], ["Cd", "Ni", "Zn"]


def predicted(X, Y):
    model = paper(RBF(9.0, "fixed"), max_iter=2, batch_size=None, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Step 2: .* did not converge")
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return model.predict(np.array([[3.0, 4.0], [30.0, 31.0]]), return_std=True)


def read_only(table):
    frozen = table.copy()
    frozen.flags.writeable = False
    return frozen


def on_disk(table, folder, name):
    np.save(folder / f"{name}.npy", table)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def as_frame(table, dtype="float64"):
    names = SITES if table.shape[1] == 2 else OUTPUTS
    return pd.DataFrame(table, columns=names).astype(dtype)


def as_objects(table, mark):
    return np.where(np.isnan(table), mark, table.astype(object))


def as_columns(table):
    names = SITES if table.shape[1] == 2 else OUTPUTS
    return dict(zip(names, as_objects(table, None).T.tolist(), strict=True))


FORMS = {
    "lists": lambda t: t.tolist(),
    "lists with None": lambda t: as_objects(t, None).tolist(),
    "32 bits": lambda t: t.astype(np.float32),
    "big-endian numbers": lambda t: t.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "every other row of a larger array": lambda t: np.repeat(t, 2, axis=0)[::2],
    "rows that run backwards": lambda t: t[::-1].copy()[::-1],
    "read-only": read_only,
    "a subclass of array": lambda t: t.view(type("Mine", (np.ndarray,), {})),
    "objects with None": lambda t: as_objects(t, None),
    "numbers as text": lambda t: as_objects(t, "nan").astype(str),
    "a masked array": lambda t: np.ma.masked_invalid(t),
    "a masked array with -9999 beneath": lambda t: np.ma.masked_equal(
        np.where(np.isnan(t), -9999.0, t), -9999.0
    ),
    "a masked array of 32 bits": lambda t: np.ma.masked_invalid(t.astype(np.float32)),
    "a list of masked rows": lambda t: list(np.ma.array(np.nan_to_num(t), mask=np.isnan(t))),
    "objects with NA": lambda t: as_objects(t, pd.NA),
    "lists with NA": lambda t: as_objects(t, pd.NA).tolist(),
    "a frame": as_frame,
    "a frame of nullable numbers": lambda t: as_frame(t, "Float64"),
    "a frame of nullable whole numbers": lambda t: as_frame(t, "Int64"),
    "a frame of objects with NA": lambda t: as_frame(t, object).mask(np.isnan(t), pd.NA),
    "a frame of sparse columns": lambda t: as_frame(t, pd.SparseDtype("float64", np.nan)),
}


@pytest.fixture(scope="module")
def plain():
    return predicted(X, GAPS)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_predictions(form, plain):
    assert_array_equal(predicted(FORMS[form](X), FORMS[form](GAPS)), plain)


@pytest.mark.filterwarnings("ignore:Nothing was measured in")
@pytest.mark.parametrize("form", [pd.Series, np.array, list, tuple])
def test_one_output_with_na_gives_the_predictions_of_one_with_nan(form):
    marked = form(as_objects(GAPS[:, 1], pd.NA))
    assert_array_equal(predicted(X, marked), predicted(X, GAPS[:, 1]))


def test_the_name_of_a_series_of_objects_names_the_output():
    zinc = pd.Series(Y[:, 2].astype(object), name=("Zn", 1))
    model = IndependentGP(RBF(9.0, "fixed"), random_state=0).fit(X, zinc)
    assert model.output_names_ == ["('Zn', 1)"]


def test_memory_mapped_files_give_the_same_predictions(tmp_path, plain):
    mapped = on_disk(X, tmp_path, "x"), on_disk(GAPS, tmp_path, "y")
    assert_array_equal(predicted(*mapped), plain)


@pytest.mark.parametrize("dtype", ["double[pyarrow]", "int64[pyarrow]"])
def test_frames_backed_by_arrow_give_the_same_predictions(dtype, plain):
    pytest.importorskip("pyarrow")
    frames = as_frame(X, dtype), as_frame(GAPS, "Int64").astype(dtype)
    assert_array_equal(predicted(*frames), plain)


def test_arrow_tables_give_the_same_predictions_and_names(plain):
    arrow = pytest.importorskip("pyarrow")
    tables = arrow.table(as_columns(X)), arrow.table(as_columns(GAPS))
    assert_array_equal(predicted(*tables), plain)
    model = IndependentGP(RBF(9.0, "fixed"), random_state=0).fit(*tables)
    assert (model.feature_names_in_.tolist(), model.output_names_) == (SITES, OUTPUTS)


def test_polars_frames_give_the_same_predictions_and_names(plain):
    polars = pytest.importorskip("polars")
    frames = polars.DataFrame(as_columns(X)), polars.DataFrame(as_columns(GAPS))
    assert_array_equal(predicted(*frames), plain)
    model = IndependentGP(RBF(9.0, "fixed"), random_state=0).fit(*frames)
    assert (model.feature_names_in_.tolist(), model.output_names_) == (SITES, OUTPUTS)
    zinc = polars.Series("Zn", Y[:, 2])
    one = IndependentGP(RBF(9.0, "fixed"), random_state=0).fit(frames[0], zinc)
    assert (one.predict(frames[0]).shape, one.output_names_) == ((16,), ["Zn"])


def test_integers_and_booleans_are_used_as_numbers():
    assert_array_equal(predicted(X.astype(int), Y.astype(np.int16)), predicted(X, Y))
    assert_array_equal(predicted(X, Y > 0), predicted(X, (Y > 0).astype(float)))


def test_fit_and_predict_do_not_modify_their_arguments():
    table, outputs = X.copy(), np.ma.masked_invalid(GAPS)
    predicted(table, outputs)
    assert_array_equal(table, X)
    assert_array_equal(outputs.mask, HOLES)


def test_masked_values_of_observed_are_unknown_outputs():
    model = IndependentGP(RBF(9.0, "fixed"), random_state=0).fit(X, GAPS)
    model = with_weights(model, RNG.normal(size=(1, 3, 3, 1)))
    masked = np.ma.array(Y[:3], mask=[[True, False, True]] * 3)
    with_nan = np.where(masked.mask, np.nan, Y[:3])
    locations = X[:3] + 0.5
    given_nan = model.predict(locations, observed=with_nan)
    assert_array_equal(model.predict(locations, observed=masked), given_nan)
    assert not np.allclose(model.predict(locations), given_nan)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_of_one_output_have_as_many_axes_as_y():
    for make in (EMGPR, EMGPR.paper):
        flat, column = (make(max_iter=5, random_state=0).fit(X, y) for y in (Y[:, 0], Y[:, :1]))
        shapes = [[part.shape for part in m.predict(X, return_std=True)] for m in (flat, column)]
        assert shapes == [[(16,)] * 2, [(16, 1)] * 2]
        assert_allclose(flat.predict(X), column.predict(X)[:, 0], rtol=1e-12)
        assert flat.predict_quantiles(X, [0.1, 0.9]).shape == (2, 16)
        assert column.sample_y(X, 3).shape == (16, 1, 3)
