"""Functions and a kernel that kill the first worker process that uses them."""

import os
import signal
from pathlib import Path

from sklearn.gaussian_process.kernels import RBF

from emgpr.ensemble import RULES


def die_once(mark, survivor):
    """Kill this process, unless its id is that of the survivor or the file `mark` exists."""
    if os.getpid() != survivor and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)


class DyingKernel(RBF):
    def __init__(self, length_scale=1.0, length_scale_bounds=(1e-3, 1e3), mark="", survivor=0):
        super().__init__(length_scale, length_scale_bounds)
        self.mark, self.survivor = mark, survivor

    def __call__(self, X, Y=None, eval_gradient=False):
        die_once(self.mark, self.survivor)
        return super().__call__(X, Y, eval_gradient)


def dying_mean(mark, survivor, *members):
    die_once(mark, survivor)
    return RULES["mean"](*members)


def dying_identity(mark, survivor, y):
    die_once(mark, survivor)
    return y
