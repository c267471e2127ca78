"""Settings checked before any work starts."""

import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel

from emgpr.arrays import refuse_unknown
from emgpr.arrays import settle as settle_device
from emgpr.ensemble import PARTITIONS, RULES
from emgpr.geo import reference
from emgpr.latents import LEARNERS, LatentLearner, is_length_scale, is_lent
from emgpr.observations import Observations
from emgpr.transforms import NAMED


class Unread:
    """A parameter that is stored but is no attribute.

    scikit-learn takes whatever has an attribute `transform` for a transformer, in
    pipelines and in its checks; our parameter of that name must not make it one.
    `get_params` shows its value.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__} has no method {self.name!r}; its parameter of that name is in "
            f"get_params()[{self.name!r}]."
        )

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)[self.name] = value


class Configured:
    """An estimator whose parameters are what it was given, a transform among them."""

    transform = Unread()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, also those of the kernel and the like."""
        model: Any = self
        params = {name: vars(model)[name] for name in model._get_param_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    nested = value.get_params()
                    params.update({f"{name}__{key}": inner for key, inner in nested.items()})
        return params


FEW_SITES = 5  # for each weight vector: fewer cannot tell the noise beside it
FEW_READINGS = 5  # for each parameter that is learned, twice that for a second rank
LARGEST = 3000  # readings whose likelihood takes a second to evaluate; of more,
BATCH = 1500  # are taken at a time,
MEMBERS = 8  # times at most, unless more are asked for


@dataclass(frozen=True)
class Settled:
    """What "auto" and None come to for a table."""

    n_latents: int
    rank: int
    refine: int | Literal["joint"]
    correlated: bool
    batch_size: int | None  # sites; None is all of them
    n_members: int | None  # at most; None is all that there are

    @property
    def n_weights(self) -> int:
        """Weight vectors of an output."""
        return self.n_latents * self.rank


def settle(model: Any, seen: Observations) -> Settled:
    """The joint ascent on all sites, or, of very many readings, on large batches.

    If the user asks for batches too small for it: the paper's two steps. Correlated noise goes
    with the joint ascent, which alone can learn it. Where readings are few for the parameters,
    there is no second rank, then no correlation, then fewer latents.
    """
    N, D, n = seen.n_sites, seen.n_tasks, seen.n_readings
    Q = D if model.n_latents is None or _says(model.n_latents, "auto") else int(model.n_latents)
    least = Q * min(int(model.rank or 1), D)
    size, refine, n_members = (
        int(value) if isinstance(value, Integral) else value
        for value in (model.batch_size, model.refine, model.n_members)
    )
    if _says(refine, "auto"):
        small = isinstance(size, int) and size < FEW_SITES * least
        refine = 0 if small and model.noise != "correlated" else "joint"
    if _says(size, "auto") and (D == 1 or refine):
        # Noise learned beside each small batch's own weights would be explained away.
        L = 1 if n <= LARGEST else -(-n // min(BATCH, LARGEST))
        size = None if L == 1 else max(1, N // L)
        n_members = min(L, MEMBERS) if n_members is None and L > 1 else n_members
    elif _says(size, "auto"):
        size = max(D**2, 3 * least)  # N₀·D readings must tell Q·D·k weights
    ours = _says(model.refine, "auto") and refine != 0
    between = D * (D - 1) // 2
    few = n < FEW_READINGS * (Q * D + D + Q + between)
    if model.n_latents is None and ours and not isinstance(model.kernel, list | tuple):
        Q = max(1, min(D, int((n / FEW_READINGS - D) // (D + 1))))  # Q·D + D + Q parameters
    correlated = model.noise == "correlated" or (
        model.noise == "auto" and bool(refine) and not (ours and few)
    )
    sites = N if size is None else min(size, N)
    enough = sites >= FEW_SITES * Q * 2 and n >= 2 * FEW_READINGS * (2 * Q * D + D + Q + between)
    rank = int(model.rank or (2 if refine and enough else 1))
    return Settled(Q, min(rank, D), refine, correlated and D > 1, size, n_members)


def kernels_for(given: Any, Q: int, seen: Observations) -> list[Kernel]:
    """The kernel of every task; with a list, also those of latents beyond the tasks."""
    D, P = seen.n_tasks, seen.x.shape[1]
    given = RBF() if given is None or isinstance(given, str) else given
    if isinstance(given, Kernel):
        kernels = [clone(given)] * D
    else:
        if len(given) != Q:
            raise ValueError(
                f"kernel holds {len(given)} kernels for {Q} latent processes; give "
                "one kernel for all, or a list with one for each."
            )
        kernels = [clone(given[i % Q]) for i in range(max(D, Q))]
    for kernel in kernels:
        for parameter in kernel.hyperparameters:
            n = parameter.n_elements
            if is_length_scale(kernel, parameter.name) and n not in (1, P):
                raise ValueError(
                    f"kernel {kernel} has {n} length-scales and X has {P} columns; give one "
                    "length-scale for all columns, or one for each."
                )
    return kernels


def check_settings(model: Any) -> None:
    """Raise if a setting of this estimator means nothing here, saying what would."""
    settle_device(model.device)
    check_choices(model)


def check_choices(model: Any) -> None:
    """Raise if a setting means nothing anywhere: whether the device is there is not asked."""
    refuse_unknown(model.device)
    if not isinstance(model.checkpoint, str | os.PathLike | None):
        raise ValueError(f"checkpoint={model.checkpoint!r}; expected the path of a file, or None.")
    for name in ("max_iter", "n_restarts"):
        _whole(model, name)
    if model.rank is not None:
        _whole(model, "rank")
    if model.n_members is not None:
        _whole(model, "n_members")
    if model.n_latents is not None and not _says(model.n_latents, "auto"):
        _whole(model, "n_latents", ' or "auto" or None')
    if model.batch_size not in ("auto", None):
        _whole(model, "batch_size", ' or "auto" or None')
    if model.conditioning not in ("auto", "all", "batch"):
        _whole(model, "conditioning", ' (neighbouring sites) or "auto", "all" or "batch"')
    _one_of(model, "partition", PARTITIONS)
    transform = vars(model)["transform"]
    if isinstance(transform, str) and transform not in (*NAMED, "auto"):
        choices = ", ".join(map(repr, [*NAMED, "auto"]))
        raise ValueError(
            f"transform={transform!r}; expected one of {choices}, a scikit-learn transformer, a "
            "list with one for each output, or a dict from outputs to these."
        )
    _one_of(model, "transfer", ("full", "safe"))
    if not callable(model.combine):
        _one_of(model, "combine", tuple(RULES))
    _one_of(model, "noise", ("auto", "independent", "correlated"))
    _one_of(model, "prior", ("weak", None))
    if model.refine not in ("auto", "joint") and (model.refine != 0 or model.refine is False):
        _whole(model, "refine", ', 0, "joint" or "auto"')
    if model.noise == "correlated" and model.refine == 0:
        raise ValueError(
            'noise="correlated" is learned when the ascent continues after the two steps; set '
            'refine="joint", or refine=1 for one sweep more.'
        )
    if model.crs is not None:
        reference(model.crs)
    listed = isinstance(model.kernel, list | tuple)
    for kernel in model.kernel if listed else [model.kernel]:
        if not isinstance(kernel, Kernel) and (
            listed or not (kernel is None or _says(kernel, "auto"))
        ):
            raise ValueError(
                f"kernel={kernel!r} is not a scikit-learn kernel; give one such as "
                'sklearn.gaussian_process.kernels.Matern(nu=1.5), a list of them, or "auto".'
            )
    learner = model.latent_learner
    known = isinstance(learner, str) and learner in ("auto", *LEARNERS)
    own = isinstance(learner, LatentLearner) and not isinstance(learner, type)
    if not (known or own or is_lent(learner)):
        names = ", ".join(f'"{name}"' for name in ("auto", *LEARNERS))
        raise ValueError(
            f"latent_learner={learner!r}; expected {names}, an object with a method learn(x, y, "
            "kernel), or a scikit-learn GaussianProcessRegressor, of which there may be a list, "
            "one for each output."
        )


def check_one_pass(model: Any) -> None:
    """The same for an estimator that keeps sums."""
    for name in ("max_iter", "n_restarts", "n_start"):
        _whole(model, name)
    for name in ("rank", "n_latents"):
        if getattr(model, name) is not None:
            _whole(model, name, " or None")
    if not _says(model.n_functions, "auto"):
        _whole(model, "n_functions", ' or "auto"')
    _one_of(model, "noise", ("independent", "correlated"))
    if isinstance(model.box, str) and model.box != "auto":
        raise ValueError(f'box={model.box!r}; expected "auto" or (lows, highs) of the inputs.')
    if not isinstance(model.tolerance, Real) or not 0 < float(model.tolerance) < 1:
        raise ValueError(f"tolerance={model.tolerance!r}; expected a share between 0 and 1.")
    transform = vars(model)["transform"]
    if isinstance(transform, str) and transform not in NAMED:
        choices = ", ".join(map(repr, NAMED))
        raise ValueError(
            f"transform={transform!r}; expected one of {choices}, a scikit-learn transformer, a "
            "list with one for each output, or a dict from outputs to these."
        )
    if model.crs is not None:
        reference(model.crs)
    listed = isinstance(model.kernel, list | tuple)
    for kernel in model.kernel if listed else [model.kernel]:
        if not isinstance(kernel, Kernel) and (listed or kernel is not None):
            raise ValueError(
                f"kernel={kernel!r} is not a scikit-learn kernel; give one such as "
                "sklearn.gaussian_process.kernels.RBF(), or a list of them."
            )


def _says(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


def _whole(model: Any, name: str, otherwise: str = "") -> None:
    value = getattr(model, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a whole number of at least 1{otherwise}.")


def _one_of(model: Any, name: str, choices: tuple) -> None:
    value = vars(model).get(name, getattr(model, name, None))
    if isinstance(value, bool) or value not in choices:
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(map(repr, choices))}.")
