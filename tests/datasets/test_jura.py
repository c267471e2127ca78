"""The embedded Jura tables against known facts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.spatial import cKDTree

from emgpr.datasets import jura_table, load_jura

METALS = ("Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn")


@pytest.fixture(scope="module")
def jura():
    return load_jura()


def test_tables_have_the_published_size_and_columns(jura):
    columns = ["Xloc", "Yloc", "Landuse", "Rock", *METALS]
    assert jura.metals == METALS
    assert jura.coordinates == ("Xloc", "Yloc")
    assert jura.train.shape == (259, 11)
    assert jura.test.shape == (100, 11)
    assert jura.grid.shape == (5957, 4)
    assert list(jura.train) == list(jura.test) == columns
    assert list(jura.grid) == columns[:4]


def test_no_value_is_missing_and_no_site_is_repeated(jura):
    sites = pd.concat([jura.train, jura.test])
    assert not sites.isna().any(axis=None)
    assert not jura.grid.isna().any(axis=None)
    assert not sites.duplicated(["Xloc", "Yloc"]).any()
    assert not jura.grid.duplicated(["Xloc", "Yloc"]).any()


def test_first_rows(jura):
    first = jura.train.iloc[0]
    assert first.drop(["Landuse", "Rock"]).tolist() == [
        *(2.386, 3.077),
        *(1.74, 9.32, 38.32, 25.72, 21.32, 77.36, 92.56),
    ]
    assert (first["Landuse"], first["Rock"]) == ("Meadow", "Sequanian")
    assert jura.test.loc[0, ["Xloc", "Yloc", "Cd", "Zn"]].tolist() == [2.672, 3.558, 1.57, 65.2]
    assert jura.grid.iloc[0].tolist() == [0.3, 1.7, "Pasture", "Sequanian"]


def test_metals_have_the_means_and_extremes_of_the_source(jura):
    assert_allclose(jura.train["Cd"].agg(["min", "mean", "max"]), [0.135, 1.309, 5.129], atol=5e-4)
    means = [1.31, 9.30, 35.07, 23.73, 19.73, 53.92, 75.08]
    assert_allclose(jura.train[list(METALS)].mean(), means, atol=5e-3)
    assert_allclose(jura.test["Cd"].agg(["min", "max"]), [0.325, 3.78])
    assert jura.test["Pb"].max() == 300


def test_units_agree_with_the_numbers(jura):
    assert jura.units == {"Xloc": "km", "Yloc": "km"} | dict.fromkeys(METALS, "mg/kg")
    # The survey covers about 5 km by 6 km, on a grid of 50 m.
    sides = np.ptp(jura.grid[["Xloc", "Yloc"]].to_numpy(), axis=0)
    assert_allclose(sides, [4.8, 5.8])
    steps = jura.grid[["Xloc", "Yloc"]].to_numpy() / 0.05
    assert_allclose(steps, np.round(steps), atol=1e-6)


def test_land_use_and_rock_are_the_same_categories_in_all_tables(jura):
    for column in ("Landuse", "Rock"):
        dtypes = {jura[name][column].dtype for name in ("train", "test", "grid")}
        assert len(dtypes) == 1
        assert isinstance(dtypes.pop(), pd.CategoricalDtype)
    assert jura.train["Landuse"].value_counts().to_dict() == {
        "Meadow": 165,
        "Pasture": 56,
        "Forest": 33,
        "Tillage": 5,
    }
    assert jura.grid["Rock"].value_counts()["Portlandian"] == 316


@pytest.mark.parametrize(("column", "chance"), [("Landuse", 0.5), ("Rock", 0.3)])
def test_names_of_codes_are_those_of_the_nearest_grid_nodes(jura, column, chance):
    """Sites have codes and the grid has names: a wrong table of codes shows at the nearest nodes.

    These are at most 35 m away, so that most sites lie in the same field.
    """
    sites = pd.concat([jura.train, jura.test])
    distance, nearest = cKDTree(jura.grid[["Xloc", "Yloc"]]).query(sites[["Xloc", "Yloc"]])
    assert distance.max() < 0.036
    at_site = sites[column].to_numpy()
    at_node = jura.grid[column].to_numpy()[nearest]

    frequency = [pd.Series(names).value_counts(normalize=True) for names in (at_site, at_node)]
    assert (frequency[0] * frequency[1]).sum() < chance
    assert np.mean(at_site == at_node) > 0.85
    # Also for rare names: each is the most frequent one at the nodes nearest to its sites.
    counts = pd.crosstab(at_site, at_node)
    assert (counts.idxmax(axis=1) == counts.index).all()
    assert len(counts) == len(sites[column].cat.categories)


def test_the_description_contains_the_references(jura):
    assert "Goovaerts (1997)" in jura.DESCR
    assert "Atteia" in jura.DESCR
    assert "AMSU" not in jura.DESCR


def test_every_call_returns_its_own_tables(jura):
    changed = load_jura()
    changed.train.loc[0, "Cd"] = -1.0
    assert jura.train.loc[0, "Cd"] == load_jura().train.loc[0, "Cd"] == 1.74


def test_cadmium_is_withheld_at_the_validation_sites(jura):
    sites = pd.concat([jura.train, jura.test], ignore_index=True)
    table = jura_table()
    assert list(table.Y) == ["Cd", "Ni", "Zn"]
    pd.testing.assert_frame_equal(table.X, sites[["Xloc", "Yloc"]])
    assert table.test.dtype == bool
    assert np.flatnonzero(table.test).tolist() == list(range(259, 359))
    assert table.Y["Cd"].isna().tolist() == table.test.tolist()
    pd.testing.assert_frame_equal(table.Y[["Ni", "Zn"]], sites[["Ni", "Zn"]])
    pd.testing.assert_frame_equal(table.truth, sites.loc[259:, ["Cd", "Ni", "Zn"]])
    assert_allclose(table.truth["Cd"].to_numpy(), jura.test["Cd"])


def test_other_metals_are_withheld_on_request():
    assert not jura_table(withheld=None).Y.isna().any(axis=None)
    everything = jura_table(withheld="all")
    assert everything.Y[everything.test].isna().all(axis=None)
    assert not everything.Y[~everything.test].isna().any(axis=None)
    assert not everything.truth.isna().any(axis=None)
    lead = jura_table(metals=["Pb", "Cu"], withheld="Cu")
    assert list(lead.Y) == list(lead.truth) == ["Pb", "Cu"]
    assert lead.Y.isna().sum().tolist() == [0, 100]
    assert list(jura_table(metals="Cd").Y) == ["Cd"]


@pytest.mark.parametrize("metals", [("Cd", "Au"), (), ("Cd", "Cd"), "CdNi"])
def test_unknown_metals_are_rejected(metals):
    with pytest.raises(ValueError, match="expected one or more of Cd, Co, Cr, Cu, Ni, Pb, Zn"):
        jura_table(metals=metals)


def test_withholding_an_absent_metal_is_rejected():
    with pytest.raises(ValueError, match=r"withheld is 'Cd'.*\(Ni, Zn\).*'all', or None"):
        jura_table(metals=("Ni", "Zn"))
