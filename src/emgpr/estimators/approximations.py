"""What stands for something else in a fit and its predictions, in plain words; "" where nothing."""

from typing import Any

import numpy as np
from jaxtyping import Int
from sklearn.gaussian_process import GaussianProcessRegressor

from emgpr.latents import DTC, FITC, LEARNERS, PITC, VFE, Borrowed, Exact, PoE, Variogram, is_lent

Array = np.ndarray

SPARSE = (DTC, FITC, PITC, VFE)


def learner_named(learner: Any) -> Any:
    """The object behind the name of a learner; what is none is given back."""
    return LEARNERS[learner] if isinstance(learner, str) else learner


def lenders_of(learner: Any, n_tasks: int) -> list[Any]:
    """The other libraries' models or functions, one for each task."""
    listed = list(learner) if isinstance(learner, list | tuple) else [learner] * n_tasks
    return [own.lender if isinstance(own, Borrowed) else own for own in listed]


def is_new_regressor(lender: Any) -> bool:
    """Whether it is scikit-learn's and will be fitted, by maximum likelihood of all readings."""
    return isinstance(lender, GaussianProcessRegressor) and not hasattr(lender, "kernel_")


def of_learner(learner: Any, n: int) -> str:
    """In step 1, by a learner or its name, of an output that was read n times.

    >>> of_learner("poe", 800_000)
    'the likelihoods of 8 batches of 300 readings stand for that of 800000'
    >>> of_learner("poe", 400), of_learner("exact", 10**6)
    ('', '')
    """
    learner = learner_named(learner)
    if isinstance(learner, Exact):
        return ""
    if isinstance(learner, PoE):
        n_batches, size = learner.dealt(n)
        if size >= n:
            return ""
        many = f"likelihoods of {n_batches} batches" if n_batches > 1 else "likelihood of a batch"
        stand = "stand" if n_batches > 1 else "stands"
        return f"the {many} of {size} readings {stand} for that of {n}"
    if isinstance(learner, SPARSE):
        m = learner.n_inducing
        what = "a bound by" if isinstance(learner, VFE) else "the likelihood of readings joined by"
        points = f"{m} inducing points ({type(learner).__name__})"
        return "" if m >= n else f"{what} {points} stands for the likelihood of {n} readings"
    if isinstance(learner, Variogram):
        some = min(n, learner.n_sites)
        return f"least squares on the variogram of {some} readings, of {n}; no likelihood"
    if is_lent(learner):
        if all(map(is_new_regressor, lenders_of(learner, 1))):
            return ""
        return "learned elsewhere; how near the maximum of the likelihood is not known"
    name = type(learner).__name__
    return f"learned by {name}; how near the maximum of the likelihood is not known"


def of_batches(n_members: int, n_sites: int, n_all: int) -> str:
    """In weights, kernels and noise that members learn from n sites each.

    >>> of_batches(8, 500, 12000)
    'learned from 8 batches of 500 sites, each as if there were no other; 4000 of 12000 sites'
    """
    if n_members == 1 and n_sites == n_all:
        return ""
    taken = min(n_members * n_sites, n_all)
    share = f"{taken} of {n_all}" if taken < n_all else f"all {n_all}"
    if n_members == 1:
        return f"learned from {share} sites"
    return (
        f"learned from {n_members} batches of {n_sites} sites, each as if there were no other; "
        f"{share} sites"
    )


def of_conditioning(how: Any, counts: Int[Array, " D"]) -> str:
    """In predictions, of outputs that were read so many times.

    >>> of_conditioning(16, np.array([9000, 9000, 6000]))
    'each place from the 16 nearest readings of each output, of 24000 in all'
    >>> of_conditioning(16, np.array([16, 9])), of_conditioning("all", np.array([9000]))
    ('', '')
    """
    if how == "batch":
        return "each member from the readings of its own batch"
    if how == "all" or how >= counts.max():
        return ""
    return f"each place from the {how} nearest readings of each output, of {counts.sum()} in all"


def of_model(model: Any) -> tuple[str, ...]:
    """In a fitted model, by step: what it learned, and how it predicts."""
    seen, parts = model._seen, model._parts
    counts = seen.seen.sum(axis=1)
    found = {
        "step 1": of_learner(model.latent_learner_, int(counts.max())),
        "weights": of_batches(len(parts), max(map(len, parts)), seen.n_sites),
        "prediction": of_conditioning(model.conditioning_, counts),
    }
    return tuple(f"{step}: {words}" for step, words in found.items() if words)
