"""Storage of the regressions on known outputs in a model file."""

from typing import Any

import numpy as np

from emgpr.conditional import MEMBERS, FittedRegression, RegressionKernel, RegressionSet
from emgpr.kernels import NAMED_KERNELS
from emgpr.model_files.checks import check_integers, expect, expect_array, expect_fields

Array = np.ndarray

FIELDS = frozenset(["output", "known", "members"])
SETTINGS = frozenset(
    ["residual_kernel", "varying_coefficients", "max_iter", "parameter_uncertainty"]
)
MEMBER_FIELDS = frozenset(["theta", "directions", "converged", "left_out"])
MAX_LOG = 50.0  # of a parameter; fitted values are far inside


def regressions_state(regressions: RegressionSet) -> list[dict[str, Any]]:
    """Return the regressions fitted so far as dicts."""
    return [
        {
            "output": d,
            "known": np.array(known),
            "members": [
                {name: getattr(fitted, name) for name in sorted(MEMBER_FIELDS)}
                for fitted in members
            ],
        }
        for (d, known), members in regressions.fitted.items()
    ]


def settings_state(regressions: RegressionSet) -> dict[str, Any]:
    """Return the settings with which regressions are fitted and used."""
    kernel = regressions.kernel
    return {
        "residual_kernel": kernel.residual,
        "varying_coefficients": bool(kernel.varying),
        "max_iter": int(regressions.max_iter),
        "parameter_uncertainty": bool(regressions.parameter_uncertainty),
    }


def regressions_with(state: Any, regressions: RegressionSet) -> RegressionSet:
    """Check stored settings, and return a set without regressions that has these settings."""
    expect(isinstance(state, dict), "'regression_settings' is not a dict")
    expect_fields(state.keys(), SETTINGS)
    expect(state["residual_kernel"] in NAMED_KERNELS, "'residual_kernel' is not a known kernel")
    for name in ("varying_coefficients", "parameter_uncertainty"):
        expect(isinstance(state[name], bool), f"{name!r} is neither true nor false")
    max_iter = state["max_iter"]
    expect(type(max_iter) is int and max_iter > 0, "'max_iter' is not a positive integer")
    kernel = RegressionKernel(state["residual_kernel"], state["varying_coefficients"])
    uncertain = state["parameter_uncertainty"]
    return RegressionSet(regressions.n_sites, regressions.names, kernel, max_iter, uncertain)


def regressions_from_state(
    state: Any, kernel: RegressionKernel, D: int
) -> dict[tuple[int, tuple[int, ...]], tuple[FittedRegression, ...]]:
    """Check the stored regressions and return them by output and known outputs."""
    expect(isinstance(state, list), "'regressions' is not a list")
    found = {}
    for stored in state:
        expect(isinstance(stored, dict), "'regressions' contains a value that is not a dict")
        expect_fields(stored.keys(), FIELDS)
        d, known, members = (stored[name] for name in ("output", "known", "members"))
        expect(type(d) is int and 0 <= d < D, "a regression of an output that does not exist")
        check_integers("known", known, D)
        valid = len(known) > 0 and d not in known and bool((np.diff(known) > 0).all())
        expect(valid, "the known outputs of a regression are invalid")
        expect(isinstance(members, list), "the members of a regression are not a list")
        expect(len(members) == len(MEMBERS), "a regression lacks the parameters of a member")
        fitted = tuple(_member(member, len(kernel.names)) for member in members)
        found[d, tuple(known.tolist())] = fitted
    return found


def _member(stored: Any, n_parameters: int) -> FittedRegression:
    expect(isinstance(stored, dict), "the parameters of a regression are not a dict")
    expect_fields(stored.keys(), MEMBER_FIELDS)
    axes = {"p": n_parameters}
    expect_array("theta", stored["theta"], ["p"], axes)
    expect_array("directions", stored["directions"], ["r", "p"], axes)
    values = np.concatenate([stored["theta"][None], stored["directions"]])
    expect(bool((np.abs(values) < MAX_LOG).all()), "a parameter of a regression is too large")
    expect(isinstance(stored["converged"], bool), "'converged' is neither true nor false")
    left_out = stored["left_out"]
    valid = isinstance(left_out, float) and bool(np.isfinite(left_out))
    expect(valid, "'left_out' is not a finite number")
    return FittedRegression(**stored)
