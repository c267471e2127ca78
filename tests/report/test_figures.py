"""Images of the page: which there are, and that they do not depend on the user's settings."""

import re

import matplotlib.pyplot as plt
import pytest

from emgpr.report import figures


def alt_texts(page, kind):
    """The descriptions of the images of a kind."""
    prefix = f"data:image/{kind};base64,"
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    return " ".join(image["alt"] for image in images if image["src"].startswith(prefix))


@pytest.mark.parametrize(
    ("name", "latents"), [("metals", "png"), ("core", "svg+xml"), ("soil", None)]
)
def test_images_suit_the_inputs(name, latents, request, page_of):
    page = page_of(request.getfixturevalue(name))
    for kind in ("png", "svg+xml"):
        assert ("The latent processes" in alt_texts(page, kind)) == (kind == latents)
    drawn = alt_texts(page, "svg+xml")
    assert "nominal coverage" in drawn
    assert ("Semivariance" in drawn) == (latents is not None)
    assert not plt.get_fignums()


def test_settings_of_matplotlib_do_not_change_the_images(cadmium):
    results = cadmium.cross_validate()

    def draw(axes):
        figures.plots.pit(results, axes=axes)

    before = figures._draw(1, (3.0, 2.0), draw)
    with plt.rc_context({"axes.facecolor": "red", "font.size": 20}):
        assert figures._draw(1, (3.0, 2.0), draw) == before
    assert (before.width, before.height, before.is_wide) == (288, 192, False)


def test_names_with_dollars_are_drawn_as_they_are(hostile, page_of):
    images = [image.decode("utf-8") for image in page_of(hostile).images() if b"<svg" in image]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", "".join(images))
    assert any(r"$\bad$" in text for text in texts)
    assert not any(r"\$" in text for text in texts)
