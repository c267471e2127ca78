"""Plans name the steps of a fit, with the sizes that the fit then has."""

import importlib

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.utils.validation import check_is_fitted

from emgpr import EMGPR, ICM, LMC, IndependentGP
from emgpr.datasets import jura_table
from emgpr.latents import FITC, PITC, Borrowed, PoE, Variogram, product_of_experts
from emgpr.planning.fit_costs import FURTHER_KERNEL
from emgpr.planning.plan import ACCURACY

pytestmark = pytest.mark.slow


def steps(model, X, Y):
    return {step.name: step for step in model.plan(X, Y).steps}


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (IndependentGP(output_transform=None), ["step 1"]),
        (IndependentGP(output_transform="auto"), ["transforms", "step 1"]),
        (EMGPR.paper(), ["step 1", "step 2"]),
        (EMGPR.paper(refine=2), ["step 1", "step 2", "refinement"]),
        (
            LMC(output_transform=None, n_neighbours=None),
            ["step 1", "step 2", "joint optimisation"],
        ),
        (LMC(output_transform=None), ["step 1", "joint optimisation"]),
        (EMGPR(), ["transforms", "step 1", "joint optimisation", "stacking"]),
        (
            EMGPR(n_latents="auto", transfer="full", output_transform=None),
            ["step 1", "joint optimisation", "pruning"],
        ),
    ],
)
def test_the_steps_are_those_of_the_settings(small, model, names):
    plan = model.plan(*small)
    assert [step.name for step in plan.steps] == ["table", *names]
    assert all(step.seconds > 0 for step in plan.steps)


def test_the_sizes_are_those_of_the_fit():
    jura = jura_table()
    model = EMGPR.paper(output_transform="log", random_state=0)
    planned = steps(model, jura.X, jura.Y)
    model.fit(jura.X, jura.Y)
    assert planned["step 1"].side == 359  # nickel and zinc; cadmium has 259 readings
    assert planned["step 2"].n_matrices == len(model.weights_)
    assert planned["step 2"].side == pytest.approx(3 * max(map(len, model.batches_)), rel=0.1)
    prediction = model.plan(jura.X, jura.Y).prediction
    assert model.conditioning_ == "all"
    assert prediction.method == "from all 977 readings"


def test_very_many_readings_have_vecchias_likelihood(big):
    planned = steps(EMGPR(), *big(12000))
    assert planned["joint optimisation"].method == "Vecchia, 15 neighbours"
    assert planned["joint optimisation"].n_matrices == 12000
    assert planned["joint optimisation"].side == 48
    assert planned["step 1"].side == 21
    assert planned["step 1"].n_readings == 12000
    assert "step 2" not in planned
    assert EMGPR().plan(*big(12000)).bytes < 1e9


def test_the_joint_optimisation_grows_with_the_sites(big):
    """From 20,000 to 80,000 of them, where the starting points take hardly any of the time."""
    few, many = (steps(EMGPR(), *big(N)) for N in (20_000, 80_000))
    ratio = many["joint optimisation"].seconds / few["joint optimisation"].seconds
    assert 1.5 < ratio < 5
    for name in ("step 1", "transforms"):  # log N more evaluations
        assert many[name].seconds == pytest.approx(few[name].seconds, rel=0.25)


def test_the_time_of_the_exact_likelihood_grows_with_its_matrices(big):
    small, large = (
        steps(LMC(n_neighbours=None), *big(N))["joint optimisation"] for N in (400, 800)
    )
    assert 4 < large.seconds / small.seconds < 8
    assert large.bytes / small.bytes == pytest.approx(4, rel=0.1)


def test_removing_latents_repeats_the_last_stage(big):
    planned = steps(EMGPR(n_latents="auto"), *big(300))
    assert 0 < planned["pruning"].seconds < 10 * planned["joint optimisation"].seconds


@pytest.mark.parametrize(
    ("learner", "counts", "seconds", "memory"),
    [
        ("exact", (1100, 3, 1100, 6), 1.3637225913599997, 58_080_000),
        ("poe", (1100, 12, 275, 6), 0.23415734136000005, 11_796_480),
        ("vfe", (300, 3, 300, 20), 3.67501371636, 41_287_680),
        (FITC(50), (50, 3, 50, 20), 0.4783637163599999, 16_711_680),
        (PITC(60, 30), (60, 3, 60, 20), 2.80772139136, 11_969_280),
        (Variogram(n_sites=200), (200, 3, 200, 450), 1.583806125, 23_592_960),
        (
            GaussianProcessRegressor(n_restarts_optimizer=2),
            (1100, 3, 1100, 30),
            40.33206,
            58_080_000,
        ),
    ],
    ids=repr,
)
def test_costs_of_step_1_are_those_that_were_compared_with_measured_ones(
    big, learner, counts, seconds, memory
):
    """As the version whose plans are compared with measured times in docs/large.md."""
    step = steps(IndependentGP(None, output_transform=None, latent_learner=learner), *big(1100))[
        "step 1"
    ]
    assert (step.n_readings, step.n_matrices, step.side, step.evaluations) == counts
    assert step.seconds == pytest.approx(seconds, rel=1e-9)
    assert step.bytes == memory


def test_processes_share_outputs_but_not_the_joint_optimisation(small):
    alone, shared = (steps(EMGPR(n_jobs=n), *small) for n in (None, 2))
    assert shared["step 1"].seconds == pytest.approx(alone["step 1"].seconds / 2)
    assert shared["joint optimisation"] == alone["joint optimisation"]


def test_processes_share_the_sums_of_one_output_if_there_are_many_readings(big):
    X, Y = big(9000)
    settings = {"kernel": RBF(), "output_transform": None, "latent_learner": "vfe"}
    alone, shared = (
        steps(IndependentGP(n_jobs=n, **settings), X, Y[:, 0])["step 1"].seconds for n in (None, 3)
    )
    assert shared == pytest.approx(alone / 3)
    svi = IndependentGP(**settings | {"latent_learner": "svi"})
    assert steps(svi, X, Y)["step 1"].method == "svi, mini-batches"


def test_one_latent_without_missing_readings_is_as_large_as_its_sites(small):
    X, Y = small
    gaps = Y.copy()
    gaps[0, 0] = np.nan
    complete, incomplete = (
        steps(ICM(None, output_transform=None, n_neighbours=None), X, table)["joint optimisation"]
        for table in (Y, gaps)
    )
    assert complete.side == len(X)
    assert incomplete.side == Y.size - 1
    assert incomplete.method == "dense"


def test_every_kernel_is_counted(small):
    """Those that start from another kernel take about half as long as the first."""
    step = steps(IndependentGP(output_transform=None), *small)["step 1"]
    assert step.n_matrices == round(3 * (1 + FURTHER_KERNEL * 4))
    single = steps(IndependentGP(RBF(), output_transform=None), *small)["step 1"]
    assert step.seconds == pytest.approx((1 + FURTHER_KERNEL * 4) * single.seconds)
    listed = EMGPR([RBF(), Matern()] * 2, n_latents=4)
    assert steps(listed, *small)["step 1"].n_matrices == 4


def test_a_regressor_that_is_fitted_takes_no_time(small):
    X, Y = small
    unfitted = GaussianProcessRegressor(n_restarts_optimizer=1)
    fitted = [GaussianProcessRegressor(RBF(0.4, "fixed")).fit(X, y) for y in Y.T]
    one = steps(EMGPR.paper(latent_learner=unfitted), X, Y)["step 1"]
    assert one.seconds > 0
    assert one.method == "scikit-learn's regressor"
    assert steps(EMGPR.paper(latent_learner=fitted), X, Y)["step 1"].seconds == 0
    mixed = steps(EMGPR.paper(latent_learner=[unfitted, *fitted[1:]]), X, Y)["step 1"]
    assert mixed.seconds == pytest.approx(one.seconds / 3)
    assert mixed.method == one.method


class Mine:
    """A user's learner, of unknown cost."""

    def learn(self, x, y, kernel):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("learner", "method"),
    [
        (Mine(), "user-defined learner Mine, 4 kernels"),
        (Borrowed(lambda x, y: None), "user-defined function"),
        ([GaussianProcessRegressor(), Borrowed(max), Borrowed(max)], "user-defined function"),
    ],
)
def test_the_time_of_a_users_learner_is_unknown(small, learner, method):
    plan = EMGPR(latent_learner=learner).plan(*small)
    step = plan.steps[2]
    assert step.method.startswith(method)
    assert step.seconds is None
    assert plan.unknown == ["step 1"]
    assert 0 < plan.seconds < 100
    assert "its distance from the maximum of the likelihood is unknown" in plan.approximations[0]


@pytest.mark.parametrize("make", [IndependentGP, EMGPR.paper, LMC])
def test_evaluations_are_as_many_as_planned_within_the_accuracy(monkeypatch, make):
    """Counted, not timed: on the logarithms of Jura, weighted as in the plan."""
    counts = {}

    def count(module, name):
        at = importlib.import_module(module)
        inner = at.minimize

        def minimize(objective, x0, **settings):
            def counted(x, which):
                counts[name] = counts.get(name, 0) + len(x)
                return objective(x, which)

            return inner(counted, x0, **settings)

        monkeypatch.setattr(at, "minimize", minimize)

    count("emgpr.latents.maximum_likelihood", "step 1")
    count("emgpr.weights.fit", "step 2")
    count("emgpr.weights.joint", "joint optimisation")
    jura = jura_table()
    model = make(output_transform="log", random_state=0, n_neighbours=None)
    planned = steps(model, jura.X, jura.Y)
    model.fit(jura.X, jura.Y)
    assert counts.keys() == planned.keys() - {"table"}
    for name, times in counts.items():
        ratio = times / (planned[name].n_matrices * planned[name].evaluations)
        assert 1 / ACCURACY < ratio < ACCURACY, (name, ratio)


def test_batches_of_step_1_are_as_many_as_planned_and_evaluated_as_often(monkeypatch):
    sizes, inner = [], product_of_experts.negative_log_likelihood

    def count(table, *given, **settings):
        objective = inner(table, *given, **settings)

        def counted(x, which):
            sizes.extend([table.n_sites] * len(x))
            return objective(x, which)

        return counted

    monkeypatch.setattr(product_of_experts, "negative_log_likelihood", count)
    jura = jura_table()
    model = IndependentGP(None, output_transform="log", latent_learner=PoE(60, 3), random_state=0)
    step = steps(model, jura.X, jura.Y)["step 1"]
    model.fit(jura.X, jura.Y)
    assert step.n_matrices == 3 * 3  # three outputs, three batches of each
    assert abs(np.array(sizes) - step.side).max() <= 6  # cadmium has fewer readings
    assert 1 / ACCURACY < len(sizes) / (step.n_matrices * step.evaluations) < ACCURACY


def test_planning_fits_nothing_and_refuses_what_fit_refuses(small):
    X, Y = small
    model = EMGPR()
    model.plan(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="contains NaN: input column"):
        model.plan(np.where(X > 0.9, np.nan, X), Y)
    with pytest.raises(ValueError, match="batch_size"):
        EMGPR(batch_size=0).plan(X, Y)
    with pytest.raises(ValueError, match="2 regressors for 3 outputs"):
        EMGPR(latent_learner=[GaussianProcessRegressor()] * 2).plan(X, Y)
