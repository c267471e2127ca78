"""What is written on a picture, and the colours that all of them share."""

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's colours, told apart by colour-blind readers.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
SEVERAL = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
GREY = "#777777"
LONGEST = 20  # letters of a name beside a row or under a column
DIVERGING = "PuOr"  # even in lightness on both sides of zero, and safe

Units = Mapping[str, str] | None


def with_unit(name: str, units: Units) -> str:
    """As on an axis: "Cd (mg/kg)", or "Cd" if its unit is not known."""
    unit = (units or {}).get(name, "")
    return f"{literal(name)} ({unit})" if unit else literal(name)


def literal(name: Any) -> str:
    """A name as it is: between dollars, matplotlib would read mathematics.

    >>> literal("gold, $/oz")
    'gold, \\\\$/oz'
    """
    return str(name).replace("$", r"\$")


def short(names: Iterable[Any]) -> dict[str, str]:
    """A short name for each, none twice: one of a hundred letters would leave no room.

    Beginning and end are kept, since names that begin alike end differently.

    >>> list(short(["Cd", "brightness temperature ch04", "brightness temperature ch05"]).values())
    ['Cd', 'brightness…ture ch04', 'brightness…ture ch05']
    """
    found: dict[str, str] = {}
    for name in map(str, names):
        plain = " ".join(name.split())
        half = LONGEST // 2
        cut = plain if len(plain) <= LONGEST else f"{plain[:half]}…{plain[half + 1 - LONGEST :]}"
        n, first = 2, cut
        while cut in found.values():
            cut = f"{first[: LONGEST - 1 - len(str(n))]}…{n}"
            n += 1
        found[name] = cut
    return found


def upright(names: list[str]) -> int:
    """The degrees by which names under columns are turned: where many or long, they stand."""
    return 90 if len(names) > 6 or len(names) * max(map(len, names)) > 24 else 0


def titled(ax: Axes, text: str, size: str = "large") -> None:
    """A title on as many lines as its panel needs, up to three for each that it has."""
    ax.set_title(within(ax, text, size), fontsize=size)


def within(ax: Axes, text: str, size: str = "medium", side: Literal["x", "y"] = "x") -> str:
    """The text in lines no longer than the panel's side."""
    spec, box = ax.get_subplotspec(), ax.figure.bbox
    length = box.width if side == "x" else box.height
    if spec is not None:
        grid = spec.get_gridspec()
        length /= grid.ncols if side == "x" else grid.nrows
    points = 72 * length / ax.figure.dpi * (0.92 if side == "x" else 0.8)  # ticks and gaps
    letters = int(points / (0.56 * FontProperties(size=size).get_size_in_points()))
    lines = (wrap(line, letters, max_lines=3, placeholder="…") for line in text.split("\n"))
    return "\n".join("\n".join(line) for line in lines)


def latent_name(q: int, kernel: Any) -> str:
    """By its length-scale, where it has one, or one for each input."""
    scale = kernel.get_params().get("length_scale")
    if scale is None:
        return f"latent {q}"
    return f"latent {q}, length-scale " + " × ".join(f"{value:.3g}" for value in np.ravel(scale))


def process_name(q: int, j: int, kernel: Any, rank: int) -> str:
    """One of a latent's processes, by its letter if there are several."""
    name = latent_name(q, kernel)
    return name if rank == 1 else name.replace(f"latent {q}", f"latent {q}{chr(97 + j)}", 1)


def is_log(model: Any, name: str) -> bool:
    """Whether the model works on the logarithm of this output."""
    spec = model.transforms_[model.output_names_.index(name)]
    return isinstance(spec, str) and spec == "log"


def signed(value: float) -> str:
    """With a sign, which is a minus and no hyphen."""
    return f"{value:+.2f}".replace("-", "−")


def log_ticks(axis: Axis) -> None:
    """Plain numbers, 0.5, 1, 2, not 10⁰: three of a decade, more where there is only one."""
    low, high = axis.get_view_interval()
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 8 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
