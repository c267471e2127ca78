"""Latent processes and correlations on the page are those of the model."""

import numpy as np
from numpy.testing import assert_allclose

from emgpr.report.structure import length_scale_unit

LATENTS = "Latent processes and their shares of each output's variance"


def test_shares_and_correlations_are_those_of_the_model(model, page_of):
    tables = page_of(model).tables
    for output in model.output_names_:
        shares = tables[LATENTS].numbers(f"share of {output}")
        assert_allclose(shares, model.variance_shares_.loc[output], rtol=1e-12)
    signals = tables.get("Correlation of the signals at a location")
    if model.n_outputs_ == 1:
        assert signals is None
        return
    expected = model.signal_correlations().sum(axis=0)
    for column, output in zip(expected.T, model.output_names_, strict=True):
        assert_allclose(signals.numbers(output), column, rtol=1e-12)


def test_contributions_of_the_latents_sum_to_the_correlation(metals, page_of):
    tables = page_of(metals).tables
    parts = [tables[f"Contribution of latent {q}"].numbers("Zn") for q in range(3)]
    total = tables["Correlation of the signals at a location"].numbers("Zn")
    assert_allclose(sum(parts), total)


def test_correlated_noise_has_a_table(joint, page_of):
    table = page_of(joint).tables["Correlation of the noise within a sample"]
    std = np.sqrt(np.diagonal(joint.noise_))
    assert_allclose(table.numbers("Zn"), joint.noise_[1] / std / std[1], rtol=1e-12)


def test_length_scales_have_the_unit_that_all_inputs_share(metals, globe):
    assert length_scale_unit(metals, {"Xloc": "km", "Yloc": "km"}) == "km"
    assert length_scale_unit(metals, {"Xloc": "km"}) == ""
    assert length_scale_unit(globe, {}) == "km"
