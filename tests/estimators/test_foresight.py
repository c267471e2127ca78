"""What is said of a fit before it is made: what the table holds, how it is done, what it costs."""

import importlib
import warnings

import numpy as np
import pandas as pd
import pytest
from simulated import smooth_table
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted

from emgpr import EMGPR, ICM, LMC, IndependentGP
from emgpr.datasets import jura_table
from emgpr.estimators import cost
from emgpr.estimators.plan import WITHIN, Speed
from emgpr.latents import FITC, VFE, Borrowed, Exact, PoE, Variogram, poe
from emgpr.observations import Observations
from emgpr.prediction import neighbours

RNG = np.random.default_rng(3)
X, Y = smooth_table(RNG, N=30)


@pytest.fixture(autouse=True)
def this_fast(monkeypatch):
    """A machine whose speed does not change from run to run."""
    monkeypatch.setattr(cost, "measured", lambda device: Speed(4e10, 2e-9))


def steps(model, X=X, Y=Y):
    return {step.name: step for step in model.plan(X, Y).steps}


def big(N=1100, D=3):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(N, 2)), rng.normal(size=(N, D))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (IndependentGP(), ["step 1"]),
        (IndependentGP(transform="auto"), ["transforms", "step 1"]),
        (IndependentGP(latent_learner="vfe"), ["step 1"]),
        (IndependentGP(latent_learner=Variogram()), ["step 1"]),
        (EMGPR.paper(), ["step 1", "step 2"]),
        (EMGPR.paper(refine=2), ["step 1", "step 2", "refinement"]),
        (LMC(), ["step 1", "step 2", "joint ascent"]),
        (EMGPR(), ["transforms", "step 1", "step 2", "joint ascent", "safe transfer"]),
        (
            EMGPR(n_latents="auto", transfer="full", transform=None),
            ["step 1", "step 2", "joint ascent", "switching off"],
        ),
    ],
)
def test_the_steps_are_those_of_the_settings(model, names):
    plan = model.plan(X, Y)
    assert [step.name for step in plan.steps] == ["table", *names]
    assert plan.seconds == pytest.approx(sum(step.seconds for step in plan.steps))
    assert all(step.seconds > 0 for step in plan.steps)
    assert f"within a factor of {WITHIN}.\n" in str(plan)


def test_the_sizes_are_those_of_the_fit():
    jura = jura_table()
    model = EMGPR.paper(transform="log", random_state=0)
    planned = steps(model, jura.X, jura.Y)
    model.fit(jura.X, jura.Y)
    assert planned["step 1"].side == 359  # nickel and zinc; cadmium was read at 259
    assert planned["step 2"].n_matrices == len(model.weights_)
    assert planned["step 2"].side == pytest.approx(3 * max(map(len, model.batches_)), rel=0.1)
    prediction = model.plan(jura.X, jura.Y).prediction
    assert model.conditioning_ == "all"
    assert prediction.method == "from all 977 readings"


def test_very_many_readings_are_learned_in_batches_and_predicted_from_neighbours():
    plan = EMGPR().plan(*big(12000))
    planned = {step.name: step for step in plan.steps}
    assert planned["joint ascent"].method == "dense, 8 batches of 500 sites"
    assert planned["joint ascent"].side == 1500
    assert planned["step 1"].side == 300
    assert planned["step 1"].n_readings == 8 * 300
    assert planned["safe transfer"].n_readings == 3 * 2000  # no gaps: of the same sites
    assert plan.bytes < 1e9
    assert plan.approximations == [
        "transforms: chosen on 400 of 12000 sites",
        "step 1: the likelihoods of 8 batches of 300 readings stand for that of 12000",
        "joint ascent: learned from 8 batches of 500 sites, each as if there were no other; 4000 "
        "of 12000 sites",
        "safe transfer: judged by 6000 readings of 36000, each from neighbours",
        "1000 places: each place from the 16 nearest readings of each output, of 36000 in all",
    ]
    assert str(plan).endswith("\n".join(f"  {line}" for line in plan.approximations))
    assert plan.prediction.method == "from 16 neighbours of each output"
    exact = IndependentGP().plan(*big(2000))
    assert exact.prediction.method == "from all 6000 readings"
    assert exact.approximations == []
    assert str(exact).endswith("Nothing is approximated.")


def test_what_does_not_grow_is_not_planned_to():
    """But for the looks at every place, from 20,000 to 80,000 of them, and trees."""
    few, many = (EMGPR(transfer="full").plan(*big(N)) for N in (20_000, 80_000))
    for one, other in zip(few.steps[1:], many.steps[1:], strict=True):
        assert other.seconds == pytest.approx(one.seconds, rel=0.1), other.name
        assert other.bytes == pytest.approx(one.bytes, rel=0.1), other.name
    assert 4 < many.steps[0].seconds / few.steps[0].seconds < 5
    assert many.steps[0].bytes == pytest.approx(4 * few.steps[0].bytes)


def test_sites_around_a_place_are_those_of_the_fit():
    """As many as the solves of predictions then have, where a third of readings is missing."""
    X, Y = big(3000)
    Y[np.random.default_rng(1).uniform(size=Y.shape) < 0.3] = np.nan
    model = EMGPR.paper(conditioning=16, latent_learner="variogram", n_members=2)
    side = model.plan(X, Y).prediction.side
    seen = Observations.from_table(X, Y)
    width = neighbours._Neighbours(seen, np.ones(2), 16).of(big(500)[0]).shape[1]
    assert side == pytest.approx(3 * width, rel=0.2)


class Mine:
    """A learner of which nobody knows how long it takes."""

    def learn(self, x, y, kernel):
        return Exact().learn(x[:50], y[:50], kernel)


@pytest.mark.parametrize("learner", [Mine(), Borrowed(lambda x, y: None)])
def test_time_that_cannot_be_known_is_not_invented(learner):
    plan = EMGPR(latent_learner=learner).plan(X, Y)
    assert plan.unknown == ["step 1"]
    assert 0 < plan.seconds < 100
    assert "  unknown  " in str(plan)
    assert "beside step 1, whose time is not known." in str(plan)
    assert "how near the maximum of the likelihood is not known" in plan.approximations[0]


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ("vfe", "a bound by 300 inducing points (VFE) stands for the likelihood of 2500 readings"),
        (FITC(50), "joined by 50 inducing points (FITC) stands for the likelihood of 2500"),
        ("variogram", "least squares on the variogram of 600 readings, of 2500; no likelihood"),
        (PoE(100, 1), "the likelihood of a batch of 100 readings stands for that of 2500"),
        (PoE(3000), ""),
        (VFE(2500), ""),
        (GaussianProcessRegressor(), ""),
    ],
)
def test_learners_say_what_stands_for_the_likelihood(learner, said):
    plan = IndependentGP(latent_learner=learner, conditioning="all").plan(*big(2500))
    assert bool(plan.approximations) == bool(said)
    assert said in "".join(plan.approximations)


def test_one_latent_without_gaps_is_as_large_as_its_sites():
    whole, gaps = (steps(ICM(), X, table)["joint ascent"] for table in (Y, with_gap(Y)))
    assert whole.side == len(X)
    assert gaps.side == Y.size - 1
    assert gaps.method == "dense"


def with_gap(Y):
    table = Y.copy()
    table[0, 0] = np.nan
    return table


def test_a_borrowed_regressor_that_is_fitted_costs_nothing():
    new = GaussianProcessRegressor()
    done = [GaussianProcessRegressor(RBF(0.4, "fixed")).fit(X, y) for y in Y.T]
    assert steps(EMGPR.paper(latent_learner=new))["step 1"].seconds > 0
    assert steps(EMGPR.paper(latent_learner=done))["step 1"].seconds == 0


def test_time_and_memory_grow_with_the_matrices():
    small, large = (EMGPR().plan(*big(N)) for N in (400, 800))
    assert 4 < large.seconds / small.seconds < 8
    assert large.bytes / small.bytes == pytest.approx(4, rel=0.1)


def test_processes_share_tasks_but_not_the_joint_ascent():
    alone, shared = steps(EMGPR()), steps(EMGPR(n_jobs=2))
    assert shared["step 1"].seconds == pytest.approx(alone["step 1"].seconds / 2)
    assert shared["joint ascent"] == alone["joint ascent"]


@pytest.mark.parametrize("make", [IndependentGP, EMGPR.paper, LMC])
def test_evaluations_are_as_many_as_planned_within_the_factor(monkeypatch, make):
    """Counted, not timed: on Jura's logarithms, weighted as the plan weighs them."""
    made = {}

    def counting(module, name):
        at = importlib.import_module(module)
        inner = at.minimize

        def minimize(objective, x0, **settings):
            def counted(x, which):
                made[name] = made.get(name, 0) + len(x)
                return objective(x, which)

            return inner(counted, x0, **settings)

        monkeypatch.setattr(at, "minimize", minimize)

    counting("emgpr.latents.climb", "step 1")
    counting("emgpr.weights.fit", "step 2")
    counting("emgpr.weights.refine", "joint ascent")
    jura = jura_table()
    model = make(transform="log", random_state=0)
    planned = steps(model, jura.X, jura.Y)
    model.fit(jura.X, jura.Y)
    assert made.keys() == planned.keys() - {"table"}
    for name, times in made.items():
        ratio = times / (planned[name].n_matrices * planned[name].evaluations)
        assert 1 / WITHIN < ratio < WITHIN, (name, ratio)


def test_batches_of_step_1_are_as_many_as_planned_and_evaluated_as_often(monkeypatch):
    sizes, inner = [], poe.loss_of

    def counting(table, *given, **settings):
        loss = inner(table, *given, **settings)

        def counted(x, which):
            sizes.extend([table.n_sites] * len(x))
            return loss(x, which)

        return counted

    monkeypatch.setattr(poe, "loss_of", counting)
    jura = jura_table()
    model = EMGPR.paper(transform="log", latent_learner=PoE(60, 3), random_state=0)
    step = steps(model, jura.X, jura.Y)["step 1"]
    model.fit(jura.X, jura.Y)
    assert step.n_matrices == 3 * 3  # of three tasks, three batches of each
    assert abs(np.array(sizes) - step.side).max() <= 6  # cadmium was read more rarely
    assert 1 / WITHIN < len(sizes) / (step.n_matrices * step.evaluations) < WITHIN


def test_the_machine_is_timed_for_less_than_it_costs(monkeypatch):
    monkeypatch.undo()
    speed = cost.measured("cpu")
    assert 1e8 < speed.operations < 1e14
    assert 1e-12 < speed.value < 1e-5


def messy():
    X = pd.DataFrame({"lon": [1.0, 1.0, 2.0, 3.0, 4.0, 5.0], "lat": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]})
    Y = pd.DataFrame({"Cd": [1.0, 1.0, 2.5, -9999.0, np.nan, 2.0], "Zn": [5.0, 5.0, np.nan] * 2})
    Y.loc[4] = np.nan
    return X, Y


def test_a_first_look_counts_and_doubts():
    X, Y = messy()
    look = EMGPR().first_look(X, Y)
    assert (look.n_rows, look.n_used, look.n_places) == (6, 5, 4)
    assert (look.n_shared, look.n_copies) == (2, 1)
    assert look.outputs["readings"].to_dict() == {"Cd": 5, "Zn": 3}
    assert look.outputs["missing"].to_dict() == {"Cd": 1, "Zn": 3}
    assert {(doubt.kind, doubt.code) for doubt in look.doubts} >= {
        ("code", -9999.0),
        ("degrees", None),
    }
    said = str(look)
    assert (
        "6 rows, 5 used: nothing was read in 1; 4 places, of which 1 have several rows, 2" in said
    )
    assert "1 rows repeat another one, readings and all" in said


def test_what_is_doubted_is_what_fit_warns_of():
    X, Y = messy()
    model = EMGPR.paper(max_iter=2, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    told = [str(warning.message) for warning in caught]
    assert set(model.first_look(X, Y).doubts) <= set(told)


def test_coordinates_on_the_sphere_are_shown_as_they_came():
    pytest.importorskip("pyproj")
    X, Y = messy()
    look = IndependentGP(crs="EPSG:4326").first_look(X, Y)
    assert look.inputs.round(9).to_dict("list") == {"least": [1.0, 0.0], "greatest": [5.0, 2.0]}
    assert {doubt.kind for doubt in look.doubts} == {"code", ""}


def test_transforms_that_are_set_are_tried_and_others_guessed():
    X, Y = big(30)
    Y = np.abs(Y) + 0.1
    Y[:, 2] -= 5
    look = EMGPR(transform={"0": "normal-score", "1": "auto", "2": "auto"}).first_look(X, Y)
    assert look.outputs["transform"].tolist() == [
        "normal-score", "log (first guess)", "none (first guess)",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="needs positive values: output '2'"):
        EMGPR(transform="log").first_look(X, Y)


@pytest.mark.parametrize("asked", ["first_look", "plan"])
def test_nothing_is_learned_and_what_fit_refuses_is_refused(asked):
    model = EMGPR()
    getattr(model, asked)(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="contains NaN: input column"):
        getattr(model, asked)(np.where(X > 0.9, np.nan, X), Y)
    with pytest.raises(ValueError, match="batch_size"):
        getattr(EMGPR(batch_size=0), asked)(X, Y)
