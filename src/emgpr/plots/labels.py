"""Labels, titles, ticks and colours for all figures."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from textwrap import wrap
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from sklearn.gaussian_process.kernels import Kernel

from emgpr.inputs.units import unit_in_header
from emgpr.printable import escape_controls
from emgpr.transforms import Log, OutputScaler

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
GREY = "#777777"
DIVERGING = "PuOr"  # symmetric in lightness, and distinguishable by colour-blind readers
# Maximum number of characters of a name in a tick label and in a title.
MAX_TICK_LENGTH, MAX_TITLE_LENGTH = 20, 40
METRES_PER_KM, MIN_KM_EXTENT = 1000.0, 2000.0  # Shorter axes are labelled in metres.
MIN_LONG_LABEL = 1e4  # Labels of such coordinates can overlap.
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}

Units = Mapping[str, str] | None


def escape_math(text: object) -> str:
    """Escape control characters and dollar signs, which matplotlib interprets as mathematics.

    >>> escape_math("gold, $/oz")
    'gold, \\\\$/oz'
    """
    return escape_controls(str(text)).replace("$", r"\$")


def shorten(name: object, max_length: int = MAX_TITLE_LENGTH) -> str:
    """Shorten a name to at most `max_length` characters.

    The beginning and the end are kept, since similar names often differ only at the end.

    >>> shorten("brightness temperature ch04", 20)
    'brightness…ture ch04'
    """
    text, half = " ".join(str(name).split()), max_length // 2
    return text if len(text) <= max_length else f"{text[:half]}…{text[half + 1 - max_length :]}"


def known_units(model: object, units: Units) -> dict[str, str]:
    """Return the units of columns: those given, or else those stored in a fitted model."""
    return {**getattr(model, "units_", {}), **(units or {})}


def with_unit(name: str, units: Units) -> str:
    """Return an axis label such as "Cd (mg/kg)", or the name if the unit is unknown or in it.

    >>> with_unit("Cd", {"Cd": "mg/kg"}), with_unit("Zn [mg/kg]", {"Zn [mg/kg]": "mg/kg"})
    ('Cd (mg/kg)', 'Zn [mg/kg]')
    """
    unit = (units or {}).get(name, "")
    show_unit = unit and unit_in_header(str(name)) != unit
    return f"{shorten(name)} ({shorten(unit)})" if show_unit else shorten(name)


def have_same_unit(names: Iterable[str], units: Units) -> bool:
    """Tell whether all known units of these columns are the same.

    >>> have_same_unit(["lon", "lat"], {"lon": "degrees_east", "lat": "degrees_north"})
    True
    """
    found = {str((units or {})[name]) for name in names if name in (units or {})}
    return len({unit.removesuffix("_east").removesuffix("_north") for unit in found}) < 2


def length_unit(unit: str, extent: float) -> tuple[str, float]:
    """Return the unit in which to label an axis, km for long axes in m, and its size.

    >>> length_unit("m", 24000.0), length_unit("m", 300.0), length_unit("", 24000.0)
    (('km', 1000.0), ('m', 1.0), ('', 1.0))
    """
    return ("km", METRES_PER_KM) if unit == "m" and extent >= MIN_KM_EXTENT else (unit, 1.0)


class SparseLocator(MaxNLocator):
    """Ticks at round multiples of a unit, few enough that long labels do not overlap."""

    def __init__(self, unit_size: float) -> None:
        super().__init__(steps=[1, 2, 2.5, 5, 10], min_n_ticks=1)
        self.unit_size = unit_size

    def __call__(self) -> Any:
        """Return the positions of the ticks, given the present size of the axis."""
        axis: Any = self.axis
        low, high = sorted(end / self.unit_size for end in axis.get_view_interval())
        decimals = max(0, 1 - floor(log10(max(high - low, 1e-12))))
        n_letters = max(len(f"{end:.{decimals}f}") for end in (low, high))
        # Matplotlib's own estimate assumes that a label is as wide as three letters are high.
        n_ticks = axis.get_tick_space() * 3 / (0.64 * n_letters + 1)
        self.set_params(nbins=int(np.clip(n_ticks, 1, 8)))
        return super().__call__()


def set_length_ticks(axis: Axis, unit_size: float) -> None:
    """Label an axis in a larger unit, and leave out ticks whose labels would overlap.

    Axes with short labels are not changed.
    """
    if unit_size == 1 and np.abs(axis.get_view_interval()).max() < MIN_LONG_LABEL:
        return
    if isinstance(axis, XAxis):
        axis.set_major_locator(SparseLocator(unit_size))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: with_minus(f"{value / unit_size:.10g}"))
    )


def abbreviate(names: Iterable[object]) -> list[str]:
    """Return shortened names that are all distinct.

    >>> abbreviate(["Cd", "brightness temperature ch04", "brightness, temperature ch04"])
    ['Cd', 'brightness…ture ch04', 'brightness…ture ch…2']
    """
    short_names: list[str] = []
    for name in names:
        text = first = shorten(name, MAX_TICK_LENGTH)
        n = 2
        while text in short_names:
            text = f"{first[: MAX_TICK_LENGTH - 1 - len(str(n))]}…{n}"
            n += 1
        short_names.append(text)
    return short_names


def tick_labels(names: Iterable[object]) -> list[str]:
    """Return shortened, escaped names for the ticks of an axis."""
    return [escape_math(name) for name in abbreviate(names)]


def tick_rotation(labels: Sequence[str]) -> int:
    """Return the rotation of tick labels in degrees: 90 if they are long or numerous, else 0."""
    return 90 if len(labels) > 6 or len(labels) * max(map(len, labels)) > 24 else 0


def set_title(ax: Axes, text: str, size: str = "large") -> None:
    """Set the title of a panel, with lines broken to fit its width."""
    ax.set_title(wrap_to_panel(ax, text, size), fontsize=size)


def wrap_to_panel(ax: Axes, text: str, size: str = "medium", side: Literal["x", "y"] = "x") -> str:
    """Break each line of a text to fit the width or height of a panel, and escape dollar signs.

    Each line is broken into at most three lines, and any remaining text is cut off.
    """
    spec, box = ax.get_subplotspec(), ax.figure.bbox
    length = box.width if side == "x" else box.height
    if spec is not None:
        grid = spec.get_gridspec()
        length /= grid.ncols if side == "x" else grid.nrows
    # The factors leave room for ticks and the gaps between panels.
    points = 72 * length / ax.figure.dpi * (0.92 if side == "x" else 0.8)
    n_letters = int(points / (0.56 * FontProperties(size=size).get_size_in_points()))
    lines = (wrap(line, n_letters, max_lines=3, placeholder="…") for line in text.split("\n"))
    return escape_math("\n".join("\n".join(line) for line in lines))


def latent_label(kernel: Kernel, q: int, process: int | None = None) -> str:
    """Return the label of a latent or of one of its processes, including the length-scales."""
    return _with_scale(f"latent {q}" + ("" if process is None else chr(97 + process)), kernel)


def part_labels(kernels: Sequence[Kernel], names: Sequence[str]) -> list[str]:
    """Return labels of the parts of an output's variance; the first have these kernels."""
    shared = [_with_scale(name, kernel) for name, kernel in zip(names, kernels, strict=False)]
    return [*shared, *names[len(shared) :]]


def _with_scale(name: str, kernel: Kernel) -> str:
    """Return a name with the length-scales of a kernel, if it has any."""
    scale = kernel.get_params().get("length_scale")
    if scale is None:
        return name
    return f"{name}, length-scale " + " × ".join(f"{value:.3g}" for value in np.ravel(scale))


def is_log_transformed(scaler: OutputScaler, output: str) -> bool:
    """Tell whether the output is modelled on a logarithmic scale."""
    return isinstance(scaler.transforms[scaler.names.index(output)], Log)


def with_minus(text: str) -> str:
    """Replace hyphens in a formatted number with minus signs."""
    return text.replace("-", "−")


def log_locator(low: float, high: float) -> LogLocator:
    """Return a tick locator with three ticks per decade, or six if the range is short."""
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 8 * low else (1.0, 2.0, 5.0)
    return LogLocator(subs=subs)


def set_log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers (0.5, 1, 2) instead of powers of ten."""
    axis.set_major_locator(log_locator(*axis.get_view_interval()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
