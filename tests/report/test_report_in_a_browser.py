"""The page in a real browser, offline: it renders, its maps answer, and it asks for nothing.

Driven by Playwright on the machine's own chromium. Without one the tests are skipped, and say so;
EMGPR_BROWSER=required makes that a failure.
"""

import os
import re
import shutil
import zlib

import numpy as np
import pandas as pd
import pytest

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
)
TIP = re.compile(r"^(?P<name>.*?) ?(?P<centre>−?[\d.]+) ± (?P<std>[\d.]+)")


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if chromium is None or sync_playwright is None:
        lacking = "chromium (apt-get install chromium)" if sync_playwright else "playwright"
        if os.environ.get("EMGPR_BROWSER") == "required":
            pytest.fail(f"EMGPR_BROWSER=required, and there is no {lacking} here")
        pytest.skip(f"no {lacking} here: the report was not tried in a browser")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=OPTIONS.split())
        yield running
        running.close()


@pytest.fixture
def opened(browser, page_of):
    """Opens the report on a model; in the end there must be no error and no request."""
    contexts, trouble = [], []

    def open_report(model, **context):
        made = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | context))
        contexts.append(made)
        made.set_offline(True)
        page = made.new_page()
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (trouble.append("a dialog"), dialog.dismiss()))
        page.on(
            "console",
            lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None,
        )
        page.on(
            "request",
            lambda asked: (
                trouble.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None
            ),
        )
        page.goto(page_of(model).path.as_uri())
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert not trouble


def centre_of(plot):
    box = plot.bounding_box()
    return box["x"] + 0.45 * box["width"], box["y"] + 0.45 * box["height"]


def tip_of(plot):
    """What the tip says: its lines."""
    return plot.locator(".tip > *").all_inner_texts()


def number(text):
    return float(text.replace("−", "-"))


def half_a_digit(text):
    """How far a number may be from what it is rounded from."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) * 1.001


def place(line):
    """Coordinates by name, from "Xloc 2.31, Yloc 3.45"."""
    return {name: number(value) for name, value in re.findall(r"(\w+) (−?[\d.]+)", line)}


def nodes_near(model, page, at):
    """The node of the grid that has these rounded coordinates."""
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent).charts")
    node = {}
    for axis, given in zip((data["x"], data["y"]), data["inputs"], strict=True):
        positions = axis["first"] + axis["step"] * np.arange(axis["n"])
        node[given["name"]] = positions[np.abs(positions - at[given["name"]]).argmin()]
    X, _ = model.training_data()
    return pd.DataFrame([node])[list(X.columns)]


def is_drawn(plot):
    """Whether a canvas shows more than a background."""
    count = """canvas => {
        const pen = canvas.getContext("2d");
        const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    return plot.locator("canvas.base").evaluate(count) > 20


ALL = ["metals", "joint", "channels", "cadmium", "core", "soil", "globe", "hostile"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [1200, 360])
def test_every_report_renders_and_fits_the_screen(name, width, request, opened):
    model = request.getfixturevalue(name)
    page = opened(model, viewport={"width": width, "height": 740})
    assert page.locator("h1").inner_text()
    plots = page.locator(".cards .plot").all()
    expected = {"core": 2, "soil": 0}.get(name, 2 * model.n_outputs_)
    assert len(plots) == expected
    assert all(is_drawn(plot) for plot in plots)
    wide = "[document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(page.evaluate(wide)) <= width
    for image in page.locator("img").all():
        assert image.evaluate("image => image.complete && image.naturalWidth > 0")


def test_hovering_on_a_map_shows_what_the_model_predicts_there(metals, opened):
    page = opened(metals)
    places = set()
    for d, fraction in ((0, 0.4), (1, 0.5), (2, 0.45)):
        plot = page.locator(".plot").nth(2 * d)
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + fraction * box["width"], box["y"] + 0.5 * box["height"])
        first, second, *_ = tip_of(plot)
        said = TIP.match(first)
        assert said["name"] == metals.output_names_[d]
        assert first.endswith(" <i>mg</i>/kg") == (d == 0)
        node = nodes_near(metals, page, place(second))
        mean, std = (part[0, d] for part in metals.predict(node, return_std=True))
        assert number(said["centre"]) == pytest.approx(mean, abs=half_a_digit(said["centre"]))
        assert number(said["std"]) == pytest.approx(std, abs=half_a_digit(said["std"]))
        # The same place, said under every other map too.
        readouts = page.locator(".readout").all_inner_texts()
        assert all(text.endswith(second) for text in readouts)
        places.add(second)
    assert len(places) == 3
    page.mouse.move(5, 5)
    assert page.locator(".tip:visible").count() == 0


def test_hovering_on_a_site_shows_what_was_measured(metals, opened):
    page = opened(metals)
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    seen = []
    for fraction in (0.3, 0.6):  # two places tell where every other one is
        px, py = box["x"] + fraction * box["width"], box["y"] + fraction * box["height"]
        page.mouse.move(px, py)
        at = place(tip_of(plot)[1])
        seen.append((px, py, at["Xloc"], at["Yloc"]))
    (ax, ay, x0, y0), (bx, by, x1, y1) = seen
    X, Y = metals.training_data()
    middle = (X - X.median()).abs().sum(axis=1)[Y["Cd"].notna()].idxmin()
    x, y = X.loc[middle]
    px, py = ax + (x - x0) / (x1 - x0) * (bx - ax), ay + (y - y0) / (y1 - y0) * (by - ay)
    # What the tips said are the centres of cells, so the site is within a cell of there.
    around = [(px + dx, py + dy) for dx in range(-24, 25, 8) for dy in range(-24, 25, 8)]
    measured = []
    for at in around:
        page.mouse.move(*at)
        measured += [line.split()[2] for line in tip_of(plot) if line.startswith("measured here")]
    assert f"{Y.loc[middle, 'Cd']:g}" in measured


def test_the_keyboard_moves_over_a_map(metals, opened):
    page = opened(metals)
    plot = page.locator(".plot").first
    plot.focus()
    page.keyboard.press("ArrowRight")
    start = place(tip_of(plot)[1])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    now = place(tip_of(plot)[1])
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent).charts")
    assert now["Xloc"] - start["Xloc"] == pytest.approx(data["x"]["step"], abs=0.02)
    assert now["Yloc"] - start["Yloc"] == pytest.approx(data["y"]["step"], abs=0.02)
    assert page.locator("#spoken").inner_text().startswith(tip_of(plot)[0])
    assert "Map of the predicted median of Cd" in plot.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert page.locator(".tip:visible").count() == 0


def test_touch_on_a_phone(channels, opened):
    page = opened(channels, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    plot = page.locator(".plot").nth(4)
    plot.scroll_into_view_if_needed()
    page.touchscreen.tap(*centre_of(plot))
    first, second, *_ = tip_of(plot)
    node = nodes_near(channels, page, place(second))
    mean = channels.predict(node)[0, 2]
    said = TIP.match(first)
    assert number(said["centre"]) == pytest.approx(mean, abs=half_a_digit(said["centre"]))
    tip, outer = plot.locator(".tip").bounding_box(), plot.bounding_box()
    assert tip["x"] >= outer["x"] - 1
    assert tip["x"] + tip["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_lines_answer_too(core, opened):
    page = opened(core)
    plot = page.locator(".plot").nth(1)
    plot.scroll_into_view_if_needed()
    page.mouse.move(*centre_of(plot))
    first, second, band, *_ = tip_of(plot)
    said, depth = TIP.match(first), place(second)["depth"]
    nodes = pd.DataFrame(
        {"depth": np.linspace(*core.training_data()[0]["depth"].agg(["min", "max"]), 200)}
    )
    node = nodes.iloc[[(nodes["depth"] - depth).abs().argmin()]]
    mean, std = (part[0, 1] for part in core.predict(node, return_std=True))
    assert number(said["centre"]) == pytest.approx(mean, abs=half_a_digit(said["centre"]))
    assert number(said["std"]) == pytest.approx(std, abs=half_a_digit(said["std"]))
    low, high = (number(text) for text in re.findall(r"−?[\d.]+", band.partition(":")[2]))
    expected = core.predict_quantiles(node, [0.025, 0.975])[:, 0, 1]
    assert np.allclose([low, high], expected, rtol=1e-3)


def test_longitudes_are_said_as_they_are_on_a_globe(globe, opened):
    page = opened(globe)
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    said = []
    for fraction in np.linspace(0.2, 0.8, 9):
        page.mouse.move(box["x"] + fraction * box["width"], box["y"] + 0.45 * box["height"])
        said += [place(line)["lon"] for line in tip_of(plot) if line.startswith("lon")]
    assert {lon > 0 for lon in said} == {True, False}
    assert all(175 < abs(lon) <= 180 for lon in said)


def test_the_trace_of_the_fit_answers(joint, opened):
    page = opened(joint)
    plot = page.locator('[data-chart="trace"]')
    plot.focus()
    page.keyboard.press("ArrowRight")
    for _ in joint.history_:
        page.keyboard.press("ArrowRight")
    height, stage = tip_of(plot)
    last = joint.history_[-1]
    assert number(height) == pytest.approx(last.log_likelihood, rel=1e-7)
    assert stage == f"stage {len(joint.history_) - 1}: {last.learned}"


def test_readings_can_be_hidden_and_the_dark_has_its_own_colours(metals, opened):
    page = opened(metals)
    base = page.locator("canvas.base").first
    image = "canvas => canvas.toDataURL()"
    with_sites = base.evaluate(image)
    page.get_by_label("Show the readings").uncheck()
    without = base.evaluate(image)
    assert without != with_sites
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) != light
    assert base.evaluate(image) != without


def images_of(pdf, width):
    """The bytes of the images of this width in a PDF."""
    for found in re.finditer(rb"/Subtype\s*/Image\s*/Width (\d+)", pdf):
        if int(found[1]) == width:
            start = pdf.index(b"\n", pdf.index(b"stream", found.end())) + 1
            yield zlib.decompressobj().decompress(pdf[start:])


def test_the_maps_are_on_paper_too_in_light_colours(metals, opened):
    page = opened(metals, color_scheme="dark")
    paper = page.locator("canvas.paper")
    width = paper.first.evaluate("canvas => canvas.width")
    shown = [image for image in images_of(page.pdf(), width) if len(set(image)) > 100]
    assert len(shown) >= paper.count()
    page.emulate_media(media="print")
    assert paper.first.is_visible()
    assert not page.locator("canvas.base").first.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_names_run_no_code(hostile, opened):
    page = opened(hostile)
    assert page.locator("script").count() == 2
    headings = page.locator(".card h3").all_inner_texts()
    assert headings[1:] == [" ".join(name.split()) for name in hostile.output_names_[1:]]
    assert headings[0] == f"{hostile.output_names_[0]} <i>mg</i>/kg"
    assert page.title() == "<b>Jura</b> & more: report"
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    page.mouse.move(*centre_of(plot))
    assert tip_of(plot)[0].startswith("<script>alert(1)</script> ")


def test_nothing_can_be_fetched_even_online(browser, metals, page_of):
    page = browser.new_page()
    page.goto(page_of(metals).path.as_uri())
    refused = page.evaluate("fetch('https://example.org').then(() => 'fetched', () => 'refused')")
    assert refused == "refused"
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'x = 1'}))"
    )
    assert page.evaluate("typeof x") == "undefined"
    assert any("Content Security Policy" in text for text in said)
    page.context.close()
