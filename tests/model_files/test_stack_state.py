"""Weights of candidates in a model file: stored, read, and refused if they are invalid."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import EMGPR, ConditionalGP
from emgpr.model_files.lmc_state import upgrade_state
from emgpr.model_files.stack_state import (
    stack_from_state,
    stack_of_earlier_version,
    stack_state,
)
from emgpr.persistence import ModelFileError
from emgpr.regression import DriftPrior, FittedRegression, Residual, Setting
from emgpr.stacking import CandidateWeights, Stack, StackedPosterior
from tests.model_files.corruption import assert_harmless
from tests.sameness import assert_same
from tests.simulated import smooth_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAN = np.nan


@pytest.fixture
def stack():
    """Weights of three outputs, one of which has fixed weights, and one pattern."""
    regression = FittedRegression(
        (
            Setting(Residual(0.3, 0.8, 0.5), DriftPrior(3.0, 0.0)),
            Setting(Residual(1.0, 0.0), DriftPrior(100.0, 0.4)),
        ),
        np.array([[0.7, 0.3], [0.2, 0.8]]),
        np.array([[0.1, 0.3], [0.4, 0.2]]),
    )
    weights = CandidateWeights(
        np.array([0.5, 0.2, 0.3]),
        np.array([0.0, 0.1, 0.9]),
        (0.02, 0.3),
        np.array([1.5, 2.0, 1.0]),
        np.array([[-1.0, -2.0, -0.5], [-1.0, NAN, -0.7]]),
    )
    unknown = tuple(CandidateWeights.of_one(name) for name in ("own", "joint", "joint"))
    fixed = (None, None, CandidateWeights.of_one("joint"))
    return Stack(
        9, unknown, "rbf", True, True, 17, {(1, (0, 2)): weights}, {(1, (0, 2)): regression}, fixed
    )


@pytest.fixture
def state(stack):
    return stack_state(stack)


def test_weights_are_read_as_they_were_stored(stack, state):
    assert_same(stack_from_state(state, 9, 3), stack)


def test_questions_without_regression_and_empty_stacks_are_read():
    few = CandidateWeights.of_one("own")
    for stack in (
        Stack(9, (few, few), known={(0, (1,)): few}),
        Stack(9, (few, few), couples_outputs=False),
    ):
        assert_same(stack_from_state(stack_state(stack), 9, 2), stack)


def changed(state, path, value):
    """Replace the value at a path of keys."""
    *parents, last = path
    for key in parents:
        state = state[key]
    state[last] = value


KNOWN = ("known", 0)
WEIGHTS = (*KNOWN, "candidates")
REGRESSION = (*KNOWN, "regression")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("more",), 1, "missing or unknown"),
        (("unknown",), {}, "'unknown' is not a list"),
        (("unknown",), [], "'unknown' does not have weights for every output"),
        (("unknown", 0), 3, "weights of candidates are not a dict"),
        (("fixed",), [None], "'fixed' does not have weights for every output"),
        (("fixed",), None, "'fixed' is not a list"),
        (("fixed", 0), 3, "weights of candidates are not a dict"),
        (("known",), None, "'known' is not a list"),
        (("kernel",), "cubic", "'kernel' is not a known kernel"),
        (("kernel",), None, "'kernel' is not a known kernel"),
        (("kernel",), ["rbf"], "'kernel' is not a known kernel"),
        (("varying",), 1, "'varying' is neither true nor false"),
        (("couples_outputs",), None, "'couples_outputs' is neither true nor false"),
        (("n_parameters",), -1, "'n_parameters' is not a count"),
        (("n_parameters",), True, "'n_parameters' is not a count"),
        (KNOWN, 3, "a value that is not a dict"),
        ((*KNOWN, "more"), 1, "missing or unknown"),
        ((*KNOWN, "output"), 3, "an output that does not exist"),
        ((*KNOWN, "output"), True, "an output that does not exist"),
        ((*KNOWN, "output"), 0, "known outputs of a pattern are invalid"),
        ((*KNOWN, "known"), np.array([2, 0]), "known outputs of a pattern are invalid"),
        ((*KNOWN, "known"), np.array([], int), "known outputs of a pattern are invalid"),
        ((*KNOWN, "known"), np.array([0, 7]), "not distinct integers"),
        ((*KNOWN, "known"), [0, 2], "not an array"),
        ((*KNOWN, "regression"), None, "a regression is missing"),
        ((*KNOWN, "regression"), 3, "a regression is not a dict"),
        ((*WEIGHTS, "more"), 1, "missing or unknown"),
        ((*WEIGHTS, "near"), np.array([0.5, 0.5]), "'near' has shape"),
        ((*WEIGHTS, "near"), np.array([0.5, 0.2, 0.1]), "'near' does not contain weights"),
        ((*WEIGHTS, "far"), np.array([1.5, -0.5, 0.0]), "'far' does not contain weights"),
        ((*WEIGHTS, "far"), np.array([NAN, 0.5, 0.5]), "'far' contains NaN"),
        ((*WEIGHTS, "far"), [0.0, 0.0, 1.0], "'far' is not an array"),
        ((*WEIGHTS, "inflation"), np.array([0.5, 1.0, 1.0]), "'inflation' is below 1"),
        ((*WEIGHTS, "inflation"), np.array([np.inf, 1.0, 1.0]), "'inflation' contains"),
        ((*WEIGHTS, "distances"), np.array([-1.0, 1.0]), "a distance is negative"),
        ((*WEIGHTS, "distances"), np.ones(3), "'distances' has shape"),
        ((*WEIGHTS, "log_scores"), np.zeros(3), "'log_scores' has shape"),
        ((*WEIGHTS, "log_scores"), None, "'log_scores' is not an array"),
        ((*WEIGHTS, "log_scores"), "high", "'log_scores' is not an array"),
        ((*REGRESSION, "more"), 1, "missing or unknown"),
        ((*REGRESSION, "settings"), np.ones((2, 4)), "'settings' has shape"),
        ((*REGRESSION, "settings"), np.ones((3, 5)), "'weights' has shape"),
        ((*REGRESSION, "settings"), np.ones((2, 5)), "a setting of a regression is invalid"),
        ((*REGRESSION, "settings"), np.full((2, 5), -1.0), "a setting of a regression is invalid"),
        ((*REGRESSION, "settings"), np.zeros((2, 5)), "a setting of a regression is invalid"),
        ((*REGRESSION, "weights"), np.full((2, 2), 0.4), "'weights' does not contain weights"),
        ((*REGRESSION, "variances"), np.zeros((2, 2)), "a variance of a regression"),
        ((*REGRESSION, "variances"), np.full((2, 2), NAN), "'variances' contains NaN"),
    ],
)
def test_invalid_weights_are_refused(state, path, value, message):
    changed(state, path, value)
    with pytest.raises(ModelFileError, match=message):
        stack_from_state(state, 9, 3)


def test_a_regression_without_candidates_is_refused(state):
    empty = {
        "settings": np.empty((0, 5)),
        "weights": np.empty((2, 0)),
        "variances": np.empty((2, 0)),
    }
    changed(state, REGRESSION, empty)
    with pytest.raises(ModelFileError, match="a regression has no settings"):
        stack_from_state(state, 9, 3)


@pytest.mark.parametrize("wrong", [3, [], "stack"])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ModelFileError, match="'stack' is not a dict"):
        stack_from_state(wrong, 9, 3)


def test_lists_of_earlier_versions_are_read_as_weights():
    stack = stack_of_earlier_version({"site": np.array([1]), "output": np.array([0])}, 9, 2)
    assert_array_equal([found.near for found in stack.unknown], [[0, 1, 0], [1, 0, 0]])
    assert_array_equal([found.near for found in stack.fixed], [[1, 0, 0], [0, 1, 0]])
    nothing = stack_of_earlier_version({}, 9, 2)
    assert_array_equal([found.near for found in nothing.fixed], [[0, 1, 0], [0, 1, 0]])


def old_state(**changes):
    """The fields of a state of version 2 that decide its weights."""
    gain = {"site": np.array([1]), "output": np.array([], int)}
    return {"x": np.zeros((9, 1)), "own_noise": np.ones(2), "without_gain": gain} | changes


def test_states_of_version_2_have_the_weights_of_their_lists():
    stack = stack_from_state(upgrade_state(old_state(), 2, True)["stack"], 9, 2)
    assert_array_equal([found.near for found in stack.unknown], [[0, 1, 0], [1, 0, 0]])
    none = {"site": np.array([], int), "output": np.array([], int)}
    assert upgrade_state(old_state(without_gain=none), 2, True)["stack"] is None
    assert "without_gain" not in upgrade_state(old_state(), 2, True)


REGRESSIONS = {"residual_kernel": "matern32", "varying_coefficients": True, "max_iter": 9}


def test_regressions_of_version_2_are_fitted_again():
    old = old_state(without_gain={}, regression_settings=REGRESSIONS, regressions=[1, 2])
    state = upgrade_state(old, 2, False)
    stack = stack_from_state(state["stack"], 9, 2)
    assert (stack.kernel, stack.varying, stack.couples_outputs) == ("matern32", True, False)
    assert_array_equal([found.near for found in stack.unknown], [[1, 0, 0], [1, 0, 0]])
    assert {"regression_settings", "regressions"}.isdisjoint(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"without_gain": 3}, "'without_gain' is 3"),
        ({"without_gain": {"row": np.array([0])}}, "'without_gain' has the key 'row'"),
        ({"without_gain": {"site": np.array([5])}}, "outputs without gain by site"),
        ({"regression_settings": {}}, "known kernel"),
        ({"regression_settings": REGRESSIONS | {"residual_kernel": "cubic"}}, "known kernel"),
        ({"regression_settings": REGRESSIONS | {"residual_kernel": []}}, "known kernel"),
        ({"regression_settings": REGRESSIONS | {"varying_coefficients": 3}}, "true nor false"),
    ],
)
def test_invalid_states_of_version_2_are_refused(change, message):
    with pytest.raises(ModelFileError, match=message):
        stack_from_state(upgrade_state(old_state() | change, 2, False)["stack"], 9, 2)


QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 4, "n_restarts": 1, "random_state": 0}


@pytest.fixture(scope="module", params=[EMGPR, ConditionalGP])
def model(request):
    X, Y = smooth_table(np.random.default_rng(0), N=30)
    Y[X[:, 0] < 0.4, 0] = NAN
    return request.param(**QUICK).fit(X, Y)


def test_a_stored_model_is_the_same_model(model, tmp_path):
    known = np.full((6, 3), NAN)
    known[:3, 1], known[2:4, 2] = 600.0, -1.0
    new = model.training_data()[0].to_numpy()[:6] + 0.1
    expected = model.predict(new, return_std=True, observed=known)
    model.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    assert isinstance(again.posterior_, StackedPosterior)
    assert_same(again.posterior_.stack, model.posterior_.stack)
    assert_same(again.stacking_weights_, model.stacking_weights_)
    assert_array_equal(again.predict(new, return_std=True, observed=known), expected)


def test_a_model_answers_new_questions_after_it_was_loaded(model, tmp_path):
    """Weights for a new set of known outputs are fitted in the same way."""
    X, Y = model.training_data()
    fresh = type(model)(**QUICK).fit(X, Y)
    n = len(fresh.posterior_.stack.known)
    fresh.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    known = np.column_stack([np.full(4, NAN), np.full(4, NAN), np.linspace(-2, 0, 4)])
    one, two = (m.predict(X[:4] + 0.1, return_std=True, observed=known) for m in (fresh, again))
    assert len(again.posterior_.stack.known) == n + 2
    assert_array_equal(two, one)


@pytest.mark.slow
def test_no_damaged_or_forged_file_does_harm(model, tmp_path):
    assert_harmless(model, tmp_path, 60, 150)
