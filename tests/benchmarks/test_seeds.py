"""The table of seeds: errors and coverage of the systems of Table 1."""

import pytest

from benchmarks import seeds
from emgpr.experiments.jura import TABLE_1

pytestmark = pytest.mark.slow


def test_scores_are_those_of_the_reproduced_table():
    error, coverage, noise = seeds.scores(TABLE_1["Co-kriging"], 0)
    assert error == pytest.approx(0.4000, abs=5e-4)  # docs/paper.md
    assert 0.9 < coverage <= 1.0
    assert 0.0 < noise < 0.5


def test_systems_without_random_starting_points_are_fitted_once(capsys):
    seeds.main(["Co-kriging", "--seeds", "3"])
    assert "| Co-kriging | 1 | 0.4000 to 0.4000 |" in capsys.readouterr().out


def test_an_unknown_system_is_refused(capsys):
    with pytest.raises(SystemExit):
        seeds.main(["Kriging"])
    assert "there is no Kriging; the systems are EMGPR (Ensemble)" in capsys.readouterr().err
