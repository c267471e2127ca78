"""What every learner of step 1 promises, as one check that a learner of your own can be put to."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.kernels import without_noise
from emgpr.latents.latent import Latent
from emgpr.latents.learner import LatentLearner

Array = np.ndarray


def check_learner(learner: Any, *, rng: int | np.random.Generator = 0) -> None:
    """Raise AssertionError, saying what was expected and what came, unless it is a learner.

    `learner.learn(x, y, kernel)` takes sites (n, P), standardised readings (n,) and a kernel,
    which it leaves as they were, and gives a `Latent`: a scikit-learn kernel of P columns, a noise
    variance above zero, and a log-likelihood, by which kernels are compared. It gives the same
    when it is asked again, finds a signal that is plain to see, and more noise where there is more.

    >>> class Rule:                          # a tenth of the region, and a tenth of the variance
    ...     def learn(self, x, y, kernel):
    ...         scale = 0.1 * np.ptp(x, axis=0).max()
    ...         return Latent(RBF(scale), noise=0.1, log_likelihood=0.0)
    >>> check_learner(Rule())
    Traceback (most recent call last):
    AssertionError: one input, RBF(length_scale=1): expected more noise where there is more; ...
    """
    assert callable(getattr(learner, "learn", None)), (
        f"expected an object with a method learn(x, y, kernel); came {learner!r}"
    )
    rng = np.random.default_rng(rng)
    for case, x in {
        "one input": rng.uniform(0.0, 5.0, size=(60, 1)),
        "two inputs": rng.uniform(0.0, 300.0, size=(90, 2)),
    }.items():
        signal = np.sqrt(2) * np.sin(2 * np.pi * (x / np.ptp(x, axis=0)).sum(axis=1))
        little, much = (_standardised(signal + s * rng.normal(size=len(x))) for s in (0.1, 0.8))
        for kernel in (RBF(), Matern(nu=1.5)):
            name = f"{case}, {kernel}"
            latent = _answer(learner, name, x, little, kernel)
            again = _answer(learner, name, x, little, kernel)
            first, second = (own.kernel(x) + own.noise * np.eye(len(x)) for own in (latent, again))
            assert np.allclose(first, second, rtol=1e-6, atol=1e-8), (
                f"{name}: expected the same answer to the same readings; came {latent} and {again}"
            )
            found, nothing = _log_likelihood(latent, x, little), _log_likelihood(None, x, little)
            assert found > nothing, (
                f"{name}: expected a signal that is likelier than noise alone, of log-likelihood "
                f"{nothing:.1f}; came {latent}, of {found:.1f}"
            )
            noisier = _answer(learner, name, x, much, kernel)
            assert noisier.noise > latent.noise, (
                f"{name}: expected more noise where there is more; came variances "
                f"{latent.noise:g}, then {noisier.noise:g}"
            )


def wrong_with(latent: Any, x: Float[Array, "n P"]) -> str:
    """What is no answer in it, of readings at x; nothing if it is one.

    >>> wrong_with(Latent(RBF(), noise=-1.0, log_likelihood=0.0), np.zeros((1, 2)))
    'a noise of -1.0; expected a variance above zero'
    """
    if not isinstance(latent, Latent):
        return f"{latent!r}; expected an emgpr.latents.Latent"
    if not isinstance(latent.kernel, Kernel):
        return f"the kernel {latent.kernel!r}; expected one of scikit-learn's"
    if not (_is_number(latent.noise) and latent.noise > 0):
        return f"a noise of {latent.noise!r}; expected a variance above zero"
    if not _is_number(latent.log_likelihood):
        return f"a log-likelihood of {latent.log_likelihood!r}; expected a finite number"
    if not _is_covariance(latent.kernel, x[:3]):
        return f"the kernel {latent.kernel}; expected a covariance of {x.shape[1]} input columns"
    return ""


def _is_covariance(kernel: Kernel, x: Float[Array, "n P"]) -> bool:
    """Whether it gives one for these sites, of more than noise."""
    if without_noise(kernel)[0] is None:
        return False
    try:
        with np.errstate(all="ignore"):
            K = kernel(x)
    except ValueError:  # of another number of columns
        return False
    return K.shape == (len(x), len(x)) and bool(np.isfinite(K).all() and (K.diagonal() > 0).all())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def _answer(
    learner: LatentLearner, case: str, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel
) -> Latent:
    """What the learner gives, if it is an answer and nothing was changed."""
    given, before = (x.copy(), y.copy()), kernel.get_params()
    latent = learner.learn(*given, kernel)
    for name, now, was in zip("xy", given, (x, y), strict=True):
        assert np.array_equal(now, was), f"{case}: expected {name} left as it was; changed"
    assert kernel.get_params() == before, f"{case}: expected the kernel left as it was; changed"
    wrong = wrong_with(latent, x)
    assert not wrong, f"{case}: came {wrong}"
    return latent


def _standardised(y: Float[Array, " n"]) -> Float[Array, " n"]:
    return (y - y.mean()) / y.std()


def _log_likelihood(latent: Latent | None, x: Float[Array, "n P"], y: Float[Array, " n"]) -> float:
    """Of standardised readings; with no latent, as nothing but noise."""
    cov = np.eye(len(y)) if latent is None else latent.kernel(x) + latent.noise * np.eye(len(y))
    fit = y @ np.linalg.solve(cov, y) + np.linalg.slogdet(cov)[1]
    return float(-0.5 * (fit + len(y) * np.log(2 * np.pi)))
