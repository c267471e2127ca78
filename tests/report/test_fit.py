"""Parameters and the result of the fit on the page."""

import pytest

from emgpr import EMGPR, IndependentGP
from emgpr.report.fit import as_code


def test_changed_parameters_are_marked_and_open_ones_resolved(metals, joint, page_of):
    table = page_of(metals).tables["Parameters of EMGPR"]
    values = table.column("value")
    changed = {name for name, cell in values.items() if "changed" in cell.style}
    defaults, now = EMGPR().get_params(deep=False), metals.get_params(deep=False)
    assert changed == {name for name in now if repr(now[name]) != repr(defaults[name])}
    assert all(cell.text.endswith("changed") == (n in changed) for n, cell in values.items())
    resolved = table.column("resolved to")
    assert (resolved["n_members"].text, resolved["conditioning"].text) == ("3", "all")
    resolved = page_of(joint).tables["Parameters of EMGPR"].column("resolved to")
    assert resolved["output_transform"].text == "softplus, log"
    assert resolved["batch_size"].text == "all sites"


@pytest.mark.parametrize(
    ("value", "text"),
    [("auto", "'auto'"), (None, "None"), (max, "max()"), (object(), "<object object>")],
)
def test_values_are_written_as_in_code(value, text):
    assert as_code(value) == text


def test_the_course_of_the_optimisation_is_described(joint, metals, soil, page_of):
    stages = joint.history_
    assert [stage["log_likelihood"] for stage in page_of(joint).data["trace"]] == [
        stage.log_likelihood for stage in stages
    ]
    assert f"in {len(stages) - 1} stages" in page_of(joint).text
    assert "of the two steps described in the paper" in page_of(metals).text
    assert isinstance(soil, IndependentGP)
    assert "Every output was fitted independently" in page_of(soil).text


def test_the_result_of_the_fit_is_listed(metals, page_of):
    facts = page_of(metals).tables["Result of the fit"].facts()
    assert facts["log-likelihood"].value == metals.log_marginal_likelihood_value_
    assert facts["sites to which each member was fitted"].text == "30"
    assert facts["predictions are conditioned on"].text == "all readings"
