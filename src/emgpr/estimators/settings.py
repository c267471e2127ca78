"""Settings checked before any work starts."""

from numbers import Integral
from typing import Any

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from emgpr.ensemble import PARTITIONS
from emgpr.transforms import TRANSFORMS


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


def check_settings(model: Any) -> None:
    """Raise if a setting of this estimator means nothing, saying what would."""
    for name in ("rank", "max_iter", "n_restarts"):
        _whole(model, name)
    for name in ("n_latents", "n_members"):
        if getattr(model, name) is not None:
            _whole(model, name)
    if model.batch_size not in ("auto", None):
        _whole(model, "batch_size", ' or "auto" or None')
    if model.conditioning not in ("auto", "all", "batch"):
        _whole(model, "conditioning", ' (neighbouring sites) or "auto", "all" or "batch"')
    _one_of(model, "partition", PARTITIONS)
    _one_of(model, "transform", TRANSFORMS)
    _one_of(model, "refine", (0, "joint"))
    listed = isinstance(model.kernel, list | tuple)
    for kernel in model.kernel if listed else [model.kernel]:
        if not isinstance(kernel, Kernel) and (listed or kernel is not None):
            raise ValueError(
                f"kernel={kernel!r} is not a scikit-learn kernel; give one such as "
                "sklearn.gaussian_process.kernels.Matern(nu=1.5), or a list of them."
            )
    learners = model.latent_learner
    listed = isinstance(learners, list | tuple)
    if not (isinstance(learners, str) and learners == "exact") and not all(
        isinstance(learner, GaussianProcessRegressor)
        for learner in (learners if listed else [learners])
    ):
        raise ValueError(
            f'latent_learner={model.latent_learner!r}; expected "exact", a scikit-learn '
            "GaussianProcessRegressor, or a list with one for each output."
        )


def _whole(model: Any, name: str, otherwise: str = "") -> None:
    value = getattr(model, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a whole number of at least 1{otherwise}.")


def _one_of(model: Any, name: str, choices: tuple) -> None:
    value = vars(model).get(name, getattr(model, name, None))
    if isinstance(value, bool) or value not in choices:
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(map(repr, choices))}.")
