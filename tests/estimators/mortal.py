"""What kills the first process that uses it, if that is not the tests' own."""

import os
import signal
from pathlib import Path

from sklearn.gaussian_process.kernels import RBF

from emgpr.ensemble import RULES


def die_once(mark, home):
    if os.getpid() != home and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)


class MortalKernel(RBF):
    def __init__(self, length_scale=1.0, length_scale_bounds=(1e-3, 1e3), mark="", home=0):
        super().__init__(length_scale, length_scale_bounds)
        self.mark, self.home = mark, home

    def __call__(self, X, Y=None, eval_gradient=False):
        die_once(self.mark, self.home)
        return super().__call__(X, Y, eval_gradient)


def mortal_mean(mark, home, *beliefs):
    die_once(mark, home)
    return RULES["mean"](*beliefs)


def mortal_identity(mark, home, y):
    die_once(mark, home)
    return y
