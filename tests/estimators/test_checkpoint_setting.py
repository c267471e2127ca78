"""checkpoint=path on the estimators: going on, refusing another fit, and members that fail."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sameness import assert_same
from simulated import paper, smooth_table
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, EnsembleWarning, IndependentGP, checkpoint, load
from emgpr.arrays import NumericalError
from emgpr.latents import climb
from emgpr.weights import fit as step_2

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Batches of:UserWarning"
)
X, Y = smooth_table(np.random.default_rng(3), N=30)
ascent = sys.modules["emgpr.weights.refine"]  # whose name in the package is the function's
QUICK = {"max_iter": 8, "n_restarts": 1, "random_state": 0}


@pytest.fixture
def stop(monkeypatch):
    """Ctrl-C at the n-th call of a function of a module; afterwards it is as it was."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)  # every step, however long a write takes

    def at(module, name, n):
        original, calls = getattr(module, name), []

        def counted(*given, **settings):
            calls.append(1)
            if len(calls) == n:
                monkeypatch.setattr(module, name, original)
                raise KeyboardInterrupt
            return original(*given, **settings)

        monkeypatch.setattr(module, name, counted)
        return calls

    return at


def same_model(one, other):
    hidden = ("checkpoint", "random_state")
    assert_same(*({k: v for k, v in vars(m).items() if k not in hidden} for m in (one, other)))


class Rule:
    """A rule of combination without a name."""

    def __call__(self, means, covs, prior):
        return means[0], covs[0]


def test_a_setting_that_no_other_process_would_know_again_is_refused_before_the_work(tmp_path):
    model = paper(combine=Rule(), batch_size=9, **QUICK, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match=r"cannot tell whether combine is .*named function"):
        model.fit(X, Y)
    assert not (tmp_path / "fit").exists()


def test_numbers_of_numpy_go_on_where_pythons_stopped(tmp_path, stop):
    model = LMC(rank=1, **QUICK, checkpoint=tmp_path / "fit")
    stop(climb, "_climb", 3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert (tmp_path / "fit").exists()
    model.set_params(rank=np.int64(1)).fit(X, Y)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("Estimator", [EMGPR, ICM, LMC, SLFM, IndependentGP])
def test_all_estimators_have_it(Estimator, tmp_path, stop):
    settings = QUICK | {"transform": None}
    model = Estimator(**settings, checkpoint=tmp_path / "fit")
    assert clone(model).get_params()["checkpoint"] == tmp_path / "fit"
    stop(climb, "_climb", 3)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(X, Y)
    assert f"kept in {tmp_path / 'fit'}" in stopped.value.__notes__[0]
    model.fit(X, Y)
    assert not (tmp_path / "fit").exists()
    same_model(model, Estimator(**settings).fit(X, Y))


MOMENTS = {
    "step 1": (climb, "_climb", 2),
    "step 2": (step_2, "_fit", 1),
    "joint ascent": (ascent, "log_likelihood", 7),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "model",
    [
        EMGPR(n_latents="auto", transform="auto", **QUICK),
        paper(batch_size=10, refine=2, **QUICK),
        EMGPR(None, batch_size=15, transform=None, transfer="full", refine="joint", **QUICK),
    ],
    ids=["auto", "sweeps", "batches"],
)
def test_interrupted_anywhere_it_ends_the_same(model, moment, tmp_path, stop, monkeypatch):
    monkeypatch.setattr(step_2, "room", lambda device: 1.0)  # a member at a time
    whole = clone(model).fit(X, Y)
    calls = stop(*MOMENTS[moment])
    model = clone(model).set_params(checkpoint=str(tmp_path / "fit"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    before = len(calls)
    model.fit(X, Y)
    assert len(calls) == before  # the count ended with the interruption
    same_model(model, whole)


def test_an_ascent_goes_on_from_where_it_was(tmp_path, stop):
    stop(ascent, "log_likelihood", 20)
    model = LMC(**QUICK | {"max_iter": 60}, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    calls = stop(ascent, "log_likelihood", 10**9)
    model.fit(X, Y)
    resumed = len(calls)
    calls = stop(ascent, "log_likelihood", 10**9)
    LMC(**QUICK | {"max_iter": 60}).fit(X, Y)
    assert resumed <= len(calls) - 17


def test_without_a_seed_the_same_numbers_are_drawn(tmp_path, stop):
    stop(step_2, "_fit", 1)
    model = paper(batch_size=10, max_iter=8, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    copy = (tmp_path / "fit").read_bytes()
    one = model.fit(X, Y)
    (tmp_path / "fit").write_bytes(copy)
    other = clone(model).fit(X, Y)
    same_model(one, other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_iter": 9}, r"max_iter was 8 and is 9\."),
        ({"kernel": RBF(2.0)}, r"kernel was None and is RBF"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
    ],
)
def test_other_settings_are_refused(change, words, tmp_path, stop):
    stop(climb, "_climb", 2)
    model = IndependentGP(**QUICK, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="another fit: " + words):
        clone(model).set_params(**change).fit(X, Y)
    with pytest.raises(ValueError, match=r"another fit: Y is another\. Name another file"):
        model.fit(X, Y + 1e-9)
    model.set_params(n_jobs=1, verbose=1).fit(X, Y)


def test_going_on_is_told_if_verbose(tmp_path, stop, capsys):
    stop(climb, "_climb", 2)
    model = IndependentGP(**QUICK, verbose=1, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    capsys.readouterr()
    model.fit(X, Y)
    assert f"Going on from {tmp_path / 'fit'}: 1 pieces" in capsys.readouterr().err


def test_without_one_the_interruption_says_that_it_would_have_helped(stop):
    stop(climb, "_climb", 2)
    with pytest.raises(KeyboardInterrupt) as stopped:
        IndependentGP(**QUICK).fit(X, Y)
    assert "With checkpoint=path" in stopped.value.__notes__[0]


def test_a_fit_that_finished_nothing_leaves_no_file(tmp_path, stop):
    model = IndependentGP(**QUICK, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match="holds 2 kernels"):
        clone(model).set_params(kernel=[RBF(), RBF()]).fit(X, Y)
    assert not (tmp_path / "fit").exists()
    stop(climb, "_climb", 1)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(X, Y)
    assert stopped.value.__notes__ == ["Nothing was finished yet."]
    assert not (tmp_path / "fit").exists()


def test_a_borrowed_step_1_is_kept_too(tmp_path, stop, monkeypatch):
    learner = GaussianProcessRegressor(RBF(0.5) + WhiteKernel(0.1), random_state=0)
    whole = IndependentGP(latent_learner=learner).fit(X, Y)
    stop(GaussianProcessRegressor, "fit", 3)
    model = IndependentGP(latent_learner=learner, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    model.fit(X, Y)
    assert_array_equal(model.predict(X), whole.predict(X))


def test_what_is_no_path_is_refused():
    with pytest.raises(ValueError, match="checkpoint=True; expected the path"):
        IndependentGP(checkpoint=True).fit(X, Y)


def test_a_saved_model_has_none(tmp_path):
    model = IndependentGP(**QUICK, checkpoint=Path(tmp_path / "fit")).fit(X, Y)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").checkpoint is None


@pytest.fixture
def fail(monkeypatch):
    """Members whose batch holds one of these sites fail in step 2, whenever they are tried."""

    def those(sites, error):
        original = step_2._fit

        def work(problem):
            if np.isin(X[sites], problem[1].x).any():
                raise error
            return original(problem)

        monkeypatch.setattr(step_2, "_fit", work)

    return those


@pytest.mark.parametrize("settings", [{}, {"refine": 1}, {"refine": "joint"}], ids=str)
def test_a_member_that_fails_is_left_out(settings, fail, tmp_path):
    """Of five strided batches the first has site 0 and the second site 1."""
    fail([0, 1], MemoryError("no room"))
    model = EMGPR.paper(batch_size=6, **QUICK | settings)
    with pytest.warns(EnsembleWarning, match=r"2 of 5 members failed twice.*MemoryError: no room"):
        model.fit(X, Y)
    assert model.n_members_failed_ == 2
    assert len(model.weights_) == len(model.batches_) == 3
    assert not np.isin([0, 1], np.concatenate(model.batches_)).any()
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").n_members_failed_ == 2


def test_a_likelihood_that_cannot_be_evaluated_is_a_failure_too(monkeypatch):
    original = step_2._fit

    def work(problem):
        fitted = original(problem)
        fitted.log_likelihood[0] = -np.inf
        return fitted

    monkeypatch.setattr(step_2, "_fit", work)
    with pytest.warns(EnsembleWarning, match=r"1 of 5 members .*could not be evaluated"):
        model = EMGPR.paper(batch_size=6, **QUICK).fit(X, Y)
    assert len(model.weights_) == 4


def test_with_fewer_than_half_there_is_no_ensemble(fail):
    fail([0, 1, 2], NumericalError("not positive definite"))
    with pytest.raises(NumericalError, match=r"3 of 5 members.*not positive definite.*batch_size"):
        EMGPR.paper(batch_size=6, **QUICK).fit(X, Y)


def test_all_members_stand_as_a_rule():
    assert EMGPR.paper(batch_size=6, **QUICK).fit(X, Y).n_members_failed_ == 0
    assert IndependentGP(**QUICK).fit(X, Y).n_members_failed_ == 0
