"""A check that a combination rule, for instance a user-defined one, is valid."""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigvalsh, inv
from emgpr.ensemble.base import Covariances, Means, Prior, Rule

Array = np.ndarray

N_MEMBERS, N_LOCATIONS = 3, 4
RELATIVE_TOLERANCE = 1e-6  # for results that should be equal
INDEFINITE = 1e-9  # relative size of asymmetries and negative eigenvalues that rounding can cause


def check_rule(rule: Rule, *, any_order: bool = True, rng: int | np.random.Generator = 0) -> None:
    """Raise AssertionError, with a message that says what was expected, if a rule is not valid.

    A rule takes means (L, M, D), covs (L, M, D, D) and prior (M, D, D), and must not change them.
    It must return a finite mean (M, D) and a finite, symmetric and positive semi-definite
    covariance (M, D, D). It must treat locations independently and return the prediction of a
    single member unchanged. Its result must not depend on the order of the members (unless
    `any_order=False`, as for "grbcm"). All of this must hold for any number of outputs, and also
    for singular covariances.

    >>> def most_certain(means, covs, prior):
    ...     best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    ...     location = np.arange(len(best))
    ...     return means[best, location], covs[best, location]
    >>> check_rule(most_certain)
    >>> def overconfident(means, covs, prior):
    ...     return means.mean(axis=0), covs.mean(axis=0) - 0.1 * prior
    >>> check_rule(overconfident)
    Traceback (most recent call last):
    AssertionError: three outputs, one member: expected ...
    """
    rng = np.random.default_rng(rng)
    for case, (means, covs, prior) in _cases(rng).items():
        single = f"{case}, one member"
        alone = _apply(rule, single, means[:1], covs[:1], prior)
        _assert_same(single, "the prediction of that member", (means[0], covs[0]), alone)

        mean, cov = _apply(rule, case, means, covs, prior)
        subset = rng.permutation(N_LOCATIONS)[1:]
        result = _apply(rule, case, means[:, subset], covs[:, subset], prior[subset])
        subset_case, what = f"{case}, a subset of the locations", "the same as for all locations"
        _assert_same(subset_case, what, (mean[subset], cov[subset]), result)
        if any_order:
            order = np.roll(np.arange(N_MEMBERS), 1)
            other = _apply(rule, case, means[order], covs[order], prior)
            reordered, what = f"{case}, members in another order", "the same result"
            _assert_same(reordered, what, (mean, cov), other)


def _apply(
    rule: Rule, case: str, means: Means, covs: Covariances, prior: Prior
) -> tuple[Array, Array]:
    """Return the result of a rule after checking its shapes and that its covariances are valid."""
    given = {"means": means, "covs": covs, "prior": prior}
    passed = {name: value.copy() for name, value in given.items()}
    mean, cov = (np.asarray(part) for part in rule(*passed.values()))
    for name, value in given.items():
        assert np.array_equal(passed[name], value), (
            f"{case}: expected {name} to remain unchanged; the rule modified it."
        )
    shapes = f"mean {means.shape[1:]} and covariance {covs.shape[1:]}"
    returned = f"mean {mean.shape} and covariance {cov.shape}"
    assert returned == shapes, f"{case}: expected {shapes}; got {returned}."
    assert np.isfinite(mean).all(), f"{case}: expected finite means; got {mean}."
    assert np.isfinite(cov).all(), f"{case}: expected finite covariances; got {cov}."
    atol = INDEFINITE * max(np.abs(covs).max(), np.abs(cov).max())
    skew = np.abs(cov - np.swapaxes(cov, -1, -2)).max()
    assert skew <= atol, f"{case}: expected symmetric covariances; got differences of {skew:g}."
    smallest = eigvalsh(cov).min()
    assert smallest >= -atol, (
        f"{case}: expected no negative variance in any direction; got {smallest:g}."
    )
    return mean, cov


def _assert_same(
    case: str, what: str, expected: tuple[Array, Array], result: tuple[Array, Array]
) -> None:
    for name, ours, theirs in zip(("mean", "covariance"), expected, result, strict=True):
        atol = RELATIVE_TOLERANCE * np.abs(ours).max()
        assert np.allclose(theirs, ours, rtol=RELATIVE_TOLERANCE, atol=atol), (
            f"{case}: expected {what}, {name} {ours}; got {theirs}."
        )


def _cases(rng: np.random.Generator) -> dict[str, tuple[Array, Array, Array]]:
    """Return typical and degenerate cases: means, covariances and prior for three members."""

    def given_readings(T: Float[Array, "*l M D k"], factor: float = 1.0) -> tuple[Array, Array]:
        """Simulate predictions of T z, where z ~ N(0, I), with covariances scaled by `factor`."""
        k = T.shape[-1]
        root = rng.normal(size=(N_MEMBERS, N_LOCATIONS, k, k))
        cov = factor * inv(np.eye(k) + root @ np.swapaxes(root, -1, -2))
        z = rng.normal(size=(N_MEMBERS, N_LOCATIONS, k))
        return np.einsum("...dk,...k->...d", T, z), T @ cov @ np.swapaxes(T, -1, -2)

    def prior(T: Float[Array, "*l M D k"]) -> Array:
        return np.asarray(T @ np.swapaxes(T, -1, -2))

    three, one, line = (rng.normal(size=(N_LOCATIONS, D, k)) for D, k in ((3, 3), (1, 1), (3, 1)))
    without_signal = three * np.array([1.0, 0.0, 1.0])[:, None]
    lines = line + 0.1 * rng.normal(size=(N_MEMBERS, N_LOCATIONS, 3, 1))
    means, covs = given_readings(three)
    no_mean = np.zeros((N_MEMBERS, N_LOCATIONS, 3))
    no_cov = np.zeros((N_MEMBERS, N_LOCATIONS, 3, 3))
    first_certain = covs * np.array([0.0, 1.0, 1.0])[:, None, None, None]
    return {
        "three outputs": (means, covs, prior(three)),
        "one output": (*given_readings(one), prior(one)),
        "three outputs of one latent process": (*given_readings(line), prior(line)),
        "an output without a signal": (*given_readings(without_signal), prior(without_signal)),
        "members with different weights": (*given_readings(lines), prior(lines).mean(axis=0)),
        "hardly any variance left": (*given_readings(three, 1e-12), prior(three)),
        "no readings": (no_mean, np.stack([prior(three)] * N_MEMBERS), prior(three)),
        "a member without variance": (means, first_certain, prior(three)),
        "no signal": (no_mean, no_cov, no_cov[0]),
    }
