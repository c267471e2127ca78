"""Comparison of figures with reference pictures that somebody has looked at.

`EMGPR_DRAW=1 pytest tests/plots` draws the reference pictures again: look at each one that changed
before committing it. Versions of matplotlib set text differently and move what is beside it, so
pictures are compared without text, and laid out without regard to it. The text itself is tested
elsewhere, and that it does not overlap, here.
"""

import os
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

PICTURES = Path(__file__).parent / "pictures"
MAX_WIDTH = 480  # pixels
BLOCK = 4  # pixels
TOLERANCE = 3.0  # of 255, root mean square over blocks of pixels


def assert_like_reference(axes, name: str, tolerance: float = TOLERANCE) -> None:
    """Assert that the figure of these axes looks like the reference picture of this name."""
    drawn = pixels(np.ravel(axes)[0].figure)
    if os.environ.get("EMGPR_DRAW"):
        Image.fromarray(drawn).quantize(256).save(PICTURES / f"{name}.png", optimize=True)
    reference = reference_pixels(name)
    assert np.abs(np.subtract(drawn.shape, reference.shape)).max() <= 1, f"{name}: another size"
    assert distance(drawn, reference) < tolerance, f"{name} differs from its reference picture"


def reference_pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(PICTURES / f"{name}.png").convert("RGB"))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Root mean square of the differences between the mean colours of blocks."""
    rows, columns = (
        min(sides) // BLOCK for sides in zip(one.shape[:2], other.shape[:2], strict=True)
    )
    shape = rows, BLOCK, columns, BLOCK, -1
    a, b = (
        image[: rows * BLOCK, : columns * BLOCK].astype(float).reshape(shape).mean(axis=(1, 3))
        for image in (one, other)
    )
    return float(np.sqrt(((a - b) ** 2).mean()))


def pixels(figure) -> np.ndarray:
    """The figure without text, as an array."""
    figure.set_layout_engine("none")
    figure.set_dpi(min(50, MAX_WIDTH / figure.get_figwidth()))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for text in figure.findobj(Text):
        text.set_alpha(0)
    for legend in filter(None, (ax.get_legend() for ax in figure.axes)):
        legend.set_visible(False)  # its width is that of its text
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


def overlapping_texts(axes) -> list[tuple[str, str]]:
    """Titles and axis labels that overlap; tick labels are left to matplotlib."""
    axes[0].figure.set_layout_engine("constrained")
    axes[0].figure.draw_without_rendering()
    texts = [text for ax in axes for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, two in boxes[:i] if one.overlaps(two)]
