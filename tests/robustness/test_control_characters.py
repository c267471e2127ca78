"""Control characters in names of columns are shown as escape sequences."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP, compare
from emgpr.printable import escape_controls
from tests.cli.commands import invoke
from tests.simulated import smooth_table

ZINC, LEAD, EAST = "Zn\x1b[31m", "Pb\u202e\x07", "east\x9b1m"
RNG = np.random.default_rng(8)
X, Y = smooth_table(RNG, N=40)
SITES = pd.DataFrame(X, columns=[EAST, "north"])
METALS = pd.DataFrame(Y[:, :2] + 0.3 * RNG.normal(size=(40, 2)), columns=[ZINC, LEAD])
QUICK = {"max_iter": 3, "n_restarts": 1, "random_state": 0}


def assert_escaped(text, *names):
    assert escape_controls(text) == text
    for name in names:
        assert escape_controls(name) in text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_summaries_and_messages_show_escaped_names():
    paper = EMGPR.paper(kernel=RBF(0.4, "fixed"), **QUICK)
    assert_escaped(str(paper.first_look(SITES, METALS)), ZINC, LEAD, EAST)
    model = paper.fit(SITES, METALS)
    for report in (model.cross_validate(), model.transfer_report(), model.approximation_report(60)):
        assert_escaped(repr(report), ZINC)
        assert_escaped(report._repr_html_(), ZINC)
    alone = IndependentGP(RBF(0.4, "fixed"), **QUICK)
    assert_escaped(repr(compare({"a": alone, "b": paper}, SITES, METALS, n_folds=2)), ZINC)
    with pytest.raises(ValueError, match="feature names") as error:
        model.predict(SITES.rename(columns={"north": "\x1b[2J"}))
    assert_escaped(str(error.value), "\x1b[2J")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        alone.fit(SITES, METALS.assign(**{LEAD: 1.0}))
    assert caught
    for warning in caught:
        assert_escaped(str(warning.message))
    assert list(model.predict_frame(SITES).columns)[:2] == [ZINC, f"{ZINC}_std"]


@pytest.mark.slow
def test_commands_and_reports_show_escaped_names(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    pd.concat([SITES, METALS], axis=1).to_csv("sites.csv", index=False)
    columns = ("-x", f"{EAST},north", "-y", f"{ZINC},{LEAD}", "--paper")
    for arguments in [
        ("fit", "sites.csv", *columns, "--check"),
        ("fit", "sites.csv", *columns, "-o", "model.emgpr"),
        ("validate", "model.emgpr"),
        ("validate", "model.emgpr", "--exact"),
        ("predict", "model.emgpr", "--at", "sites.csv", "-o", "predicted.csv"),
        ("plot", "model.emgpr", "maps", "-o", "maps.png"),
        ("report", "model.emgpr", "-o", "report.html"),
        ("fit", "sites.csv", "-x", EAST, "-y", "\x1b[2J", "-o", "other.emgpr"),
    ]:
        result = invoke(*arguments)
        assert result.exit_code == (3 if "other.emgpr" in arguments else 0), result.output
        assert_escaped(result.output)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert_escaped(page, ZINC, LEAD)
    assert "\\u001b" not in page
