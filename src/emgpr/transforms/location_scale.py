"""Mean and standard deviation of the readings of each output."""

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

MAX_ROUNDING = 5e-15  # half the range of a constant output's readings, relative to their size


def is_constant(Y: Float[Array, "N D"]) -> Bool[Array, " D"]:
    """Tell for each output whether its readings are equal up to rounding, ignoring NaN.

    >>> is_constant(np.array([[0.1, 1.0], [0.1 + 1e-17, 2.0], [np.nan, 3.0]]))
    array([ True, False])
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    return high / 2 - low / 2 <= MAX_ROUNDING * np.maximum(np.abs(low), np.abs(high))


def mean_and_std(Y: Float[Array, "N D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """Return each output's mean and its standard deviation (1 for a constant output).

    >>> mean_and_std(np.array([[1e152, 5.0], [3e152, 5.0]]))
    (array([2.e+152, 5.e+000]), array([1.e+152, 1.e+000]))
    """
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    constant = is_constant(Y)
    # Subtracting the lowest value and dividing by the range avoids overflow and loss of digits.
    unit = np.where(constant, 1.0, high - low)
    relative = (Y - low) / unit
    std = unit * np.nanstd(relative, axis=0)
    # The mean is rounded to about eight digits of the range, so that its rounding error does not
    # depend on the origin of the scale.
    digit = np.exp2(np.floor(np.log2(unit)) - 27)
    mean = low + digit * np.round(unit * np.nanmean(relative, axis=0) / digit)
    return np.where(constant, low, mean), np.where(constant, 1.0, std)
