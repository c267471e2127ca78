"""A model that was learned from sums, in a file: the sums too, so that it can go on learning.

Complex numbers are written as pairs. What follows from the sums, the expected signals and their
covariances, is worked out when the file is read: sums from which that cannot be done are no model.
"""

from typing import Any

import numpy as np

from emgpr.covariance import Basis, Lattice, Sums, Term
from emgpr.estimators.from_sums import Ascent
from emgpr.estimators.intact import (
    HUGE,
    bind,
    check_fields,
    check_history,
    check_kernels,
    check_names,
    check_noise,
    check_scale,
    check_settings,
    expect,
    kind,
)
from emgpr.estimators.settings import check_one_pass
from emgpr.estimators.stored import Stored, common_state, restore_common
from emgpr.transforms import Marginals
from emgpr.weights import Mixture, Stage
from emgpr.weights.noise import NoiseParameters

Array = np.ndarray

FIELDS = frozenset(
    [
        "settings", "feature_names", "output_names", "flat", "scale", "transforms", "kernels",
        "noise", "weights", "noise_bounds", "free", "bounds", "named", "box", "ranges", "low",
        "period", "top", "waves", "strides", "read", "places", "signals", "power", "told_of",
        "history", "n_iter", "converged",
    ]
)  # fmt: skip
SHAPES = {
    "box": "2 P",
    "ranges": "2 D",
    "noise": "D D",
    "weights": "Q D k",
    "noise_bounds": "D 2",
    "low": "P",
    "period": "P",
    "top": "P",
    "waves": "K P",
    "strides": "Q",
    "shift": "D",
    "scale": "D",
}


class StoredSums(Stored):
    """A model of sums that can be put into a file and taken out again, without pickle."""

    def _state(self) -> dict[str, Any]:
        model: Any = self
        mixture, basis, ascent = model._mixture, model._basis, model._ascent
        terms = [model._sums.terms[read] for read in model._sums.terms]
        learned = hasattr(model, "history_")
        return {
            **common_state(model),
            "weights": mixture.W,
            "noise_bounds": mixture.noise_bounds,
            "free": mixture.free,
            "bounds": ascent.bounds[: -mixture.W.size],  # weights have none
            "named": list(ascent.named),
            "box": model.box_,
            "ranges": model._ranges,
            "low": np.array(basis.lattice.low),
            "period": np.array(basis.lattice.period),
            "top": np.array(basis.lattice.top),
            "waves": basis.m,
            "strides": np.array(basis.strides),
            "read": [list(read) for read in model._sums.terms],
            "places": _as_pairs(np.stack([term.places for term in terms])),
            "signals": _as_pairs(np.concatenate([term.outputs for term in terms])),
            "power": np.concatenate([term.power.ravel() for term in terms]),
            "told_of": model._told_of,
            "history": [tuple(stage) for stage in model.history_] if learned else None,
            "n_iter": int(model.n_iter_) if learned else None,
            "converged": bool(model.converged_) if learned else None,
        }

    @staticmethod
    def _check_state(state: dict[str, Any]) -> None:
        check_fields(state.keys(), FIELDS)
        scale = kind(state, "scale", Marginals)
        arrays, axes = {**state, "shift": scale.shift, "scale": scale.scale}, {"2": 2}
        for name, shape in SHAPES.items():
            bind(name, arrays[name], shape.split(), axes)
        expect(min(axes.values()) > 0, f"an axis is empty: {axes}")
        check_settings(kind(state, "settings", dict))
        kind(state, "flat", bool)
        check_names(state, axes)
        check_scale(scale, axes["D"])
        check_noise(state["noise"], np.diagonal(state["noise"]))
        check_kernels("kernels", state["kernels"], axes["Q"], state["box"])
        check_history(state)
        learned = state["history"] is not None
        kind(state, "n_iter", int if learned else type(None))
        kind(state, "converged", bool if learned else type(None))
        expect(0 <= kind(state, "told_of", float) < HUGE, "'told_of' is no share")
        _check_ascent(state)
        _check_waves(state)
        _check_sums(state, axes["D"])

    def _restore(self, state: dict[str, Any]) -> None:
        check_one_pass(self)
        model: Any = self
        restore_common(model, state, state["box"].shape[1])
        model.box_, model._ranges, model._told_of = state["box"], state["ranges"], state["told_of"]
        W, D = state["weights"], len(state["noise"])
        model._mixture = Mixture(
            tuple(state["kernels"]), state["noise"], W, state["noise_bounds"], state["free"]
        )
        noise = NoiseParameters(D, model.noise == "correlated" and D > 1)
        n_kernels = sum(kernel.n_dims for kernel in state["kernels"])
        expect(len(state["bounds"]) == n_kernels + noise.size, "'bounds' are not of this model")
        bounds = np.concatenate([state["bounds"], np.tile([-np.inf, np.inf], (W.size, 1))])
        model._ascent = Ascent(model._mixture, noise, bounds, tuple(state["named"]))
        lattice, basis = _lattice(state), _basis(state)
        model._sums = Sums(lattice, _terms(state))
        model._fineness = model._afford()
        model._hold(model._mixture, basis)
        expect(all(np.isfinite(one).all() for one in model._answers()), "the sums have no solution")
        if state["history"] is not None:
            model.history_ = [Stage(*stage) for stage in state["history"]]
            model.n_iter_, model.converged_ = state["n_iter"], state["converged"]


def _as_pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


def _as_complex(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def _lattice(state: dict[str, Any]) -> Lattice:
    low, period, top = (tuple(state[name].tolist()) for name in ("low", "period", "top"))
    return Lattice(low, period, top)


def _basis(state: dict[str, Any]) -> Basis:
    return Basis(_lattice(state), state["waves"].astype(int), tuple(state["strides"].tolist()))


def _terms(state: dict[str, Any]) -> dict[tuple[int, ...], Term]:
    """Sums by the outputs that were read together."""
    places, signals = _as_complex(state["places"]), _as_complex(state["signals"])
    sizes = np.array([len(read) for read in state["read"]])
    own = np.split(signals, np.cumsum(sizes)[:-1])
    powers = np.split(state["power"], np.cumsum(sizes**2)[:-1])
    return {
        tuple(read): Term(c, h, power.reshape(len(read), -1))
        for read, c, h, power in zip(state["read"], places, own, powers, strict=True)
    }


def _check_ascent(state: dict[str, Any]) -> None:
    free, bounds = state["free"], state["bounds"]
    of_weights = isinstance(free, Array) and free.dtype == bool
    same = of_weights and free.shape == state["weights"].shape
    expect(free is None or same, "'free' does not say which weights are learned")
    pairs = isinstance(bounds, Array) and bounds.dtype == np.float64 and bounds.ndim == 2
    expect(pairs and bounds.shape[1] == 2, "'bounds' are not pairs of numbers")
    expect(bool((bounds[:, 0] <= bounds[:, 1]).all()), "a bound is above the other")
    low, high = state["noise_bounds"].T
    expect(bool((low >= 0).all() and (low <= high).all()), "a bound of noise is above the other")
    named = kind(state, "named", list)
    expect(all(isinstance(name, str) for name in named), "'named' are not texts")
    expect(len(named) <= len(bounds), "'named' are more than the bounds")


def _check_waves(state: dict[str, Any]) -> None:
    """A lattice that has the waves there are, each once, and no wave first."""
    top, waves = state["top"].astype(int), state["waves"].astype(int)
    expect(bool((state["box"][0] < state["box"][1]).all()), "the box has no extent")
    expect(bool((state["period"] > 0).all()), "a period is not positive")
    expect(bool((top >= 0).all() and (state["strides"] > 0).all()), "the waves have no lattice")
    shortest = state["period"] / state["strides"].max()
    wide = bool((shortest >= np.ptp(state["box"], axis=0)).all())
    expect(wide, "the waves repeat themselves in the box")
    inside = bool((np.abs(waves) <= top).all() and (waves[:, 0] >= 0).all())
    expect(inside and not waves[0].any(), "the waves are not of their lattice")
    expect(len(np.unique(waves, axis=0)) == len(waves), "a wave is there twice")


def _check_sums(state: dict[str, Any], D: int) -> None:
    read = kind(state, "read", list)
    for outputs in read:
        whole = isinstance(outputs, list) and all(type(d) is int for d in outputs)
        expect(whole and len(outputs) > 0, "'read' are not outputs")
        inside = sorted(set(outputs)) == outputs and outputs[0] >= 0 and outputs[-1] < D
        expect(inside, f"'read' are not some of {D} outputs")
    expect(len(set(map(tuple, read))) == len(read), "outputs that were read are there twice")
    expect({d for outputs in read for d in outputs} == set(range(D)), "an output was never read")
    lattice = _lattice(state)
    sizes = [len(outputs) for outputs in read]
    shapes = {
        "places": (len(read), *lattice.doubled.shape, 2),
        "signals": (sum(sizes), *lattice.shape, 2),
        "power": (sum(size**2 for size in sizes),),
    }
    for name, shape in shapes.items():
        found = state[name]
        expect(isinstance(found, Array) and found.dtype == np.float64, f"{name!r} are no numbers")
        expect(found.shape == shape, f"{name!r} has shape {found.shape}; expected {shape}")
        expect(bool((np.abs(found) < HUGE).all()), f"{name!r} holds NaN, infinity or near to it")
    zero = (0, *(size // 2 for size in shapes["places"][2:-1]), 0)
    counts = state["places"][:, *zero]
    expect(bool((counts > 0.5).all() and (counts < 1e15).all()), "outputs were read at no site")
