"""The model in waves against the dense one: with the same expansion it is the same model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from emgpr.covariance import (
    Basis,
    Expansion,
    Fineness,
    Lattice,
    Sums,
    basis_for,
    basis_on,
    log_likelihood,
    resolution,
    spectrum,
)
from emgpr.covariance.resolution import LARGEST, SEARCHED
from emgpr.kernels import matrices, matrix
from emgpr.observations import Observations
from emgpr.prediction import condition
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import world

SPECTRA = [
    RBF(0.4),
    Matern(0.5, nu=0.5),
    Matern(0.5, nu=1.5),
    Matern(0.6, nu=2.5),
    Matern(0.4, nu=np.inf),
    ConstantKernel(0.5) * RBF(0.4) + ConstantKernel(0.3),
    RBF(0.4, "fixed") + Matern(0.7, nu=2.5) * ConstantKernel(2.0),
]


def lattice_of(P, top=3):
    return Lattice((-0.1,) * P, (2.0,) * P, (top,) * P)


def basis_of(P, Q, top=3, strides=None):
    """Waves within a ball, some latents with every second only."""
    fine = Fineness(1e-9, 1e-9, 10**6, 10**6)
    shares = np.ones(Q)
    strides = strides or (1, 2, 1)[:Q]
    return basis_for(lattice_of(P, top), strides, [RBF(0.05)] * Q, shares, fine)


def in_the_basis(basis, kernels, x, z=None):
    """K_q written in the functions of the basis."""
    left, right = basis.functions(x), basis.functions(x if z is None else z)
    return np.stack([left * np.tile(s, 2) @ right.T for s in basis.variances(kernels)])


@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
@pytest.mark.parametrize("P", [1, 2])
def test_the_waves_of_a_kernel_add_up_to_it(kernel, P, rng):
    fine = Fineness(1e-9, 1e-9, 10**6, 10**6)
    rough = "nu=0.5" in str(kernel)
    top = {1: 2000, 2: 120}[P]
    basis = basis_for(Lattice((0.0,) * P, (8.0,) * P, (top,) * P), (1,), [kernel], np.ones(1), fine)
    x, z = rng.uniform(size=(2, 6, P))
    made = in_the_basis(basis, [kernel], x, z)[0]
    tolerance = 0.02 if rough else 1e-3
    assert_allclose(made, matrix(kernel, x, z), atol=tolerance)
    at_a_place = matrix(kernel, x)[0, 0] - in_the_basis(basis, [kernel], x)[0, 0, 0]
    assert_allclose(basis.left_out([kernel])[0], at_a_place, atol=1e-3)


@pytest.mark.parametrize("kernel", [*SPECTRA, RBF([0.3, 0.6]), Matern([0.3, 0.6], nu=1.5)], ids=str)
def test_slopes_of_a_spectrum_are_its_derivatives(kernel, rng):
    omega = np.vstack([np.zeros((1, 2)), rng.normal(size=(5, 2))])
    _, slopes = spectrum(kernel, omega, 3.0)
    assert slopes.shape == (kernel.n_dims, len(omega))
    weight = rng.normal(size=len(omega))

    def value(theta):
        return spectrum(kernel.clone_with_theta(theta), omega, 3.0)[0] @ weight

    assert_is_the_gradient(slopes @ weight, value, kernel.theta)


@pytest.mark.parametrize(
    "kernel",
    [
        RationalQuadratic(),
        ExpSineSquared(),
        WhiteKernel(),
        RBF() * RBF(),
        RBF() + RationalQuadratic(),
    ],
    ids=str,
)
def test_a_kernel_without_a_known_spectrum_is_refused_by_name(kernel):
    with pytest.raises(ValueError, match=r"spectrum.* expected RBF, Matern"):
        spectrum(kernel, np.zeros((1, 2)), 1.0)


def test_a_kernel_that_only_looks_like_one_that_is_known_is_refused():
    class Own(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2 * super().__call__(X, Y, eval_gradient)

    with pytest.raises(ValueError, match="no spectrum that is known"):
        spectrum(Own(), np.zeros((1, 1)), 1.0)


@pytest.mark.parametrize("P", [1, 2, 3])
def test_sums_are_those_of_the_functions(P, rng):
    basis = basis_of(P, 1)
    x, y = rng.uniform(size=(30, P)), rng.normal(size=(2, 30))
    Phi = basis.functions(x)
    lattice = basis.lattice
    c = lattice.doubled.sums(x, np.ones((30, 1)))[0]
    assert_allclose(basis.products(c), Phi.T @ Phi, atol=1e-11)
    assert_allclose(basis.projected(lattice.sums(x, y.T)), y @ Phi, atol=1e-12)
    # And the other way: coefficients evaluated at places, and contractions with G.
    b, X = rng.normal(size=(2, Phi.shape[1])), rng.normal(size=2 * (Phi.shape[1],))
    assert_allclose(lattice.evaluate(x, basis.packed(b)), Phi @ b.T, atol=1e-11)
    forms = lattice.doubled.evaluate(x, basis.contracted(X)[None])[:, 0]
    assert_allclose(forms, np.einsum("nj,ji,ni->n", Phi, X, Phi), atol=1e-10)


def test_sums_of_parts_are_those_of_the_whole(rng):
    made = world(rng, N=40, missing=0.3)
    lattice = lattice_of(2)
    whole = Sums.of(lattice, made.seen)
    parts = [
        Sums.of(lattice, made.seen.at(part)) for part in np.array_split(rng.permutation(40), 4)
    ]
    there, back = (parts[0] + parts[1]) + (parts[2] + parts[3]), parts[3] + parts[2] + parts[0]
    assert there.terms.keys() == whole.terms.keys()
    for outputs, term in whole.terms.items():
        for name in ("places", "outputs", "power"):
            assert_allclose(getattr(there.terms[outputs], name), getattr(term, name), atol=1e-12)
    assert (whole.n_readings, (back + parts[1]).n_readings) == (made.seen.n_readings,) * 2
    assert whole.n_sites == int(made.seen.seen.any(axis=0).sum())
    with pytest.raises(ValueError, match="do not add up"):
        whole + Sums.of(lattice_of(2, top=4), made.seen)


CASES = [(1, 1, 1, 1), (2, 2, 3, 1), (2, 3, 3, 2), (1, 3, 2, 1), (3, 2, 2, 2)]


@pytest.mark.parametrize(("P", "Q", "D", "k"), CASES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_is_that_of_the_dense_model_with_the_expansion(P, Q, D, k, missing, rng):
    made = world(rng, N=25, P=P, Q=Q, D=D, k=k, missing=missing, correlated=True)
    kernels = [RBF(0.4), Matern(0.5, nu=1.5), RBF(0.7)][:Q]
    basis = basis_of(P, Q)
    expansion = Expansion(Sums.of(basis.lattice, made.seen), basis, D)
    dense = log_likelihood(made.seen, made.W, made.noise, in_the_basis(basis, kernels, made.X))
    s = basis.variances(kernels)
    found = expansion.log_likelihood(made.W, made.noise, s)
    assert_allclose(found.value, dense.value, rtol=1e-10)
    assert_allclose(found.of_weights, dense.of_weights, atol=1e-8 * np.abs(dense.of_weights).max())
    assert_allclose(found.of_noise, dense.of_noise, atol=1e-8 * np.abs(dense.of_noise).max())
    assert_allclose(expansion.posterior(made.W, made.noise, s).log_likelihood, dense.value)


@pytest.mark.parametrize(("Q", "k"), [(2, 1), (3, 2)])
def test_gradients_are_the_derivatives(Q, k, rng):
    made = world(rng, N=30, Q=Q, D=2, k=k, missing=0.3, correlated=True)
    basis = basis_of(2, Q, top=2)
    expansion = Expansion(Sums.of(basis.lattice, made.seen), basis, 2)
    s = basis.variances([RBF(0.3), RBF(0.4), Matern(0.5, nu=2.5)][:Q])
    found = expansion.log_likelihood(made.W, made.noise, s)

    def along_weights(W):
        return expansion.log_likelihood(W, made.noise, s).value

    def along_noise(noise):
        return expansion.log_likelihood(made.W, 0.5 * (noise + noise.T), s).value

    def along_variances(log_s):
        return expansion.log_likelihood(made.W, made.noise, np.exp(log_s)).value

    assert_is_the_gradient(found.of_weights, along_weights, made.W)
    assert_is_the_gradient(found.of_noise, along_noise, made.noise)
    some = np.maximum(s, 1e-12)  # where a latent has no wave, its variance stays zero
    assert_is_the_gradient(
        expansion.log_likelihood(made.W, made.noise, some).of_log_variances,
        along_variances,
        np.log(some),
    )


def test_what_the_readings_say_is_what_they_say_in_the_dense_model(rng):
    made = world(rng, N=40, Q=2, D=3, k=1, missing=0.3, correlated=True)
    kernels = [RBF(0.3), RBF(0.5)]
    basis = basis_on(*np.array([[-0.1] * 2, [1.1] * 2]), kernels, np.ones(2), FINE)
    expansion = Expansion(Sums.of(basis.lattice, made.seen), basis, 3)
    told = expansion.posterior(made.W, made.noise, basis.variances(kernels))
    x = rng.uniform(size=(20, 2))
    dense = condition(made.seen, x, kernels, made.W[None], made.noise)
    sd = np.sqrt(np.einsum("mdd->md", dense.cov[0]))
    mean = basis.lattice.evaluate(x, told.mean_waves())
    row, column = np.tril_indices(3)
    cov = np.empty((20, 3, 3))
    cov[:, row, column] = basis.lattice.doubled.evaluate(x, told.cov_waves())
    cov[:, column, row] = cov[:, row, column]
    assert (np.abs(mean - dense.mean[0]) < 0.01 * sd).all()
    assert_allclose(cov, dense.cov[0], atol=1e-3 * (sd**2).max())
    exact = log_likelihood(made.seen, made.W, made.noise, matrices(kernels, made.X)).value
    assert_allclose(told.log_likelihood, exact, atol=0.01)


FINE = Fineness(1e-6, 1e-7, 10**4, 10**4)


def test_draws_have_the_mean_and_the_covariance_of_the_posterior(rng):
    """Over 4000 draws, within 5 standard errors of 200 or so numbers: one alarm in 10⁴ runs."""
    made = world(rng, N=20, P=1, Q=2, D=2, k=1, missing=0.2, correlated=True)
    basis = basis_of(1, 2, top=6)
    expansion = Expansion(Sums.of(basis.lattice, made.seen), basis, 2)
    told = expansion.posterior(made.W, made.noise, basis.variances([RBF(0.2), RBF(0.4)]))
    drawn = told.draw(4000, rng).reshape(4000, -1)
    V = np.einsum("jda,ajbi,ieb->djei", told.A, told.B.inverse(), told.A)
    V = V.reshape(drawn.shape[1], -1)
    sd = np.sqrt(np.diag(V))
    assert (np.abs(drawn.mean(0) - told.mean.ravel()) < 5 * sd / np.sqrt(4000) + 1e-12).all()
    spread = np.sqrt((np.outer(sd, sd) ** 2 + V**2) / 4000)
    assert (np.abs(np.cov(drawn.T) - V) < 5 * spread + 1e-12).all()


def test_coefficients_of_which_nothing_can_be_said_cost_nothing(rng):
    made = world(rng, N=30, Q=1, D=3, k=1)
    basis = basis_of(2, 1, strides=(1,))
    expansion = Expansion(Sums.of(basis.lattice, made.seen), basis, 3)
    W = np.tile(made.W, (4, 1, 1))  # four latents, and only one direction that is heard
    s = np.tile(basis.variances([RBF(0.4)]) / 4, (4, 1))
    told = expansion.posterior(W, made.noise, s)
    one = expansion.posterior(made.W, made.noise, basis.variances([RBF(0.4)]))
    assert len(told.B.kept) <= 2 * len(basis.m) < told.B.r * told.B.J
    assert_allclose(told.mean, one.mean, atol=1e-9)
    assert_allclose(told.log_likelihood, one.log_likelihood)


class TestResolution:
    """How many waves are chosen, and where."""

    REGION = np.zeros(2), np.ones(2)

    def chosen(self, kernels, tolerance=1e-3, most=2000, shares=None):
        shares = np.ones(len(kernels)) if shares is None else shares
        fineness = Fineness(tolerance, tolerance, 0, most)
        return basis_on(*self.REGION, kernels, shares, fineness)

    @pytest.mark.parametrize("kernel", [RBF(0.2), RBF([0.1, 0.4]), Matern(0.4, nu=2.5)], ids=str)
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-3])
    def test_covariances_are_as_good_as_asked_for(self, kernel, tolerance, rng):
        basis = self.chosen([kernel], tolerance)
        assert basis.left_out([kernel])[0] <= tolerance
        x, z = rng.uniform(size=(2, 50, 2))
        error = in_the_basis(basis, [kernel], x, z)[0] - matrix(kernel, x, z)
        assert np.abs(error).max() < tolerance + 0.01  # what is left out, and a faint echo

    def test_finer_or_shorter_means_more_waves(self):
        few = self.chosen([RBF(0.3)]).n_functions
        assert few < self.chosen([RBF(0.3)], 1e-5).n_functions
        assert few < self.chosen([RBF(0.15)]).n_functions
        assert few < self.chosen([Matern(0.3, nu=2.5)]).n_functions

    def test_a_short_axis_of_the_kernel_gets_the_waves(self):
        m = self.chosen([RBF([0.1, 0.5])]).m
        assert np.abs(m[:, 0]).max() > 2 * np.abs(m[:, 1]).max()

    def test_a_latent_that_hardly_matters_gets_few(self):
        kernels = [RBF(0.3), RBF(0.1)]
        both = self.chosen(kernels).n_functions
        assert self.chosen(kernels, shares=np.array([1.0, 0.005])).n_functions < 0.7 * both

    def test_ranges_that_differ_much_share_no_waves(self):
        kernels = [RBF(0.15), RBF(1.5)]
        basis = self.chosen(kernels)
        alone = self.chosen(kernels[:1])
        assert basis.strides[0] > 1 == basis.strides[1]
        assert basis.n_functions < alone.n_functions + 60
        assert (basis.left_out(kernels) < 1e-3).all()

    def test_no_more_are_spent_than_may_be(self):
        basis = self.chosen([Matern(0.1, nu=0.5)], most=301)
        assert basis.n_functions == 301
        assert 0.05 < basis.left_out([Matern(0.1, nu=0.5)])[0] < 1

    def test_the_lattice_has_room_for_shorter_length_scales(self):
        basis = self.chosen([RBF(0.2)])
        finer = basis_for(
            basis.lattice, basis.strides, [RBF(0.17)], np.ones(1), Fineness(1e-3, 1e-3, 0, 2000)
        )
        assert basis.left_out([RBF(0.17)])[0] > 1e-3 >= finer.left_out([RBF(0.17)])[0]

    def test_sums_do_not_grow_beyond_number(self):
        without_end = Fineness(1e-3, 1e-3, 0, 10**7)
        basis = basis_on(np.zeros(3), np.ones(3), [RBF(0.01)], np.ones(1), without_end)
        assert np.prod(basis.lattice.doubled.shape) <= LARGEST
        assert basis.left_out([RBF(0.01)])[0] > 0.5

    def test_the_search_ends_where_no_wave_carries_anything(self, monkeypatch):
        """One place that is a code for a missing value makes a region of any size."""
        half = resolution._half

        def watched(top):
            assert np.prod(np.array(top) + 1.0) < SEARCHED
            return half(top)

        monkeypatch.setattr(resolution, "_half", watched)
        assert self.chosen([RBF(1e-9)]).left_out([RBF(1e-9)])[0] > 0.9


def test_sums_take_tables_in_which_nothing_was_read():
    table = Observations.from_table(np.zeros((2, 1)), np.full((2, 2), np.nan))
    assert Sums.of(lattice_of(1), table).n_readings == 0
    assert Basis(lattice_of(1), np.zeros((1, 1), int), (1,)).n_functions == 1
