"""The gradient of every objective that is optimised is its derivative."""

import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern

from emgpr.ensemble import split_sites
from emgpr.latents.objective import negative_log_likelihood, with_noise_prior
from emgpr.noise import output_variances
from emgpr.weights import FittedWeights, fit_weights, refine
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import start_of, world


class CapturedError(Exception):
    """Carries an objective out of the function that would have minimised it."""


@pytest.fixture
def objective_of(monkeypatch):
    """Return the objective and start that a step passes to the optimiser."""

    def capture(objective, x0, **_):
        raise CapturedError(objective, x0)

    def find(step, *given, **settings):
        monkeypatch.setattr(sys.modules[step.__module__], "minimize", capture)
        with pytest.raises(CapturedError) as captured:
            step(*given, **settings)
        return captured.value.args

    return find


def check(objective, x0, rng):
    """Compare along random directions, in which every variable takes part.

    Away from the start, where some derivatives vanish by symmetry.
    """
    at = x0 + 0.2 * rng.normal(size=x0.shape)
    which = np.arange(len(x0))
    gradient = objective(at, which)[1]
    for row in which:
        directions = rng.normal(size=(4, x0.shape[1]))

        def value(t, row=row, directions=directions):
            moved = at.copy()
            moved[row] += t @ directions
            return objective(moved, which)[0][row]

        assert_is_the_gradient(directions @ gradient[row], value, np.zeros(4))


@pytest.mark.parametrize(
    ("kernel", "weak_prior"),
    [
        (RBF(), False),
        (Matern([1.0, 1.0], nu=1.5), True),
        (ConstantKernel(0.5) * RBF() + Matern(nu=0.5), False),
        (RBF() * ExpSineSquared(0.8, 0.6), True),
    ],
    ids=str,
)
def test_gradient_of_step_1_with_two_outputs_in_one_batch(rng, kernel, weak_prior):
    table = world(rng, D=2, Q=1, k=1).observed
    whose = np.array([0, 1, 1])
    loss = negative_log_likelihood(table, kernel, whose)
    loss = with_noise_prior(loss, output_variances(table)[whose], weak_prior)
    x0 = np.tile(np.append(kernel.theta, 0.0), (3, 1))
    check(loss, x0, rng)


@pytest.mark.parametrize(
    ("Q", "k", "missing", "correlated"),
    [(3, 1, 0.3, False), (1, 2, 0.0, True), (1, 2, 0.3, False), (4, 2, 0.0, True)],
)
def test_gradient_of_step_2(rng, objective_of, Q, k, missing, correlated):
    made = world(rng, Q=Q, k=k, missing=missing, correlated=correlated)
    batches = split_sites(np.zeros((12, 1)), 5, "random", rng)
    check(*objective_of(fit_weights, made.observed, batches, start_of(made), max_iter=9), rng)


@pytest.mark.parametrize("sweeps", [1, "joint"])
@pytest.mark.parametrize("batch_size", [None, 5])
@pytest.mark.parametrize(
    ("Q", "k", "missing", "correlated"),
    [(3, 1, 0.3, True), (3, 1, 0.0, False), (1, 2, 0.0, True), (1, 2, 0.3, False)],
)
def test_gradient_of_the_refinement(
    rng, objective_of, Q, k, missing, batch_size, sweeps, correlated
):
    """Of kernels and noise with the weights fixed, and of all three."""
    made = world(rng, Q=Q, k=k, missing=missing, correlated=correlated)
    batches = split_sites(np.zeros((12, 1)), batch_size, "random", rng)
    L = len(batches)
    W = made.W + 0.3 * rng.normal(size=(L, *made.W.shape))
    fitted = FittedWeights(W, np.zeros(L), np.ones(L, bool), np.ones(L, int))
    given = made.observed, batches, start_of(made), fitted
    settings = {"sweeps": sweeps, "correlated": correlated, "max_iter": 9}
    check(*objective_of(refine, *given, **settings), rng)
