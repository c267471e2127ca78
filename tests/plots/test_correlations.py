"""Maps of the correlation of two outputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr import GPRN, plots

from .appearance import assert_like_reference, overlapping_texts

SETTINGS = {"n_latents": 1, "n_restarts": 1, "output_transform": None, "random_state": 0}


def changing(P):
    """Two outputs that agree on the left, and are opposite on the right."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(60, P))
    field = np.sin(12 * x[:, 0])
    table = np.column_stack([field, np.cos(np.pi * x[:, 0]) * field])
    return x, table + 0.1 * rng.normal(size=table.shape)


@pytest.fixture(scope="module")
def network():
    return GPRN(**SETTINGS).fit(*changing(2))


@pytest.mark.slow
def test_the_map_looks_like_its_reference_picture(network):
    ax = plots.correlation_map(network, "0", "1")
    assert_like_reference(ax, "correlation_map-network")
    assert not overlapping_texts(np.ravel(ax))


def test_the_map_shows_the_correlations_of_the_model(network):
    nodes = np.array([[0.1, 0.2], [0.5, 0.2], [0.9, 0.2], [0.1, 0.8], [0.5, 0.8], [0.9, 0.8]])
    ax = plots.correlation_map(network, "0", "1", nodes)
    drawn = np.ma.filled(ax.collections[0].get_array(), np.nan).ravel()
    expected = network.correlations(nodes)[:, 0, 1]
    assert expected[0] > 0.5
    assert expected[2] < -0.5
    assert_allclose(np.sort(drawn[np.isfinite(drawn)]), np.sort(expected))


def test_one_input_gives_a_line():
    model = GPRN(**SETTINGS).fit(*changing(1))
    ax = plots.correlation_map(model, "0", "1", include_noise=True)
    x, y = ax.lines[-1].get_data()
    expected = model.correlations(np.asarray(x)[:, None], include_noise=True)[:, 0, 1]
    assert_allclose(y, expected)


def test_other_models_are_refused_by_name(metals):
    with pytest.raises(TypeError, match="draws models of class GPRN, not EMGPR"):
        plots.correlation_map(metals, "Cd", "Ni")
