"""GPyTorch: exact GPs over (place, task) readings, so that outputs may be missing (Hadamard).

ICM: RBF × IndexKernel of rank 2. LMC: the sum of such, one for each output, of rank 1. A noise
for each output. From length-scale 0.1, float64, Adam at GPyTorch's customary rate of 0.1 until
25 iterations gain less than 1e-4 in the mean log-likelihood of a reading (at most 500), factored
exactly (Cholesky) at every size.
"""

import gpytorch
import numpy as np
import torch

REQUIREMENTS = ("torch==2.13.0", "gpytorch==1.15.2")
VARIANTS = {"GPyTorch, ICM": {"kind": "ICM"}, "GPyTorch, LMC": {"kind": "LMC"}}


class Coregionalized(gpytorch.models.ExactGP):
    """Σ_q k_q(x, x′) B_q[l, m], the task in the last column of the input."""

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
        """The prior at these readings."""
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def fit(X, Y, seed, *, kind, iterations=500, device="cpu", tolerance=1e-4):
    """Maximum likelihood by Adam."""
    torch.manual_seed(seed)
    D = Y.shape[1]
    task, row = np.nonzero(~np.isnan(Y.T))
    x = torch.as_tensor(np.column_stack([X[row], task]), device=device)
    y = torch.as_tensor(Y[row, task], device=device)
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
        while len(losses) < iterations and not _settled(losses, tolerance):
            optimizer.zero_grad()
            loss = -mll(model(x), y, [x])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    model.eval()
    return model, D


def predict(model, X_new):
    """Every output at every place, noise included."""
    model, D = model
    places, task = np.tile(X_new, (D, 1)), np.repeat(np.arange(D), len(X_new))
    like = model.train_targets
    x = torch.as_tensor(np.column_stack([places, task]), dtype=like.dtype, device=like.device)
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(like) + 1):
        belief = model.likelihood(model(x), [x])
        mean, std = belief.mean.cpu().numpy(), belief.variance.sqrt().cpu().numpy()
    return mean.reshape(D, -1).T, std.reshape(D, -1).T


def _settled(losses, tolerance, window=25):
    return len(losses) > window and min(losses[:-window]) - min(losses[-window:]) < tolerance
