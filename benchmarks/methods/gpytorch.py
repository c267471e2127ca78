"""GPyTorch: exact GPs with the index of the output as an input, so that readings can be missing.

ICM is the product of an RBF kernel and an IndexKernel of rank 2. LMC is a sum of such products of
rank 1, one for each output. Each output has its own noise variance. The optimisation starts from
length-scale 0.1 and uses Adam in float64 with GPyTorch's usual learning rate of 0.1. It stops when
25 iterations increase the mean log-likelihood of a reading by less than 1e-4, or after 500
iterations. The Cholesky factorisation is exact at every size.
"""

import gpytorch
import numpy as np
import torch

REQUIREMENTS = ("torch==2.13.0", "gpytorch==1.15.2")
VARIANTS = {"GPyTorch, ICM": {"kind": "ICM"}, "GPyTorch, LMC": {"kind": "LMC"}}


class Coregionalized(gpytorch.models.ExactGP):
    """The covariance Σ_q k_q(x, x′) B_q[l, m]; the last input column is the output's index."""

    def __init__(self, x, y, likelihood, D, latents, rank):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        P = x.shape[1] - 1
        parts = []
        for _ in range(latents):
            rbf = gpytorch.kernels.RBFKernel(active_dims=tuple(range(P)))
            rbf.lengthscale = 0.1
            parts.append(rbf * gpytorch.kernels.IndexKernel(D, rank, active_dims=(P,)))
        self.kernel = gpytorch.kernels.AdditiveKernel(*parts)

    def forward(self, x):
        """Return the prior distribution of these readings."""
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def fit(X, Y, seed, *, kind, iterations=500, device="cpu", tolerance=1e-4):
    """Maximise the likelihood using Adam."""
    torch.manual_seed(seed)
    D = Y.shape[1]
    output, row = np.nonzero(~np.isnan(Y.T))
    x = torch.as_tensor(np.column_stack([X[row], output]), device=device)
    y = torch.as_tensor(Y[row, output], device=device)
    likelihood = gpytorch.likelihoods.HadamardGaussianLikelihood(
        num_tasks=D, task_feature_index=X.shape[1]
    )
    latents, rank = (1, 2) if kind == "ICM" else (D, 1)
    model = Coregionalized(x, y, likelihood, D, latents, rank).to(x)
    likelihood.noise = torch.full_like(likelihood.noise, 0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    losses = []
    with gpytorch.settings.max_cholesky_size(len(y) + 1):
        while len(losses) < iterations and not _has_converged(losses, tolerance):
            optimizer.zero_grad()
            loss = -mll(model(x), y, [x])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    model.eval()
    return model, D


def predict(model, X_new):
    """Return means and standard deviations of readings of every output."""
    model, D = model
    locations, output = np.tile(X_new, (D, 1)), np.repeat(np.arange(D), len(X_new))
    like = model.train_targets
    x = np.column_stack([locations, output])
    x = torch.as_tensor(x, dtype=like.dtype, device=like.device)
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(like) + 1):
        distribution = model.likelihood(model(x), [x])
        mean, std = distribution.mean.cpu().numpy(), distribution.variance.sqrt().cpu().numpy()
    return mean.reshape(D, -1).T, std.reshape(D, -1).T


def _has_converged(losses, tolerance, window=25):
    return len(losses) > window and min(losses[:-window]) - min(losses[-window:]) < tolerance
