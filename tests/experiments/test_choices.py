"""Choices: from data through rows to the two tables of the documentation."""

import numpy as np
import pandas as pd
import pytest

from emgpr.experiments import choices
from emgpr.experiments.choices_results import coordinates_text, withheld_text
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow
QUICK = {"kernel": None, "output_transform": None, "max_iter": 3, "n_restarts": 1}
CANDIDATES = {
    choices.NO_TRANSFER: {"estimator": "IndependentGP"} | QUICK,
    "two steps": {"estimator": "EMGPR.paper"} | QUICK,
}


@pytest.fixture(scope="module")
def tables():
    X, Y = smooth_table(np.random.default_rng(5), N=32)
    Y[3, 1] = np.nan
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    return {"smooth": (pd.DataFrame(X, columns=["x_1", "x_2"]), frame)}


@pytest.fixture(scope="module")
def rows(tables, tmp_path_factory):
    path = tmp_path_factory.mktemp("choices") / "rows.jsonl"
    return choices.reproduce(tables, path, candidates=CANDIDATES, folds=2)


def test_every_candidate_answers_every_question_that_applies_to_it(rows):
    asked = [(row["method"], row["question"], row["part"]) for row in rows]
    assert len(asked) == len(set(asked)) == 2 * 2 + 3
    assert ("two steps", "withheld", "b") in asked
    assert (choices.NO_TRANSFER, "withheld", "b") not in asked


def test_tables_show_the_means_of_the_rows(rows):
    alone, two_steps = (
        np.concatenate(
            [r["errors"] for r in rows if r["question"] == "coordinates" and r["method"] == method]
        ).mean()
        for method in CANDIDATES
    )
    line = coordinates_text(rows).splitlines()[-1]
    assert "smooth (32 sites, 2 inputs, 3 outputs)" in line
    assert f"{alone:.3f};" in line
    assert f"{two_steps:.3f};" in line
    withheld = [row for row in rows if row["question"] == "withheld"]
    ours, theirs = (
        np.mean([np.mean(row[key]) for row in withheld]) for key in ("errors", "least_squares")
    )
    assert f"{ours / theirs:.2f} (" in withheld_text(rows).splitlines()[-1]


def test_without_transforms_least_squares_is_regression_on_the_other_outputs(rows, tables):
    row = next(row for row in rows if row["question"] == "withheld" and row["part"] == "a")
    Y = tables["smooth"][1].to_numpy()
    out = np.sort(np.random.default_rng(0).permutation(32)[: int(0.3 * 32)])
    out = out[~np.isnan(Y[out]).any(axis=1)]
    kept = np.setdiff1d(np.flatnonzero(~np.isnan(Y).any(axis=1)), out)
    A = np.column_stack([np.ones(32), Y[:, 1:]])
    slopes = np.linalg.lstsq(A[kept], Y[kept, 0], rcond=None)[0]
    expected = np.abs(A[out] @ slopes - Y[out, 0]) / Y[:, 0].std(ddof=1)
    np.testing.assert_allclose(row["least_squares"], expected, rtol=1e-6)


def test_a_folder_gives_the_tables_of_its_files(tables, tmp_path):
    X, Y = tables["smooth"]
    X.join(Y).to_csv(tmp_path / "soil.csv", index=False)
    (found,) = choices.from_folder(tmp_path).values()
    pd.testing.assert_frame_equal(found[0], X)
    pd.testing.assert_frame_equal(found[1], Y)


def test_a_folder_without_files_and_a_file_without_inputs_are_refused(tables, tmp_path):
    with pytest.raises(ValueError, match="contains no CSV files"):
        choices.from_folder(tmp_path)
    tables["smooth"][1].to_csv(tmp_path / "soil.csv", index=False)
    with pytest.raises(ValueError, match="expected inputs, whose names begin with 'x_'"):
        choices.from_folder(tmp_path)
