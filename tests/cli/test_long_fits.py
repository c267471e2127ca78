"""Long fits are confirmed, with the options that make them shorter."""

import os
import typing

import pytest

import emgpr
from emgpr.cli import long_fits
from emgpr.cli.options import EstimatorOptions
from emgpr.latents import LEARNERS
from emgpr.planning import Plan, Step

from .commands import COLUMNS, invoke, refuse

FIT = ("fit", "jura.csv", *COLUMNS, "-o", "long.emgpr")
VALIDATE = ("validate", "jura.csv", *COLUMNS)


def planned(seconds=1.0, memory=1e6):
    step = Step("step 1", "exact", 9, 1, 9, 9, seconds, memory)
    return Plan(9, 3, 9, "cpu", 1, (step,), step)


STARTED = 130  # exit code of a fit that is interrupted as soon as it starts


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def plans(here, monkeypatch):
    """Plans that depend on the learner: exact takes two hours, auto 20 s."""

    def plan(model, X, Y):
        long = model.latent_learner == "exact"
        return planned(7200.0 if long else 20.0, 2e9 if long else 1e6)

    monkeypatch.setattr(emgpr.estimators.MultiOutputGP, "plan", plan)
    monkeypatch.setattr(emgpr.EMGPR, "fit", interrupt)
    monkeypatch.setattr(emgpr, "compare", interrupt)


@pytest.fixture
def terminal(monkeypatch):
    """Standard input that appears to be a terminal."""

    class Terminal(type(long_fits.sys)):
        pass

    fake = Terminal("sys")
    fake.stdin = type("stdin", (), {"isatty": staticmethod(lambda: True)})
    monkeypatch.setattr(long_fits, "sys", fake)


@pytest.mark.usefixtures("plans")
def test_a_short_fit_starts_without_a_question():
    assert invoke(*FIT).exit_code == STARTED


@pytest.mark.usefixtures("plans")
def test_without_a_terminal_a_long_fit_is_refused_and_the_remedy_is_named():
    line = refuse(2, *FIT, "--paper")
    assert "about 2.0 h and 2.0 GB of memory" in line
    assert "most of the time in step 1" in line
    assert "add --yes" in line
    assert "--learner auto (about 20 s and 1 MB)" in line
    assert "--members" not in line  # planned, and not faster


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("option", [("--yes",), ("--learner", "auto")])
def test_a_long_fit_starts_with_yes_or_the_remedy(option):
    assert invoke(*FIT, "--paper", *option).exit_code == STARTED


@pytest.mark.usefixtures("plans", "terminal")
@pytest.mark.parametrize(("answer", "starts"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks(answer, starts):
    result = invoke(*FIT, "--paper", input=answer)
    assert "Start? [y/N]" in result.stdout
    assert "\n  --learner auto (about 20 s and 1 MB)\n" in result.stdout
    assert result.exit_code == (STARTED if starts else 2)


def test_a_fit_that_needs_more_memory_than_there_is_asks(here, monkeypatch):
    monkeypatch.setattr(emgpr.EMGPR, "plan", lambda *_: planned(memory=1e18))
    monkeypatch.setattr(emgpr.EMGPR, "fit", lambda *_: pytest.fail("not run here"))
    line = refuse(2, *FIT)
    assert "about 1 s and 1000000000.0 GB of memory" in line
    assert "This machine has only" in line
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert "This machine" not in invoke(*FIT).output


@pytest.mark.usefixtures("plans")
def test_a_long_validation_of_a_table_asks_too():
    assert invoke(*VALIDATE).exit_code == STARTED
    line = refuse(2, *VALIDATE, "--learner", "exact", "--folds", "4")
    assert "Fitting 3 models 4 times takes at most about 24.0 h" in line
    assert "--folds 2 (at most about 12.0 h)" in line
    assert "--learner auto (about 20 s and 1 MB), for each fit of EMGPR" in line
    options = ("--learner", "exact", "--yes")
    assert invoke(*VALIDATE, *options).exit_code == STARTED


def test_options_name_all_learners():
    hint = typing.get_type_hints(EstimatorOptions)["learner"]
    names = typing.get_args(typing.get_args(hint)[0])
    assert names == ("auto", *LEARNERS)


def test_options_are_parameters_of_the_estimator(here, monkeypatch):
    seen = {}

    def stop(model, X, Y):
        seen.update(model.get_params(deep=False))
        raise KeyboardInterrupt

    monkeypatch.setattr(emgpr.EMGPR, "fit", stop)
    options = ("--latents", "2", "--learner", "vfe", "--members", "4", "--conditioning", "16")
    invoke(*FIT, *options)
    assert (seen["n_latents"], seen["latent_learner"]) == (2, "vfe")
    assert (seen["n_members"], seen["conditioning"]) == (4, 16)
    invoke(*FIT, "--conditioning", "batch")
    assert (seen["conditioning"], seen["n_members"]) == ("batch", None)


@pytest.mark.parametrize("value", ["0", "-3", "1.5", "near", "²"])
def test_wrong_conditioning_is_refused_in_the_words_of_the_command_line(here, value):
    line = refuse(2, *FIT, "--conditioning", value)
    assert f"--conditioning is '{value}'; expected auto, all, batch, or a number" in line
