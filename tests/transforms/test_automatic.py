"""output_transform="auto": what is chosen for data whose transform is known; accepted values."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from emgpr import EMGPR, IndependentGP
from emgpr.latents import Latent, fit_latents
from emgpr.observations import Observations
from emgpr.prediction import LMCModel, leave_out
from emgpr.transforms import OutputScaler, automatic, candidates, choose_transforms
from emgpr.transforms.automatic import MIN_READINGS, leave_one_out
from emgpr.transforms.output_bounds import NON_NEGATIVE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
KERNEL = RBF(1.0, "fixed")
ABSOLUTE = FunctionTransformer(np.abs, np.abs, check_inverse=False)


def gaussian_outputs(seed, n=1, N=50):
    """Noisy smooth functions on a line, independent of each other, with variance 1."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, size=(N, 1)), axis=0)
    root = np.linalg.cholesky(RBF(1.0)(X) + 1e-9 * np.eye(N))
    f = root @ rng.normal(size=(N, n)) + 0.3 * rng.normal(size=(N, n))
    return X, f / f.std(axis=0)


@pytest.mark.parametrize("transform", [None, "log", "yeo-johnson", "normal-score"])
def test_one_inverse_predicts_what_leave_out_predicts_for_every_transform(transform):
    """Given the covariance times the factor for which squared residuals have mean 1."""
    X, f = gaussian_outputs(0)
    Z = OutputScaler.fit(np.exp(f), transform).standardise(np.exp(f))
    latent = Latent(Matern(0.8, nu=0.5), 0.2, 0.0)
    others = np.random.default_rng(0).normal(size=(50, 2))
    residuals, variances = leave_one_out(X, np.hstack([others, Z]), latent)
    assert_allclose((residuals**2 / variances).mean(axis=0), 1.0)
    P = np.linalg.inv(latent.kernel(X) + 0.2 * np.eye(50))
    factor = variances[0, 2] * P[0, 0]
    model = LMCModel(
        (latent.kernel,), np.full((1, 1, 1, 1), factor**0.5), np.array([[0.2 * factor]])
    )
    expected = leave_out(Observations.from_table(X, Z), np.arange(50)[None], model)
    assert_allclose(Z[:, 0] - residuals[:, 2], expected.mean[0, :, 0], atol=1e-9)
    assert_allclose(variances[:, 2], expected.cov[0, :, 0, 0], rtol=1e-9)


def test_candidates_are_scored_with_the_kernel_and_noise_of_the_normal_scores(monkeypatch):
    """One fit for each output, on a part of its readings if there are many."""
    fitted = []

    def fit(table, kernels, learner, **settings):
        latents = fit_latents(table, kernels, learner, **settings)
        fitted.append((table.n_outputs, [latent.n_readings for latent in latents]))
        return latents

    monkeypatch.setattr(automatic, "fit_latents", fit)
    monkeypatch.setattr(automatic, "FIT_SITES", 40)
    X, f = gaussian_outputs(0, 3)
    Y = np.column_stack([f[:, 0], np.exp(f[:, 1]), np.full(50, 7.0)])
    Y[:20, 1] = np.nan
    assert choose_transforms(X, Y) == [None, "log", "softplus"]
    assert fitted == [(2, [40, 30])]


def test_gaussian_outputs_are_left_and_lognormal_ones_get_the_log_in_any_units():
    X, f = gaussian_outputs(0, 2)
    Y = np.column_stack([1e160 * f[:, 0], 1e-3 * np.exp(f[:, 1])])
    assert choose_transforms(X, Y) == [None, "log"]


def test_missing_readings_are_left_out():
    X, f = gaussian_outputs(1, 2, N=60)
    Y = np.column_stack([f[:, 0], np.exp(f[:, 1])])
    Y[::3, 0] = np.nan
    Y[1::3, 1] = np.nan  # a third of the rows has both
    assert choose_transforms(X, Y) == [None, "log"]


def test_a_positive_output_gets_the_log_only_if_the_data_demand_it():
    """Otherwise a map that is nearly the identity, but keeps it positive, as for temperatures."""
    X, f = gaussian_outputs(0)
    assert choose_transforms(X, 100 + f) == ["softplus"]
    assert choose_transforms(X, 100 + f, [None]) == [None]
    assert choose_transforms(X, np.exp(f)) == ["log"]
    assert "log" in candidates(np.exp(f[:, 0]), NON_NEGATIVE)
    assert "log" not in candidates(np.append(0.0, np.exp(f[:, 0])), NON_NEGATIVE)
    assert "log" not in candidates(np.exp(f[:, 0]), (0.0, 1e3))
    left_skewed = 1 + np.exp(2 * f.max()) - np.exp(2 * f)
    assert choose_transforms(X, left_skewed)[0] in ("yeo-johnson", "normal-score")


def test_heavy_tails_and_two_modes_are_transformed():
    X, f = gaussian_outputs(0)
    assert choose_transforms(X, np.sinh(2.5 * f))[0] in ("yeo-johnson", "normal-score")
    noise = 0.3 * np.random.default_rng(0).normal(size=f.shape)
    assert choose_transforms(X, 3 * np.sign(f) + noise) != [None]


def test_outputs_with_the_same_two_modes_are_chosen_together():
    """One output alone gets its normal score; a linear relation with others is worth more.

    From the normal scores of all outputs, no change of a single one is better.
    """
    X, f = gaussian_outputs(0, N=80)
    noise = np.random.default_rng(0).normal(size=(80, 4))
    Y = f + 3 * np.sign(f) + 0.02 * noise
    assert choose_transforms(X, Y[:, :1]) == ["normal-score"]
    assert choose_transforms(X, Y) == [None] * 4


def test_repeated_readings_have_no_normal_score():
    X, f = gaussian_outputs(0, N=80)
    prices = np.round(f + 3 * np.sign(f))
    assert choose_transforms(X, f + 3 * np.sign(f)) == ["normal-score"]
    assert choose_transforms(X, prices)[0] != "normal-score"


def test_of_many_sites_those_with_most_readings_are_used(monkeypatch):
    """The others, with one reading each, have a different distribution."""
    monkeypatch.setattr(automatic, "MAX_SITES", 30)
    X, f = gaussian_outputs(2, 2, N=45)
    Y = np.column_stack([f[:, 0], np.exp(f[:, 1])])
    Y[::3, 1], Y[::3, 0] = np.nan, np.sinh(9 * Y[::3, 0])
    assert choose_transforms(X, Y) == [None, "log"]


def test_outputs_with_few_or_constant_readings_are_left_as_they_are():
    X, f = gaussian_outputs(4)
    few = np.exp(f)
    few[MIN_READINGS - 1 :] = np.nan
    constant = np.full((50, 1), 7.0)
    Y = np.hstack([few, np.exp(f), constant, 1e9 * constant])
    assert choose_transforms(X, Y) == ["softplus", "log", "softplus", "softplus"]
    assert choose_transforms(X, -Y) == [None, "yeo-johnson", None, None]


def test_the_estimator_chooses_by_default_and_inverts_the_choice():
    X, f = gaussian_outputs(2, 2, N=40)
    Y = pd.DataFrame({"height": f[:, 0], "lead": np.exp(f[:, 1])})
    model = IndependentGP(KERNEL, output_transform="auto", random_state=0).fit(X, Y)
    assert model.transforms_ == [None, "log"]
    assert model.get_params()["output_transform"] == "auto"
    given = IndependentGP(KERNEL, output_transform={"lead": "log"}, random_state=0).fit(X, Y)
    assert_allclose(model.predict(X, return_std=True), given.predict(X, return_std=True))
    assert EMGPR().output_transform == "auto"


def test_one_for_all_a_list_and_a_dict_are_equivalent():
    X, f = gaussian_outputs(1, 2, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Zn"])
    root = FunctionTransformer(np.sqrt, np.square)
    predictions = []
    for given in (root, [root, root], {"Zn": root, "Cd": root}):
        model = IndependentGP(KERNEL, output_transform=given, random_state=0).fit(X, Y)
        assert model.transforms_ == [root, root]
        predictions.append(model.predict(X, return_std=True))
    for other in predictions[1:]:
        assert_allclose(other, predictions[0])


def test_each_output_may_have_its_own_transform():
    X, f = gaussian_outputs(1, 3, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Ni", "Zn"])
    listed = [None, "log", PowerTransformer()]
    model = IndependentGP(KERNEL, output_transform=listed, random_state=0).fit(X, Y)
    assert model.transforms_ == listed
    alone = [
        IndependentGP(KERNEL, output_transform=own, random_state=0).fit(X, Y[[name]]).predict(X)
        for own, name in zip(listed, Y, strict=True)
    ]
    assert_allclose(model.predict(X), np.column_stack(alone))
    by_number = IndependentGP(KERNEL, output_transform={1: "log"}, random_state=0)
    assert by_number.fit(X, Y.to_numpy()).transforms_[1] == "log"


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (
            "sqrt",
            r"output_transform='sqrt'; expected one of None, .*'auto', a scikit-learn",
        ),
        (["log"], r"transform has 1 transforms for 2 outputs; expected one"),
        ({"Pb": "log"}, r"transform has the keys \['Pb'\], which are not outputs; expected"),
        (
            ["log", "sqrt"],
            r"output_transform='sqrt' for output 'Zn'; expected one of None,",
        ),
        (PowerTransformer, r"PowerTransformer'>, is a class, not an object"),
        (ABSOLUTE, r"(?s)transform of output 'Cd', .* is not strictly monotone"),
        (
            "log",
            r"The log transform needs positive values, but output \'Cd\' has 2 .*rows 3, 8 ",
        ),
    ],
    ids=str,
)
def test_fit_rejects_a_transform_that_cannot_be_used(transform, message):
    X, f = gaussian_outputs(1, 2, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Zn"])
    Y.loc[[3, 8], "Cd"] = [0.0, -1.0]
    model = IndependentGP(KERNEL, output_transform=transform, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
