"""The gradient of every objective that is optimised is its derivative."""

import sys

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from simulated import start_of, world
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern

from emgpr.ensemble import split_sites
from emgpr.latents.objective import loss_of
from emgpr.weights import FittedWeights, fit_weights, refine


class CapturedError(Exception):
    """Carries an objective out of the function that would have minimised it."""


@pytest.fixture
def objective_of(monkeypatch):
    """The objective and start that a step hands to the optimiser."""

    def capture(objective, x0, **_):
        raise CapturedError(objective, x0)

    def find(step, *given, **settings):
        monkeypatch.setattr(sys.modules[step.__module__], "minimize", capture)
        with pytest.raises(CapturedError) as captured:
            step(*given, **settings)
        return captured.value.args

    return find


def check(objective, x0, rng):
    """Away from the start, where some derivatives vanish by symmetry."""
    at = x0 + 0.2 * rng.normal(size=x0.shape)
    which = np.arange(len(x0))
    for row in which:

        def value(x, row=row):
            moved = at.copy()
            moved[row] = x
            return objective(moved, which)[0][row]

        assert_is_the_gradient(objective(at, which)[1][row], value, at[row])


@pytest.mark.parametrize("weak_prior", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        Matern([1.0, 1.0], nu=1.5),
        ConstantKernel(0.5) * RBF() + Matern(nu=0.5),
        RBF() * ExpSineSquared(0.8, 0.6),
    ],
    ids=str,
)
def test_of_step_1(rng, kernel, weak_prior):
    """Of two tasks, in one batch."""
    table = world(rng, D=2, Q=1, k=1).seen
    whose = np.array([0, 1, 1])
    loss = loss_of(table, kernel, whose, weak_prior=weak_prior)
    x0 = np.tile(np.append(kernel.theta, 0.0), (3, 1))
    check(loss, x0, rng)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("Q", "k"), [(3, 1), (1, 2), (4, 2)])
def test_of_step_2(rng, objective_of, Q, k, missing, correlated):
    made = world(rng, Q=Q, k=k, missing=missing, correlated=correlated)
    parts = split_sites(np.zeros((12, 1)), 5, "random", rng)
    start = start_of(made)
    check(*objective_of(fit_weights, made.seen, parts, start, max_iter=9), rng)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("sweeps", [1, "joint"])
@pytest.mark.parametrize("batch_size", [None, 5])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("Q", "k"), [(3, 1), (1, 2)])
def test_of_the_further_ascent(rng, objective_of, Q, k, missing, batch_size, sweeps, correlated):
    """Of kernels and noise with the weights held, and of all three."""
    made = world(rng, Q=Q, k=k, missing=missing, correlated=correlated)
    parts = split_sites(np.zeros((12, 1)), batch_size, "random", rng)
    start = start_of(made)
    L = len(parts)
    W = made.W + 0.3 * rng.normal(size=(L, *made.W.shape))
    fitted = FittedWeights(W, np.zeros(L), np.ones(L, bool), np.ones(L, int))
    given = made.seen, parts, start, fitted
    settings = {"sweeps": sweeps, "correlated": correlated, "max_iter": 9}
    check(*objective_of(refine, *given, **settings), rng)
