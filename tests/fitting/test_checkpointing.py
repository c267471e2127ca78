"""checkpoint=path: fits that are interrupted resume and end with the same numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP, checkpoint, load
from emgpr.covariance import vecchia_table
from emgpr.latents import maximum_likelihood as step_1
from emgpr.weights import fit as step_2
from tests.sameness import assert_same
from tests.simulated import paper, smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Batches of:UserWarning"
    ),
]
X, Y = smooth_table(np.random.default_rng(3), N=30)
joint = sys.modules["emgpr.weights.joint"]  # the package has a function of this name
QUICK = {"max_iter": 8, "n_restarts": 1, "random_state": 0}
PLAIN = {"kernel": None, "output_transform": None}  # step 1 comes first


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupt the n-th call of a function of a module, and restore the function."""
    monkeypatch.setattr(checkpoint, "MIN_INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "MAX_TIME_SHARE", np.inf)  # write after every step

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


def assert_same_model(one, other):
    ignored = ("checkpoint", "random_state")
    assert_same(*({k: v for k, v in vars(m).items() if k not in ignored} for m in (one, other)))


class UnnamedRule:
    def __call__(self, means, covs, prior):
        return means[0], covs[0]


def test_a_parameter_that_another_process_cannot_identify_is_refused_first(tmp_path):
    model = paper(combine=UnnamedRule(), batch_size=9, **QUICK, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match=r"possible to identify combine in .*named function"):
        model.fit(X, Y)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("Estimator", [ICM, SLFM, IndependentGP])
def test_all_estimators_resume(Estimator, tmp_path, interrupt):
    settings = QUICK | {"output_transform": None}
    model = Estimator(**settings, checkpoint=tmp_path / "fit")
    assert clone(model).get_params()["checkpoint"] == tmp_path / "fit"
    interrupt(step_1, "minimize", 3)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(X, Y)
    assert f"stored in {tmp_path / 'fit'}" in stopped.value.__notes__[0]
    model.fit(X, Y)
    assert not (tmp_path / "fit").exists()
    assert_same_model(model, Estimator(**settings).fit(X, Y))


MODELS = {
    "auto": EMGPR(n_latents="auto", output_transform="auto", **QUICK),
    "sweeps": paper(batch_size=10, refine=2, **QUICK),
    "batches": EMGPR(
        None, batch_size=15, output_transform=None, transfer="auto", refine="joint", **QUICK
    ),
}
MOMENTS = {
    "step 1": (step_1, "minimize", 2),
    "step 2": (step_2, "_fit", 1),
    "joint": (joint, "log_likelihood", 7),
    "starting points": (vecchia_table, "block_log_likelihood", 30),
    "Vecchia": (vecchia_table, "block_log_likelihood", 60),
}


@pytest.fixture(scope="module")
def uninterrupted():
    """Fit each of the models once, a member at a time."""
    models = {}

    def get(case):
        if case not in models:
            models[case] = clone(MODELS[case]).fit(X, Y)
        return models[case]

    return get


@pytest.mark.parametrize(
    ("case", "moment"),
    [
        ("auto", "step 1"),
        ("auto", "starting points"),
        ("auto", "Vecchia"),
        ("sweeps", "step 1"),
        ("sweeps", "step 2"),
        ("batches", "step 2"),
        ("batches", "joint"),
    ],
)
def test_a_fit_interrupted_anywhere_ends_the_same(
    case, moment, uninterrupted, tmp_path, interrupt, monkeypatch
):
    monkeypatch.setattr(step_2, "chunk_bytes", lambda device: 1.0)  # a member at a time
    whole = uninterrupted(case)
    calls = interrupt(*MOMENTS[moment])
    model = clone(MODELS[case]).set_params(checkpoint=str(tmp_path / "fit"))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    before = len(calls)
    model.fit(X, Y)
    assert len(calls) == before  # the function was restored at the interruption
    assert_same_model(model, whole)


def test_an_optimisation_continues_from_its_last_step(tmp_path, interrupt):
    settings = QUICK | {"max_iter": 60, "n_neighbours": None}
    interrupt(joint, "log_likelihood", 20)
    model = LMC(**settings, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    calls = interrupt(joint, "log_likelihood", 10**9)
    model.fit(X, Y)
    resumed = len(calls)
    calls = interrupt(joint, "log_likelihood", 10**9)
    LMC(**settings).fit(X, Y)
    assert resumed <= len(calls) - 17


def test_without_a_seed_a_resumed_fit_uses_the_random_numbers_of_the_first(tmp_path, interrupt):
    interrupt(step_2, "_fit", 1)
    model = paper(batch_size=10, max_iter=8, checkpoint=tmp_path / "fit")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    content = (tmp_path / "fit").read_bytes()
    one = model.fit(X, Y)
    (tmp_path / "fit").write_bytes(content)
    other = clone(model).fit(X, Y)
    assert_same_model(one, other)


@pytest.fixture
def interrupted(tmp_path, interrupt):
    """A model whose fit was interrupted, with a checkpoint of one output."""
    model = IndependentGP(**QUICK, **PLAIN, checkpoint=tmp_path / "fit")
    interrupt(step_1, "minimize", 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert (tmp_path / "fit").exists()
    return model


def test_other_data_or_parameters_are_refused_by_name(interrupted):
    for change, message in (
        ({"max_iter": 9}, r"max_iter was 8 and is 9\."),
        ({"kernel": RBF(2.0)}, r"kernel was None and is RBF"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
    ):
        with pytest.raises(ValueError, match="another fit: " + message):
            clone(interrupted).set_params(**change).fit(X, Y)
    with pytest.raises(ValueError, match=r"another fit: Y differs\. Pass another file"):
        interrupted.fit(X, Y + 1e-9)


def test_processes_and_verbosity_may_change_and_resuming_is_reported(interrupted, capsys):
    path = interrupted.checkpoint
    interrupted.set_params(n_jobs=1, verbose=1).fit(X, Y)
    assert f"Resuming from {path}; finished pieces of work: 1." in capsys.readouterr().err
    assert not path.exists()


def test_an_interruption_without_checkpoint_says_that_it_would_have_helped(interrupt):
    interrupt(step_1, "minimize", 2)
    with pytest.raises(KeyboardInterrupt) as stopped:
        IndependentGP(**QUICK, **PLAIN).fit(X, Y)
    assert "Set checkpoint=path" in stopped.value.__notes__[0]


def test_a_fit_that_finished_nothing_leaves_no_file(tmp_path, interrupt):
    model = IndependentGP(**QUICK, **PLAIN, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match="list of 2 kernels"):
        clone(model).set_params(kernel=[RBF(), RBF()]).fit(X, Y)
    assert not (tmp_path / "fit").exists()
    interrupt(step_1, "minimize", 1)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(X, Y)
    assert stopped.value.__notes__ == ["No part of the fit was finished yet."]
    assert not (tmp_path / "fit").exists()


def test_an_interruption_on_a_full_disk_says_that_work_is_lost(tmp_path, interrupt, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def stop(problem):
        monkeypatch.setattr(checkpoint, "write", full)
        raise KeyboardInterrupt

    monkeypatch.setattr(step_2, "_fit", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        paper(batch_size=10, **QUICK, checkpoint=tmp_path / "fit").fit(X, Y)
    assert "could not be stored in" in stopped.value.__notes__[0]


def test_fits_by_external_regressors_are_kept_too(tmp_path, interrupt):
    learner = GaussianProcessRegressor(RBF(0.5) + WhiteKernel(0.1), random_state=0)
    whole = IndependentGP(output_transform=None, latent_learner=learner).fit(X, Y)
    interrupt(GaussianProcessRegressor, "fit", 3)
    model = IndependentGP(
        output_transform=None, latent_learner=learner, checkpoint=tmp_path / "fit"
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    model.fit(X, Y)
    assert_array_equal(model.predict(X), whole.predict(X))


def test_a_checkpoint_that_is_not_a_path_is_refused():
    with pytest.raises(ValueError, match="checkpoint=True; expected the path"):
        IndependentGP(checkpoint=True).fit(X, Y)


def test_a_saved_model_has_no_checkpoint(tmp_path):
    model = IndependentGP(**QUICK, **PLAIN, checkpoint=Path(tmp_path / "fit")).fit(X, Y)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").checkpoint is None
