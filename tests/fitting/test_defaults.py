"""Parameters of a fit: refused if they have no meaning, and resolved for a table."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, ICM, LMC, SLFM, IndependentGP
from emgpr.fitting import defaults as module
from emgpr.fitting.defaults import FitSettings, resolve_params
from emgpr.latents import FITC, PoE
from emgpr.observations import Observations

REFUSED = [
    ({"rank": 0}, "rank=0; expected a whole number of at least 1"),
    ({"rank": 1.5}, "rank=1.5"),
    ({"rank": True}, "rank=True"),
    ({"n_latents": 0}, 'n_latents=0; expected .* or "auto" or None'),
    ({"n_latents": "many"}, "n_latents='many'"),
    ({"n_members": 0}, "n_members=0"),
    ({"batch_size": 0}, 'batch_size=0.*or "auto" or None'),
    ({"batch_size": "paper"}, "batch_size='paper'"),
    (
        {"partition": "clustered"},
        "partition='clustered'; expected one of 'stratified', 'random', 'strided'",
    ),
    ({"conditioning": "nearest"}, 'conditioning=.nearest.*"auto", "all" or "batch"'),
    ({"conditioning": 0}, "conditioning=0"),
    ({"conditioning": True}, "conditioning=True"),
    ({"refine": -1}, 'refine=-1; expected a whole number of at least 1, 0.*"joint"'),
    ({"refine": 1.5}, "refine=1.5"),
    ({"refine": "jointly"}, "refine='jointly'"),
    ({"refine": None}, "refine=None"),
    ({"refine": False}, "refine=False"),
    ({"noise": "full"}, "noise='full'; expected one of .*'independent', 'correlated'"),
    ({"noise": None}, "noise=None"),
    ({"noise": True}, "noise=True"),
    (
        {"noise": "correlated", "refine": 0},
        'noise="correlated" is estimated only by.*set refine="joint", or noise="indep',
    ),
    ({"noise": "correlated", "refine": -1}, "refine=-1"),
    ({"prior": "strong"}, "prior='strong'; expected one of 'weak', None"),
    ({"transfer": "some"}, "transfer='some'; expected one of 'auto', 'full', 'none'"),
    ({"combine": "median"}, "combine='median'; expected one of 'mean', 'average', 'poe'"),
    ({"output_transform": "sqrt"}, "output_transform='sqrt'; expected one of None, 'softplus'"),
    ({"max_iter": 0}, "max_iter=0"),
    ({"max_iter": "9"}, "max_iter='9'; expected a whole number of at least 1"),
    ({"n_restarts": 0}, "n_restarts=0"),
    ({"kernel": "matern"}, "kernel='matern' is not a scikit-learn kernel; .*'matern32'"),
    ({"kernel": RBF}, "is not a scikit-learn kernel"),
    ({"kernel": [RBF(), "auto", RBF()]}, "kernel='auto' is not"),
    ({"kernel": [RBF(), None, RBF()]}, "kernel=None is not"),
    (
        {"latent_learner": "sparse"},
        'latent_learner=\'sparse\'; expected "auto", "exact", "vecchia", "poe"',
    ),
    ({"latent_learner": PoE}, "latent_learner=<class.*with a method learn"),
    ({"latent_learner": ["exact"] * 3}, 'latent_learner=.*expected "auto", "exact"'),
    ({"latent_learner": [GaussianProcessRegressor(), "exact"]}, "latent_learner="),
    ({"latent_learner": FITC(0)}, "FITC: n_inducing=0; expected a whole number of at least"),
    ({"crs": 4326}, "crs=4326 is a int; expected a string such as 'EPSG:4326'"),
    ({"device": "mps"}, r"device='mps'; expected .*64-bit"),
    ({"checkpoint": 3}, "checkpoint=3; expected the path of a file, or None"),
    ({"normalize_y": "yes"}, "normalize_y='yes'; expected True or False"),
    ({"n_jobs": 1.5}, "n_jobs=1.5; expected a whole number of processes"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"random_state": "seed"}, "random_state='seed'; expected a whole number of at least 0"),
    ({"random_state": -1}, "random_state=-1"),
    ({"verbose": "loud"}, "verbose='loud'; expected 0, or 1 to show progress"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_a_parameter_without_a_meaning_is_named_with_what_is_expected(settings, message):
    model = EMGPR(**settings)  # the constructor only stores
    with pytest.raises(ValueError, match=message):
        model.fit_settings()


@pytest.mark.parametrize("method", ["fit", "plan", "first_look"])
def test_parameters_are_validated_before_the_table(method):
    with pytest.raises(ValueError, match="rank=0"):
        getattr(EMGPR(rank=0), method)(None, None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EMGPR([RBF(), RBF()]), "kernel is a list of 2 kernels for 3 latent processes"),
        (ICM([RBF(), RBF(), RBF()]), "kernel is a list of 3 kernels for 1 latent processes"),
        (EMGPR(RBF([1.0, 1.0, 1.0])), "3 length.*2 columns"),
        (
            SLFM([RBF()] * 4, n_latents=4, latent_learner=GaussianProcessRegressor()),
            "latent_learner provides one process for each of 3 outputs, but kernel is a list of 4",
        ),
    ],
)
def test_kernels_that_do_not_suit_the_table_are_refused(rng, model, message):
    model.set_params(output_transform=None)
    with pytest.raises(ValueError, match=message):
        model.fit(rng.uniform(size=(20, 2)), rng.normal(size=(20, 3)))


@pytest.mark.parametrize(
    ("Estimator", "fixed"),
    [
        (IndependentGP, {"refine": 0, "couples_outputs": False}),
        (ICM, {"n_latents": 1, "output_variances": True, "refine": "joint"}),
        (LMC, {"n_latents": None, "rank": 1, "refine": "joint", "noise": "independent"}),
        (SLFM, {"n_latents": 2, "rank": 1, "refine": "joint"}),
    ],
)
def test_other_estimators_are_fits_with_these_settings(Estimator, fixed):
    settings = Estimator().fit_settings()
    assert {name: getattr(settings, name) for name in fixed} == fixed


# --- what "auto" and None resolve to


def observations(rng, N=60, D=3):
    return Observations.from_table(rng.uniform(size=(N, 2)), rng.normal(size=(N, D)))


def resolved(table, **settings):
    return resolve_params(EMGPR(**settings).fit_settings(), table)


@pytest.mark.parametrize(
    ("N", "expected"),
    [
        (65, (2, 2, True)),  # 130 readings: ten for each of 13 parameters
        (64, (2, 1, True)),
        (23, (2, 1, True)),  # 46: five for each of 9
        (22, (2, 1, False)),
        (20, (2, 1, False)),  # 40: five for each of 8, without the correlation
        (19, (1, 2, False)),  # one kernel, and a coregionalisation matrix of full rank
        (3, (1, 2, False)),
    ],
)
def test_few_readings_get_few_parameters(rng, N, expected):
    table = observations(rng, N, D=2)
    params = resolved(table)
    assert (params.n_latents, params.rank, params.correlated) == expected
    given = resolved(table, n_latents=2, rank=2, noise="correlated", refine="joint")
    assert (given.n_latents, given.rank, given.correlated) == (2, 2, True)


def test_few_readings_and_a_given_rank_get_few_latent_processes(rng):
    params = resolved(observations(rng, 19, D=2), rank=1)
    assert (params.n_latents, params.rank) == (1, 1)


def test_the_two_steps_have_rank_one_and_independent_noise(rng):
    table = observations(rng, 200)
    for refine, expected in [("joint", (2, True)), (1, (2, True)), (0, (1, False))]:
        params = resolved(table, refine=refine)
        assert (params.rank, params.correlated, params.refine) == (*expected, refine)


def test_a_rank_above_the_number_of_outputs_is_reduced(rng):
    assert resolved(observations(rng, D=2), rank=5).rank == 2
    assert resolved(observations(rng, D=1), rank=5).rank == 1


def test_one_output_has_no_correlated_noise(rng):
    assert not resolved(observations(rng, D=1), noise="correlated").correlated


@pytest.mark.parametrize(
    ("settings", "refine"),
    [
        ({"batch_size": 14}, 0),  # five sites for each of three latents are 15
        ({"batch_size": 15}, "joint"),
        ({"batch_size": 14, "noise": "correlated"}, "joint"),
        ({"batch_size": None}, "joint"),
        ({"batch_size": 9, "n_latents": 1, "rank": 1}, "joint"),
    ],
)
def test_batches_too_small_for_the_joint_optimisation_get_the_two_steps(rng, settings, refine):
    assert resolved(observations(rng), **settings).refine == refine


@pytest.mark.parametrize(
    ("settings", "size"),
    [({}, 9), ({"rank": 2}, 18), ({"n_latents": 5}, 15)],
    ids=["D squared", "rank 2", "five latents"],
)
def test_in_two_steps_a_batch_has_three_sites_for_each_weight_vector(rng, settings, size):
    """And D² at least, as in the paper."""
    given = {"rank": 1, "refine": 0, "batch_size": "auto"} | settings
    assert resolved(observations(rng), **given).batch_size == size


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (None, None, 30)),
        ({"n_members": 3}, (20, 3, None)),
        ({"n_members": 1}, (None, 1, 30)),
        ({"n_neighbours": 5}, (None, None, 5)),
        ({"n_neighbours": 1000}, (None, None, 59)),
        ({"n_neighbours": None}, (None, None, None)),
        ({"batch_size": 60}, (60, None, 30)),
        ({"batch_size": 30}, (30, None, None)),
        ({"refine": 0, "rank": 1}, (9, None, None)),
    ],
)
def test_batches_and_neighbours_of_the_likelihood(rng, settings, expected):
    """Vecchia's likelihood is used if there is one member, fitted to all sites."""
    params = resolved(observations(rng), **settings)
    assert (params.batch_size, params.n_members, params.n_neighbours) == expected


def test_many_readings_of_one_output_are_divided_in_the_two_steps(rng, monkeypatch):
    monkeypatch.setattr(module, "MAX_SITES_AT_ONCE", 30)
    assert resolved(observations(rng, D=1), refine=0, rank=1).batch_size == 30


@pytest.mark.parametrize("name", ["n_latents", "rank", "n_members", "batch_size", "refine"])
def test_numpy_integers_are_whole_numbers(rng, name):
    """As a search over np.arange sets them."""
    table = observations(rng)
    one, other = (resolved(table, **{name: number}) for number in (2, np.int64(2)))
    assert one == other


def test_settings_hold_every_parameter_of_the_estimators():
    names = set(vars(FitSettings()))
    for Estimator in (EMGPR, ICM, LMC, SLFM, IndependentGP):
        assert set(Estimator().get_params(deep=False)) <= names


def test_with_many_outputs_and_few_readings_there_are_few_weights(rng):
    """A coregionalisation matrix of full rank would have 3600 weights for 720 readings."""
    params = resolved(observations(rng, N=12, D=60))
    assert (params.n_latents, params.rank) == (1, 1)
