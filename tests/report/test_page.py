"""The page: its summary, notes, safety, and what cannot be reported on."""

import copy
import re
import sys
from dataclasses import replace

import pytest

from emgpr import EMGPR
from emgpr.report import charts, write_report

from .page_reader import Page


def test_the_summary_says_what_was_measured_and_how_well_it_is_predicted(metals, page_of):
    page = page_of(metals)
    assert "<h1>&lt;b&gt;Jura&lt;/b&gt; &amp; more</h1>" in page.source
    X, _ = metals.training_data()
    assert f"Cd, Ni and Zn were measured at 90 sites (Xloc {X['Xloc'].min():.4g} to" in page.text
    assert "Missing readings: 33% of Cd." in page.text
    summary = metals.cross_validate().summary()
    explained, mae = 1 - summary["smse"], summary["mae"]
    assert explained["Cd"] < 0 < 0.01 < explained["Zn"]
    cadmium = f"none of the variance of Cd (mean absolute error {mae['Cd']:.3f} <i>mg</i>/kg), "
    assert cadmium in page.text
    zinc = f"{explained['Zn']:.0%} of that of Zn (mean absolute error {mae['Zn']:.1f})"
    assert zinc in page.text
    assert "The model is EMGPR with 3 latent processes and independent noise." in page.text
    assert "It is an ensemble of 3 members." in page.text


def test_notes_say_what_asks_for_care(joint, page_of):
    page = page_of(joint)
    assert "1 row of the table has no readings and was not used." in page.text
    largest = joint.stacking_weights_.xs("any", level="distance").idxmax(axis=1)
    assert (largest == "own").all()
    assert "measured, the model predicts Ni and Zn mainly by their own processes." in page.text


def test_more_notes_where_there_is_more_to_note(cadmium, page_of, tmp_path, monkeypatch):
    """Neighbours, no seed, a repeated site and an output that is all noise."""
    monkeypatch.setattr(charts, "MAX_LONGER_SIDE", charts.MIN_LONGER_SIDE)
    model = copy.copy(cadmium).set_params(random_state=None)
    posterior = cadmium.posterior_
    x = posterior.observations.x.copy()
    x[1] = x[0]
    model.posterior_ = replace(
        posterior,
        conditioning=8,
        observations=replace(posterior.observations, x=x),
        model=replace(posterior.model, weights=1e-3 * posterior.model.weights),
    )
    write_report(model, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "only on 8 or more readings of each output in all directions" in text
    assert text.index("random_state is not set") > text.index("For the person who fitted")
    assert "1 site has the same inputs as an earlier site in the table." in text
    assert "<li>0: the model found no correlation between nearby readings" in text
    assert "<h1>0 at 50 sites</h1>" in text  # the default title
    assert "Please note" not in page_of(cadmium).text


def test_the_page_is_one_small_file_that_fetches_nothing(model, page_of):
    page = page_of(model)
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


def test_names_are_escaped_everywhere(hostile, page_of):
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
    with pytest.raises(
        ImportError, match=r"A report needs jinja2, .*pip install 'emgpr\[report\]'"
    ):
        write_report(metals, tmp_path / "report.html")


@pytest.mark.parametrize(
    ("model", "path", "error", "says"),
    [
        (None, "report.pdf", ValueError, ".html"),
        (None, "no/report.html", FileNotFoundError, "report.html"),
        (EMGPR(), "report.html", ValueError, "not fitted"),
        ("no.emgpr", "report.html", FileNotFoundError, "no.emgpr"),
        (object(), "report.html", TypeError, "path of a model file; got object"),
    ],
)
def test_what_cannot_be_reported_on_is_refused_at_once(cadmium, tmp_path, model, path, error, says):
    with pytest.raises(error, match=says):
        write_report(cadmium if model is None else model, tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_units_of_the_model_and_a_warning_beside_the_variograms(cadmium, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "MAX_LONGER_SIDE", 12)
    model = copy.copy(cadmium)
    model.input_spec_ = replace(cadmium.input_spec_, units={"0": "mg/kg"})
    posterior = cadmium.posterior_
    loud = replace(posterior.model, weights=3 * posterior.model.weights)
    model.posterior_ = replace(posterior, model=loud)
    write_report(model, tmp_path / "report.html")
    page = Page.read(tmp_path / "report.html")
    assert page.tables["Outputs"].column("unit")["0"].text == "mg/kg"
    assert "far above the readings at large lags" in page.text.partition("Variograms")[2]
    assert page.text.count("far above the readings") == 2  # in the notes as well


@pytest.mark.parametrize("resolution", [0, 11, 1001])
def test_a_resolution_out_of_range_is_refused(cadmium, tmp_path, resolution):
    with pytest.raises(ValueError, match="expected a number of nodes from 12 to 1000"):
        write_report(cadmium, tmp_path / "report.html", resolution=resolution)


def test_units_of_unknown_names_are_refused(cadmium, tmp_path):
    with pytest.raises(ValueError, match=r"units has the keys \['Hg'\], which are neither outputs"):
        write_report(cadmium, tmp_path / "report.html", units={"Hg": "mg/kg"})
