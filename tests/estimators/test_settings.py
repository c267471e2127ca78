"""Parameters: stored as given, checked in fit, found by scikit-learn's tools."""

import numpy as np
import pytest
from simulated import smooth_table
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.latents import PoE

FAMILY = [EMGPR, ICM, LMC, SLFM, IndependentGP]
BAD = [
    (EMGPR, {"rank": 0}, "rank=0; expected a whole number of at least 1"),
    (EMGPR, {"rank": 1.5}, "rank=1.5"),
    (EMGPR, {"rank": True}, "rank=True"),
    (EMGPR, {"n_latents": 0}, "n_latents=0"),
    (EMGPR, {"n_latents": "many"}, "n_latents='many'"),
    (SLFM, {"n_latents": -2}, "n_latents=-2"),
    (EMGPR, {"n_members": 0}, "n_members=0"),
    (EMGPR, {"batch_size": 0}, 'batch_size=0.*or "auto" or None'),
    (EMGPR, {"batch_size": "paper"}, "batch_size='paper'"),
    (
        EMGPR,
        {"partition": "clustered"},
        "partition='clustered'; expected one of 'stratified', 'random', 'strided'",
    ),
    (EMGPR, {"conditioning": "nearest"}, 'conditioning=.nearest.*"auto", "all" or "batch"'),
    (EMGPR, {"conditioning": 0}, "conditioning=0"),
    (EMGPR, {"refine": -1}, 'refine=-1; expected a whole number of at least 1, 0.*"joint"'),
    (EMGPR, {"refine": 1.5}, "refine=1.5"),
    (EMGPR, {"refine": "jointly"}, "refine='jointly'"),
    (EMGPR, {"refine": None}, "refine=None"),
    (EMGPR, {"refine": True}, "refine=True"),
    (EMGPR, {"refine": False}, "refine=False"),
    (EMGPR, {"noise": "full"}, "noise='full'; expected one of .*'independent', 'correlated'"),
    (EMGPR, {"noise": None}, "noise=None"),
    (EMGPR, {"noise": True}, "noise=True"),
    (
        EMGPR,
        {"noise": "correlated", "refine": 0},
        'noise="correlated" is learned.*set refine="joint", or refine=1',
    ),
    (EMGPR, {"noise": "correlated", "refine": -1}, "refine=-1"),
    (EMGPR, {"transform": "sqrt"}, "transform='sqrt'; expected one of None, 'log'"),
    (EMGPR, {"max_iter": 0}, "max_iter=0"),
    (EMGPR, {"n_restarts": 0}, "n_restarts=0"),
    (EMGPR, {"kernel": "rbf"}, "kernel='rbf' is not a scikit-learn kernel"),
    (EMGPR, {"kernel": RBF}, "is not a scikit-learn kernel"),
    (EMGPR, {"kernel": [RBF(), "rbf", RBF()]}, "kernel='rbf' is not"),
    (EMGPR, {"kernel": [RBF(), None, RBF()]}, "kernel=None is not"),
    (EMGPR, {"kernel": [RBF(), RBF()]}, "2 kernels for 3 latent processes"),
    (ICM, {"kernel": [RBF(), RBF(), RBF()]}, "3 kernels for 1 latent processes"),
    (EMGPR, {"kernel": RBF([1.0, 1.0, 1.0])}, "3 length.*2 columns"),
    (
        EMGPR,
        {"latent_learner": "sparse"},
        'latent_learner=\'sparse\'; expected "auto", "exact", "poe"',
    ),
    (EMGPR, {"latent_learner": PoE}, "latent_learner=<class.*with a method learn"),
    (EMGPR, {"latent_learner": ["exact"] * 3}, 'latent_learner=.*expected "auto", "exact"'),
    (EMGPR, {"latent_learner": [GaussianProcessRegressor(), "exact", None]}, "latent_learner="),
]


@pytest.fixture
def table(rng):
    return smooth_table(rng, N=20)


@pytest.mark.parametrize(
    ("Estimator", "settings", "message"), BAD, ids=[f"{case[0].__name__} {case[1]}" for case in BAD]
)
def test_a_setting_that_means_nothing_is_refused_by_name(table, Estimator, settings, message):
    model = Estimator(**settings)  # the constructor only stores
    with pytest.raises(ValueError, match=message):
        model.fit(*table)


def test_a_list_of_learners_must_hold_regressors_even_for_one_output(table):
    X, Y = table
    with pytest.raises(ValueError, match="latent_learner"):
        EMGPR(latent_learner=["exact"]).fit(X, Y[:, 0])


@pytest.mark.parametrize("Estimator", FAMILY)
def test_parameters_are_stored_as_given_and_cloned(Estimator):
    model = Estimator(Matern(2.0, nu=1.5), transform="log", max_iter=7, random_state=3)
    params = clone(model).get_params()
    assert params["transform"] == "log"
    assert params["kernel__length_scale"] == 2.0
    assert (params["max_iter"], params["random_state"]) == (7, 3)
    assert "transform='log'" in repr(model)


@pytest.mark.parametrize("Estimator", FAMILY)
def test_parameters_can_be_set_even_inside_the_kernel(Estimator):
    model = Estimator(RBF(1.0) + Matern(2.0))
    model.set_params(kernel__k1__length_scale=5.0, transform="log", max_iter=9)
    assert model.get_params()["kernel__k1__length_scale"] == 5.0
    assert model.get_params()["transform"] == "log"
    assert model.max_iter == 9
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(kernels=RBF())


@pytest.mark.parametrize("Estimator", FAMILY)
def test_a_parameter_named_transform_makes_no_transformer(Estimator):
    model = Estimator(transform="log")
    assert not hasattr(model, "transform")
    with pytest.raises(AttributeError, match=r"get_params\(\)\['transform'\]"):
        model.transform  # noqa: B018


def test_fit_rewrites_nothing_it_was_given(table):
    kernel = RBF(3.0)
    learner = GaussianProcessRegressor(RBF(0.4) + RBF(2.0), optimizer=None, alpha=0.1)
    model = IndependentGP(kernel, latent_learner=learner)
    before = model.get_params()
    model.fit(*table)
    after = model.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)
    assert kernel.length_scale == 3.0
    assert not hasattr(learner, "kernel_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_can_be_searched_over_and_validated_with_missing_outputs(table):
    X, Y = table
    Y[::7, 2] = np.nan
    model = make_pipeline(StandardScaler(), IndependentGP(RBF(1.0, "fixed"), random_state=0))
    grid = {"independentgp__kernel__length_scale": [0.01, 1.0]}
    found = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert found.best_params_ == {"independentgp__kernel__length_scale": 1.0}
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("seed", [4, None, np.random.RandomState(4), np.random.default_rng(4)])
def test_any_kind_of_seed_will_do(table, seed):
    model = IndependentGP(RBF(0.4, "fixed"), random_state=seed).fit(*table)
    assert np.isfinite(model.predict(table[0])).all()
