"""transform="auto": what it chooses for data whose transform is known, and what users may give."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from emgpr import EMGPR, IndependentGP
from emgpr.transforms import choice, choose_transforms
from emgpr.transforms.choice import FEWEST

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(1.0, "fixed")
SEEDS = (0, 2)
ABSOLUTE = FunctionTransformer(np.abs, np.abs, check_inverse=False)


def levels(seed, n=1, N=60):
    """Noisy smooth functions of a line, independent of each other, of variance 1."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, size=(N, 1)), axis=0)
    root = np.linalg.cholesky(RBF(1.0)(X) + 1e-9 * np.eye(N))
    f = root @ rng.normal(size=(N, n)) + 0.3 * rng.normal(size=(N, n))
    return X, f / f.std(axis=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian_outputs_are_left_and_lognormal_ones_get_the_log(seed):
    X, f = levels(seed, 2)
    assert choose_transforms(X, np.column_stack([f[:, 0], np.exp(f[:, 1])])) == [None, "log"]


def test_a_positive_output_gets_the_log_where_nothing_speaks_against_it():
    """So that its predictions stay positive."""
    X, f = levels(0)
    assert choose_transforms(X, 100 + f) == ["log"]


def test_an_output_with_a_zero_does_not():
    X, f = levels(0)
    counts = np.exp(f)
    counts[5] = 0.0
    assert "log" not in choose_transforms(X, counts)


def test_heavy_tails_on_both_sides_are_drawn_in():
    X, f = levels(0)
    assert choose_transforms(X, np.sinh(2.5 * f))[0] in ("yeo-johnson", "normal-score")


def test_two_values_far_apart_are_not_taken_for_gaussian():
    X, f = levels(0)
    noise = 0.3 * np.random.default_rng(0).normal(size=f.shape)
    assert choose_transforms(X, 3 * np.sign(f) + noise) != [None]


def test_a_log_of_the_wrong_way_is_seen_through():
    """Skewed to the left and positive: the log would make it worse."""
    X, f = levels(0)
    mirrored = 1 + np.exp(2 * f.max()) - np.exp(2 * f)
    assert choose_transforms(X, mirrored)[0] in ("yeo-johnson", "normal-score")


def test_units_change_no_choice():
    X, f = levels(1, 2, N=40)
    Y = np.column_stack([np.exp(f[:, 0]), np.sinh(2.5 * f[:, 1])])
    chosen = choose_transforms(X, Y)
    assert chosen[0] == "log"
    assert choose_transforms(X, Y * [1e4, 1e-3]) == chosen


def test_of_many_sites_it_looks_at_those_with_most_readings(monkeypatch):
    """Which are always the same. The others, with one reading each, are of another kind."""
    monkeypatch.setattr(choice, "ENOUGH", 30)
    X, f = levels(2, 2, N=45)
    Y = np.column_stack([f[:, 0], np.exp(f[:, 1])])
    Y[::3, 1], Y[::3, 0] = np.nan, np.sinh(9 * Y[::3, 0])
    chosen = choose_transforms(X, Y)
    assert chosen == [None, "log"]
    assert choose_transforms(X, Y) == chosen


def test_too_few_readings_tell_nothing():
    X, f = levels(4, 2)
    Y = np.exp(f)
    Y[FEWEST - 1 :, 0] = np.nan
    assert choose_transforms(X, Y) == [None, "log"]
    assert choose_transforms(X[: FEWEST - 1], Y[: FEWEST - 1, 1:]) == [None]


def test_one_value_tells_nothing():
    X, f = levels(4)
    Y = np.column_stack([np.full(60, 7.0), np.exp(f), np.full(60, 1e9)])
    assert choose_transforms(X, Y) == [None, "log", None]


def test_what_was_not_measured_is_passed_over():
    X, f = levels(1, 2)
    Y = np.column_stack([f[:, 0], np.exp(f[:, 1])])
    Y[::3, 0] = np.nan
    Y[1::3, 1] = np.nan  # a third of the rows has both
    assert choose_transforms(X, Y) == [None, "log"]


def test_the_estimator_keeps_what_was_chosen_and_undoes_it():
    X, f = levels(2, 2, N=40)
    Y = pd.DataFrame({"height": f[:, 0], "lead": np.exp(f[:, 1])})
    model = IndependentGP(KERNEL, transform="auto", random_state=0).fit(X, Y)
    assert model.transforms_ == [None, "log"]
    assert model.get_params()["transform"] == "auto"
    given = IndependentGP(KERNEL, transform={"lead": "log"}, random_state=0).fit(X, Y)
    assert_allclose(model.predict(X, return_std=True), given.predict(X, return_std=True))


def test_it_is_what_a_plain_model_does():
    X, f = levels(2, 2, N=25)
    model = EMGPR(KERNEL, max_iter=5, random_state=0).fit(X, np.exp(f))
    assert model.transforms_ == ["log", "log"]
    assert np.all(model.predict_quantiles(X, 0.001) > 0)


def test_one_for_all_a_list_and_a_dict_say_the_same():
    X, f = levels(1, 2, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Zn"])
    root = FunctionTransformer(np.sqrt, np.square)
    told = []
    for given, kept in [
        (root, [root, root]),
        ([root, root], [root, root]),
        ((root, root), [root, root]),
        ({"Zn": root, "Cd": root}, [root, root]),
    ]:
        model = IndependentGP(KERNEL, transform=given, random_state=0).fit(X, Y)
        assert model.transforms_ == kept
        told.append(model.predict(X, return_std=True))
    for other in told[1:]:
        assert_allclose(other, told[0])


def test_each_output_may_have_its_own():
    X, f = levels(1, 3, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Ni", "Zn"])
    listed = [None, "log", PowerTransformer()]
    model = IndependentGP(KERNEL, transform=listed, random_state=0).fit(X, Y)
    assert model.transforms_ == listed
    alone = [
        IndependentGP(KERNEL, transform=own, random_state=0).fit(X, Y[[name]]).predict(X)[:, 0]
        for own, name in zip(listed, Y, strict=True)
    ]
    assert_allclose(model.predict(X), np.column_stack(alone))
    some = IndependentGP(KERNEL, transform={"Ni": "log"}, random_state=0).fit(X, Y)
    assert some.transforms_ == [None, "log", None]


def test_a_dict_counts_outputs_that_have_no_names():
    X, f = levels(1, 2, N=25)
    model = IndependentGP(KERNEL, transform={1: "log"}, random_state=0).fit(X, np.exp(f))
    assert model.transforms_ == [None, "log"]


@pytest.mark.parametrize(
    ("transform", "complaint"),
    [
        ("sqrt", r"transform='sqrt'; expected one of None, 'log', .*'auto', a scikit-learn"),
        (["log"], r"transform holds 1 transforms for 2 outputs; give one for all"),
        ({"Pb": "log"}, r"transform names \['Pb'\], which are no outputs; the outputs are"),
        (["log", "sqrt"], r"transform='sqrt' of output 'Zn'; expected one of None, 'log'"),
        (PowerTransformer, r"PowerTransformer'>, is a class, not an object"),
        ([None, 3], r"transform of output 'Zn', 3, has no fit"),
        (FunctionTransformer(np.exp), r"does not undo its transform; a FunctionTransformer needs"),
        (ABSOLUTE, r"(?s)transform of output 'Cd', .* is not strictly monotone"),
        ("log", r'transform="log" needs positive values: output \'Cd\' has 2 .*rows \[3, 8\]'),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_by_name(transform, complaint):
    X, f = levels(1, 2, N=25)
    Y = pd.DataFrame(np.exp(f), columns=["Cd", "Zn"])
    Y.loc[[3, 8], "Cd"] = [0.0, -1.0]
    model = IndependentGP(KERNEL, transform=transform, random_state=0)
    with pytest.raises(ValueError, match=complaint):
        model.fit(X, Y)
