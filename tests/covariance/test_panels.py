"""Large covariances go by in panels, the rows of some tasks at a time; nobody sees that."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import world

from emgpr.covariance import dense, log_likelihood
from emgpr.covariance.dense import between_tasks, coregionalization

N, D = 6, 5


@pytest.fixture(params=[1, 2, 4, 5], ids="{} tasks a panel".format)
def panels_of(request, monkeypatch):
    """As many numbers as so many tasks have in a table of N sites, or some more."""

    def of(batch=1, sites=N):
        most = int((request.param + 0.5) * batch * N * D * sites)
        monkeypatch.setattr(dense, "panel", lambda there: most)

    return of


@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_covariance_between_tasks(rng, panels_of, batch):
    B = coregionalization(rng.normal(size=(*batch, 2, D, 1)))
    K = rng.normal(size=(*batch, 2, N, 4))
    whole = np.einsum("...qlm,...qij->...limj", B, K)
    panels_of(int(np.prod(batch)), sites=4)
    assert_allclose(between_tasks(B, K), whole, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_likelihood_and_its_gradients(rng, panels_of, missing):
    made = world(rng, N=N, D=D, Q=2, k=2, missing=missing, correlated=True)
    ask = (made.W, made.noise, made.K)
    whole = log_likelihood(made.seen, *ask, of_kernels=True)
    panels_of()
    parts = log_likelihood(made.seen, *ask, of_kernels=True)
    for name in ("value", "of_weights", "of_noise"):
        assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-9)
    ours, theirs = (fit.of_kernels + fit.of_kernels.swapaxes(1, 2) for fit in (parts, whole))
    assert_allclose(ours, theirs, atol=1e-9)  # only the symmetric part means anything


def test_the_likelihood_of_a_batch_of_tables(rng, panels_of):
    made = world(rng, N=2 * N, D=D, Q=2, k=1, missing=0.2)
    tables = made.seen.batches([np.arange(N), np.arange(N, 2 * N)])
    K = np.stack([made.K[:, :N, :N], made.K[:, N:, N:]])
    ask = (np.stack([made.W, 2 * made.W]), made.noise, K)
    whole = log_likelihood(tables, *ask)
    panels_of(batch=2)
    parts = log_likelihood(tables, *ask)
    for name in ("value", "of_weights", "of_noise"):
        assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-9)
