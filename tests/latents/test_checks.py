"""`check_learner` accepts our learners and rejects faulty ones."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr.latents import (
    SVI,
    VFE,
    Borrowed,
    Exact,
    LatentLearner,
    PoE,
    Variogram,
    check_learner,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


OURS = [
    Exact(),
    PoE(40, 2),
    VFE(25),  # the other inducing-point learners differ only in their residual covariance
    SVI(25, 30),
    Variogram(max_iter=12),
    Borrowed(GaussianProcessRegressor(n_restarts_optimizer=2, random_state=0)),
]


@pytest.mark.parametrize("learner", OURS, ids=lambda own: type(own).__name__)
def test_our_learners_pass(learner):
    assert isinstance(learner, LatentLearner)
    check_learner(learner)


@dataclass
class Faulty(BaseEstimator):
    """An exact learner whose result or arguments are modified."""

    how: str

    def learn(self, x, y, kernel):
        latent = Exact().learn(x, y, kernel)
        match self.how:
            case "x is modified":
                x += 1.0
            case "y is modified":
                y -= y.mean() + 1.0
            case "the kernel is modified":
                kernel.length_scale = 3.0
            case "another type":
                return latent.kernel, latent.noise
            case "no kernel":
                object.__setattr__(latent, "kernel", "RBF")  # past the types, checked in tests
            case "a kernel of other columns":
                return replace(latent, kernel=RBF([1.0] * (x.shape[1] + 1)))
            case "a kernel of noise":
                return replace(latent, kernel=WhiteKernel())
            case "a kernel of NaN":
                return replace(latent, kernel=RBF(np.nan))
            case "no noise":
                return replace(latent, noise=0.0)
            case "a noise of NaN":
                return replace(latent, noise=np.nan)
            case "no likelihood":
                return replace(latent, log_likelihood=-np.inf)
            case "random":
                return replace(latent, noise=np.random.default_rng().uniform(0.1, 0.2))
            case "no signal":
                return replace(latent, kernel=RBF(1e-9), noise=100.0)
            case "constant noise":
                return replace(latent, noise=0.05)
        return latent


FAULTS = {
    "x is modified": "expected x unmodified",
    "y is modified": "expected y unmodified",
    "the kernel is modified": "expected the kernel unmodified",
    "another type": "expected an emgpr.latents.Latent",
    "no kernel": "the kernel 'RBF'; expected a scikit-learn kernel",
    "a kernel of other columns": "expected a covariance .* 1 input columns",
    "a kernel of noise": "expected a covariance",
    "a kernel of NaN": r"RBF\(length_scale=nan\); expected a covariance",
    "no noise": "a noise of 0.0; expected a positive variance",
    "a noise of NaN": "a noise of nan",
    "no likelihood": "a log-likelihood of -inf; expected a finite number",
    "random": "expected the same result for the same readings",
    "no signal": "expected a log-likelihood above that of noise alone",
    "constant noise": "expected more noise in noisier readings",
}


@pytest.mark.parametrize("how", FAULTS)
def test_a_faulty_learner_is_rejected(how):
    with pytest.raises(AssertionError, match=FAULTS[how]):
        check_learner(Faulty(how))


def test_an_object_without_learn_is_rejected():
    with pytest.raises(AssertionError, match=r"a method learn\(x, y, kernel\)"):
        check_learner(RBF())
