"""Model files of commit 981b750 load, and the models in them answer as they did then."""

import warnings

import pytest

import emgpr

from .answers import answers
from .cases import CASES
from .storage import AFRESH, DATA, STORED, differences, read
from .studies import STUDIES
from .tables import table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CASES)
def test_a_stored_model_answers_as_it_did(name):
    case = CASES[name]
    for package in case.needs:
        pytest.importorskip(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts of warnings are not frozen
        model = emgpr.load(DATA / f"{name}.emgpr", classes=case.classes)
        found = answers(case, model, table(case.table))
    assert differences(found, read(DATA / f"{name}.npz"), STORED) == []


def test_every_file_is_of_a_case():
    expected = {f"{name}.{end}" for name in CASES for end in ("emgpr", "npz")}
    expected |= {f"study-{name}.npz" for name in STUDIES} | {"commands.npz"}
    assert {path.name for path in DATA.iterdir() if path != AFRESH} == expected
    assert {path.name for path in AFRESH.iterdir()} < expected
