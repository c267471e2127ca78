"""Choices that are made for the user: the paper's settings, "auto", caps, and what is told."""

import inspect
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import paper, smooth_table
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.estimators import settings
from emgpr.estimators.settings import settle
from emgpr.observations import Observations

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(0.25, "fixed")
QUICK = {"kernel": KERNEL, "n_restarts": 1, "max_iter": 5, "transform": None, "random_state": 0}
DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(EMGPR.__init__).parameters.items()
    if name != "self"
}


@pytest.fixture
def table(rng):
    return smooth_table(rng, N=24)


def processes(seed, n, N=40):
    """Three outputs that hear the same n processes, or one each."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    f = np.linalg.cholesky(RBF(0.25)(X) + 1e-9 * np.eye(N)) @ rng.normal(size=(N, n))
    return X, (f * [1.0, -1.0, 0.7] if n == 1 else f) + 0.2 * rng.normal(size=(N, 3))


# --- the paper, and the defaults


def test_the_papers_settings_are_these():
    explicit = EMGPR(
        None,
        n_latents=None,
        rank=1,
        noise="independent",
        prior=None,
        batch_size="auto",
        n_members=None,
        partition="strided",
        combine="average",
        conditioning="auto",
        refine=0,
        transfer="full",
        latent_learner="exact",
        transform=None,
        normalize_y=True,
        max_iter=120,
    )
    assert EMGPR.paper().get_params() == explicit.get_params()
    assert clone(EMGPR.paper()).get_params() == explicit.get_params()


def test_what_is_changed_is_changed_and_no_more():
    changes = {"rank": 3, "transform": "log", "random_state": 1}
    assert EMGPR.paper(**changes).get_params() == EMGPR.paper().get_params() | changes
    with pytest.raises(TypeError, match="ranks"):
        EMGPR.paper(ranks=2)


def test_the_paper_learns_as_written_out(table):
    X, Y = table
    told = [
        EMGPR(RBF(), rank=1, noise="independent", prior=None, refine=0, partition="strided",
              transfer="full", combine="average", transform=None, max_iter=5, n_restarts=1,
              random_state=0),
        EMGPR.paper(max_iter=5, n_restarts=1, random_state=0),
    ]  # fmt: skip
    first, second = (model.fit(X, Y).predict(X, return_std=True) for model in told)
    assert_array_equal(first, second)
    assert len(told[1].weights_) == 2  # of 24 sites, batches of 3²


def test_the_docstring_has_every_parameter_in_order():
    text = inspect.getdoc(EMGPR).partition("Parameters\n")[2].partition("Attributes\n")[0]
    assert re.findall(r"^(\w+) :", text, flags=re.MULTILINE) == list(DEFAULTS)


def test_of_choices_that_are_listed_the_default_is_the_first():
    listed = re.findall(r'^(\w+) : \{?"([\w-]+)"', inspect.getdoc(EMGPR), flags=re.MULTILINE)
    assert {name for name, _ in listed} >= {"kernel", "noise", "combine", "transfer", "transform"}
    assert {name: DEFAULTS[name] for name, _ in listed} == dict(listed)


def test_every_attribute_that_is_documented_is_there(table):
    text = inspect.getdoc(EMGPR).partition("Attributes\n")[2].partition("Examples\n")[0]
    names = re.findall(r"^(\w+_) :", text, flags=re.MULTILINE)
    assert {"alone_", "history_", "transforms_", "variance_shares_"} < set(names)
    model = EMGPR(**QUICK).fit(*table)
    assert [name for name in names if not hasattr(model, name)] == []


# --- what "auto" and None come to


def test_two_steps_go_with_rank_one_and_noises_apart(table):
    further, two_steps = (EMGPR(**QUICK, refine=refine).fit(*table) for refine in (1, 0))
    assert further.noise_.shape == (3, 3)
    assert two_steps.noise_.shape == (3,)
    assert two_steps.weights_.shape[-1] == 1


@pytest.mark.parametrize(
    ("N", "expected"),
    [
        (65, (2, 2, True)),  # 130 readings: ten for each of 13 parameters
        (64, (2, 1, True)),
        (23, (2, 1, True)),  # 46: five for each of 9
        (22, (2, 1, False)),
        (20, (2, 1, False)),  # 40: five for each of 8, without the correlation
        (19, (1, 1, False)),
        (3, (1, 1, False)),
    ],
)
def test_few_readings_get_few_parameters(rng, N, expected):
    seen = Observations.from_table(rng.uniform(size=(N, 2)), rng.normal(size=(N, 2)))
    plan = settle(EMGPR(), seen)
    assert (plan.n_latents, plan.rank, plan.correlated) == expected
    asked = settle(EMGPR(n_latents=2, rank=2, noise="correlated", refine="joint"), seen)
    assert (asked.n_latents, asked.rank, asked.correlated) == (2, 2, True)


def test_batches_too_small_for_the_joint_ascent_get_the_two_steps(table):
    """Five sites for each of three latents are 15; of one output, 5."""
    X, Y = table
    small = EMGPR(**QUICK, batch_size=12).fit(X, Y)
    assert [stage.learned for stage in small.history_] == ["weights"]
    assert small.weights_.shape == (2, 3, 3, 1)
    one = EMGPR(**QUICK, batch_size=12).fit(X, Y[:, 0])
    assert "everything" in [stage.learned for stage in one.history_]


def test_a_rank_beyond_the_outputs_is_cut(table):
    X, Y = table
    for D in (1, 2):
        model = EMGPR.paper(**QUICK, rank=5, batch_size=None).fit(X, Y[:, :D])
        assert model.weights_.shape == (1, D, D, D)
        assert np.isfinite(model.predict(X)).all()
    assert LMC(**QUICK, rank=7, n_latents=2).fit(X, Y).weights_.shape == (1, 2, 3, 3)
    assert ICM(**QUICK, rank=7).fit(X, Y).weights_.shape == (1, 1, 3, 3 + 3)


@pytest.mark.parametrize(
    ("name", "value"), [("n_latents", 1), ("rank", 2), ("n_members", 1), ("conditioning", 3)]
)
def test_numpys_whole_numbers_mean_the_same(table, name, value):
    """As a search over np.arange would set them."""
    X, Y = table
    told = [
        EMGPR.paper(**QUICK | {name: number}).fit(X, Y).predict(X + 0.01, return_std=True)
        for number in (value, np.int64(value))
    ]
    assert_array_equal(*told)


# --- how many latents


@pytest.mark.parametrize("refine", [0, "joint"])
def test_latents_that_do_no_work_are_switched_off(refine):
    given = QUICK | {"n_latents": "auto", "refine": refine, "batch_size": None, "max_iter": 30}
    one = EMGPR.paper(**given).fit(*processes(0, 1))
    three = EMGPR.paper(**given).fit(*processes(0, 3))
    assert len(one.kernels_) == one.weights_.shape[1] == 1
    assert len(three.kernels_) == three.weights_.shape[1] == 3


def test_an_ensemble_switches_them_off_together():
    X, Y = processes(1, 1)
    model = EMGPR.paper(**QUICK | {"max_iter": 30}, n_latents="auto", batch_size=20).fit(X, Y)
    assert model.weights_.shape == (2, 1, 3, 1)
    assert model.coregionalization_.shape == (1, 3, 3)


def test_of_one_output_there_is_one_latent():
    X, Y = processes(0, 1)
    model = EMGPR(**QUICK, n_latents="auto").fit(X, Y[:, 0])
    assert len(model.kernels_) == 1


# --- what is told


@pytest.mark.parametrize("Estimator", [EMGPR, ICM, SLFM])
def test_shares_of_variance_sum_to_one(table, Estimator):
    shares = Estimator(**QUICK).fit(*table).variance_shares_
    assert list(shares.index) == ["0", "1", "2"]
    assert shares.columns[-1] == "noise"
    assert np.all(shares >= 0)
    assert_allclose(shares.sum(axis=1), 1.0)


def test_shares_are_those_of_the_weights(table):
    model = EMGPR.paper(**QUICK, batch_size=8).fit(*table)
    powers = np.einsum("lqdk,lqdk->dq", model.weights_, model.weights_) / 3
    expected = np.column_stack([powers, model.noise_])
    shares = model.variance_shares_
    assert list(shares.columns) == ["latent 0", "latent 1", "latent 2", "noise"]
    assert_allclose(shares, expected / expected.sum(axis=1, keepdims=True))
    alone = IndependentGP(RBF(0.25, "fixed") + WhiteKernel(0.25, "fixed")).fit(*table)
    assert_allclose(alone.variance_shares_.to_numpy(), np.eye(3, 4) * 0.8 + [0, 0, 0, 0.2])


@pytest.mark.parametrize("n_latents", [None, "auto"])
@pytest.mark.parametrize("refine", [0, 2, "joint"])
def test_the_history_never_falls_and_ends_at_the_model(table, refine, n_latents):
    given = {"refine": refine, "n_latents": n_latents, "batch_size": None}
    model = paper(**QUICK | {"kernel": RBF(), "max_iter": 8}, **given).fit(*table)
    values = [stage.log_likelihood for stage in model.history_]
    assert np.all(np.diff(values) >= -1e-6)
    assert_allclose(values[-1], model.log_marginal_likelihood_value_, rtol=1e-9)


def test_outputs_that_keep_to_themselves_are_named_where_that_was_asked(table):
    X, Y = table
    safe = EMGPR(**QUICK).fit(X, Y)
    assert set(safe.alone_) == {"site", "output"}
    assert all(set(names) <= {"0", "1", "2"} for names in safe.alone_.values())
    assert EMGPR(**QUICK, transfer="full").fit(X, Y).alone_ == {}
    assert EMGPR(**QUICK).fit(X, Y[:, 0]).alone_ == {}
    assert IndependentGP(KERNEL).fit(X, Y).alone_ == {}


# --- many readings


@pytest.fixture
def many(rng):
    return smooth_table(rng, N=60)


@pytest.fixture
def dear(monkeypatch):
    """Makes more than so many readings too many to learn from at once."""

    def beyond(n):
        monkeypatch.setattr(settings, "LARGEST", n)
        monkeypatch.setattr(settings, "BATCH", n)

    return beyond


JOINT = QUICK | {"n_latents": 1, "rank": 1, "refine": "joint", "max_iter": 2}


def test_all_readings_are_one_batch_while_they_are_few(many, dear):
    dear(180)
    assert len(paper(**JOINT).fit(*many).batches_) == 1


@pytest.mark.filterwarnings("ignore:Nothing was read in 30 of 60 rows")
def test_more_are_learned_from_in_batches_of_that_many(many, dear):
    dear(60)
    X, Y = many
    model = paper(**JOINT).fit(X, Y)
    assert [len(batch) for batch in model.batches_] == [20, 20, 20]
    assert_array_equal(np.sort(np.concatenate(model.batches_)), np.arange(60))
    assert model.weights_.shape[0] == 3
    Y[::2] = np.nan  # 90 readings at 30 sites
    assert [len(batch) for batch in paper(**JOINT).fit(X, Y).batches_] == [15, 15]


def test_so_are_those_of_a_single_output_even_in_two_steps(many, dear):
    dear(30)
    X, Y = many
    assert [len(b) for b in paper(**QUICK).fit(X, Y[:, 0]).batches_] == [30, 30]


def test_beyond_eight_batches_the_rest_is_left_and_that_is_said(many, dear):
    dear(18)
    said = r"180 readings are too many.*8 batches of 6 sites.*Set n_members or batch_size"
    with pytest.warns(UserWarning, match=said):
        model = paper(**JOINT).fit(*many)
    assert [len(batch) for batch in model.batches_] == [6] * 8
    assert len(np.unique(np.concatenate(model.batches_))) == 48
    assert model._seen.n_sites == 60  # all are predicted from


@pytest.mark.parametrize(("most", "L"), [(3, 3), (9, 9), (50, 10)])
def test_unless_a_number_of_members_was_asked_for(many, dear, most, L):
    """Nothing is said then: warnings are errors here."""
    dear(18)
    assert len(paper(**JOINT, n_members=most).fit(*many).batches_) == L


def test_small_batches_are_doubted_where_noise_is_learned_beside_them(many):
    """Three latents of rank 2 are 6 weights an output, for which 30 sites are asked."""
    given = QUICK | {"rank": 2, "batch_size": 20, "max_iter": 2}
    said = r"Batches of 20 sites are small.*beside 6 weights.*set batch_size=30 or more"
    with pytest.warns(UserWarning, match=said):
        paper(**given, refine="joint").fit(*many)
    paper(**given, refine=0).fit(*many)
    paper(**given | {"batch_size": 30}, refine="joint").fit(*many)
    paper(**given | {"batch_size": None}, refine="joint").fit(*many)


def test_the_rank_that_is_used_counts_for_that(many):
    """Of one output 9 columns are one: 5 sites are enough, and batches of 20 are large."""
    X, Y = many
    given = QUICK | {"rank": 9, "batch_size": 20, "max_iter": 2, "refine": "joint"}
    assert len(paper(**given).fit(X, Y[:, 0]).batches_) == 3


def test_in_two_steps_a_batch_has_three_sites_for_each_weight_vector(many):
    """And D² at least, as in the paper."""
    for given, size in [({}, 9), ({"rank": 2}, 18), ({"n_latents": 5}, 15)]:
        model = paper(**QUICK | {"max_iter": 2}, **given).fit(*many)
        assert len(model.batches_) == 60 // size
