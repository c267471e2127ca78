"""Values of options that are not what the option expects."""

import pytest

from emgpr.cli.errors import UsageError
from emgpr.cli.parsing import parse_names, parse_number, parse_numbers, parse_pairs, parse_units


@pytest.mark.parametrize("text", ["", "Cd,", "Cd,Cd", ",", "Cd,,Ni"])
def test_names_are_not_empty_and_different(text):
    with pytest.raises(UsageError, match=r"-y is .* expected distinct names, such as A,B,C"):
        parse_names(text, "-y")


def test_names_are_among_the_known_ones():
    with pytest.raises(UsageError, match=r"--known contains 'Pb'; expected one of Cd, Ni\."):
        parse_names("Cd,Pb", "--known", ["Cd", "Ni"])


@pytest.mark.parametrize("text", ["much", "nan", "inf", "", "1,,2"])
def test_numbers_are_finite(text):
    with pytest.raises(UsageError, match=r"--spacing contains '.*'; expected a finite number"):
        parse_numbers(text, "--spacing")


@pytest.mark.parametrize("text", ["Cd", "Cd=", "=1", "Cd=1,Cd=2", "Cd=1,Zn"])
def test_pairs_have_a_name_and_a_value(text):
    with pytest.raises(UsageError, match="expected distinct names with values, such as A=1,B=2"):
        parse_pairs(text, "--above", parse_number, ["Cd", "Zn"])


def test_units_are_those_of_known_columns():
    with pytest.raises(UsageError, match=r"--units contains 'Pb'; expected one of Cd, Xloc\."):
        parse_units("Pb=g", ["Cd"], ["Xloc"])
    assert parse_units(None, ["Cd"], ["Xloc"]) is None
