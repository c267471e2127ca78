"""A model that was saved and loaded is the model that was fitted, in every respect."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

import emgpr
from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP, ModelFileError, OnePassGP, persistence
from emgpr.model_files.files import FORMAT, VERSION
from tests.sameness import assert_same
from tests.simulated import paper, smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning",
        "ignore:Batches of:UserWarning",
        "ignore:.* in 2 of 26 rows:UserWarning",
    ),
]
X, Y = smooth_table(np.random.default_rng(3), N=26)
Y = np.exp((Y - Y.mean(axis=0)) / Y.std(axis=0))
Y[::6, 1] = np.nan
NEW = np.random.default_rng(4).uniform(size=(4, 2))
OBSERVED = np.array([[1.0, np.nan, np.nan], [np.nan] * 3, [np.nan, 2.0, 0.5], [1.0, 1.5, np.nan]])
QUICK = {"max_iter": 4, "n_restarts": 1, "random_state": 0}
SUMS = QUICK | {"n_functions": 41, "tolerance": 0.5}
FIXTURES = Path(__file__).parent / "fixtures"


class OwnKernel(sk.RBF):
    """A kernel of the user's."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, dK = super().__call__(X, Y, eval_gradient=True)
            return K, dK
        return super().__call__(X, Y) * 1.0


class OwnTransformer(TransformerMixin, BaseEstimator):
    """A transformer of the user's, with a fitted attribute."""

    def fit(self, X, y=None):
        self.half_ = np.max(X) / 2
        return self

    def transform(self, X):
        return X / self.half_

    def inverse_transform(self, X):
        return X * self.half_


def own_rule(means, covs, prior):
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


def quick(kernel=None, **settings):
    return IndependentGP(kernel, **(QUICK | settings))


MODELS = {
    "the defaults": EMGPR(**QUICK),
    "the paper": EMGPR.paper(**QUICK),
    "ICM with neighbours": ICM(conditioning=5, **QUICK),
    "SLFM": SLFM(**QUICK),
    "LMC": LMC(rank=2, n_latents=2, **QUICK),
    "correlated noise": EMGPR(noise="correlated", rank=2, n_latents=2, prior=None, **QUICK),
    "fewer latents": EMGPR(n_latents="auto", refine=1, **QUICK),
    "more latents than outputs": LMC([sk.RBF(), sk.Matern(), sk.RBF(2.0), sk.RBF(0.1)],
                                     n_latents=4, **QUICK),
    "batches": paper(conditioning="batch", batch_size=9, combine="grbcm", **QUICK),
    "no variance at the origin": quick(sk.DotProduct(0.0, "fixed") + sk.RBF(0.5)),
    "noise without a bound": quick(sk.RBF(0.5) + sk.WhiteKernel(0.1, (1e-5, np.inf))),
    "an array of transforms": quick(output_transform=np.array(["log", None, "log"], dtype=object)),
    "transforms by name": quick(output_transform={"2": "normal-score", "0": PowerTransformer(),
                                                  "1": "yeo-johnson"}),
    "a transform by number": quick(output_transform={1: "log"}),
    "functions of NumPy": quick(output_transform=FunctionTransformer(np.arcsinh, np.sinh)),
    "a generator": quick(random_state=np.random.default_rng(5)),
    "an external learner": quick(latent_learner=GaussianProcessRegressor(sk.RBF(0.5), alpha=0.1)),
    "external learners": quick(latent_learner=[GaussianProcessRegressor(alpha=0.1)] * 3),
    "not standardised": quick(normalize_y=False),
    "sums": OnePassGP(**SUMS),
    "sums, independent noise": OnePassGP(noise="independent", n_latents=2, rank=1, **SUMS),
    "sums, listed kernels": OnePassGP([sk.Matern(nu=2.5), sk.RBF(0.5, "fixed"), 0.5 * sk.RBF()],
                                      output_transform="log", box=([0, 0], [1, 1]), **SUMS),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    """Fit each of the models once."""
    models = {}

    def get(case):
        if case not in models:
            models[case] = clone(MODELS[case]).fit(X, Y)
        return models[case]

    return get


def round_trip(model, folder, **given):
    model.save(folder / "model.emgpr")
    return emgpr.load(folder / "model.emgpr", **given)


def predictions(model, x=NEW, observed=OBSERVED):
    """Yield predictions of every kind."""
    yield from model.predict(x, return_std=True)
    yield from model.predict(x, return_cov=True, statistic="mean", include_noise=False)
    yield from model.predict(x, return_std=True, observed=observed)
    yield model.predict_quantiles(x, [0.1, 0.9], observed=observed)
    yield model.predict_exceedance(x, 1.5)
    yield model.sample_y(x, 3, random_state=1)
    for by in ("site", "output"):
        yield from (frame.to_numpy() for frame in vars(model.cross_validate(by)).values()
                    if isinstance(frame, pd.DataFrame))  # fmt: skip
        yield model.transfer_report(by).table.drop(columns="verdict").to_numpy()


@pytest.mark.parametrize("case", MODELS)
def test_a_loaded_model_holds_what_the_fitted_one_does(case, fitted, tmp_path):
    model = fitted(case)
    again = round_trip(model, tmp_path)
    assert_same(vars(again), {name: vars(model)[name] for name in vars(again)})
    assert vars(again).keys() == vars(model).keys()
    assert_same(model.get_params(), again.get_params())
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize(
    "case", ["the defaults", "ICM with neighbours", "correlated noise", "batches",
             "transforms by name"],
)  # fmt: skip
def test_a_loaded_model_predicts_as_the_fitted_one_does(case, fitted, tmp_path):
    model = fitted(case)
    again = round_trip(model, tmp_path)
    for ours, theirs in zip(predictions(again), predictions(model), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_stacking_weights_are_stored(tmp_path, rng):
    table = np.column_stack([Y, rng.normal(size=(len(Y), 1))])
    model = EMGPR(output_transform=None, **QUICK).fit(X, table)
    again = round_trip(model, tmp_path)
    assert len(model.stacking_weights_) > 0
    pd.testing.assert_frame_equal(again.stacking_weights_, model.stacking_weights_)
    observed = np.column_stack([OBSERVED, [np.nan, 0.3, np.nan, np.nan]])
    for ours, theirs in zip(
        predictions(again, observed=observed), predictions(model, observed=observed), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1e-150, 9.9e152])
def test_values_that_can_be_fitted_can_be_saved(size, tmp_path):
    model = quick().fit(9e99 * X, size * Y / np.nanmax(Y, axis=0))
    assert_allclose(round_trip(model, tmp_path).predict(X), model.predict(X), rtol=1e-10)


def test_a_one_dimensional_y_stays_one_dimensional(tmp_path):
    model = quick().fit(X, pd.Series(Y[:, 0], name="Zn"))
    again = round_trip(model, tmp_path)
    assert again.predict(NEW).shape == (4,)
    assert again.output_names_ == ["Zn"]
    assert_array_equal(again.predict(NEW), model.predict(NEW))


INDEXES = {
    "texts": pd.Index([f"Gehöft {i}" for i in range(26)], name="site"),
    "pairs": pd.MultiIndex.from_product([["a", "b"], range(13)], names=["block", "site"]),
}


@pytest.mark.parametrize("case", INDEXES)
def test_names_and_index_of_a_frame_are_kept(case, tmp_path):
    sites = pd.DataFrame(X, columns=["east", "north"], index=INDEXES[case])
    metals = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"], index=INDEXES[case])
    metals.iloc[[3, 25]] = np.nan  # rows that are no sites
    model = quick().fit(sites, metals)
    again = round_trip(model, tmp_path)
    pd.testing.assert_frame_equal(again.predict_frame(sites), model.predict_frame(sites))
    ours, theirs = again.cross_validate().prediction, model.cross_validate().prediction
    pd.testing.assert_frame_equal(ours, theirs)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(sites[["north", "east"]])


def test_the_users_own_kernels_transformers_and_rules_are_passed_to_load(tmp_path):
    own = [OwnKernel, OwnTransformer, own_rule]
    model = paper(
        OwnKernel(0.4), output_transform=OwnTransformer(), combine=own_rule, batch_size=9, **QUICK
    ).fit(X, Y)
    again = round_trip(model, tmp_path, classes=own)
    assert_same(again.get_params(), model.get_params())
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    for missing in own:
        name, others = missing.__name__, [one for one in own if one is not missing]
        with pytest.raises(ModelFileError, match=rf"uses {name}, .*load\(path, classes=\[{name}\]"):
            emgpr.load(tmp_path / "model.emgpr", classes=others)


class OwnEstimator(EMGPR):
    """An estimator of the user's."""


def test_an_estimator_of_the_users_loads_itself(tmp_path):
    OwnEstimator(**QUICK).fit(X, Y).save(tmp_path / "model")
    assert type(OwnEstimator.load(tmp_path / "model")) is OwnEstimator
    assert type(emgpr.load(tmp_path / "model", classes=[OwnEstimator])) is OwnEstimator
    with pytest.raises(ModelFileError, match=r"class 'OwnEstimator'; expected EMGPR.*load method"):
        emgpr.load(tmp_path / "model")


def test_what_cannot_be_stored_or_loaded_is_named_and_nothing_is_written(tmp_path):
    model = quick().fit(X, Y).set_params(random_state=np.random.SeedSequence(1))
    with pytest.raises(ModelFileError, match=r"settings.random_state cannot be stored: SeedSeq"):
        model.save(tmp_path / "model")
    model.set_params(random_state=0, max_iter=0)
    with pytest.raises(ModelFileError, match="max_iter=0"):
        model.save(tmp_path / "model")
    model.set_params(max_iter=4)
    lmc = replace(model.posterior_.model, weights=np.nan * model.weights_)
    model.posterior_ = replace(model.posterior_, model=lmc)
    with pytest.raises(ModelFileError, match=r"this IndependentGP.*'weights' contains NaN"):
        model.save(tmp_path / "model")
    with pytest.raises(NotFittedError, match="not fitted and cannot be saved; call fit"):
        EMGPR().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_class_names_the_class(fitted, tmp_path):
    fitted("ICM with neighbours").save(str(tmp_path / "model"))
    with pytest.raises(
        ModelFileError, match=r"contains a model of class 'ICM'; expected EMGPR.*emgpr\.load"
    ):
        EMGPR.load(str(tmp_path / "model"))
    assert isinstance(ICM.load(tmp_path / "model"), ICM)


def test_a_file_from_another_machine_needs_its_device_only_for_predictions(tmp_path):
    model = quick().fit(X, Y)
    expected = model.predict(NEW)
    again = round_trip(model.set_params(device="cuda:7"), tmp_path)
    assert again.device == "cuda:7"
    assert_array_equal(again.set_params(device="cpu").predict(NEW), expected)


def test_a_loaded_model_can_be_fitted_and_saved_again(fitted, tmp_path):
    model = fitted("the paper")
    again = round_trip(model, tmp_path)
    assert_same(round_trip(again, tmp_path).posterior_, model.posterior_)
    assert_same(again.fit(X, Y).posterior_, model.posterior_)


def test_the_file_of_jura_is_small_and_predicts_the_same_in_another_process():
    path = FIXTURES / f"jura-format-{VERSION}.emgpr"
    assert path.stat().st_size < 30_000  # readings and weights are 17 kB, stacking weights 8 kB
    kept = json.loads(path.with_suffix(".json").read_text("utf8"))
    code = (
        "import sys, json, emgpr, pandas; m = emgpr.load(sys.argv[1]);"
        "x = pandas.DataFrame(json.loads(sys.argv[2]), columns=m.feature_names_in_);"
        "print(json.dumps(m.predict(x).tolist()))"
    )
    fresh = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path, json.dumps(kept["sites"])],
        capture_output=True, text=True,
    )  # fmt: skip
    assert fresh.returncode == 0, fresh.stderr
    assert_allclose(json.loads(fresh.stdout), kept["median"], rtol=1e-10)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.emgpr")), ids=lambda path: path.stem)
def test_files_of_every_version_can_be_read(path):
    model, kept = emgpr.load(path), json.loads(path.with_suffix(".json").read_text("utf8"))
    sites = pd.DataFrame(kept["sites"], columns=model.feature_names_in_)
    mean, std = model.predict(sites, return_std=True)
    assert_allclose(mean, kept["median"], rtol=1e-8)
    assert_allclose(std, kept["std"], rtol=1e-8)
    assert_allclose(model.predict_quantiles(sites, 0.9), kept["quantiles"], rtol=1e-8)


def test_there_are_files_of_every_version():
    for version in range(1, VERSION + 1):
        for name in ("jura", "jura-sums"):
            assert (FIXTURES / f"{name}-format-{version}.emgpr").exists()


def test_units_are_outside_the_state_and_may_be_absent(tmp_path):
    """Versions without units can read the file, and files of these versions have no units."""
    frame = pd.DataFrame(X, columns=["east", "north"])
    frame.attrs["units"] = {"east": "km"}
    model = IndependentGP(sk.RBF(0.3), **QUICK).fit(frame, Y[:, 0])
    model.save(tmp_path / "model.emgpr")
    header, arrays = persistence.read(tmp_path / "model.emgpr", FORMAT, VERSION)
    assert header.pop("units") == {"east": "km"}
    persistence.write(tmp_path / "old.emgpr", header, arrays)
    assert emgpr.load(tmp_path / "old.emgpr").units_ == {}
    persistence.write(tmp_path / "bad.emgpr", {**header, "units": {"east": 3}}, arrays)
    with pytest.raises(ModelFileError, match=r"'units' is \{'east': 3\}"):
        emgpr.load(tmp_path / "bad.emgpr")
