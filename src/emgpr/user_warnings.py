"""Warnings that refer to the user's line of code, not to a line inside the package."""

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

from emgpr.printable import escape_controls

_PACKAGE = str(Path(__file__).parent) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning attributed to the line that called into this package.

    The whole stack is searched for the outermost frame of this package, because frames of joblib or
    scikit-learn can lie between its frames.
    """
    level, outermost = 0, 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        level += 1
        if frame.f_code.co_filename.startswith(_PACKAGE):
            outermost = level
        frame = frame.f_back
    warnings.warn(escape_controls(message), category, stacklevel=outermost + 1)
