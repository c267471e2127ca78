"""Whether a figure looks as it did when somebody looked at it.

`EMGPR_DRAW=1 pytest tests/plots` draws all anew: look at every one that changed before
committing it. Versions of matplotlib set text differently, and then move what is beside it; so
pictures are compared without their text, and laid out without regard to it. What is
written is tested beside this, exactly, and that it does not overlap, here.
"""

import os
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

PICTURES = Path(__file__).parent / "pictures"
WIDEST = 480  # pixels
BLOCK = 4
TOLERANCE = 3.0  # of 255, root mean square over blocks of pixels


def looks_as_it_did(drawn, name: str, tolerance: float = TOLERANCE) -> None:
    """Assert that the figure of these axes is like the stored picture of this name."""
    now = pixels(np.ravel(drawn)[0].figure)
    path = PICTURES / f"{name}.png"
    if os.environ.get("EMGPR_DRAW"):
        Image.fromarray(now).quantize(256).save(path, optimize=True)
    before = np.asarray(Image.open(path).convert("RGB"))
    rounding = np.abs(np.subtract(now.shape, before.shape)).max()
    assert rounding <= 1, f"{name} has another size than {path}"
    apart = unlikeness(now, before)
    assert apart < tolerance, f"{name} looks unlike {path}: {apart:.1f}"


def unlikeness(one: np.ndarray, other: np.ndarray) -> float:
    """Root mean square of differences between the mean colours of blocks."""
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
    figure.set_dpi(min(50, WIDEST / figure.get_figwidth()))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for text in figure.findobj(Text):
        text.set_alpha(0)
    for legend in filter(None, (ax.get_legend() for ax in figure.axes)):
        legend.set_visible(False)  # as wide as its text
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


def lying_on_each_other(axes) -> list[tuple[str, str]]:
    """Titles and axis labels that overlap; ticks are matplotlib's own business."""
    axes[0].figure.set_layout_engine("constrained")
    axes[0].figure.draw_without_rendering()
    texts = [text for ax in axes for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, two in boxes[:i] if one.overlaps(two)]
