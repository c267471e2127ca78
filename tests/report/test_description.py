"""Reports on models that are not linear models of coregionalisation."""

import re

import numpy as np
import pytest

from emgpr import CMOGP, CoKriging, IndependentGP
from emgpr.kernels import Spherical
from emgpr.report import write_report
from emgpr.report.charts import operations_per_node
from emgpr.report.description import describe
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The nuggets of all outputs are zero"),
]
X, Y = smooth_table(np.random.default_rng(0), N=40)


@pytest.fixture(scope="module")
def convolved():
    return CMOGP(n_restarts=2, max_iter=10, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def kriged():
    return CoKriging([Spherical(0.4, "fixed")], conditioning=9).fit(X, Y)


def text_of(model, tmp_path):
    page = write_report(model, tmp_path / "page.html", resolution=12).read_text("utf-8")
    page = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_report_on_convolved_processes(convolved, tmp_path):
    text = text_of(convolved, tmp_path)
    assert "The model is CMOGP with 1 latent process that each output smooths differently" in text
    assert "optimised together from 2 starting points" in text
    assert "Contribution of own process" in text
    assert "Variograms of the readings" in text
    found = describe(convolved)
    assert found.kernels == [*convolved.kernels_, None]
    assert found.results["starting points"].value == 2
    assert found.resolved["output_transform"]


def test_a_report_on_cokriging(kriged, tmp_path):
    text = text_of(kriged, tmp_path)
    assert "The model is CoKriging with a nugget and 1 structure." in text
    assert "fitted to direct and cross-variograms" in text
    assert "conditioned only on the 9 nearest readings of each output" in text
    assert "Seed (random_state)" not in text  # nothing is random
    assert "structure 0" in text
    assert describe(kriged).uses_neighbours


def test_a_file_can_be_reported_on(convolved, tmp_path):
    convolved.save(tmp_path / "model.emgpr")
    page = write_report(tmp_path / "model.emgpr", tmp_path / "page.html", resolution=12)
    assert "model.emgpr" in page.read_text("utf-8")


def test_advice_depends_on_the_model(convolved, kriged):
    assert "max_iter" in describe(convolved).if_not_converged
    assert "max_lag" in describe(kriged).if_not_converged


def test_the_cost_of_a_node_is_that_of_all_readings(convolved):
    assert operations_per_node(convolved.posterior_) == 3 * 120**2


def test_other_objects_have_no_description():
    with pytest.raises(TypeError, match="no description of dict"):
        describe({})


def test_linear_models_are_described_as_before():
    model = IndependentGP("rbf", random_state=0, max_iter=3, n_restarts=1).fit(X, Y[:, :1])
    found = describe(model)
    assert found.sentence == ""
    assert (found.n_processes, found.n_members, found.n_failed) == (1, 1, 0)
    assert found.resolved["kernel"] == "RBF"
