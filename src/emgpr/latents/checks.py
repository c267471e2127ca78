"""Checks of learners for step 1, including user-defined learners, and of their results."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.arrays import solve
from emgpr.kernels import split_noise
from emgpr.latents.base import Latent, LatentLearner

Array = np.ndarray


def check_learner(learner: Any, *, rng: int | np.random.Generator = 0) -> None:
    """Raise AssertionError unless an object can be used as a learner.

    The error message says what was expected and what the learner returned. A learner has a method
    `learn(x, y, kernel)`. Its arguments are sites (n, P), standardised readings (n,) and a kernel,
    which the method must not modify. It must return a `Latent`: a scikit-learn kernel for P
    columns, a positive noise variance, and a log-likelihood, which is used to compare kernels. The
    result must be the same for the same readings. The method must detect an obvious signal, and
    estimate a larger noise variance for noisier readings.

    >>> class Rule:  # a tenth of the region, and a tenth of the variance
    ...     def learn(self, x, y, kernel):
    ...         scale = 0.1 * np.ptp(x, axis=0).max()
    ...         return Latent(RBF(scale), noise=0.1, log_likelihood=0.0)
    >>> check_learner(Rule())
    Traceback (most recent call last):
    AssertionError: one input, RBF(length_scale=1): expected more noise in noisier readings; ...
    """
    assert callable(getattr(learner, "learn", None)), (
        f"expected an object with a method learn(x, y, kernel); got {learner!r}"
    )
    rng = np.random.default_rng(rng)
    for case, x in {
        "one input": rng.uniform(0.0, 5.0, size=(60, 1)),
        "two inputs": rng.uniform(0.0, 300.0, size=(90, 2)),
    }.items():
        signal = np.sqrt(2) * np.sin(2 * np.pi * (x / np.ptp(x, axis=0)).sum(axis=1))
        little, much = (_standardise(signal + s * rng.normal(size=len(x))) for s in (0.1, 0.8))
        for kernel in (RBF(), Matern(nu=1.5)):
            name = f"{case}, {kernel}"
            latent = _learn(learner, name, x, little, kernel)
            again = _learn(learner, name, x, little, kernel)
            first, second = (fit.kernel(x) + fit.noise * np.eye(len(x)) for fit in (latent, again))
            assert np.allclose(first, second, rtol=1e-6, atol=1e-8), (
                f"{name}: expected the same result for the same readings; got {latent} and {again}"
            )
            fitted, noise_only = (
                _log_likelihood(latent, x, little),
                _log_likelihood(None, x, little),
            )
            assert fitted > noise_only, (
                f"{name}: expected a log-likelihood above that of noise alone, {noise_only:.1f}; "
                f"got {fitted:.1f}, with {latent}"
            )
            noisier = _learn(learner, name, x, much, kernel)
            assert noisier.noise > latent.noise, (
                f"{name}: expected more noise in noisier readings; got the variances "
                f"{latent.noise:g} and, for noisier readings, {noisier.noise:g}"
            )


def describe_invalid_latent(latent: Any, x: Float[Array, "n P"]) -> str:
    """Describe what is wrong with a learner's result for sites x; return "" if it is valid.

    >>> describe_invalid_latent(Latent(RBF(), noise=-1.0, log_likelihood=0.0), np.zeros((1, 2)))
    'a noise of -1.0; expected a positive variance'
    """
    if not isinstance(latent, Latent):
        return f"{latent!r}; expected an emgpr.latents.Latent"
    if not isinstance(latent.kernel, Kernel):
        return f"the kernel {latent.kernel!r}; expected a scikit-learn kernel"
    if not (_is_finite(latent.noise) and latent.noise > 0):
        return f"a noise of {latent.noise!r}; expected a positive variance"
    if not _is_finite(latent.log_likelihood):
        return f"a log-likelihood of {latent.log_likelihood!r}; expected a finite number"
    if not _is_covariance(latent.kernel, x[:3]):
        expected = f"a covariance function for a signal with {x.shape[1]} input columns"
        return f"the kernel {latent.kernel}; expected {expected}"
    return ""


def _is_covariance(kernel: Kernel, x: Float[Array, "n P"]) -> bool:
    """Tell whether a kernel contains a signal and returns a valid covariance for these sites."""
    if split_noise(kernel)[0] is None:
        return False
    try:
        with np.errstate(all="ignore"):
            K = kernel(x)
    except ValueError:  # the kernel expects another number of columns
        return False
    return K.shape == (len(x), len(x)) and bool(np.isfinite(K).all() and (K.diagonal() > 0).all())


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def _learn(
    learner: LatentLearner, case: str, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel
) -> Latent:
    """Return the learner's result; check that it is valid and that no argument was modified."""
    given, before = (x.copy(), y.copy()), kernel.get_params()
    latent = learner.learn(*given, kernel)
    for name, now, was in zip("xy", given, (x, y), strict=True):
        assert np.array_equal(now, was), f"{case}: expected {name} unmodified; it was modified"
    assert kernel.get_params() == before, f"{case}: expected the kernel unmodified; it was modified"
    wrong = describe_invalid_latent(latent, x)
    assert not wrong, f"{case}: got {wrong}"
    return latent


def _standardise(y: Float[Array, " n"]) -> Float[Array, " n"]:
    return (y - y.mean()) / y.std()


def _log_likelihood(latent: Latent | None, x: Float[Array, "n P"], y: Float[Array, " n"]) -> float:
    """Return the log-likelihood of y under `latent`, or under white noise if `latent` is None."""
    cov = np.eye(len(y)) if latent is None else latent.kernel(x) + latent.noise * np.eye(len(y))
    fit = y @ solve(cov, y[:, None])[:, 0] + np.linalg.slogdet(cov)[1]
    return float(-0.5 * (fit + len(y) * np.log(2 * np.pi)))
