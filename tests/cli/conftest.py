"""Files of the examples and models of them, as users of the command line have them."""

import shutil

import pytest
from commanding import QUICK, done

from emgpr import EMGPR
from emgpr.datasets import load_jura


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The example files, a model as `emgpr fit` makes it, and one of two members."""
    folder = tmp_path_factory.mktemp("made")
    done("example", "--out", folder)
    done("fit", folder / "jura.csv", *QUICK, "-o", folder / "jura.emgpr")
    jura = load_jura().train
    small = EMGPR.paper(transform="log", n_members=2, random_state=0)
    small.fit(jura[["Xloc", "Yloc"]], jura[["Cd", "Ni", "Zn"]]).save(folder / "small.emgpr")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder with a copy of them, to work in."""
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
