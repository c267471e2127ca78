"""Rounding of predictions in text files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MIN_DIGITS, MAX_DIGITS = 6, 17  # significant digits; 17 determine a double-precision number
MAX_ERROR = 0.01  # of rounding, in standard deviations


def round_to_uncertainty(columns: "pd.DataFrame") -> "pd.DataFrame":
    """Round the predictions of an output, which has its standard deviations in the second column.

    Predictions have six significant digits, or more if they are needed for the rounding error to be
    below a hundredth of each standard deviation.

    >>> import pandas as pd
    >>> round_to_uncertainty(pd.DataFrame({"T": [250.1234567], "T_std": [0.12345678]}))
             T     T_std
    0  250.123  0.123457
    >>> round_to_uncertainty(pd.DataFrame({"h": [1234567.1239], "h_std": [0.5]}))["h"].tolist()
    [1234567.12]
    """
    import numpy as np

    std = columns.iloc[:, 1].to_numpy()
    size = columns.iloc[:, 0].abs().to_numpy()
    known = (std > 0) & (size > 0) & np.isfinite(std) & np.isfinite(size)
    before_point = np.floor(np.log10(size[known])) + 1
    after_point = -np.log10(2 * MAX_ERROR * std[known])
    needed = int(np.max(np.ceil(before_point + after_point), initial=MIN_DIGITS))
    digits = min(needed, MAX_DIGITS)
    return columns.map(lambda value: float(f"{value:.{digits}g}"))
