"""`emgpr plot`: pictures of a model file."""

import re
from typing import get_args

import matplotlib.image
import numpy as np
import pytest

from emgpr.cli.plot import Picture
from emgpr.plots.surface import Locations

from .commands import refuse, succeed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("what", get_args(Picture))
def test_every_picture_is_drawn(here, what):
    result = succeed("plot", "jura.emgpr", what, "--units", "mg/kg", "--dpi", "40", "-o", "p.png")
    assert result.stdout == f"{what} of Cd, Ni, Zn: p.png\n"
    image = matplotlib.image.imread("p.png")
    assert min(image.shape[:2]) > 60
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 20
    assert set(here.glob(".*")) == set()


@pytest.mark.parametrize("what", ["latents", "weights", "coregionalization", "shares"])
def test_only_the_outputs_to_keep_are_drawn(here, what):
    options = ("--outputs", "Zn", "-o", "p.svg")
    result = succeed("plot", "jura.emgpr", what, *options)
    assert result.stdout == f"{what} of Zn: p.svg\n"
    comments = re.findall("<!-- (.*?) -->", (here / "p.svg").read_text())  # texts that are drawn
    assert any("Zn" in text for text in comments)
    assert not any("Cd" in text or "Ni" in text for text in comments)


def test_calibration_has_a_panel_for_each_output_shown(here):
    heights = {}
    for outputs in ("Cd", "Cd,Ni,Zn"):
        options = ("--outputs", outputs, "--dpi", "20", "-o", "p.png", "--force")
        succeed("plot", "jura.emgpr", "calibration", *options)
        heights[outputs] = matplotlib.image.imread("p.png").shape[1]
    assert heights["Cd"] < heights["Cd,Ni,Zn"]


@pytest.mark.parametrize("what", ["maps", "latents"])
def test_a_finer_map_has_more_nodes(here, what, monkeypatch):
    built = []
    build = Locations.build

    def watched(*args, **kwargs):
        built.append(build(*args, **kwargs))
        return built[-1]

    monkeypatch.setattr(Locations, "build", watched)
    for options in ((), ("--resolution", "12"), ("--resolution", "90")):
        succeed("plot", "jura.emgpr", what, *options, "--dpi", "20", "-o", "p.png", "--force")
    sides = [locations.nodes["Yloc"].nunique() for locations in built]
    assert sides[1] < sides[0] < sides[2]
    assert 85 <= sides[2] <= 90  # The corners of the grid are outside the convex hull.


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("map",), "'maps'"),
        (("maps", "--outputs", "Pb"), "--outputs contains 'Pb'"),
        (("maps", "--units", "Pb=g"), "--units contains 'Pb'"),
        (("maps", "--resolution", "5"), "'--resolution': Input should be greater than or equal"),
        (("shares", "--resolution", "50"), "--resolution applies only to maps and latents."),
    ],
)
def test_wrong_usage(here, arguments, text):
    assert text in refuse(2, "plot", "jura.emgpr", *arguments, "-o", "g.png")
