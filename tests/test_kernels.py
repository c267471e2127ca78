"""scikit-learn's kernels in batches: the same matrices, and pullbacks that are their gradients."""

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Hyperparameter,
    Kernel,
    Matern,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)

from emgpr.arrays import fetch, put
from emgpr.kernels import Pairs, evaluate, matrices, matrix, without_noise


class Cauchy(StationaryKernelMixin, Kernel):
    """A user's own kernel, known to nobody: 1/(1 + r²/ℓ²)."""

    def __init__(self, reach=0.7, reach_bounds=(1e-3, 1e3)):
        self.reach = reach
        self.reach_bounds = reach_bounds

    @property
    def hyperparameter_reach(self):
        return Hyperparameter("reach", "numeric", self.reach_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        r2 = ((X[:, None] - (X if Y is None else Y)[None]) ** 2).sum(-1) / self.reach**2
        K = 1 / (1 + r2)
        return (K, (2 * r2 * K**2)[..., None]) if eval_gradient else K

    def diag(self, X):
        return np.ones(len(X))


class HalfRBF(RBF):
    """A user's variation on a kernel we know: half of it."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, dK = super().__call__(X, Y, eval_gradient=True)
            return 0.5 * K, 0.5 * dK
        return 0.5 * super().__call__(X, Y)

    def diag(self, X):
        return 0.5 * super().diag(X)


KNOWN = {
    "rbf": RBF(0.6),
    "rbf ard": RBF([0.3, 2.0]),
    **{f"matern {nu}": Matern(0.7, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)},
    **{f"matern {nu} ard": Matern([0.4, 1.5], nu=nu) for nu in (0.5, 1.5, 2.5)},
    "rational quadratic": RationalQuadratic(0.5, alpha=0.8),
    "constant": ConstantKernel(2.5),
    "sum": RBF(0.4) + Matern([0.5, 1.0], nu=1.5),
    "product": ConstantKernel(1.7) * RBF([0.3, 0.9]),
    "nested": (ConstantKernel(0.5) * RBF(0.3) + RationalQuadratic(1.0)) * Matern(2.0, nu=2.5)
    + ConstantKernel(0.1),
    "fixed within": ConstantKernel(2.0, "fixed") * RBF(0.5) + Matern(0.4, "fixed", nu=0.5),
    "fixed ard": RBF([0.3, 2.0], "fixed") * ConstantKernel(3.0),
    "half fixed": RationalQuadratic(0.5, alpha=0.8, alpha_bounds="fixed"),
}
UNKNOWN = {
    "periodic": ExpSineSquared(1.2, 0.9),
    "dot product": DotProduct(0.7),
    "user's": Cauchy(),
    "power": RBF(0.5) ** 2,
    "matern 0.8": Matern(0.7, nu=0.8),
    "of a user's": ConstantKernel(2.0) * Cauchy() + RBF([0.3, 0.4]),
    "white inside": ConstantKernel(2.0) * (RBF(0.5) + WhiteKernel(0.3)),
}
EVERY = KNOWN | UNKNOWN
by_name = {"argnames": "kernel", "argvalues": EVERY.values(), "ids": EVERY.keys()}


@pytest.fixture
def X(rng):
    X = rng.uniform(size=(7, 2))
    X[5] = X[2]  # two sites coincide
    return X


@pytest.fixture
def Z(rng, X):
    return np.vstack([rng.uniform(size=(3, 2)), X[:1]])


@pytest.mark.parametrize(**by_name)
def test_the_matrix_is_scikit_learns(kernel, X, Z):
    assert_allclose(matrix(kernel, X), kernel(X), rtol=1e-12)
    assert_allclose(matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12)
    assert_allclose(np.diag(matrix(kernel, X)), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize(**by_name)
def test_the_pullback_contracts_scikit_learns_gradient(kernel, X, rng):
    G = rng.normal(size=(7, 7))
    _, pullback = evaluate(kernel, kernel.theta, Pairs(X))
    _, dK = kernel(X, eval_gradient=True)
    # For a smoothness such as 0.8 scikit-learn takes a forward difference, good to some 1e-6.
    rtol = 1e-4 if kernel == UNKNOWN["matern 0.8"] else 1e-10
    assert_allclose(pullback(G), np.einsum("ij,ijp->p", G, dK), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize(**by_name)
def test_the_pullback_is_the_derivative(kernel, X, rng):
    G = rng.normal(size=(7, 7))
    _, pullback = evaluate(kernel, kernel.theta, Pairs(X))
    rtol = 1e-4 if kernel == UNKNOWN["matern 0.8"] else 1e-6
    assert_is_the_gradient(
        pullback(G),
        lambda theta: (G * evaluate(kernel, theta, Pairs(X))[0]).sum(),
        kernel.theta,
        rtol,
    )


@pytest.mark.parametrize("kernel", KNOWN.values(), ids=KNOWN.keys())
def test_the_pullback_of_a_kernel_between_two_sets_of_sites_is_the_derivative(kernel, X, Z, rng):
    G = rng.normal(size=(7, 4))
    _, pullback = evaluate(kernel, kernel.theta, Pairs(X, Z))
    assert_is_the_gradient(
        pullback(G),
        lambda theta: (G * evaluate(kernel, theta, Pairs(X, Z))[0]).sum(),
        kernel.theta,
    )


@pytest.mark.parametrize(**by_name)
def test_the_pullback_between_two_sets_is_that_of_differences(kernel, X, Z, rng):
    """Also of a kernel that only scikit-learn knows, which has gradients of one set alone."""
    G = rng.normal(size=(len(X), len(Z)))
    _, pullback = evaluate(kernel, kernel.theta, Pairs(X, Z))

    def contracted(theta):
        return float(np.sum(G * evaluate(kernel, theta, Pairs(X, Z))[0]))

    if len(kernel.theta):
        assert_is_the_gradient(pullback(G), contracted, kernel.theta, rtol=1e-5)


@pytest.mark.parametrize("batch_of", ["theta", "sites", "both"])
@pytest.mark.parametrize(**by_name)
def test_a_batch_is_each_of_its_members(kernel, batch_of, rng):
    check_batch(kernel, batch_of, rng, rng.uniform(size=(3, 5, 2)), None)


@pytest.mark.parametrize("batch_of", ["theta", "sites", "both"])
@pytest.mark.parametrize("kernel", KNOWN.values(), ids=KNOWN.keys())
def test_a_batch_between_two_sets_of_sites_is_each_of_its_members(kernel, batch_of, rng):
    check_batch(kernel, batch_of, rng, rng.uniform(size=(3, 5, 2)), rng.uniform(size=(3, 4, 2)))


def check_batch(kernel, batch_of, rng, x, z):
    thetas = kernel.theta + 0.3 * rng.normal(size=(3, kernel.n_dims))
    many_thetas, many_sites = batch_of != "sites", batch_of != "theta"

    def ask(b):
        theta = thetas[b] if many_thetas else thetas[0]
        site = b if many_sites else 0
        return evaluate(kernel, theta, Pairs(x[site], None if z is None else z[site]))

    K, pullback = ask(slice(None))
    G = rng.normal(size=(3, 5, 5 if z is None else 4))
    gradient = pullback(G)
    for b in range(3):
        K_alone, pullback_alone = ask(b)
        assert_allclose(K[b], K_alone, rtol=1e-13)
        assert_allclose(gradient[b], pullback_alone(G[b]), rtol=1e-10, atol=1e-13)


def test_a_kernel_with_nothing_free_has_an_empty_gradient(X):
    kernel = RBF(0.5, "fixed")
    K, pullback = evaluate(kernel, np.empty((4, 0)), Pairs(X))
    assert_allclose(np.broadcast_to(K, (4, 7, 7))[3], kernel(X))
    assert pullback(np.ones((4, 7, 7))).shape == (4, 0)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_sites_that_coincide_cost_no_accuracy_and_no_warning(nu):
    X = np.zeros((3, 1))
    X[2] = 0.4
    kernel = Matern(0.5, nu=nu)
    K, pullback = evaluate(kernel, kernel.theta, Pairs(X))
    assert_array_equal(K[:2, :2], 1.0)
    alone = np.zeros((3, 3))
    alone[0, 1] = 1.0
    assert_array_equal(pullback(alone), 0.0)  # at distance zero no length-scale matters


def test_distances_survive_large_coordinates(rng):
    X = rng.integers(0, 1000, size=(20, 2)) / 1024.0  # exact in binary, and after the shift too
    for kernel in (RBF(0.1), RBF([0.1, 0.2]), Matern(0.1, nu=0.5)):
        assert_array_equal(matrix(kernel, X + 5e6), matrix(kernel, X))


def test_a_registered_kernel_is_evaluated_as_registered(X):
    class Ours(Cauchy):
        pass

    @evaluate.register
    def _(kernel: Ours, theta, pairs):
        return np.full((len(pairs.x), len(pairs.x)), 42.0), lambda G: np.zeros(1)

    assert_array_equal(matrix(Ours(), X), 42.0)
    assert_array_equal(matrix(Ours() + Cauchy(), X), 42.0 + Cauchy()(X))


def test_a_users_variation_on_a_known_kernel_is_asked_through_its_own_call(X):
    """singledispatch takes HalfRBF for an RBF; its matrix must still be its own."""
    assert_allclose(matrix(HalfRBF(0.6), X), HalfRBF(0.6)(X))


@pytest.mark.parametrize("batch_of", ["nothing", "theta", "sites"])
@pytest.mark.parametrize(**by_name)
def test_on_a_device_matrix_and_pullback_are_the_same(kernel, batch_of, device, rng):
    x = rng.uniform(size=(3, 5, 2) if batch_of == "sites" else (5, 2))
    theta = kernel.theta + 0.1 * rng.normal(size=(3, kernel.n_dims))
    theta = theta if batch_of == "theta" else theta[0]
    K, pullback = evaluate(kernel, theta, Pairs(x))
    K_there, pullback_there = evaluate(kernel, put(theta, device), Pairs(put(x, device)))
    G = rng.normal(size=K.shape)
    assert_allclose(fetch(K_there), K, rtol=1e-12)
    assert_allclose(fetch(pullback_there(put(G, device))), pullback(G), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(**by_name)
def test_on_a_device_sites_may_be_of_two_sets(kernel, X, Z, device):
    there = matrix(kernel, put(X, device), put(Z, device))
    assert_allclose(fetch(there), matrix(kernel, X, Z), rtol=1e-12)


def test_a_kernel_that_is_moved_to_the_device_is_mentioned(X, device, caplog):
    with caplog.at_level("DEBUG", logger="emgpr"):
        matrix(Cauchy(), put(X, device))
    assert "Cauchy" in caplog.text
    assert "moved to the device" in caplog.text


def test_the_matrices_of_several_kernels_are_each_of_them(X, Z, rng):
    kernels = [RBF(0.6), Cauchy(), RBF([0.3, 2.0])]
    assert_array_equal(matrices(kernels, X, Z), [matrix(kernel, X, Z) for kernel in kernels])
    tables = rng.uniform(size=(4, 5, 2))
    stacked = np.stack([matrix(kernel, tables) for kernel in kernels], axis=1)
    assert_array_equal(matrices(kernels, tables), stacked)
    assert matrices([], tables, tables[:, :2]).shape == (4, 0, 5, 2)


WHITE, LOUD = WhiteKernel(0.1), WhiteKernel(0.2, (0.01, 1.0))


@pytest.mark.parametrize(
    ("kernel", "signal", "noise"),
    [
        (RBF(2.0), RBF(2.0), None),
        (RBF(2.0) + LOUD, RBF(2.0), LOUD),
        (LOUD + RBF(2.0), RBF(2.0), LOUD),
        (RBF(1.0) + LOUD + Matern(2.0), RBF(1.0) + Matern(2.0), LOUD),
        (RBF(1.0) + (Matern(2.0) + LOUD), RBF(1.0) + Matern(2.0), LOUD),
        (WHITE, None, WHITE),
        (WHITE + RBF(1.0) + LOUD, RBF(1.0), WhiteKernel(0.1 + 0.2)),
        (ConstantKernel(2.0) * RBF(1.0) + LOUD, ConstantKernel(2.0) * RBF(1.0), LOUD),
        # A product with noise is no sum of signal and noise: it is left as it is.
        (ConstantKernel(2.0) * WHITE, ConstantKernel(2.0) * WHITE, None),
    ],
)
def test_noise_is_told_from_signal(kernel, signal, noise):
    assert without_noise(kernel) == (signal, noise)
