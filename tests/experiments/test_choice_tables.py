"""Choices and rules: from data through rows to the tables of the documentation."""

import numpy as np
import pandas as pd
import pytest
from simulated import smooth_table

from emgpr.ensemble import RULES
from emgpr.experiments import choices, rules
from emgpr.experiments.choices_results import coordinates_text, withheld_text

QUICK = {"kernel": None, "transform": None, "max_iter": 3, "n_restarts": 1}
CANDIDATES = {
    choices.NO_TRANSFER: {"estimator": "IndependentGP"} | QUICK,
    "two steps": {"estimator": "EMGPR.paper"} | QUICK,
}


@pytest.fixture
def tables():
    X, Y = smooth_table(np.random.default_rng(5), N=32)
    Y[3, 1] = np.nan
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    return {"smooth": (pd.DataFrame(X, columns=["x_1", "x_2"]), frame)}


@pytest.fixture
def rows(tables, tmp_path):
    return choices.reproduce(tables, tmp_path / "rows.jsonl", candidates=CANDIDATES, folds=2)


def test_every_question_is_asked_of_every_candidate(rows):
    asked = [(row["method"], row["question"], row["part"]) for row in rows]
    assert len(asked) == len(set(asked)) == 2 * 2 + 3
    assert ("two steps", "withheld", "b") in asked
    assert (choices.NO_TRANSFER, "withheld", "b") not in asked


def test_the_tables_say_what_the_rows_do(rows):
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


def test_least_squares_is_least_squares(rows, tables):
    """Without transforms it is an ordinary regression on the other outputs."""
    row = next(row for row in rows if row["question"] == "withheld" and row["part"] == "a")
    Y = tables["smooth"][1].to_numpy()
    out = np.sort(np.random.default_rng(0).permutation(32)[: int(0.3 * 32)])
    out = out[~np.isnan(Y[out]).any(axis=1)]
    kept = np.setdiff1d(np.flatnonzero(~np.isnan(Y).any(axis=1)), out)
    A = np.column_stack([np.ones(32), Y[:, 1:]])
    slopes = np.linalg.lstsq(A[kept], Y[kept, 0], rcond=None)[0]
    expected = np.abs(A[out] @ slopes - Y[out, 0]) / Y[:, 0].std(ddof=1)
    np.testing.assert_allclose(row["least_squares"], expected, rtol=1e-6)


def test_a_folder_gives_its_files(tables, tmp_path):
    X, Y = tables["smooth"]
    X.join(Y).to_csv(tmp_path / "soil.csv", index=False)
    (found,) = choices.from_folder(tmp_path).values()
    pd.testing.assert_frame_equal(found[0], X)
    pd.testing.assert_frame_equal(found[1], Y)


def test_a_file_without_inputs_is_refused(tables, tmp_path):
    with pytest.raises(ValueError, match="holds no CSV files"):
        choices.from_folder(tmp_path)
    tables["smooth"][1].to_csv(tmp_path / "soil.csv", index=False)
    with pytest.raises(ValueError, match="expected inputs, whose names begin with 'x_'"):
        choices.from_folder(tmp_path)


def test_every_rule_joins_the_members_of_one_fit(tables):
    settings = {"estimator": "EMGPR.paper", "batch_size": 9, "conditioning": "batch"} | QUICK
    row = rules.work(tables, {"data": "smooth", "settings": settings, "fold": 0})
    assert list(row["scores"]) == list(RULES)
    assert row["scores"]["mean"]["mae"] == pytest.approx(row["scores"]["average"]["mae"], rel=0.2)
    told = rules.text([row | {"data": "smooth", "settings": settings}])
    assert f"{row['scores']['poe']['mae']:.3f};" in told
