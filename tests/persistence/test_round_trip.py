"""A model that was saved and loaded is the model that was fitted, in every way of using it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sameness import assert_same
from simulated import paper, smooth_table
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
)

import emgpr
from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP, ModelFileError, OnePassGP
from emgpr.datasets import jura_table
from emgpr.ensemble import RULES

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:Batches of:UserWarning",
    "ignore:Nothing was read in 2 of 26 rows:UserWarning",
)
X, Y = smooth_table(np.random.default_rng(3), N=26)
Y = np.exp((Y - Y.mean(axis=0)) / Y.std(axis=0))
Y[::6, 1] = np.nan
NEW = np.random.default_rng(4).uniform(size=(4, 2))
KNOWN = np.array([[1.0, np.nan, np.nan], [np.nan] * 3, [np.nan, 2.0, 0.5], [1.0, 1.5, np.nan]])
QUICK = {"max_iter": 4, "n_restarts": 1, "random_state": 0}
SUMS = QUICK | {"n_functions": 41, "tolerance": 0.5}
SINH = FunctionTransformer(np.arcsinh, np.sinh)


class Wavy(sk.RBF):
    """A kernel of a user's."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, dK = super().__call__(X, Y, eval_gradient=True)
            return K, dK
        return super().__call__(X, Y) * 1.0


class Halved(TransformerMixin, BaseEstimator):
    """A transformer of a user's, with something that it learned."""

    def fit(self, X, y=None):
        self.half_ = np.max(X) / 2
        return self

    def transform(self, X):
        return X / self.half_

    def inverse_transform(self, X):
        return X * self.half_


def surest(means, covs, prior):
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


def quick(kernel=None, **settings):
    return IndependentGP(kernel, **(QUICK | settings))


MODELS = {
    "the defaults": EMGPR(**QUICK),
    "the paper": EMGPR.paper(**QUICK),
    "ICM": ICM(**QUICK),
    "SLFM": SLFM(**QUICK),
    "LMC": LMC(rank=2, n_latents=2, **QUICK),
    "no transfer": quick(),
    "correlated noise": EMGPR(noise="correlated", rank=2, n_latents=2, prior=None, **QUICK),
    "latents switched off": EMGPR(n_latents="auto", refine=1, **QUICK),
    "more latents than outputs": LMC([sk.RBF(), sk.Matern(), sk.RBF(2.0), sk.RBF(0.1)],
                                     n_latents=4, **QUICK),
    "neighbours": ICM(conditioning=5, **QUICK),
    "its batch": paper(conditioning="batch", batch_size=9, **QUICK),
    **{f"combine {rule}": paper(combine=rule, batch_size=9, **QUICK) for rule in RULES},
    "a sum": quick(2.0 * sk.RBF(0.5) + sk.Matern(0.3, nu=2.5) * sk.ConstantKernel(0.5, "fixed")),
    "length-scales": quick(sk.RBF([0.5, 0.4], [(0.1, 10), (0.2, 20)])),
    "an array of bounds": quick(sk.RBF(np.ones(2), np.array([[0.1, 10], [0.2, 20]]))),
    "fixed": quick(sk.RationalQuadratic(0.4, 2.0, "fixed", "fixed") + sk.WhiteKernel(0.1)),
    "odd kernels": quick(sk.Exponentiation(sk.RBF(0.5), 2) + sk.ExpSineSquared(0.5, 3.0)),
    "no variance at the origin": quick(sk.DotProduct(0.0, "fixed") + sk.RBF(0.5)),
    "noise without a bound": quick(sk.RBF(0.5) + sk.WhiteKernel(0.1, (1e-5, np.inf))),
    "infinitely smooth": quick(sk.Matern(0.5, nu=np.inf)),
    "log": quick(transform="log"),
    "a transform each": quick(transform=["log", None, "yeo-johnson"]),
    "an array of transforms": quick(transform=np.array(["log", None, "log"], dtype=object)),
    "transforms by name": quick(transform={"2": "normal-score", "0": PowerTransformer()}),
    "a transform by number": quick(transform={1: "log"}),
    "quantiles": quick(transform=QuantileTransformer(n_quantiles=10, output_distribution="normal")),
    "a pipeline": quick(transform=make_pipeline(MinMaxScaler((0.1, 1)), PowerTransformer())),
    "functions of NumPy": quick(transform=SINH),
    "a generator": quick(random_state=np.random.default_rng(5)),
    "another generator": quick(random_state=np.random.Generator(np.random.Philox(5))),
    "a random state": quick(random_state=np.random.RandomState(5)),
    "a borrowed learner": quick(latent_learner=GaussianProcessRegressor(sk.RBF(0.5), alpha=0.1)),
    "borrowed learners": quick(latent_learner=[GaussianProcessRegressor(alpha=0.1)] * 3),
    "settings of NumPy": quick(random_state=np.int32(3)),
    "as it is": quick(normalize_y=False),
    "sums": OnePassGP(**SUMS),
    "sums, independent noise": OnePassGP(noise="independent", n_latents=2, rank=1, **SUMS),
    "sums, a kernel each": OnePassGP([sk.Matern(nu=2.5), sk.RBF(0.5, "fixed"), 0.5 * sk.RBF()],
                                     transform="log", box=([0, 0], [1, 1]), **SUMS),
}  # fmt: skip


def round_trip(model, folder, **given):
    model.save(folder / "model.emgpr")
    return emgpr.load(folder / "model.emgpr", **given)


def answers(model, x=NEW, known=KNOWN):
    """Everything that a fitted model can be asked."""
    yield from model.predict(x, return_std=True)
    yield from model.predict(x, return_cov=True, statistic="mean", include_noise=False)
    yield from model.predict(x, return_std=True, observed=known)
    yield model.predict_quantiles(x, [0.1, 0.9], observed=known)
    yield model.predict_exceedance(x, 1.5)
    yield model.sample_y(x, 3, random_state=1)
    for by in ("site", "output"):
        yield from (frame.to_numpy() for frame in vars(model.cross_validate(by)).values()
                    if isinstance(frame, pd.DataFrame))  # fmt: skip
        yield model.transfer_report(by).table.drop(columns="verdict").to_numpy()


@pytest.mark.parametrize("case", MODELS)
def test_a_loaded_model_holds_what_the_fitted_one_does(case, tmp_path):
    model = clone(MODELS[case]).fit(X, Y)
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    assert_same(model.get_params(), again.get_params())
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize(
    "case", ["the defaults", "the paper", "ICM", "correlated noise", "its batch", "combine grbcm",
             "transforms by name", "a pipeline", "functions of NumPy"],
)  # fmt: skip
def test_a_loaded_model_answers_as_the_fitted_one_does(case, tmp_path):
    model = clone(MODELS[case]).fit(X, Y)
    again = round_trip(model, tmp_path)
    for ours, theirs in zip(answers(again), answers(model), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_outputs_that_keep_to_themselves_still_do(tmp_path, rng):
    table = np.column_stack([Y, rng.normal(size=(len(Y), 1))])
    model = EMGPR(transform=None, **QUICK).fit(X, table)
    again = round_trip(model, tmp_path)
    assert any(model.alone_.values())
    assert again.alone_ == model.alone_
    known = np.column_stack([KNOWN, [np.nan, 0.3, np.nan, np.nan]])
    for ours, theirs in zip(answers(again, known=known), answers(model, known=known), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1e-150, 9.9e152])
def test_whatever_the_door_lets_in_can_be_saved(size, tmp_path):
    model = quick().fit(9e99 * X, size * Y / np.nanmax(Y, axis=0))
    assert_allclose(round_trip(model, tmp_path).predict(X), model.predict(X), rtol=1e-10)


def test_a_vector_of_outputs_stays_one(tmp_path):
    model = quick().fit(X, pd.Series(Y[:, 0], name="Zn"))
    again = round_trip(model, tmp_path)
    assert again.predict(NEW).shape == (4,)
    assert again.output_names_ == ["Zn"]
    assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_kernels_transformers_and_rules_of_ones_own_are_given_to_load(tmp_path):
    own = [Wavy, Halved, surest]
    model = paper(Wavy(0.4), transform=Halved(), combine=surest, batch_size=9, **QUICK).fit(X, Y)
    again = round_trip(model, tmp_path, classes=own)
    assert_same(model, again)
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    for i, missing in enumerate(own):
        some = [one for one in own if one is not missing]
        name = missing.__name__
        with pytest.raises(ModelFileError, match=rf"uses {name}, .*load\(path, classes=\[{name}\]"):
            emgpr.load(tmp_path / "model.emgpr", classes=some)
        lookalike = type(name, (), {}) if i != 1 else lambda: None
        lookalike.__name__ = name
        with pytest.raises(ModelFileError, match=f"uses {name}"):
            emgpr.load(tmp_path / "model.emgpr", classes=[*some, lookalike])


def test_a_kernel_of_ones_own_is_not_mistaken_for_one_of_the_same_name(tmp_path):
    Mine = type("RBF", (Wavy,), {})
    model = quick(Mine(0.4)).fit(X, Y)
    assert type(round_trip(model, tmp_path, classes=[Mine]).kernels_[0]) is Mine
    with pytest.raises(ModelFileError, match="uses RBF"):
        emgpr.load(tmp_path / "model.emgpr")


class Mine(EMGPR):
    """An estimator of a user's."""


def test_an_estimator_of_ones_own_loads_itself(tmp_path):
    Mine(**QUICK).fit(X, Y).save(tmp_path / "model")
    assert type(Mine.load(tmp_path / "model")) is Mine
    assert type(emgpr.load(tmp_path / "model", classes=[Mine])) is Mine
    with pytest.raises(ModelFileError, match=r"class 'Mine'; expected one of EMGPR.*its own load"):
        emgpr.load(tmp_path / "model")


NOT_STORED = {
    r"settings.combine.*lambda.*function with a name": {"combine": lambda m, c, p: (m[0], c[0])},
    r"settings.transform.func.*lambda": {
        "transform": FunctionTransformer(lambda y: y + 1, lambda u: u - 1)
    },
    r"settings.random_state.*SeedSequence": {"random_state": np.random.SeedSequence(1)},
    r"settings.latent_learner.*was fitted.*unfitted clone": {
        "latent_learner": GaussianProcessRegressor(sk.RBF() + sk.WhiteKernel()).fit(X, Y[:, 0])
    },
}


@pytest.mark.parametrize("message", NOT_STORED)
def test_what_cannot_be_stored_is_named_with_a_remedy(message, tmp_path):
    model = paper(**QUICK).fit(X, Y).set_params(**NOT_STORED[message])
    with pytest.raises(ModelFileError, match=message):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = quick().fit(X, Y)
    model.weights_ = model.weights_ * np.nan
    with pytest.raises(ModelFileError, match=r"This IndependentGP.*'weights' holds NaN"):
        model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="max_iter=0"):
        quick().fit(X, Y).set_params(max_iter=0).save(tmp_path / "model")
    with pytest.raises(NotFittedError, match="not fitted, so there is nothing to save; call fit"):
        EMGPR().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_class_says_what_is_in_it(tmp_path):
    ICM(**QUICK).fit(X, Y).save(str(tmp_path / "model"))
    with pytest.raises(
        ModelFileError, match=r"holds a model of class 'ICM', not EMGPR.*emgpr.load"
    ):
        EMGPR.load(str(tmp_path / "model"))
    assert isinstance(ICM.load(tmp_path / "model"), ICM)


def test_a_file_from_another_machine_needs_its_device_only_to_be_used(tmp_path):
    model = quick().fit(X, Y)
    expected = model.predict(NEW)
    again = round_trip(model.set_params(device="cuda:7"), tmp_path)
    assert again.device == "cuda:7"
    assert_array_equal(again.set_params(device="cpu").predict(NEW), expected)


def test_a_loaded_model_can_be_fitted_anew_and_saved_anew(tmp_path):
    model = clone(MODELS["the paper"]).fit(X, Y)
    again = round_trip(model, tmp_path)
    assert_same(again.fit(X, Y), model)
    assert_same(round_trip(round_trip(model, tmp_path), tmp_path), model)


def test_jura_is_small_and_the_same_in_a_fresh_process(tmp_path):
    jura = jura_table()
    model = EMGPR.paper(transform="log", random_state=0).fit(jura.X, jura.Y)
    path = tmp_path / "jura.emgpr"
    model.save(path)
    assert path.stat().st_size < 25_000  # the readings and weights alone are 17 kB
    code = (
        "import sys, json, emgpr; from emgpr.datasets import jura_table; t = jura_table();"
        "m = emgpr.load(sys.argv[1]); print(json.dumps(m.predict(t.X[t.test]).tolist()))"
    )
    fresh = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path], capture_output=True, text=True
    )
    assert fresh.returncode == 0, fresh.stderr
    assert_allclose(json.loads(fresh.stdout), model.predict(jura.X[jura.test]), rtol=1e-10)


@pytest.mark.parametrize("learned", [False, True])
def test_a_model_of_sums_goes_on_where_it_was(learned, tmp_path):
    model = OnePassGP(**SUMS, box=([0, 0], [1, 1])).partial_fit(X[:16], Y[:16], learn=learned)
    again = round_trip(model, tmp_path)
    assert_same(model.predict(NEW, return_std=True), again.predict(NEW, return_std=True))
    for one in (model, again):
        one.partial_fit(X[16:], Y[16:])
    assert again.n_sites_ == model.n_sites_ == int((~np.isnan(Y)).any(axis=1).sum())
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    assert again.history_ == model.history_


def test_a_file_of_sums_does_not_grow_with_the_sites(tmp_path, rng):
    model, sizes = OnePassGP(**SUMS).start(X, Y), []
    for n in (100, 10_000):
        x = rng.uniform(X.min(axis=0), X.max(axis=0), size=(n, 2))
        model.partial_fit(x, np.exp(rng.normal(size=(n, 3))), learn=False).save(tmp_path / "model")
        sizes.append((tmp_path / "model").stat().st_size)
    assert sizes[1] < 1.01 * sizes[0]


FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.emgpr")), ids=lambda path: path.stem)
def test_files_of_every_version_stay_readable(path):
    model, kept = emgpr.load(path), json.loads(path.with_suffix(".json").read_text("utf8"))
    sites = pd.DataFrame(kept["sites"], columns=model.feature_names_in_)
    mean, std = model.predict(sites, return_std=True)
    assert_allclose(mean, kept["median"], rtol=1e-8)
    assert_allclose(std, kept["std"], rtol=1e-8)
    assert_allclose(model.predict_quantiles(sites, 0.9), kept["quantiles"], rtol=1e-8)


def test_there_is_a_file_of_this_version():
    assert {path.name for path in FIXTURES.glob("*.emgpr")} >= {
        "jura-format-1.emgpr",
        "jura-sums-format-1.emgpr",
    }
