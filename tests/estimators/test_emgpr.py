"""EMGPR: its defaults, its documentation, the paper's settings, and its combination rule."""

import inspect
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK = {
    "kernel": RBF(0.25, "fixed"),
    "n_restarts": 1,
    "max_iter": 5,
    "output_transform": None,
    "random_state": 0,
}
DEFAULTS = {
    name: parameter.default for name, parameter in inspect.signature(EMGPR).parameters.items()
}
X, Y = smooth_table(np.random.default_rng(20171), N=24)


@pytest.fixture
def ensemble():
    """Two members."""
    return EMGPR(**QUICK, refine=0, batch_size=12, transfer="full").fit(X, Y)


# --- the paper's settings


def test_the_papers_settings():
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
        n_neighbours=None,
        parameter_uncertainty=False,
        latent_learner="exact",
        output_transform=None,
        normalize_y=True,
        max_iter=120,
    )
    assert EMGPR.paper().get_params() == explicit.get_params()
    assert clone(EMGPR.paper()).get_params() == explicit.get_params()


def test_the_papers_settings_can_be_changed_one_by_one():
    changes = {"rank": 3, "output_transform": "log", "random_state": 1}
    assert EMGPR.paper(**changes).get_params() == EMGPR.paper().get_params() | changes
    with pytest.raises(TypeError, match="ranks"):
        EMGPR.paper(ranks=2)


def test_the_paper_divides_the_sites_into_batches_of_d_squared():
    model = EMGPR.paper(**QUICK).fit(X, Y)
    assert model.resolved_params_.batch_size == 3**2
    assert [len(batch) for batch in model.batches_] == [12, 12]  # all sites are used


# --- documentation


def test_the_docstring_describes_every_parameter_once():
    text = inspect.getdoc(EMGPR).partition("Parameters\n")[2].partition("Attributes\n")[0]
    described = re.findall(r"^(\w+) :", text, flags=re.MULTILINE)
    assert sorted(described) == sorted(DEFAULTS)


def test_of_the_values_that_the_docstring_lists_the_default_is_named():
    listed = re.findall(r"^(\w+) : (.*)$", inspect.getdoc(EMGPR), flags=re.MULTILINE)
    values = {name: re.findall(r'"([\w-]+)"', text) for name, text in listed}
    named = {name for name in DEFAULTS if isinstance(DEFAULTS[name], str)}
    assert named >= {"kernel", "noise", "combine", "transfer", "output_transform", "device"}
    assert {name for name in named if values[name][0] != DEFAULTS[name]} == set()


def test_the_fitted_model_has_every_attribute_that_the_docstring_describes():
    text = inspect.getdoc(EMGPR).partition("Attributes\n")[2].partition("Examples\n")[0]
    names = re.findall(r"^(\w+_) :", text, flags=re.MULTILINE)
    assert {"stacking_weights_", "history_", "transforms_", "variance_shares_"} < set(names)
    model = EMGPR(**QUICK).fit(X, Y)
    assert [name for name in names if not hasattr(model, name)] == []


# --- defaults


def test_small_batches_get_the_two_steps():
    """Five sites for each of three latents are 15; for one output, 5."""
    small = EMGPR(**QUICK, batch_size=12).fit(X, Y)
    assert [stage.learned for stage in small.history_] == ["weights"]
    assert small.weights_.shape == (2, 3, 3, 1)
    one = EMGPR(**QUICK, batch_size=12).fit(X, Y[:, 0])
    assert "everything" in [stage.learned for stage in one.history_]


@pytest.mark.parametrize("transfer", ["auto", "safe"])
def test_stacking_weights_are_listed_for_every_output_and_distance(transfer):
    """The value "safe" is the name of "auto" in earlier versions."""
    table = EMGPR(**QUICK, transfer=transfer).fit(X, Y).stacking_weights_
    assert list(table.columns) == ["own", "joint", "regression"]
    assert set(table.index.get_level_values("output")) == {"0", "1", "2"}
    assert set(table.index.get_level_values("distance")) == {"any", "near", "far"}
    assert_allclose(table.sum(axis=1), 1.0)
    nothing_known = table[table.index.get_level_values("distance") == "any"]
    assert (nothing_known["regression"] == 0).all()


def test_a_model_without_stacking_has_no_weights():
    assert EMGPR(**QUICK, transfer="full").fit(X, Y).stacking_weights_.empty
    assert EMGPR(**QUICK, transfer="none").fit(X, Y).stacking_weights_.empty
    assert EMGPR(**QUICK).fit(X, Y[:, 0]).stacking_weights_.empty


def test_without_transfer_predictions_are_those_of_independent_outputs():
    alone = EMGPR(**QUICK, transfer="none").fit(X, Y)
    own = EMGPR(**QUICK, transfer="full").fit(X, Y).posterior_.without_transfer()
    assert_allclose(alone.posterior_.predict(X + 0.05).mean, own.predict(X + 0.05).mean, rtol=1e-6)


# --- the combination rule


def first_member(means, covs, prior):
    return means[0], covs[0]


@pytest.mark.parametrize("rule", ["rbcm", first_member])
def test_another_combination_rule_applies_to_a_fitted_model_at_once(ensemble, rule):
    new = X + 0.05
    mixture = ensemble.predict(new, return_std=True)
    changed = ensemble.set_params(combine=rule).predict(new, return_std=True)
    refitted = clone(ensemble).fit(X, Y).predict(new, return_std=True)
    assert_array_equal(changed, refitted)
    assert not np.allclose(changed, mixture)
    assert_array_equal(ensemble.set_params(combine="mean").predict(new, return_std=True), mixture)


def test_an_unknown_combination_rule_is_refused_when_it_is_set(ensemble):
    with pytest.raises(ValueError, match="combine='median'; expected one of 'mean', 'average'"):
        ensemble.set_params(combine="median")


def test_other_parameters_apply_to_the_next_fit(ensemble):
    before = ensemble.predict(X)
    ensemble.set_params(n_latents=1, kernel__length_scale=0.5)
    assert_array_equal(ensemble.predict(X), before)
    assert len(ensemble.fit(X, Y).kernels_) == 1


def test_an_assigned_rule_takes_effect_and_an_unknown_one_is_refused(ensemble, tmp_path):
    before = ensemble.predict(X[:3])
    ensemble.combine = "poe"
    changed = ensemble.predict(X[:3])
    assert not np.allclose(changed, before)
    ensemble.save(tmp_path / "model")
    assert_array_equal(EMGPR.load(tmp_path / "model").predict(X[:3]), changed)
    with pytest.raises(ValueError, match="combine='median'"):
        ensemble.combine = "median"
    assert ensemble.combine == "poe"
    assert_array_equal(ensemble.predict(X[:3]), changed)


class FewerParameters(EMGPR):
    """A subclass whose constructor lists few parameters, and one more."""

    def __init__(self, kernel="auto", *, random_state=None, max_iter=5, label=""):
        super().__init__(
            kernel, random_state=random_state, max_iter=max_iter, transfer="full", batch_size=12
        )
        self.label = label


def test_a_subclass_keeps_the_parameters_that_its_constructor_does_not_list():
    kernel, positive = RBF(0.25, "fixed"), np.exp(Y / Y.std(axis=0))
    ours = FewerParameters(kernel, random_state=0, label="mine").fit(X, positive)
    same = EMGPR(kernel, random_state=0, max_iter=5, transfer="full", batch_size=12)
    assert_array_equal(ours.predict(X), same.fit(X, positive).predict(X))
    assert ours.transforms_ == same.transforms_
    assert len(ours.batches_) == 2


def test_a_device_that_is_not_there_is_refused_before_anything_is_read():
    model = EMGPR(device="cuda:99")
    for method in (model.fit, model.plan, model.first_look):
        with pytest.raises((ValueError, ImportError), match="cuda:99"):
            method("not", "read")
