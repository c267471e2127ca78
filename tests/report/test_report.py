"""The page in a real browser, offline: it renders, its charts respond, and it fetches nothing.

Playwright drives the chromium of the machine. Without one the tests are skipped, with the reason;
EMGPR_BROWSER=required makes that a failure.
"""

import os
import re
import shutil
import zlib

import numpy as np
import pandas as pd
import pytest

from .conftest import MODELS

pytestmark = pytest.mark.slow

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
)
PREDICTION = re.compile(r"^(?P<name>.*?) ?(?P<centre>−?[\d.]+) ± (?P<std>[\d.]+)")
CHARTS = "JSON.parse(document.getElementById('data').textContent).charts"


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if chromium is None or sync_playwright is None:
        missing = "chromium (apt-get install chromium)" if sync_playwright else "playwright"
        if os.environ.get("EMGPR_BROWSER") == "required":
            pytest.fail(f"EMGPR_BROWSER=required, and {missing} is not installed")
        pytest.skip(f"{missing} is not installed: the report was not tried in a browser")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=OPTIONS.split())
        yield running
        running.close()


@pytest.fixture
def opened(browser, page_of):
    """Open the report on a model; afterwards there must have been no error and no request."""
    contexts, problems = [], []

    def open_report(model, **options):
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: problems.append(request.url))
        page.goto(page_of(model).path.as_uri())
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert [problem for problem in problems if not problem.startswith(("file:", "data:"))] == []


def plot_at(page, index):
    """A plot, scrolled into view, and its box."""
    plot = page.locator(".plot").nth(index)
    plot.scroll_into_view_if_needed()
    return plot, plot.bounding_box()


def hover(page, box, across=0.45, down=0.45):
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])


def tip_of(plot):
    """The lines of the tip."""
    return plot.locator(".tip > *").all_inner_texts()


def number(text):
    return float(text.replace("−", "-"))


def location(line):
    """Coordinates by name, from "Xloc 2.31, Yloc 3.45"."""
    return {name: number(value) for name, value in re.findall(r"(\w+) (−?[\d.]+)", line)}


def assert_predicted(line, expected):
    """Assert that a line of a tip holds these median and standard deviation, rounded."""
    match = PREDICTION.match(line)
    for text, value in zip((match["centre"], match["std"]), expected, strict=True):
        half_a_digit = 0.5 * 10.0 ** -len(text.partition(".")[2])
        assert number(text) == pytest.approx(value, abs=1.001 * half_a_digit)


def predict_near(model, page, at, d):
    """Median and standard deviation of output d at the node with these rounded coordinates."""
    data = page.evaluate(CHARTS)
    node = {}
    for axis, given in zip((data["x"], data["y"]), data["inputs"], strict=True):
        positions = axis["first"] + axis["step"] * np.arange(axis["n"])
        node[given["name"]] = positions[np.abs(positions - at[given["name"]]).argmin()]
    X, _ = model.training_data()
    return [part[0, d] for part in model.predict(pd.DataFrame([node])[list(X.columns)], True)]


def is_drawn(plot):
    """Whether a canvas shows more than a background."""
    count = """canvas => {
        const pen = canvas.getContext("2d");
        const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    return plot.locator("canvas.base").evaluate(count) > 20


@pytest.mark.parametrize(
    ("name", "width"), [*((name, 360) for name in MODELS), ("metals", 1200), ("core", 1200)]
)
def test_the_page_renders_and_fits_the_screen(name, width, request, opened):
    model = request.getfixturevalue(name)
    page = opened(model, viewport={"width": width, "height": 740})
    assert page.locator("h1").inner_text()
    plots = page.locator(".cards .plot").all()
    assert len(plots) == {"core": 2, "soil": 0}.get(name, 2 * model.n_outputs_)
    assert all(is_drawn(plot) for plot in plots)
    wide = "[document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(page.evaluate(wide)) <= width
    for image in page.locator("img").all():
        assert image.evaluate("image => image.complete && image.naturalWidth > 0")


def test_hovering_over_a_map_shows_the_prediction_there(metals, opened):
    page = opened(metals)
    locations = set()
    for d, across in ((0, 0.4), (1, 0.5), (2, 0.45)):
        plot, box = plot_at(page, 2 * d)
        hover(page, box, across, 0.5)
        first, second, *_ = tip_of(plot)
        assert PREDICTION.match(first)["name"] == metals.output_names_[d]
        assert first.endswith(" <i>mg</i>/kg") == (d == 0)
        assert_predicted(first, predict_near(metals, page, location(second), d))
        # The same location is given under every other map.
        assert all(text.endswith(second) for text in page.locator(".readout").all_inner_texts())
        locations.add(second)
    assert len(locations) == 3
    page.mouse.move(5, 5)
    assert page.locator(".tip:visible").count() == 0


def test_hovering_over_a_site_shows_the_reading(metals, opened):
    page = opened(metals)
    plot, box = plot_at(page, 0)
    seen = []
    for fraction in (0.3, 0.6):  # two locations give the position of every other one
        hover(page, box, fraction, fraction)
        at = location(tip_of(plot)[1])
        px, py = box["x"] + fraction * box["width"], box["y"] + fraction * box["height"]
        seen.append((px, py, at["Xloc"], at["Yloc"]))
    (ax, ay, x0, y0), (bx, by, x1, y1) = seen
    X, Y = metals.training_data()
    middle = (X - X.median()).abs().sum(axis=1)[Y["Cd"].notna()].idxmin()
    x, y = X.loc[middle]
    px, py = ax + (x - x0) / (x1 - x0) * (bx - ax), ay + (y - y0) / (y1 - y0) * (by - ay)
    # The tips gave the centres of cells, so the site is within a cell of there.
    measured = []
    for dx in range(-24, 25, 8):
        for dy in range(-24, 25, 8):
            page.mouse.move(px + dx, py + dy)
            lines = tip_of(plot)
            measured += [line.split()[2] for line in lines if line.startswith("measured here")]
    assert f"{Y.loc[middle, 'Cd']:g}" in measured


def test_arrow_keys_move_over_a_map(metals, opened):
    page = opened(metals)
    plot = page.locator(".plot").first
    plot.focus()
    page.keyboard.press("ArrowRight")
    start = location(tip_of(plot)[1])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    now = location(tip_of(plot)[1])
    data = page.evaluate(CHARTS)
    assert now["Xloc"] - start["Xloc"] == pytest.approx(data["x"]["step"], abs=0.02)
    assert now["Yloc"] - start["Yloc"] == pytest.approx(data["y"]["step"], abs=0.02)
    assert page.locator("#announcement").inner_text().startswith(tip_of(plot)[0])
    assert "Map of the predicted median of Cd" in plot.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert page.locator(".tip:visible").count() == 0


def test_a_tap_on_a_phone_shows_the_prediction(metals, opened):
    page = opened(metals, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    plot, box = plot_at(page, 4)
    page.touchscreen.tap(box["x"] + 0.45 * box["width"], box["y"] + 0.45 * box["height"])
    first, second, *_ = tip_of(plot)
    assert_predicted(first, predict_near(metals, page, location(second), 2))
    tip, outer = plot.locator(".tip").bounding_box(), plot.bounding_box()
    assert tip["x"] >= outer["x"] - 1
    assert tip["x"] + tip["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_hovering_over_a_line_shows_prediction_and_interval(core, opened):
    page = opened(core)
    plot, box = plot_at(page, 1)
    hover(page, box)
    first, second, interval, *_ = tip_of(plot)
    ends = core.training_data()[0]["depth"].agg(["min", "max"])
    nodes = pd.DataFrame({"depth": np.linspace(*ends, 200)})
    node = nodes.iloc[[(nodes["depth"] - location(second)["depth"]).abs().argmin()]]
    assert_predicted(first, [part[0, 1] for part in core.predict(node, return_std=True)])
    low, high = (number(text) for text in re.findall(r"−?[\d.]+", interval.partition(":")[2]))
    expected = core.predict_quantiles(node, [0.025, 0.975])[:, 0, 1]
    assert np.allclose([low, high], expected, rtol=1e-3)


def test_longitudes_are_between_minus_180_and_180_degrees(globe, opened):
    page = opened(globe)
    plot, box = plot_at(page, 0)
    longitudes = []
    for across in np.linspace(0.2, 0.8, 9):
        hover(page, box, across)
        longitudes += [location(line)["lon"] for line in tip_of(plot) if line.startswith("lon")]
    assert {lon > 0 for lon in longitudes} == {True, False}
    assert all(175 < abs(lon) <= 180 for lon in longitudes)


def test_the_stages_of_the_fit_are_a_chart(joint, opened):
    page = opened(joint)
    plot = page.locator('[data-chart="trace"]')
    assert not plot.is_visible()
    page.get_by_text("For the person who fitted the model").click()
    page.wait_for_function("document.querySelector('[data-chart=trace] canvas').width > 0")
    assert is_drawn(plot)
    plot.focus()
    page.keyboard.press("ArrowRight")
    for _ in joint.history_:
        page.keyboard.press("ArrowRight")
    last = joint.history_[-1]
    expected = f"stage {len(joint.history_) - 1}: {last.learned}"
    for _ in range(100):  # the pointer follows in the next frames, later on a busy machine
        value, stage = tip_of(plot)
        if stage == expected:
            break
        page.wait_for_timeout(100)
    assert stage == expected
    assert number(value) == pytest.approx(last.log_likelihood, rel=1e-7)


def test_readings_can_be_hidden_and_the_dark_theme_has_its_own_colours(metals, opened):
    page = opened(metals)
    base = page.locator("canvas.base").first
    image = "canvas => canvas.toDataURL()"
    with_readings = base.evaluate(image)
    page.get_by_label("Show the readings").uncheck()
    without = base.evaluate(image)
    assert without != with_readings
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) != light
    assert base.evaluate(image) != without


def images_of(pdf, width):
    """The bytes of the images of this width in a PDF."""
    for found in re.finditer(rb"/Subtype\s*/Image\s*/Width (\d+)", pdf):
        if int(found[1]) == width:
            start = pdf.index(b"\n", pdf.index(b"stream", found.end())) + 1
            yield zlib.decompressobj().decompress(pdf[start:])


def test_maps_are_printed_in_light_colours(metals, opened):
    page = opened(metals, color_scheme="dark")
    canvases = page.locator("canvas.print")
    width = canvases.first.evaluate("canvas => canvas.width")
    shown = [image for image in images_of(page.pdf(), width) if len(set(image)) > 100]
    assert len(shown) >= canvases.count()
    page.emulate_media(media="print")
    assert canvases.first.is_visible()
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
    plot, box = plot_at(page, 0)
    hover(page, box)
    assert tip_of(plot)[0].startswith("<script>alert(1)</script> ")


def test_nothing_can_be_fetched_even_online(browser, cadmium, page_of):
    page = browser.new_page()
    page.goto(page_of(cadmium).path.as_uri())
    refused = page.evaluate("fetch('https://example.org').then(() => 'fetched', () => 'refused')")
    assert refused == "refused"
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'x = 1'}))"
    )
    assert page.evaluate("typeof x") == "undefined"
    assert any("Content Security Policy" in text for text in messages)
    page.context.close()
