"""What every output is made of, as bars: whose they are, how long, and what is written on them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from simulated import paper, smooth_table
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import SLFM
from emgpr.plots import variance_shares

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNELS = [RBF(0.4, "fixed"), Matern([0.2, 1.5], "fixed", nu=1.5), RBF(0.4) + RBF(2.0)]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    """Three metals of three latents, one without a length-scale of its own."""
    X, Y = smooth_table(np.random.default_rng(4), N=20)
    metals = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])
    settings = {"batch_size": None, "max_iter": 4, "n_restarts": 1, "random_state": 0}
    return paper(KERNELS, **settings).fit(X, metals)


def test_a_bar_an_output_from_its_shares(model):
    ax = variance_shares(model)
    shares = model.variance_shares_
    assert [text.get_text() for text in ax.get_yticklabels()] == ["Cd", "Ni", "Zn"]
    assert len(ax.containers) == shares.shape[1]
    for container, column in zip(ax.containers, shares, strict=True):
        assert_allclose([bar.get_width() for bar in container], shares[column], atol=1e-12)
    ends = [bar.get_x() + bar.get_width() for bar in ax.containers[-1]]
    assert_allclose(ends, 1.0)
    starts = [bar.get_x() for bar in ax.containers[1]]
    assert_allclose(starts, shares.iloc[:, 0])


def test_the_first_output_is_on_top(model):
    low, high = variance_shares(model).get_ylim()
    assert low > high


def test_latents_are_named_by_their_length_scales(model):
    labels = [text.get_text() for text in variance_shares(model).get_legend().get_texts()]
    assert labels == [
        "latent 0, length-scale 0.4",
        "latent 1, length-scale 0.2 × 1.5",
        "latent 2",
        "noise",
    ]


def test_shares_are_written_on_bars_that_have_room(model):
    ax = variance_shares(model)
    shares = model.variance_shares_.to_numpy()
    written = sorted(int(text.get_text()) for text in ax.texts)
    assert written == sorted(round(100 * share) for share in shares[shares >= 0.06])
    for text in ax.texts:
        bar = next(
            bar
            for bars in ax.containers
            for bar in bars
            if bar.contains_point(ax.transData.transform(text.get_position()))
        )
        dark = sum(bar.get_facecolor()[:3]) < 1.4
        assert text.get_color() == ("white" if dark else "black")


def test_draws_on_the_axes_it_is_given(model):
    _, ax = plt.subplots()
    assert variance_shares(model, ax=ax) is ax
    assert len(plt.get_fignums()) == 1
    ax.figure.draw_without_rendering()


def test_one_latent_and_one_output_will_do():
    X, Y = smooth_table(np.random.default_rng(4), N=20)
    settings = {"n_latents": 1, "max_iter": 4, "n_restarts": 1, "random_state": 0}
    ax = variance_shares(SLFM(RBF(0.4, "fixed"), **settings).fit(X, Y[:, 0]))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0"]
    assert len(ax.containers) == 2
