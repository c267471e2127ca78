"""The covariance of one output's readings, given the outputs that are known at each location."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.gaussian_process.kernels import RBF

from emgpr.kernels import NAMED_KERNELS, Pairs, evaluate_kernel

Array = np.ndarray
Gradient = Callable[[Array], Array]
Part = tuple[str, Array, Gradient | None]  # length-scale, matrix, and pullback to the length-scale

PARAMETERS = ("linear", "smooth", "smooth_scale", "residual", "residual_scale", "noise")
VARYING_PARAMETERS = ("varying", "varying_scale")


@dataclass(frozen=True)
class RegressionRows:
    """Locations, and values of the known outputs at these locations, divided by √(their number).

    `imputed` is the mean variance of the values of a row: zero if all of them were measured.
    """

    x: Float[Array, "n P"]
    z: Float[Array, "n k"]
    imputed: Float[Array, " n"]

    @classmethod
    def build(
        cls,
        x: Float[Array, "n P"],
        known: Float[Array, "n k"],
        variances: Float[Array, "n k"] | None = None,
    ) -> "RegressionRows":
        """Create rows from the standardised known outputs and the variances of imputed values."""
        imputed = np.zeros(len(x)) if variances is None else variances.mean(axis=1)
        return cls(x, known / np.sqrt(known.shape[1]), imputed)

    def __len__(self) -> int:
        return len(self.x)

    def at(self, rows: Int[Array, " m"] | Bool[Array, " n"]) -> "RegressionRows":
        """Return some of the rows."""
        return RegressionRows(self.x[rows], self.z[rows], self.imputed[rows])

    @cached_property
    def products(self) -> Float[Array, "n n"]:
        """Scalar products zᵀz′ of all pairs of rows."""
        return self.z @ self.z.T

    @cached_property
    def pairs(self) -> tuple[Pairs, Pairs]:
        """All pairs of locations, and all pairs of values of the known outputs."""
        return Pairs(self.x), Pairs(self.z)


@dataclass(frozen=True)
class RegressionKernel:
    """Covariance s_b² zᵀz′ + s_g² k(z, z′) + s_f² k(x, x′) + noise, and its gradient.

    Parameters are logarithms of variances and length-scales, in the order of `names`. k(z, z′) is
    an RBF kernel, and `residual` is the name of the kernel k(x, x′). With `varying`, the
    coefficients also vary with the location: s_v² zᵀz′ k_v(x, x′) is added.

    If a value z was imputed with variance u, the noise of its row is larger, by the expected
    change of the linear and smooth parts: s_b² u + s_g² u / (ℓ² + u).
    """

    residual: str = "matern12"
    varying: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return PARAMETERS + (VARYING_PARAMETERS if self.varying else ())

    def covariance(
        self, theta: Float[Array, " p"], a: RegressionRows, b: RegressionRows
    ) -> Float[Array, "n m"]:
        """Return the covariance of the signals at the rows of a with those at the rows of b."""
        pairs = Pairs(a.x, b.x), Pairs(a.z, b.z)
        return self._signal(theta, a.z @ b.z.T, pairs)[0]

    def variance(self, theta: Float[Array, " p"], rows: RegressionRows) -> Float[Array, " n"]:
        """Return the variance of the signal at each row."""
        value = dict(zip(self.names, np.exp(theta), strict=True))
        linear = value["linear"] + value.get("varying", 0.0)
        return linear * (rows.z**2).sum(axis=1) + value["smooth"] + value["residual"]

    def noise(self, theta: Float[Array, " p"], rows: RegressionRows) -> Float[Array, " n"]:
        """Return the noise variance of each row, including that due to imputed values."""
        value = dict(zip(self.names, np.exp(theta), strict=True))
        u, linear = rows.imputed, value["linear"] + value.get("varying", 0.0)
        return value["noise"] + linear * u + value["smooth"] * u / (value["smooth_scale"] ** 2 + u)

    def evaluate(
        self, theta: Float[Array, " p"], rows: RegressionRows
    ) -> tuple[Float[Array, "n n"], Gradient]:
        """Return the covariance of readings at these rows, and its pullback.

        The pullback maps the derivative of a quantity with respect to the covariance to the
        gradient with respect to theta.
        """
        K, of_signal = self._signal(theta, rows.products, rows.pairs)
        K[np.diag_indices_from(K)] += self.noise(theta, rows)
        return K, lambda G: of_signal(G) + self._of_noise(theta, rows, np.diagonal(G))

    def _of_noise(
        self, theta: Float[Array, " p"], rows: RegressionRows, g: Float[Array, " n"]
    ) -> Float[Array, " p"]:
        """Return the gradient of gᵀ times the noise variances with respect to theta."""
        value = dict(zip(self.names, np.exp(theta), strict=True))
        u, scale = rows.imputed, value["smooth_scale"] ** 2
        gradient = {
            "noise": g.sum() * value["noise"],
            "linear": (g @ u) * value["linear"],
            "smooth": (g @ (u / (scale + u))) * value["smooth"],
            "smooth_scale": -2 * (g @ (u * scale / (scale + u) ** 2)) * value["smooth"],
            "varying": (g @ u) * value.get("varying", 0.0),
        }
        return np.array([gradient.get(name, 0.0) for name in self.names])

    def _signal(
        self, theta: Float[Array, " p"], products: Float[Array, "n m"], pairs: tuple[Pairs, Pairs]
    ) -> tuple[Float[Array, "n m"], Gradient]:
        value = dict(zip(self.names, np.exp(theta), strict=True))
        log = dict(zip(self.names, theta, strict=True))
        by_place, by_known = pairs
        residual = NAMED_KERNELS[self.residual]
        parts: dict[str, Part] = {}
        for name, kernel, at in (
            ("smooth", RBF(), by_known),
            ("residual", residual, by_place),
            *((("varying", residual, by_place),) if self.varying else ()),
        ):
            scale = f"{name}_scale"
            k, pull = evaluate_kernel(kernel, np.array([log[scale]]), at)
            factor = value[name] * (products if name == "varying" else 1.0)
            parts[name] = (scale, factor * k, _times(pull, factor))
        K = value["linear"] * products + sum(part for _, part, _ in parts.values())
        parts["linear"] = ("", value["linear"] * products, None)
        return K, lambda G: self._of_signal(parts, G)

    def _of_signal(self, parts: dict[str, Part], G: Float[Array, "n m"]) -> Float[Array, " p"]:
        """Return the gradient of Σ_ij G_ij K_ij with respect to theta, given the parts of K."""
        gradient = dict.fromkeys(self.names, 0.0)
        for name, (scale, part, pull) in parts.items():
            gradient[name] = np.vdot(G, part)
            if pull is not None:
                gradient[scale] = pull(G)[0]
        return np.array(list(gradient.values()))


def _times(
    pull: Callable[[Array], Array], factor: float | Float[Array, "n m"]
) -> Callable[[Array], Array]:
    """Return the pullback of a kernel that is multiplied by a factor."""
    return lambda G: pull(G * factor)
