"""Storage of the weights of stacked candidates in a model file."""

from typing import Any

import numpy as np

from emgpr.kernels import NAMED_KERNELS
from emgpr.model_files.checks import check_integers, expect, expect_array, expect_fields
from emgpr.regression import DriftPrior, FittedRegression, Residual, Setting
from emgpr.stacking import CANDIDATES, CandidateWeights, Pattern, Stack

Array = np.ndarray

FIELDS = frozenset(
    ["unknown", "fixed", "known", "kernel", "varying", "couples_outputs", "n_parameters"]
)
WEIGHTS = {"near": "c", "far": "c", "inflation": "c", "distances": "two"}
REGRESSION = {"settings": "k five", "weights": "two k", "variances": "two k"}
PATTERN_FIELDS = frozenset(["output", "known", "candidates", "regression"])
AXES = {"c": len(CANDIDATES), "two": 2, "five": 5}


def stack_state(stack: Stack) -> dict[str, Any]:
    """Return the weights as a dict."""
    return {
        "unknown": [_weights_state(weights) for weights in stack.unknown],
        "fixed": [None if found is None else _weights_state(found) for found in stack.fixed],
        "known": [
            {
                "output": d,
                "known": np.array(known),
                "candidates": _weights_state(found),
                "regression": _regression_state(stack.regressions.get((d, known))),
            }
            for (d, known), found in stack.known.items()
        ],
        "kernel": stack.kernel,
        "varying": bool(stack.varying),
        "couples_outputs": bool(stack.couples_outputs),
        "n_parameters": int(stack.n_parameters),
    }


def stack_from_state(state: Any, n_sites: int, D: int) -> Stack:
    """Check stored weights, and return them."""
    expect(isinstance(state, dict), "'stack' is not a dict")
    expect_fields(state.keys(), FIELDS)
    for name in ("unknown", "fixed", "known"):
        expect(isinstance(state[name], list), f"{name!r} is not a list")
    expect(len(state["unknown"]) == D, "'unknown' does not have weights for every output")
    expect(len(state["fixed"]) in (0, D), "'fixed' does not have weights for every output")
    kernel = state["kernel"]
    valid = isinstance(kernel, str) and kernel in NAMED_KERNELS
    expect(valid, "'kernel' is not a known kernel")
    for name in ("varying", "couples_outputs"):
        expect(isinstance(state[name], bool), f"{name!r} is neither true nor false")
    n = state["n_parameters"]
    expect(type(n) is int and n >= 0, "'n_parameters' is not a count")
    stack = Stack(
        n_sites,
        tuple(_weights(weights) for weights in state["unknown"]),
        kernel,
        state["varying"],
        state["couples_outputs"],
        n,
        fixed=tuple(None if found is None else _weights(found) for found in state["fixed"]),
    )
    for stored in state["known"]:
        pattern, weights, regression = _pattern(stored, D)
        stack.known[pattern] = weights
        if regression is not None:
            stack.regressions[pattern] = regression
        needs_regression = bool(weights.near[2] > 0 or weights.far[2] > 0)
        expect(regression is not None or not needs_regression, "a regression is missing")
    return stack


def stack_of_earlier_version(without_gain: dict[str, Array], n_sites: int, D: int) -> Stack:
    """Return the weights for outputs that an earlier version predicted with or without transfer.

    `without_gain` lists the outputs that are predicted by their own process: under "site", where
    nothing is known, and under "output", where other outputs are known.
    """

    def weights(by: str) -> tuple[CandidateWeights, ...]:
        alone = without_gain.get(by, ())
        return tuple(CandidateWeights.of_one("own" if d in alone else "joint") for d in range(D))

    return Stack(n_sites, weights("site"), fixed=weights("output"))


def _pattern(stored: Any, D: int) -> tuple[Pattern, CandidateWeights, FittedRegression | None]:
    expect(isinstance(stored, dict), "'known' contains a value that is not a dict")
    expect_fields(stored.keys(), PATTERN_FIELDS)
    d, known = stored["output"], stored["known"]
    expect(type(d) is int and 0 <= d < D, "weights of an output that does not exist")
    check_integers("known", known, D)
    valid = len(known) > 0 and d not in known and bool((np.diff(known) > 0).all())
    expect(valid, "the known outputs of a pattern are invalid")
    regression = stored["regression"]
    fitted = None if regression is None else _regression(regression)
    return (d, tuple(known.tolist())), _weights(stored["candidates"]), fitted


def _weights_state(weights: CandidateWeights) -> dict[str, Array]:
    return {name: np.asarray(getattr(weights, name)) for name in (*WEIGHTS, "log_scores")}


def _weights(stored: Any) -> CandidateWeights:
    expect(isinstance(stored, dict), "weights of candidates are not a dict")
    expect_fields(stored.keys(), {*WEIGHTS, "log_scores"})
    for name, shape in WEIGHTS.items():
        expect_array(name, stored[name], shape.split(), dict(AXES))
    scores = stored["log_scores"]  # NaN for candidates without a score
    expect_array("log_scores", np.nan_to_num(scores), ["two", "c"], dict(AXES))
    for name in ("near", "far"):
        _check_weights(name, stored[name][None])
    expect(bool((stored["inflation"] >= 1).all()), "'inflation' is below 1")
    expect(bool((stored["distances"] >= 0).all()), "a distance is negative")
    near, far = stored["distances"].tolist()
    return CandidateWeights(**{**stored, "distances": (near, far)})


def _regression_state(fitted: FittedRegression | None) -> dict[str, Array] | None:
    if fitted is None:
        return None
    settings = [
        (r.length_scale, r.share, r.varying, prior.linear, prior.smooth) for r, prior in fitted.kept
    ]
    weights, variances = fitted.weights, fitted.variances
    return {"settings": np.array(settings), "weights": weights, "variances": variances}


def _regression(stored: Any) -> FittedRegression:
    expect(isinstance(stored, dict), "a regression is not a dict")
    expect_fields(stored.keys(), REGRESSION.keys())
    axes = dict(AXES)
    for name, shape in REGRESSION.items():
        expect_array(name, stored[name], shape.split(), axes)
    expect(axes["k"] > 0, "a regression has no settings")
    _check_weights("weights", stored["weights"])
    expect(bool((stored["variances"] > 0).all()), "a variance of a regression is not positive")
    settings = stored["settings"]
    valid = (settings >= 0).all() and (settings[:, [0, 3]] > 0).all() and (settings[:, 1] < 1).all()
    expect(bool(valid), "a setting of a regression is invalid")
    kept = [
        Setting(Residual(scale, share, varying), DriftPrior(linear, smooth))
        for scale, share, varying, linear, smooth in settings.tolist()
    ]
    return FittedRegression(tuple(kept), stored["weights"], stored["variances"])


def _check_weights(name: str, weights: Array) -> None:
    valid = (weights >= 0).all() and np.allclose(weights.sum(axis=1), 1.0)
    expect(bool(valid), f"{name!r} does not contain weights that sum to 1")
