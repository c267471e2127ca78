"""Provenance: checksums of the training data and of the model file, and versions."""

import hashlib

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import IndependentGP, OnePassGP
from emgpr.report import checksum, write_report

pytestmark = pytest.mark.slow


@pytest.fixture
def model_file(failed, tmp_path):
    """A file of `failed`, which predicts as `metals` does."""
    failed.save(tmp_path / "jura.emgpr")
    return tmp_path / "jura.emgpr"


def test_a_file_gives_the_same_page_with_its_checksum_and_what_failed(model_file, metals, page_of):
    page, from_model = page_of(model_file), page_of(metals)
    assert page.data == from_model.data
    assert page.tables["Outputs"] == from_model.tables["Outputs"]
    for notice in ("2 of 5 ensemble members failed", "The fit did not converge completely"):
        assert page.text.index(notice) < page.text.index("Maps The maps show the predicted")
    fit = page.tables["Result of the fit"].facts()
    assert fit["members that failed and are not used"].value == 2
    assert fit["converged"].text == "no"
    facts = page.tables["Origin of this report"].facts()
    assert facts["Model file, SHA-256"].text == hashlib.sha256(model_file.read_bytes()).hexdigest()
    assert facts["Model file, bytes"].value == model_file.stat().st_size
    assert facts["Model file"].text == "jura.emgpr"
    assert facts["Model file, written"].text.endswith(f"by emgpr {emgpr.__version__}")
    assert facts["emgpr"].text == emgpr.__version__
    assert facts["numpy"].text == np.__version__
    assert facts["Seed (random_state)"].text == "0"
    assert facts["Training data, SHA-256"].text == checksum(*metals.training_data())
    assert "Model file" not in from_model.tables["Origin of this report"].facts()


@pytest.mark.filterwarnings("ignore:.* of 30 rows", "ignore:.*codes of classes")
@pytest.mark.parametrize("transform", [None, "yeo-johnson", "normal-score"])
def test_the_checksum_is_that_of_the_table_that_was_fitted(transform):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    Y = np.column_stack([rng.poisson(1.0, 30), 1e6 + rng.normal(size=30)]).astype(float)
    Y[3, 0] = Y[5] = np.nan
    kernel = RBF(0.3, "fixed")
    model = IndependentGP(kernel, output_transform=transform, random_state=0).fit(X, Y)
    assert checksum(*model.training_data()) == checksum(X, Y)
    other = Y.copy()
    other[0, 1] += 0.01
    assert checksum(X, other) != checksum(X, Y)


def test_the_file_of_a_model_that_keeps_no_readings_is_refused(tmp_path):
    X = np.linspace(0, 6, 40)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    OnePassGP(n_functions=20, random_state=0).fit(X, y).save(tmp_path / "sine.emgpr")
    with pytest.raises(TypeError, match="class OnePassGP, which does not keep its training"):
        write_report(tmp_path / "sine.emgpr", tmp_path / "report.html")
