"""scikit-learn's contract: its own checks, parameters, searches, pipelines and scores."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.inspection import permutation_importance
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from emgpr import (
    CMOGP,
    EMGPR,
    ICM,
    LMC,
    SLFM,
    CoKriging,
    ConditionalGP,
    IndependentGP,
    OnePassGP,
    spatial_blocks,
)
from emgpr.arrays import JitterWarning
from emgpr.kernels import NAMED_KERNELS
from emgpr.latents import FITC, PoE
from emgpr.metrics import over_readings
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

FAMILY = [EMGPR, ICM, LMC, SLFM, IndependentGP, ConditionalGP]
EVERY = [*FAMILY, CMOGP, OnePassGP]
FIXED = RBF(0.4, "fixed")
CV = KFold(3, shuffle=True, random_state=0)
MAE = make_scorer(over_readings(metrics.mean_absolute_error), greater_is_better=False)
each_class = pytest.mark.parametrize("Estimator", EVERY)


def independent(kernel=FIXED, **settings):
    return IndependentGP(kernel, random_state=0, **settings)


@pytest.fixture(scope="module")
def table():
    """Frames with names, and missing readings."""
    rng = np.random.default_rng(20171)
    X, Y = smooth_table(rng, N=45)
    Y += 0.3 * Y.std(axis=0) * rng.normal(size=Y.shape)
    Y[::4, 0] = np.nan
    return pd.DataFrame(X, columns=["east", "north"]), pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])


# --- scikit-learn's checks

SELECTED = (  # for classes that differ from EMGPR in their parameters only
    "check_estimator_cloneable",
    "check_estimators_pickle",
    "check_get_params_invariance",
    "check_set_params",
    "check_supervised_y_2d",
    "check_regressor_multioutput",
    "check_regressor_data_not_an_array",
)


def run(check, estimator):
    with warnings.catch_warnings():
        # The checks fit nothing but noise and constant outputs, of which fits warn rightly.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", JitterWarning)
        warnings.filterwarnings("ignore", "The nuggets of all outputs are zero", UserWarning)
        warnings.filterwarnings("ignore", "Output .* has one value only", UserWarning)
        warnings.filterwarnings("ignore", ".*codes of classes", UserWarning)
        check(estimator)


@parametrize_with_checks([EMGPR("rbf", max_iter=5, n_restarts=1)])
def test_emgpr_passes_every_check_of_scikit_learn(estimator, check):
    run(check, estimator)


def selected_checks():
    for Estimator in (ICM, LMC, SLFM, IndependentGP, ConditionalGP):
        for estimator, check in estimator_checks_generator(Estimator(max_iter=5, n_restarts=1)):
            name = check.func.__name__
            if name in SELECTED:
                yield pytest.param(estimator, check, id=f"{Estimator.__name__}-{name}")


@parametrize_with_checks([CMOGP(max_iter=5, n_restarts=1), CoKriging("exponential")])
def test_other_models_pass_every_check_of_scikit_learn(estimator, check):
    run(check, estimator)


@pytest.mark.parametrize(("estimator", "check"), list(selected_checks()))
def test_the_family_passes_checks_of_what_differs(estimator, check):
    run(check, estimator)


# --- parameters


@each_class
def test_a_clone_has_the_parameters_of_its_original(Estimator):
    changes = {
        "kernel": Matern(2.0, nu=1.5),
        "output_transform": ["log", None, PowerTransformer()],
        "max_iter": 7,
        "random_state": 3,
    }
    model = Estimator(**changes)
    params = clone(model).get_params()
    assert params["kernel__length_scale"] == 2.0
    assert (params["max_iter"], params["random_state"]) == (7, 3)
    assert params["output_transform"][:2] == ["log", None]
    assert isinstance(params["output_transform"][2], PowerTransformer)
    assert params.keys() == model.get_params().keys()
    assert "max_iter=7" in repr(model)
    declared = set(inspect.signature(Estimator).parameters)
    assert set(model.get_params(deep=False)) == declared


@each_class
def test_every_parameter_survives_construction_clone_and_set_params(Estimator):
    """Whatever the value: parameters are stored as they are and validated in fit."""
    for name in Estimator().get_params(deep=False):
        value = object()
        model = Estimator(**{name: value})
        assert getattr(model, name) is value
        assert Estimator().set_params(**{name: value}).get_params(deep=False)[name] is value
        assert clone(Estimator(**{name: "text"})).get_params(deep=False)[name] == "text"


@each_class
def test_only_the_kernel_is_positional(Estimator):
    assert Estimator("rbf").kernel == "rbf"
    with pytest.raises(TypeError, match="positional"):
        Estimator("rbf", 2)


@each_class
def test_the_old_name_of_output_transform_is_refused_with_the_new_one(Estimator):
    message = f"{Estimator.__name__} has no parameter 'transform'; .*'output_transform'"
    with pytest.raises(TypeError, match=message):
        Estimator(transform="log")
    model = Estimator(output_transform="log")
    with pytest.raises(TypeError, match=message):
        model.set_params(transform=None, max_iter=9)
    assert model.get_params()["output_transform"] == "log"
    assert model.max_iter != 9  # nothing is set if something is refused
    assert not hasattr(model, "transform")  # else it would pass for a transformer


@each_class
def test_unknown_parameters_are_refused(Estimator):
    with pytest.raises(TypeError, match="kernels"):
        Estimator(kernels=RBF())
    with pytest.raises(ValueError, match="Invalid parameter 'kernels'"):
        Estimator().set_params(kernels=RBF())


@each_class
def test_parameters_of_the_kernel_can_be_set(Estimator):
    model = Estimator(RBF(1.0) + Matern(2.0))
    model.set_params(kernel__k1__length_scale=5.0, max_iter=9)
    assert model.get_params()["kernel__k1__length_scale"] == 5.0
    assert model.max_iter == 9


@pytest.mark.parametrize("Estimator", FAMILY)
def test_parameters_of_the_learner_can_be_set_and_cloned(Estimator):
    model = Estimator(latent_learner=FITC(100))
    model.set_params(latent_learner__n_inducing=50)
    assert model.latent_learner.n_inducing == 50
    copied = clone(model)
    assert copied.get_params()["latent_learner__n_inducing"] == 50
    assert copied.latent_learner is not model.latent_learner
    with pytest.raises(ValueError, match="Invalid parameter 'inducing'"):
        model.set_params(latent_learner__inducing=5)


def test_a_search_sets_parameters_of_the_learner(table):
    X, Y = table
    search = GridSearchCV(
        independent(latent_learner=FITC(5), max_iter=5),
        {"latent_learner__n_inducing": [2, 12]},
        cv=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X, Y)
    assert search.best_params_ == {"latent_learner__n_inducing": 12}
    assert search.best_estimator_.latent_learner_.n_inducing == 12
    assert search.estimator.latent_learner.n_inducing == 5


@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_a_named_kernel_gives_the_fit_of_the_kernel_itself(table, name):
    kernels = {
        "rbf": RBF(),
        "matern12": Matern(nu=0.5),
        "matern32": Matern(nu=1.5),
        "matern52": Matern(nu=2.5),
    }
    X, Y = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = independent(name, max_iter=10).fit(X, Y)
        other = independent(kernels[name], max_iter=10).fit(X, Y)
    assert one.kernels_ == other.kernels_
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_from_sums_takes_named_kernels_too(table):
    X, y = table[0], table[1]["Ni"]
    settings = {"n_functions": 21, "tolerance": 0.9, "max_iter": 3, "n_restarts": 1, "n_start": 20}
    one, other = (
        OnePassGP(kernel, random_state=0, **settings).fit(X, y)
        for kernel in ("matern52", Matern(nu=2.5))
    )
    assert_array_equal(one.predict(X), other.predict(X))


def test_fit_changes_nothing_that_it_was_given(table):
    X, Y = table
    kernel = RBF(3.0)
    learner = GaussianProcessRegressor(RBF(0.4) + RBF(2.0), optimizer=None, alpha=0.1)
    model = IndependentGP(kernel, latent_learner=learner)
    before = model.get_params()
    given = X.to_numpy().copy(), Y.to_numpy().copy(), X.to_numpy()[:4] + 0.01, Y.to_numpy()[:4]
    given = [part.copy() for part in given]
    copies = [part.copy() for part in given]
    for part in given:
        part.flags.writeable = False
    model.fit(*given[:2]).predict(given[2], observed=given[3])
    after = model.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)
    assert kernel.length_scale == 3.0
    assert not hasattr(learner, "kernel_")
    for part, copied in zip(given, copies, strict=True):
        assert_array_equal(part, copied)


@pytest.mark.parametrize("seed", [4, None, np.random.RandomState(4), np.random.default_rng(4)])
def test_any_kind_of_seed_can_be_given(table, seed):
    model = IndependentGP(FIXED, random_state=seed).fit(*table)
    assert np.isfinite(model.predict(table[0])).all()


@pytest.mark.parametrize("model", [EMGPR(Matern(nu=1.5)), OnePassGP(output_transform="log")])
def test_estimators_have_a_html_representation(model):
    html = model._repr_html_()
    assert type(model).__name__ in html
    assert "Matern" in html or "log" in html
    assert set(model._repr_mimebundle_()) == {"text/plain", "text/html"}


# --- pipelines, searches and scores with missing readings


def test_a_pipeline_passes_on_the_options_of_predict(table):
    X, Y = table
    pipe = make_pipeline(StandardScaler(), independent()).fit(X, Y)
    scaled = StandardScaler().fit(X)
    alone = independent().fit(scaled.transform(X), Y)
    predicted = pipe.predict(X[:5], return_std=True, observed=Y[["Zn"]][:5])
    expected = alone.predict(scaled.transform(X[:5]), return_std=True, observed=Y[["Zn"]][:5])
    assert_allclose(predicted, expected)
    assert np.isfinite(pipe.score(X, Y))


def test_names_pass_through_a_pipeline_of_frames(table):
    X, Y = table
    mixed = X.assign(rock=pd.Categorical(["chalk", "marl", "clay"] * 15))
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["rock"]),
        (StandardScaler(), ["east", "north"]),
        verbose_feature_names_out=False,
    )
    pipe = make_pipeline(columns, independent()).set_output(transform="pandas").fit(mixed, Y)
    names = ["rock_chalk", "rock_clay", "rock_marl", "east", "north"]
    assert_array_equal(pipe[-1].feature_names_in_, names)
    assert pipe[-1].output_names_ == ["Cd", "Ni", "Zn"]
    shuffled = mixed[["rock", "north", "east"]]  # found by name
    assert_allclose(pipe.predict(shuffled), pipe.predict(mixed))


def test_cross_validation_by_scikit_learn_takes_missing_readings(table):
    X, Y = table
    scores = cross_val_score(independent(), X, Y, cv=CV)
    expected = []
    for train, test in CV.split(X):
        model = independent().fit(X.iloc[train], Y.iloc[train])
        expected.append(model.score(X.iloc[test], Y.iloc[test]))
    assert_allclose(scores, expected)
    assert np.isfinite(scores).all()


def test_a_metric_over_readings_leaves_out_missing_ones(table):
    X, Y = table
    predicted = cross_val_predict(independent(), X, Y, cv=CV)
    scores = cross_val_score(independent(), X, Y, cv=CV, scoring=MAE)
    for (_, test), score in zip(CV.split(X), scores, strict=True):
        errors = (Y.iloc[test] - predicted[test]).abs().mean()  # pandas skips NaN
        assert_allclose(-score, errors.mean())


def test_several_scores_in_folds_of_blocks(table):
    X, Y = table
    found = cross_validate(
        independent(), X, Y, groups=spatial_blocks(X, 4), cv=GroupKFold(2),
        scoring={"mae": MAE, "r2": make_scorer(over_readings(metrics.r2_score))},
    )  # fmt: skip
    assert np.isfinite(found["test_mae"]).all()
    assert np.isfinite(found["test_r2"]).all()
    assert repr(pickle.loads(pickle.dumps(MAE))) == repr(MAE)


def test_a_search_through_a_pipeline_sets_parameters_of_the_kernel(table):
    X, Y = table
    pipe = make_pipeline(StandardScaler(), independent(Matern(1.0, "fixed", nu=0.5)))
    grid = {"independentgp__kernel__length_scale": [0.01, 1.0]}
    search = GridSearchCV(pipe, grid, cv=CV, scoring=MAE).fit(X, Y)
    assert search.best_params_ == {"independentgp__kernel__length_scale": 1.0}
    assert search.best_estimator_[-1].kernels_[0].length_scale == 1.0
    assert search.predict(X[:3]).shape == (3, 3)
    assert "<div" in search._repr_html_()


def test_permutation_importance_finds_an_input_without_influence(table):
    X, Y = table
    X = X.assign(noise=np.random.default_rng(1).normal(size=len(X)))
    model = independent(RBF([0.4, 0.4, 100.0], "fixed")).fit(X, Y)
    found = permutation_importance(model, X, Y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmin() == 2


def test_a_learner_is_pickled_with_its_model(table):
    model = independent(latent_learner=PoE(20, 2)).fit(*table)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params()["latent_learner__batch_size"] == 20
    assert_array_equal(again.predict(table[0]), model.predict(table[0]))
