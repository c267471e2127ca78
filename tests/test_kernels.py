"""scikit-learn's kernels in batches: the same matrices, and pullbacks that are their gradients."""

import numpy as np
import pytest
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

from emgpr.arrays import to_device, to_numpy
from emgpr.kernels import Pairs, evaluate_kernel, kernel_matrices, kernel_matrix, split_noise
from tests.finite_differences import assert_is_the_gradient


class Cauchy(StationaryKernelMixin, Kernel):
    """A kernel of the user's own, which is not registered: 1/(1 + r²/ℓ²)."""

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
    """A subclass of a registered kernel that overrides its matrix."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 0.5 * super().__call__(X, Y)


REGISTERED = {
    "rbf": RBF(0.6),
    "rbf, several length-scales": RBF([0.3, 2.0]),
    **{f"matern {nu}": Matern(0.7, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)},
    "matern 0.5, several length-scales": Matern([0.4, 1.5], nu=0.5),
    "rational quadratic": RationalQuadratic(0.5, alpha=0.8),
    "constant": ConstantKernel(2.5),
    "product": ConstantKernel(1.7) * RBF([0.3, 0.9]),
    "nested": (ConstantKernel(0.5) * RBF(0.3) + RationalQuadratic(1.0)) * Matern(2.0, nu=2.5)
    + ConstantKernel(0.1),
    "partly fixed sum": ConstantKernel(2.0, "fixed") * RBF(0.5) + Matern(0.4, "fixed", nu=0.5),
    "fixed length-scales": RBF([0.3, 2.0], "fixed") * ConstantKernel(3.0),
    "partly fixed": RationalQuadratic(0.5, alpha=0.8, alpha_bounds="fixed"),
}
UNREGISTERED = {
    "periodic": ExpSineSquared(1.2, 0.9),
    "dot product": DotProduct(0.7),
    "power": RBF(0.5) ** 2,
    "matern 0.8": Matern(0.7, nu=0.8),
    "with a user's kernel": ConstantKernel(2.0) * Cauchy() + RBF([0.3, 0.4]),
    "white": ConstantKernel(2.0) * (RBF(0.5) + WhiteKernel(0.3)),
}
KERNELS = REGISTERED | UNREGISTERED
# scikit-learn differentiates Matern kernels of other smoothnesses by forward differences.
APPROXIMATE = UNREGISTERED["matern 0.8"]
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@pytest.fixture
def X(rng):
    X = rng.uniform(size=(7, 2))
    X[5] = X[2]  # two sites coincide
    return X


@pytest.fixture
def Z(rng, X):
    return np.vstack([rng.uniform(size=(3, 2)), X[:1]])


@every_kernel
def test_the_matrix_is_scikit_learns(kernel, X, Z):
    assert_allclose(kernel_matrix(kernel, X), kernel(X), rtol=1e-12)
    assert_allclose(kernel_matrix(kernel, X, Z), kernel(X, Z), rtol=1e-12)
    assert_allclose(np.diag(kernel_matrix(kernel, X)), kernel.diag(X), rtol=1e-12)


@every_kernel
def test_the_pullback_contracts_scikit_learns_gradient(kernel, X, rng):
    G = rng.normal(size=(7, 7))
    _, pullback = evaluate_kernel(kernel, kernel.theta, Pairs(X))
    _, dK = kernel(X, eval_gradient=True)
    rtol = 1e-4 if kernel == APPROXIMATE else 1e-10
    assert_allclose(pullback(G), np.einsum("ij,ijp->p", G, dK), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("two_sets", [False, True], ids=["one set of sites", "two sets"])
@every_kernel
def test_the_pullback_is_the_derivative(kernel, two_sets, X, Z, rng):
    pairs = Pairs(X, Z if two_sets else None)
    G = rng.normal(size=pairs.shape)
    _, pullback = evaluate_kernel(kernel, kernel.theta, pairs)
    assert_is_the_gradient(
        pullback(G),
        lambda theta: float((G * evaluate_kernel(kernel, theta, pairs)[0]).sum()),
        kernel.theta,
        rtol=1e-4 if kernel == APPROXIMATE else 1e-6,
    )


@pytest.mark.parametrize(
    ("batch_of", "two_sets"),
    [("theta", False), ("sites", True), ("both", False)],
    ids=["theta", "sites, two sets", "both"],
)
@every_kernel
def test_a_batch_is_each_of_its_members(kernel, batch_of, two_sets, rng):
    x, z = rng.uniform(size=(3, 5, 2)), rng.uniform(size=(3, 4, 2))
    thetas = kernel.theta + 0.3 * rng.normal(size=(3, kernel.n_dims))

    def evaluate(b):
        theta = thetas[0] if batch_of == "sites" else thetas[b]
        site = 0 if batch_of == "theta" else b
        return evaluate_kernel(kernel, theta, Pairs(x[site], z[site] if two_sets else None))

    K, pullback = evaluate(slice(None))
    G = rng.normal(size=(3, 5, 4 if two_sets else 5))
    gradient = pullback(G)
    for b in range(3):
        K_alone, pullback_alone = evaluate(b)
        assert_allclose(K[b], K_alone, rtol=1e-13)
        assert_allclose(gradient[b], pullback_alone(G[b]), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("batch_of", ["theta", "sites"])
@every_kernel
def test_a_device_gives_the_same_matrix_and_pullback(kernel, batch_of, device, rng, X, Z):
    x = rng.uniform(size=(3, 5, 2) if batch_of == "sites" else (5, 2))
    theta = kernel.theta + 0.1 * rng.normal(size=(3, kernel.n_dims))
    theta = theta if batch_of == "theta" else theta[0]
    K, pullback = evaluate_kernel(kernel, theta, Pairs(x))
    K_there, pullback_there = evaluate_kernel(
        kernel, to_device(theta, device), Pairs(to_device(x, device))
    )
    G = rng.normal(size=K.shape)
    gradient = to_numpy(pullback_there(to_device(G, device)))
    assert_allclose(to_numpy(K_there), K, rtol=1e-12)
    assert_allclose(gradient, pullback(G), rtol=1e-9, atol=1e-12)
    two_sets = kernel_matrix(kernel, to_device(X, device), to_device(Z, device))
    assert_allclose(to_numpy(two_sets), kernel_matrix(kernel, X, Z), rtol=1e-12)


def test_a_kernel_that_is_moved_to_the_device_is_logged(X, device, caplog):
    with caplog.at_level("DEBUG", logger="emgpr"):
        kernel_matrix(Cauchy(), to_device(X, device))
    assert "Cauchy" in caplog.text
    assert "copied to the device" in caplog.text


def test_a_kernel_without_free_parameters_has_an_empty_gradient(X):
    kernel = RBF(0.5, "fixed")
    K, pullback = evaluate_kernel(kernel, np.empty((4, 0)), Pairs(X))
    assert_allclose(np.broadcast_to(K, (4, 7, 7))[3], kernel(X))
    assert pullback(np.ones((4, 7, 7))).shape == (4, 0)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_coinciding_sites_cost_no_accuracy_and_no_warning(nu):
    X = np.zeros((3, 1))
    X[2] = 0.4
    kernel = Matern(0.5, nu=nu)
    K, pullback = evaluate_kernel(kernel, kernel.theta, Pairs(X))
    assert_array_equal(K[:2, :2], 1.0)
    only_that_pair = np.zeros((3, 3))
    only_that_pair[0, 1] = 1.0
    assert_array_equal(pullback(only_that_pair), 0.0)


def test_large_coordinates_lose_no_digits_of_distances(rng):
    X = rng.integers(0, 1000, size=(20, 2)) / 1024.0  # exact in binary, after the shift too
    for kernel in (RBF(0.1), RBF([0.1, 0.2]), Matern(0.1, nu=0.5)):
        assert_array_equal(kernel_matrix(kernel, X + 5e6), kernel_matrix(kernel, X))


def test_users_can_register_a_kernel(X):
    class Ours(Cauchy):
        pass

    @evaluate_kernel.register
    def _(kernel: Ours, theta, pairs):
        return np.full((len(pairs.x), len(pairs.x)), 42.0), lambda G: np.zeros(1)

    assert_array_equal(kernel_matrix(Ours(), X), 42.0)
    assert_array_equal(kernel_matrix(Ours() + Cauchy(), X), 42.0 + Cauchy()(X))


def test_a_subclass_that_overrides_the_matrix_of_a_registered_kernel_keeps_its_own(X):
    assert_allclose(kernel_matrix(HalfRBF(0.6), X), 0.5 * RBF(0.6)(X))


def test_the_matrices_of_several_kernels_are_stacked(X, Z, rng):
    kernels = [RBF(0.6), Cauchy(), RBF([0.3, 2.0])]
    expected = [kernel_matrix(kernel, X, Z) for kernel in kernels]
    assert_array_equal(kernel_matrices(kernels, X, Z), expected)
    tables = rng.uniform(size=(4, 5, 2))
    stacked = np.stack([kernel_matrix(kernel, tables) for kernel in kernels], axis=1)
    assert_array_equal(kernel_matrices(kernels, tables), stacked)
    assert kernel_matrices([], tables, tables[:, :2]).shape == (4, 0, 5, 2)


WHITE, BOUNDED = WhiteKernel(0.1), WhiteKernel(0.2, (0.01, 1.0))


@pytest.mark.parametrize(
    ("kernel", "signal", "noise"),
    [
        (RBF(2.0), RBF(2.0), None),
        (BOUNDED + RBF(2.0), RBF(2.0), BOUNDED),
        (RBF(1.0) + BOUNDED + Matern(2.0), RBF(1.0) + Matern(2.0), BOUNDED),
        (RBF(1.0) + (Matern(2.0) + BOUNDED), RBF(1.0) + Matern(2.0), BOUNDED),
        (WHITE, None, WHITE),
        (WHITE + RBF(1.0) + BOUNDED, RBF(1.0), WhiteKernel(0.1 + 0.2)),
        # A product with noise is not a sum of signal and noise.
        (ConstantKernel(2.0) * WHITE, ConstantKernel(2.0) * WHITE, None),
    ],
)
def test_white_terms_of_a_sum_are_split_off(kernel, signal, noise):
    assert split_noise(kernel) == (signal, noise)
