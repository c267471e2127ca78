"""What is written on a picture, and the colours that all of them share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's colours, told apart by colour-blind readers.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
SEVERAL = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
GREY = "#777777"
DIVERGING = "PuOr"  # even in lightness on both sides of zero, and safe

Units = Mapping[str, str] | None


def with_unit(name: str, units: Units) -> str:
    """As on an axis: "Cd (mg/kg)", or "Cd" if its unit is not known."""
    unit = (units or {}).get(name, "")
    return f"{name} ({unit})" if unit else str(name)


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
