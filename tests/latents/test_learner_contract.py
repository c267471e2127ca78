"""The one method of a learner: ours keep the contract, and broken ones are caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from simulated import smooth_table
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.latents import LEARNERS, Borrowed, Exact, Latent, LatentLearner, PoE, check_learner

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", LEARNERS)
def test_ours_keep_it(name):
    assert isinstance(LEARNERS[name], LatentLearner)
    check_learner(LEARNERS[name])


def test_a_borrowed_one_keeps_it():
    check_learner(Borrowed(GaussianProcessRegressor(n_restarts_optimizer=2, random_state=0)))


@dataclass
class Broken(BaseEstimator):
    """Ours, with something done to the answer or to what was given."""

    how: str

    def learn(self, x, y, kernel):
        latent = Exact().learn(x, y, kernel)
        match self.how:
            case "x is changed":
                x += 1.0
            case "y is changed":
                y -= y.mean() + 1.0
            case "the kernel is changed":
                kernel.length_scale = 3.0
            case "another type":
                return latent.kernel, latent.noise
            case "no kernel":
                object.__setattr__(latent, "kernel", "RBF")  # past the types, checked in tests
            case "a kernel of other columns":
                return replace(latent, kernel=RBF([1.0] * (x.shape[1] + 1)))
            case "a kernel of noise":
                return replace(latent, kernel=WhiteKernel())
            case "a kernel without numbers":
                return replace(latent, kernel=RBF(np.nan))
            case "no noise":
                return replace(latent, noise=0.0)
            case "a noise that is none":
                return replace(latent, noise=np.nan)
            case "no likelihood":
                return replace(latent, log_likelihood=-np.inf)
            case "chance":
                return replace(latent, noise=np.random.default_rng().uniform(0.1, 0.2))
            case "nothing found":
                return replace(latent, kernel=RBF(1e-9), noise=100.0)
            case "one noise for all":
                return replace(latent, noise=0.05)
        return latent


CAUGHT = {
    "x is changed": "expected x left as it was",
    "y is changed": "expected y left as it was",
    "the kernel is changed": "expected the kernel left as it was",
    "another type": "expected an emgpr.latents.Latent",
    "no kernel": "the kernel 'RBF'; expected one of scikit-learn's",
    "a kernel of other columns": "expected a covariance of 1 input columns",
    "a kernel of noise": "expected a covariance",
    "a kernel without numbers": r"RBF\(length_scale=nan\); expected a covariance",
    "no noise": "a noise of 0.0; expected a variance above zero",
    "a noise that is none": "a noise of nan",
    "no likelihood": "a log-likelihood of -inf; expected a finite number",
    "chance": "expected the same answer to the same readings",
    "nothing found": "expected a signal that is likelier than noise alone",
    "one noise for all": "expected more noise where there is more",
}


@pytest.mark.parametrize("how", CAUGHT)
def test_broken_ones_are_caught(how):
    with pytest.raises(AssertionError, match=CAUGHT[how]):
        check_learner(Broken(how))


def test_what_has_no_learn_is_caught():
    with pytest.raises(AssertionError, match=r"a method learn\(x, y, kernel\)"):
        check_learner(RBF())


@pytest.fixture
def table(rng):
    X, Y = smooth_table(rng, N=40)
    Y[:6, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("how", [how for how in CAUGHT if how.startswith(("a ", "no ", "another"))])
def test_an_estimator_refuses_what_is_no_answer(table, how):
    with pytest.raises(ValueError, match=r"latent_learner=Broken\(.*its learn gave.*check_learner"):
        IndependentGP(RBF(), latent_learner=Broken(how)).fit(*table)


def test_a_learner_of_ones_own_is_asked_for_every_output_and_kernel(table):
    asked = []

    class Watched:
        def learn(self, x, y, kernel):
            asked.append((len(x), str(kernel)))
            return Exact().learn(x, y, kernel)

    model = EMGPR(latent_learner=Watched(), refine=0, transform=None, random_state=0, max_iter=5)
    model.fit(*table)
    assert {n for n, _ in asked} == {40, 34}  # where it was read
    assert any("nu=0.5" in kernel for _, kernel in asked)  # kernel="auto" asks for each
    assert isinstance(model.latent_learner_, Watched)
    one = IndependentGP(Matern(nu=1.5), latent_learner=Watched(), random_state=0).fit(*table)
    assert all(isinstance(kernel, Matern) for kernel in one.kernels_)


def test_a_learner_may_answer_with_a_kernel_of_another_form(table):
    class Scaled:
        def learn(self, x, y, kernel):
            return Latent(ConstantKernel(2.0) * RBF(0.3), 0.1, 0.0)

    model = EMGPR(latent_learner=Scaled(), transform=None, max_iter=5, random_state=0).fit(*table)
    assert np.isfinite(model.predict(table[0])).all()


def test_an_output_of_one_value_is_not_asked_about(table):
    class Upset:
        def learn(self, x, y, kernel):
            assert np.ptp(y) > 0
            return Latent(RBF(0.3), 0.1, 0.0)

    X, Y = table
    Y[:, 2] = 7.0
    with pytest.warns(UserWarning, match="one value only"):
        model = IndependentGP(RBF(), latent_learner=Upset()).fit(X, Y)
    assert np.all(model.predict(X)[:, 2] == 7.0)


@pytest.mark.parametrize("learner", [PoE(20, 2), *LEARNERS], ids=str)
def test_models_are_stored_with_their_learner(table, learner, tmp_path):
    model = IndependentGP(RBF(), latent_learner=learner, random_state=0, max_iter=5).fit(*table)
    model.save(tmp_path / "model")
    again = emgpr.load(tmp_path / "model")
    assert again.latent_learner == again.latent_learner_ == learner
    assert np.array_equal(again.predict(table[0]), model.predict(table[0]))


def test_one_of_ones_own_is_stored_if_it_is_an_estimator(table, tmp_path):
    model = IndependentGP(RBF(), latent_learner=Broken("not at all"), random_state=0).fit(*table)
    model.save(tmp_path / "model")
    again = emgpr.load(tmp_path / "model", classes=[Broken])
    assert again.latent_learner == Broken("not at all")
