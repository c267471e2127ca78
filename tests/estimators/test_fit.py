"""What fit learns and says, over the family."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import paper, smooth_table
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP

QUICK = {"max_iter": 5, "n_restarts": 2, "random_state": 0}
HELD = {"kernel": RBF(0.4, "fixed")} | QUICK  # with nothing to search for in step 1
quietly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
in_small_batches = pytest.mark.filterwarnings("ignore:Batches of 8 sites are small")
FAMILY = [EMGPR, ICM, LMC, SLFM, IndependentGP]
REFINED = {
    "EMGPR in sweeps": partial(paper, refine=1),
    "EMGPR with correlated noise": partial(paper, refine=1, noise="correlated"),
}
every_way_to_learn = pytest.mark.parametrize(
    "Estimator", [*FAMILY, *REFINED.values()], ids=[*(E.__name__ for E in FAMILY), *REFINED]
)


@pytest.fixture
def table(rng):
    return smooth_table(rng, N=24)


@quietly
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (paper(batch_size=8, **QUICK), (3, 3, 3, 1)),
        (paper(batch_size=8, n_members=2, **QUICK), (2, 3, 3, 1)),
        (paper(batch_size=None, n_latents=4, rank=2, **QUICK), (1, 4, 3, 2)),
        (paper(**QUICK), (2, 3, 3, 1)),  # 9 sites a batch
        (paper(n_latents=2, rank=3, **QUICK), (1, 2, 3, 3)),  # 18: three for each column
        (ICM(**QUICK), (1, 1, 3, 1 + 3)),  # and a part of its own for every output
        (ICM(rank=2, **QUICK), (1, 1, 3, 2 + 3)),
        (SLFM(**QUICK), (1, 2, 3, 1)),
        (SLFM(n_latents=5, **QUICK), (1, 5, 3, 1)),
        (LMC(**QUICK), (1, 3, 3, 1)),
        (LMC(n_latents=2, rank=3, **QUICK), (1, 2, 3, 3)),
        (IndependentGP(**QUICK), (1, 3, 3, 1)),
    ],
    ids=repr,
)
def test_members_latents_outputs_and_rank_are_as_asked(table, model, shape):
    model.fit(*table)
    L, Q, D, _ = shape
    assert model.weights_.shape == shape
    assert len(model.kernels_) == Q
    assert len(model.batches_) == L
    assert model.noise_.shape == (D,)
    B = np.einsum("lqdk,lqek->lqde", model.weights_, model.weights_).mean(axis=0)
    assert_allclose(model.coregionalization_, B, rtol=1e-12)
    assert 1 <= model.n_iter_ <= 5
    assert np.isfinite(model.log_marginal_likelihood_value_)


def test_without_transfer_the_likelihood_is_the_sum_of_the_tasks(table):
    X, Y = table
    together = IndependentGP(random_state=0).fit(X, Y)
    alone = [IndependentGP(random_state=0).fit(X, y) for y in Y.T]
    assert_allclose(
        together.log_marginal_likelihood_value_,
        sum(model.log_marginal_likelihood_value_ for model in alone),
        rtol=1e-6,
    )


@quietly
def test_learning_weights_and_then_everything_raises_the_likelihood(table):
    ladder = [
        IndependentGP(random_state=0),
        paper(batch_size=None, max_iter=30, random_state=0),
        paper(batch_size=None, max_iter=30, refine="joint", random_state=0),
    ]
    values = [model.fit(*table).log_marginal_likelihood_value_ for model in ladder]
    assert np.all(np.diff(values) > 0.1)


@quietly
def test_the_joint_ascent_never_ends_below_the_two_steps_not_even_without_noise(rng):
    """A regressor that was borrowed brings its alpha of 1e-10 to outputs that have no noise."""
    X = rng.uniform(size=(20, 2))
    learner = GaussianProcessRegressor(RBF(1.5), optimizer=None, alpha=1e-10)
    settings = {"latent_learner": learner, "batch_size": None, "max_iter": 30, "random_state": 0}
    two_steps, joint = (
        paper(refine=refine, **settings).fit(X, np.sin(2 * X)).log_marginal_likelihood_value_
        for refine in (0, "joint")
    )
    assert joint >= two_steps


@quietly
@pytest.mark.parametrize("refine", [1, "joint"])
def test_a_borrowed_regressor_may_bring_no_noise_at_all(rng, refine):
    """Which then stays none: zero has no logarithm to move."""
    X = rng.uniform(size=(20, 2))
    learner = GaussianProcessRegressor(RBF(0.2), optimizer=None, alpha=0.0)
    settings = {"latent_learner": learner, "batch_size": None, "max_iter": 10, "random_state": 0}
    two_steps, further = (
        paper(refine=way, **settings).fit(X, np.sin(9 * X)).log_marginal_likelihood_value_
        for way in (0, refine)
    )
    assert further >= two_steps - 1e-5


@quietly
def test_intrinsic_coregionalisation_has_a_shared_and_a_diagonal_part(table):
    W = ICM(rank=1, **QUICK).fit(*table).weights_[0, 0]
    own = W[:, 1:]
    assert_array_equal(own, np.diag(np.diag(own)))
    assert np.all(np.diag(own) != 0)


@quietly
def test_strided_batches_are_the_papers(table):
    model = paper(batch_size=8, partition="strided", **QUICK).fit(*table)
    assert_array_equal(model.batches_, np.arange(24).reshape(8, 3).T)


def test_what_converged_says_nothing(table):
    model = IndependentGP(random_state=0).fit(*table)
    assert model.converged_


def test_an_output_that_ends_at_a_bound_is_named(table):
    X, Y = table
    Y = np.column_stack([Y[:, 0], np.sin(2 * X[:, 0])])
    model = IndependentGP(random_state=0)
    with pytest.warns(ConvergenceWarning, match="Step 1 of output '1'.*free of noise") as caught:
        model.fit(X, Y)
    assert len(caught) == 1
    assert not model.converged_


def test_an_output_of_nothing_but_noise_is_named(rng):
    X = np.linspace(0, 1, 40)[:, None]
    Y = np.column_stack([np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=40), (-1.0) ** np.arange(40)])
    with pytest.warns(ConvergenceWarning, match="Step 1 of output '1'.*white noise"):
        IndependentGP(random_state=0).fit(X, Y)


@quietly
def test_searches_cut_short_are_counted(table):
    model = paper(RBF(0.4, "fixed"), batch_size=8, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="3 of 3 members.*max_iter=2; try more"):
        model.fit(*table)
    with pytest.warns(ConvergenceWarning, match=r"Refinement: it did not.*max_iter=2"):
        LMC(max_iter=2, random_state=0).fit(*table)
    assert not model.converged_


def test_a_search_cut_short_in_the_last_sweep_is_told(table):
    """Kernels and noise are fixed: what has not converged are the weights."""
    kernel = RBF(0.4, "fixed") + WhiteKernel(1e-4, "fixed")
    model = paper(kernel, refine=1, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
        model.fit(*table)
    assert not model.converged_


@quietly
@in_small_batches
@pytest.mark.parametrize(
    ("refine", "stages"),
    [
        (0, ["weights"]),
        (1, ["weights", "kernels and noise", "weights"]),
        (3, None),
        ("joint", None),
    ],
)
@pytest.mark.parametrize("batch_size", [None, 8])
def test_the_way_up_is_kept_stage_by_stage(table, refine, stages, batch_size):
    model = paper(refine=refine, batch_size=batch_size, **HELD).fit(*table)
    learned, values = zip(*model.history_, strict=True)
    if stages is not None:
        assert list(learned) == stages
    assert len(learned) == {0: 1, 1: 3, 3: 7, "joint": 1 + QUICK["max_iter"]}[refine]
    assert np.all(np.diff(values) >= -1e-5)
    assert_allclose(values[-1], model.log_marginal_likelihood_value_, rtol=1e-9)


@quietly
@in_small_batches
def test_every_way_up_starts_where_the_two_steps_end(table):
    models = [paper(refine=refine, batch_size=8, **HELD).fit(*table) for refine in (0, 2, "joint")]
    starts = [model.history_[0].log_likelihood for model in models]
    assert_allclose(starts, starts[0], atol=1e-5)


@quietly
@pytest.mark.parametrize("refine", [1, "joint"])
def test_all_data_are_one_batch_when_the_ascent_continues_unless_another_was_asked_for(
    table, refine
):
    """Noise learned beside the weights of small batches would be explained away, as is said."""
    assert len(paper(refine=refine, **HELD).fit(*table).weights_) == 1
    small = paper(refine=refine, batch_size=8, **HELD)
    with pytest.warns(UserWarning, match="Batches of 8 sites are small.*batch_size=15"):
        assert len(small.fit(*table).weights_) == 3


@quietly
@in_small_batches
@pytest.mark.parametrize("refine", [1, "joint"])
def test_correlated_noise_is_a_covariance_and_independent_noise_variances(table, refine):
    settings = {"refine": refine, "batch_size": 8} | HELD
    joined = paper(noise="correlated", **settings).fit(*table)
    apart = paper(**settings).fit(*table)
    assert joined.noise_.shape == (3, 3)
    assert_array_equal(joined.noise_, joined.noise_.T)
    assert np.all(np.linalg.eigvalsh(joined.noise_) > 0)
    assert np.all(joined.noise_ != 0)
    assert apart.noise_.shape == (3,)
    assert np.all(apart.noise_ > 0)


def test_correlated_noise_of_one_output_is_its_noise(table):
    X, Y = table
    settings = {"refine": "joint", "random_state": 0}
    joined = paper(noise="correlated", **settings).fit(X, Y[:, 0])
    apart = paper(**settings).fit(X, Y[:, 0])
    assert_allclose(joined.noise_, apart.noise_, rtol=1e-9)
    assert_allclose(joined.predict(X), apart.predict(X), rtol=1e-9)


@quietly
@every_way_to_learn
def test_fixed_hyper_parameters_stay_whatever_is_learned_beside_them(table, Estimator):
    kernel = ConstantKernel(0.8, "fixed") * RBF(0.37, "fixed") + WhiteKernel(0.05, "fixed")
    model = Estimator(kernel, **QUICK).fit(*table)
    for own in model.kernels_[:1]:
        assert own.k2.length_scale == 0.37
        assert own.k1.constant_value == 0.8
    assert_allclose(variances(model), 0.05)


def variances(model):
    """The noise of each output."""
    return np.diag(model.noise_) if model.noise_.ndim == 2 else model.noise_


def test_what_is_fixed_has_not_ended_at_a_bound(table):
    kernel = RBF(0.4, "fixed") + WhiteKernel(0.01, "fixed")
    assert ICM(kernel, max_iter=500, random_state=0).fit(*table).converged_  # and without a warning


@quietly
@every_way_to_learn
def test_bounds_of_the_noise_hold_to_the_end(table, Estimator):
    model = Estimator(RBF() + WhiteKernel(0.3, (0.2, 0.4)), **QUICK).fit(*table)
    assert np.all((variances(model) > 0.2 - 1e-9) & (variances(model) < 0.4 + 1e-9))


@quietly
@pytest.mark.parametrize("Q", [2, 3, 4])
def test_a_list_of_kernels_gives_each_latent_its_own(rng, Q):
    """Whatever the tasks are like: the first two alike, the third rougher."""
    X, Y = smooth_table(rng, N=24)
    Y = np.column_stack([Y[:, 0], Y[:, 0] + Y[:, 1] / 300, np.sin(60 * X[:, 0])])
    kinds = [Matern(nu=nu) for nu in (1.5, 0.5, 2.5, np.inf)][:Q]
    model = LMC(kinds, n_latents=Q, **QUICK).fit(X, Y)
    assert [kernel.nu for kernel in model.kernels_] == [kernel.nu for kernel in kinds]


@quietly
@pytest.mark.filterwarnings("ignore:Output '.' has one value only")
def test_a_constant_output_leaves_its_neighbours_alone(table):
    """The order of the columns decides nothing, and the other output is still learned."""
    X, Y = table
    for order in ([0, 1], [1, 0]):
        both = np.column_stack([Y[:, 0], np.full(24, 7.3)])[:, order]
        model = ICM(max_iter=60, random_state=0).fit(X, both)
        mean = model.predict(X)[:, order]
        assert_allclose(mean[:, 1], 7.3, atol=0.01)
        assert np.mean((mean[:, 0] - Y[:, 0]) ** 2) < 0.2 * Y[:, 0].var()


def test_progress_is_shown_if_asked(table, capsys):
    IndependentGP(RBF(0.4, "fixed"), random_state=0, verbose=1).fit(*table).predict(table[0])
    shown = capsys.readouterr()
    assert "Step 1: tasks" in shown.err
    assert "Predicting" in shown.err
    assert shown.out == ""


@quietly
@pytest.mark.parametrize(("refine", "label"), [(1, "kernels and noise"), ("joint", "everything")])
def test_progress_of_the_further_ascent_is_shown_if_asked(table, capsys, refine, label):
    for verbose in (0, 1):
        paper(refine=refine, verbose=verbose, **HELD).fit(*table)
        shown = capsys.readouterr()
        assert (f"Refining: {label}" in shown.err) == bool(verbose)
        assert shown.out == ""
