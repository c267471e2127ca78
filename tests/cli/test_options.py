"""Options that commands share: groups of options, and the settings of the estimator."""

import math
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import emgpr
from emgpr.cli.errors import UsageError
from emgpr.cli.options import EstimatorOptions, StatisticsOptions, expand_groups


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="Width.")] = 2
    height: Annotated[int, typer.Option("-h", "--height")] = 3


def test_a_group_of_options_reaches_the_command_as_one_object():
    app = typer.Typer()
    seen = []

    @app.command()
    @expand_groups
    def draw(name: str, size: Size, colour: Annotated[str, typer.Option()] = "red") -> None:
        """Draw a box."""
        seen.append((name, size, colour))

    run = CliRunner().invoke
    assert run(app, ["box", "--width", "7", "--colour", "blue"]).exit_code == 0
    assert run(app, ["box", "-h", "1"]).exit_code == 0
    assert seen == [("box", Size(7, 3), "blue"), ("box", Size(2, 1), "red")]
    assert "Draw a box." in run(app, ["--help"]).stdout


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ({}, {"kernel": "auto", "output_transform": "auto", "refine": "auto", "random_state": 0}),
        ({"paper": True}, {"kernel": None, "output_transform": None, "refine": 0}),
        ({"log": True, "seed": 3}, {"output_transform": "log", "random_state": 3}),
        ({"transform": "none"}, {"output_transform": None}),
        ({"transform": "Cd=none"}, {"output_transform": {"Cd": None, "Ni": "auto"}}),
        ({"kernel": "matern32"}, {"kernel": "matern32", "n_jobs": 2}),
    ],
)
def test_options_are_parameters_of_the_estimator(options, params):
    model = EstimatorOptions("x", "Cd,Ni", **options).estimator(n_jobs=2)
    assert type(model) is emgpr.EMGPR
    assert {name: model.get_params(deep=False)[name] for name in params} == params


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inputs": None}, "No columns are given. Give the inputs with -x"),
        ({"inputs": "Cd"}, "'Cd' is in -x and in -y"),
        ({"transform": "lg"}, "contains 'lg'; expected one of auto, none, softplus, log"),
        ({"transform": "Pb=log"}, "--transform contains 'Pb'; expected one of Cd, Ni."),
        ({"transform": "log", "log": True}, "only one of the two"),
    ],
)
def test_wrong_options_of_the_estimator(options, text):
    options = EstimatorOptions(**({"inputs": "x", "outputs": "Cd,Ni"} | options))
    with pytest.raises(UsageError, match=text):
        options.columns() and options.estimator()


def test_settings_that_the_estimator_rejects_are_usage_errors():
    with pytest.raises(UsageError, match="device='moon'"):
        EstimatorOptions("x", "Cd").estimator(device="moon")


def test_a_fitted_model_has_all_settings_but_those_of_the_computation():
    assert not EstimatorOptions(seed=3, jobs=2).has_settings()
    assert EstimatorOptions(log=True).has_settings()


@pytest.mark.parametrize("quantiles", ["5,95", "0.5,0.5", "0", "1"])
def test_quantiles_must_be_different_probabilities(quantiles):
    with pytest.raises(UsageError, match="between 0 and 1"):
        StatisticsOptions(quantiles).requested(["Cd"])


def test_statistics_not_requested_are_none():
    assert StatisticsOptions().requested(["Cd"]) == {"quantiles": None, "exceedance": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cd=0:100", {"Cd": (0.0, 100.0)}),
        ("Cd=0:,pH=:14", {"Cd": (0.0, math.inf), "pH": (-math.inf, 14.0)}),
        ("pH=none", {"pH": None}),
    ],
)
def test_bounds_of_outputs_are_parsed(text, expected):
    assert EstimatorOptions("x", "Cd,pH", output_bounds=text).bounds_by_name() == expected


@pytest.mark.parametrize("text", ["Cd=0-100", "Cd=a:b", "Zn=0:1", "0:100"])
def test_bounds_that_cannot_be_parsed_are_refused(text):
    with pytest.raises(UsageError, match="--output-bounds"):
        EstimatorOptions("x", "Cd,pH", output_bounds=text).bounds_by_name()


def test_bounds_and_compositions_reach_the_estimator():
    options = EstimatorOptions("x", "a,b,T", output_bounds="T=none", composition="a,b")
    model = options.estimator()
    assert model.output_bounds == {"T": None}
    assert model.compositions == [["a", "b"]]
    with pytest.raises(UsageError, match="--composition"):
        EstimatorOptions("x", "a,b", composition="a,c").estimator()
