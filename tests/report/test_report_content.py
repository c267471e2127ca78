"""Every number on the page is the model's own, for all kinds of models and data."""

import hashlib
import re
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from page_reader import unpacked
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.report import charts, checksum, write_report

ALL = ["metals", "joint", "channels", "cadmium", "core", "soil", "globe", "hostile"]
RBF_FIXED = RBF(0.3, "fixed")
BY_SITE = "Errors when all of a site is left out: as at a new place"
BY_OUTPUT = "Errors when one output of a site is left out: as where the others were measured"
TOGETHER = "Together against alone, "


@pytest.fixture(params=ALL)
def each(request):
    return request.getfixturevalue(request.param)


def shown(column) -> np.ndarray:
    return np.array([np.nan if cell.value is None else cell.value for cell in column.values()])


def test_errors_are_those_of_cross_validation(each, page_of):
    tables = page_of(each).tables
    together = each.n_outputs_ > 1 and not isinstance(each, IndependentGP)
    for by, caption in (("site", BY_SITE), ("output", BY_OUTPUT)):
        assert (caption in tables) == (by == "site" or together)
        if caption not in tables:
            continue
        summary = each.cross_validate(by).summary()
        summary["explained"] = 1 - summary["smse"]
        heads = {
            "readings": "n", "MAE": "mae", "RMSE": "rmse", "variance explained": "explained",
            "CRPS": "crps", "NLPD": "nlpd", "inside 95%": "coverage",
        }  # fmt: skip
        for head, column in heads.items():
            found = tables[caption].column(head)
            assert list(found) == each.output_names_
            assert_allclose(shown(found), summary[column], rtol=1e-12)


def test_transfer_is_that_of_its_report(each, page_of):
    page = page_of(each)
    found = {caption: t for caption, t in page.tables.items() if caption.startswith(TOGETHER)}
    if each.n_outputs_ == 1 or isinstance(each, IndependentGP):
        assert not found
        assert "nothing to transfer" in page.text or "what no transfer means" in page.text
        return
    assert len(found) == 2
    for by, table in zip(("site", "output"), found.values(), strict=True):
        report = each.transfer_report(by)
        assert_allclose(shown(table.column("MAE alone")), report.table["mae_alone"], rtol=1e-12)
        assert_allclose(shown(table.column("MAE together")), report.table["mae"], rtol=1e-12)
        changes = shown(table.column("difference ± s.e."))
        assert_allclose(changes, report.table["difference"], rtol=1e-12)
        verdicts = [cell.text for cell in table.column("verdict").values()]
        assert verdicts == report.table["verdict"].tolist()
        assert report.sentence in page.text


def test_the_data_are_summarised(each, page_of):
    _, Y = each.training_data()
    table = page_of(each).tables["Outputs"]
    assert_allclose(shown(table.column("readings")), Y.count())
    assert_allclose(shown(table.column("missing")), Y.isna().sum())
    for head, value in {"lowest": Y.min(), "median": Y.median(), "highest": Y.max()}.items():
        assert_allclose(shown(table.column(head)), value, rtol=1e-12)


def test_latents_and_correlations_are_the_models(each, page_of):
    tables = page_of(each).tables
    table = tables["Latent processes, and their share of the variance of every output"]
    for output in each.output_names_:
        shares = shown(table.column(f"of {output}"))
        assert_allclose(shares, each.variance_shares_.loc[output], rtol=1e-12)
    signals = tables.get("Correlation of the signals at a place")
    if each.n_outputs_ == 1:
        assert signals is None
        return
    expected = each.signal_correlations().sum(axis=0)
    for column, output in zip(expected.T, each.output_names_, strict=True):
        assert_allclose(shown(signals.column(output)), column, rtol=1e-12)


def test_noises_and_the_ascent_of_a_joint_fit(joint, page_of):
    page = page_of(joint)
    table = page.tables["Correlation of the noises of a sample"]
    spread = np.sqrt(np.diagonal(joint.noise_))
    assert_allclose(shown(table.column("Zn")), joint.noise_[1] / spread / spread[1], rtol=1e-12)
    assert page.data["trace"]["height"] == [stage.log_likelihood for stage in joint.history_]
    assert "1 row of the table had no reading" in page.text


@pytest.mark.parametrize("name", ["metals", "channels", "cadmium", "globe", "hostile"])
def test_maps_hold_what_the_model_predicts(name, request, page_of):
    model = request.getfixturevalue(name)
    data = page_of(model).data["charts"]
    x, y = (axis["first"] + axis["step"] * np.arange(axis["n"]) for axis in (data["x"], data["y"]))
    right, up = (part.ravel() for part in np.meshgrid(x, y))
    columns = [axis["name"] for axis in data["inputs"]]
    X, Y = model.training_data()
    nodes = pd.DataFrame({columns[0]: right, columns[1]: up})[list(X.columns)]
    inside = ~np.isnan(unpacked(data["outputs"][0]["centre"]))
    assert 0.3 < inside.mean() < 1
    named = hasattr(model, "feature_names_in_")
    asked = nodes[inside] if named else nodes[inside].to_numpy()
    mean, std = (np.reshape(part, (inside.sum(), -1)) for part in model.predict(asked, True))
    for d, output in enumerate(data["outputs"]):
        assert output["name"] == model.output_names_[d]
        for kind, expected in (("centre", mean), ("std", std)):
            values = unpacked(output[kind])
            assert_allclose(values[inside], expected[:, d], rtol=1e-6)
            assert np.isnan(values[~inside]).all()
        assert_allclose(unpacked(output["readings"]), Y.iloc[:, d], rtol=1e-6)


def test_maps_run_on_across_the_date_line(globe, page_of):
    data = page_of(globe).data["charts"]
    assert [axis["name"] for axis in data["inputs"]] == ["lon", "lat"]
    assert 175 < data["x"]["first"] < 180 < data["x"]["first"] + data["x"]["step"] * data["x"]["n"]
    sites = unpacked(data["sites"]["x"], "<f8")
    assert 176 <= sites.min() < 180 < sites.max() <= 184
    width, height = ((data[axis]["n"] - 1) * data[axis]["step"] for axis in "xy")
    middle = np.radians(data["y"]["first"] + height / 2)
    assert data["aspect"] == pytest.approx(height / (width * np.cos(middle)))


def test_of_many_outputs_and_sites_some_are_drawn_and_it_says_so(metals, monkeypatch):
    monkeypatch.setattr(charts, "MOST_OUTPUTS", 2)
    monkeypatch.setattr(charts, "MOST_SITES", 10)
    monkeypatch.setattr(charts, "FINEST", charts.COARSEST)
    made = charts.charts(metals, *metals.training_data(), {})
    assert [output["name"] for output in made.data["outputs"]] == ["Cd", "Ni"]
    assert made.why == "The first 2 of 3 outputs are drawn."
    assert len(unpacked(made.data["sites"]["x"], "<f8")) == 10
    assert made.table.note.endswith("10 of 90 sites are marked.")


def test_maps_are_coarser_where_predictions_are_dear(metals, monkeypatch):
    finest = charts.side_of(metals)
    monkeypatch.setattr(charts, "WORK", charts.WORK / 20)
    assert charts.COARSEST < charts.side_of(metals) < finest == charts.FINEST
    monkeypatch.setattr(charts, "WORK", 1.0)
    assert charts.side_of(metals) == charts.COARSEST


def test_lines_hold_centre_and_band(core, page_of):
    data = page_of(core).data["charts"]
    at = pd.DataFrame({"depth": unpacked(data["x"], "<f8")})
    mean, std = core.predict(at, return_std=True)
    low, high = core.predict_quantiles(at, [0.025, 0.975])
    for d, output in enumerate(data["outputs"]):
        expected = {"centre": mean, "std": std, "low": low, "high": high}
        for kind, values in expected.items():
            assert_allclose(unpacked(output[kind]), values[:, d], rtol=1e-5, atol=1e-6)
    assert [output["log"] for output in data["outputs"]] == [False, True]


def test_no_map_of_three_inputs_and_why(soil, page_of):
    page = page_of(soil)
    assert page.data == {"charts": None, "trace": None}
    assert "The model has 3 inputs (x, y, depth), and a map shows two" in page.text
    assert "there is no joint ascent to show" in page.text


def test_the_headline_says_what_where_and_how_good(metals, page_of):
    page = page_of(metals)
    assert "<h1>&lt;b&gt;Jura&lt;/b&gt; &amp; more</h1>" in page.source
    X, _ = metals.training_data()
    assert f"Cd, Ni and Zn at 90 sites, Xloc {X['Xloc'].min():.4g} to" in page.text
    assert "33% of Cd missing" in page.text
    summary = metals.cross_validate().summary()
    explained, mae = 1 - summary["smse"], summary["mae"]
    assert explained["Cd"] < 0 < 0.01 < explained["Zn"]
    cadmium = f"nothing of the variance of Cd (mean absolute error {mae['Cd']:.3f} <i>mg</i>/kg), "
    assert cadmium in page.text
    assert f"{explained['Zn']:.0%} of Zn (mean absolute error {mae['Zn']:.1f})" in page.text
    assert "an ensemble of 3 members" in page.text


def test_changed_settings_are_marked_and_open_ones_resolved(metals, page_of):
    table = page_of(metals).tables["Settings of EMGPR"]
    values = table.column("value")
    changed = {name for name, cell in values.items() if "changed" in cell.marks}
    defaults, now = EMGPR().get_params(deep=False), metals.get_params(deep=False)
    assert changed == {name for name in now if repr(now[name]) != repr(defaults[name])}
    assert all(cell.text.endswith("changed") == (n in changed) for n, cell in values.items())
    assert table.column("came to")["n_members"].text == "3"
    assert table.column("came to")["conditioning"].text == "all"


@pytest.fixture
def model_file(broken, tmp_path):
    """What `broken` is, in a file; it predicts as `metals` does."""
    broken.save(tmp_path / "jura.emgpr")
    return tmp_path / "jura.emgpr"


def test_a_file_gives_the_same_page_what_failed_and_its_checksum(model_file, metals, page_of):
    page, from_model = page_of(model_file), page_of(metals)
    assert page.data == from_model.data
    assert page.tables[BY_SITE] == from_model.tables[BY_SITE]
    for said in ("2 of 5 members of the ensemble failed", "Not every search converged"):
        assert page.text.index(said) < page.text.index("Maps The predicted")
    fit = page.tables["The fit"].facts()
    assert fit["members that failed and were left out"].value == 2
    assert fit["converged"].text == "no"
    facts = page.tables["Where this report comes from"].facts()
    assert facts["Model file, SHA-256"].text == hashlib.sha256(model_file.read_bytes()).hexdigest()
    assert facts["Model file, bytes"].value == model_file.stat().st_size
    assert facts["Model file"].text == "jura.emgpr"
    assert facts["emgpr"].text == emgpr.__version__
    assert facts["numpy"].text == np.__version__
    assert facts["Seed (random_state)"].text == "0"
    assert facts["Training data, SHA-256"].text == checksum(*metals.training_data())
    assert "Model file" not in from_model.tables["Where this report comes from"].facts()


@pytest.mark.filterwarnings("ignore:Nothing was read in 1 of 30 rows")
@pytest.mark.parametrize("transform", [None, "yeo-johnson", "normal-score"])
def test_the_checksum_is_that_of_the_table_that_was_fitted(transform, rng):
    X = rng.uniform(size=(30, 2))
    Y = np.column_stack([rng.poisson(1.0, 30), 1e6 + rng.normal(size=30)]).astype(float)
    Y[3, 0] = Y[5] = np.nan
    model = IndependentGP(RBF_FIXED, transform=transform, random_state=0).fit(X, Y)
    assert checksum(*model.training_data()) == checksum(X, Y)
    other = Y.copy()
    other[0, 1] += 0.01
    assert checksum(X, other) != checksum(X, Y)


@pytest.mark.parametrize("name", ALL)
def test_one_small_file_that_asks_for_nothing(name, request, page_of):
    page = page_of(request.getfixturevalue(name))
    assert page.path.stat().st_size < 8e6
    for tag, attributes in page.tags:
        address = attributes.get("src") or attributes.get("href") or ""
        assert address.startswith(("data:image/", "#")) or not address, (tag, address)
    outside = re.compile(r"""(?:https?:)?//[\w.-]+\.\w+""")
    texts = [page.source] + [image.decode("utf-8", "ignore") for image in page.images()]
    for text in texts:
        plain = re.sub(r"data:image/[^\"]+", "", text)
        addresses = {match for match in outside.findall(plain) if ":" in match}
        metadata = ("w3.org", "purl.org", "creativecommons.org", "matplotlib.org")
        assert all(address.endswith(metadata) for address in addresses), addresses


def test_names_are_text_wherever_they_come(hostile, page_of):
    page = page_of(hostile)
    assert [attributes.get("id") for attributes, _ in page.scripts] == ["data", None]
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"b", "i", "iframe", "object", "link", "base", "form"}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        if tag == "img":
            assert attributes["src"].startswith("data:image/")
    for name in hostile.output_names_:
        assert " ".join(name.split()) in page.text
        assert name in page.tables["Outputs"].column("readings")
    assert [o["name"] for o in page.data["charts"]["outputs"]] == hostile.output_names_
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; img-src data:; script-src 'sha256-")
    assert "unsafe" not in policy


def test_without_jinja2_the_extra_is_named(metals, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"A report needs jinja2: pip install 'emgpr\[report\]'"):
        write_report(metals, tmp_path / "report.html")


@pytest.mark.parametrize(
    ("model", "path", "error", "says"),
    [
        (None, "report.pdf", ValueError, "expected .html"),
        (None, "no/report.html", FileNotFoundError, "There is no folder"),
        (EMGPR(), "report.html", ValueError, "not fitted"),
        ("no.emgpr", "report.html", FileNotFoundError, "There is no file"),
        (object(), "report.html", TypeError, "path of a model file; got a object"),
    ],
)
def test_what_cannot_be_reported_is_refused_at_once(metals, tmp_path, model, path, error, says):
    with pytest.raises(error, match=says):
        write_report(metals if model is None else model, tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_units_of_what_is_not_there_are_refused(metals, tmp_path):
    with pytest.raises(ValueError, match=r"units has \['Hg'\], which this model has not"):
        write_report(metals, tmp_path / "report.html", units={"Hg": "mg/kg"})
