"""What every rule promises, as one check that a rule of your own can be put to."""

import numpy as np
from jaxtyping import Float

from emgpr.ensemble.combine import Rule

Array = np.ndarray

L, M = 3, 4


def check_rule(rule: Rule, *, any_order: bool = True, rng: int | np.random.Generator = 0) -> None:
    """Raise AssertionError, saying what was expected and what came, unless the rule is one.

    The rule takes means (L, M, D), covs (L, M, D, D) and prior (M, D, D), which it leaves
    as they were, and gives a mean (M, D) and a covariance (M, D, D): finite, symmetric,
    with no negative variance in any direction. It treats each site apart, gives a member
    that is alone its belief back, and does not care for the members' order (unless
    `any_order=False`, as for "grbcm"). All this with any number of outputs, and where prior
    or posterior are singular.

    >>> def surest(means, covs, prior):
    ...     best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    ...     site = np.arange(len(best))
    ...     return means[best, site], covs[best, site]
    >>> check_rule(surest)
    >>> def hopeful(means, covs, prior):
    ...     return means.mean(axis=0), covs.mean(axis=0) - 0.1 * prior
    >>> check_rule(hopeful)
    Traceback (most recent call last):
    AssertionError: three outputs, one member: expected ...
    """
    rng = np.random.default_rng(rng)
    for case, (means, covs, prior) in _beliefs(rng).items():
        alone = _answer(rule, f"{case}, one member", means[:1], covs[:1], prior)
        _same(f"{case}, one member", "that member's belief", (means[0], covs[0]), alone)

        mean, cov = _answer(rule, case, means, covs, prior)
        some = rng.permutation(M)[1:]
        fewer = _answer(rule, case, means[:, some], covs[:, some], prior[some])
        _same(f"{case}, some of the sites", "what all gave there", (mean[some], cov[some]), fewer)
        if any_order:
            order = np.roll(np.arange(L), 1)
            other = _answer(rule, case, means[order], covs[order], prior)
            _same(f"{case}, members in another order", "the same", (mean, cov), other)


def _answer(
    rule: Rule,
    case: str,
    means: Float[Array, "L M D"],
    covs: Float[Array, "L M D D"],
    prior: Float[Array, "M D D"],
) -> tuple[Array, Array]:
    """What the rule gives, if it has the shapes and is a belief."""
    given = means.copy(), covs.copy(), prior.copy()
    mean, cov = (np.asarray(part) for part in rule(*given))
    for name, now, before in zip(
        ("means", "covs", "prior"), given, (means, covs, prior), strict=True
    ):
        assert np.array_equal(now, before), f"{case}: expected {name} left as they were; changed"
    shapes = f"mean {means.shape[1:]} and covariance {covs.shape[1:]}"
    came = f"mean {mean.shape} and covariance {cov.shape}"
    assert came == shapes, f"{case}: expected {shapes}; came {came}"
    assert np.isfinite(mean).all(), f"{case}: expected finite means; came {mean}"
    assert np.isfinite(cov).all(), f"{case}: expected finite covariances; came {cov}"
    atol = 1e-9 * max(np.abs(covs).max(), np.abs(cov).max())
    skew = np.abs(cov - np.swapaxes(cov, -1, -2)).max()
    assert skew <= atol, f"{case}: expected symmetric covariances; came differences of {skew:g}"
    least = np.linalg.eigvalsh(cov).min()
    assert least >= -atol, f"{case}: expected no negative variance; came {least:g} in a direction"
    return mean, cov


def _same(case: str, what: str, expected: tuple[Array, Array], came: tuple[Array, Array]) -> None:
    for name, ours, theirs in zip(("mean", "covariance"), expected, came, strict=True):
        atol = 1e-6 * np.abs(ours).max()
        assert np.allclose(theirs, ours, rtol=1e-6, atol=atol), (
            f"{case}: expected {what}, {name} {ours}; came {theirs}"
        )


def _beliefs(rng: np.random.Generator) -> dict[str, tuple[Array, Array, Array]]:
    """Means, covariances and prior of three members, as they come up."""

    def after_readings(T: Float[Array, "*l M D k"], doubt: float = 1.0) -> tuple[Array, Array]:
        """Beliefs of a signal T z, z ~ N(0, I), after noisy readings of z."""
        k = T.shape[-1]
        heard = rng.normal(size=(L, M, k, k))
        cov = doubt * np.linalg.inv(np.eye(k) + heard @ np.swapaxes(heard, -1, -2))
        means = np.einsum("...dk,...k->...d", T, rng.normal(size=(L, M, k)))
        return means, T @ cov @ np.swapaxes(T, -1, -2)

    def prior(T: Float[Array, "*l M D k"]) -> Array:
        return np.asarray(T @ np.swapaxes(T, -1, -2))

    three, one, line = (rng.normal(size=(M, D, k)) for D, k in ((3, 3), (1, 1), (3, 1)))
    unheard = three * np.array([1.0, 0.0, 1.0])[:, None]
    lines = line + 0.1 * rng.normal(size=(L, M, 3, 1))
    means, covs = after_readings(three)
    nothing = np.zeros((L, M, 3)), np.zeros((L, M, 3, 3))
    return {
        "three outputs": (means, covs, prior(three)),
        "one output": (*after_readings(one), prior(one)),
        "three outputs of one latent": (*after_readings(line), prior(line)),
        "an output that hears no latent": (*after_readings(unheard), prior(unheard)),
        "latents of members that differ": (*after_readings(lines), prior(lines).mean(axis=0)),
        "very much learned": (*after_readings(three, 1e-12), prior(three)),
        "nothing learned": (nothing[0], np.stack([prior(three)] * L), prior(three)),
        "a member without doubt": (
            means,
            covs * np.array([0.0, 1.0, 1.0])[:, None, None, None],
            prior(three),
        ),
        "no signal": (*nothing, nothing[1][0]),
    }
