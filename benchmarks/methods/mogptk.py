"""mogptk: its linear model of coregionalisation, with the same kernels as the other methods.

There is a squared-exponential kernel and a noise variance for each output. The weights have rank 1,
and mogptk keeps them positive. The optimisation starts from random weights and length-scale 0.1,
and uses 500 iterations (mogptk's default) of Adam with learning rate 0.1.
"""

import mogptk
import numpy as np
import torch

REQUIREMENTS = ("torch==2.13.0", "mogptk==0.5.2")
VARIANTS = {"mogptk, LMC": {}}


def fit(X, Y, seed):
    """Fit a model to one channel for each output, with the sites where it was measured."""
    torch.manual_seed(seed)
    D, P = Y.shape[1], X.shape[1]
    seen = ~np.isnan(Y)
    data = mogptk.DataSet(*(mogptk.Data(X[s], y[s]) for y, s in zip(Y.T, seen.T, strict=True)))
    parts = [mogptk.gpr.SquaredExponentialKernel(order=-1, input_dims=P) for _ in range(D)]
    for part in parts:
        part.lengthscale.assign(0.1)
        part.magnitude.assign(1.0, train=False)  # The weights contain the magnitude.
    kernel = mogptk.gpr.LinearModelOfCoregionalizationKernel(*parts, output_dims=D, input_dims=P)
    kernel.weight.assign(torch.rand(D, D, 1))
    model = mogptk.Model(data, kernel, mogptk.Exact(variance=[0.1] * D))
    model.train("Adam", iters=500, lr=0.1)
    return model, D


def predict(model, X_new):
    """Return means, and standard deviations that include both signal and noise.

    The intervals of mogptk 0.5.2 leave out the variance of the signal.
    """
    model, D = model
    output = np.repeat(np.arange(D), len(X_new))
    x = torch.as_tensor(np.column_stack([output, np.tile(X_new, (D, 1))]))
    with torch.inference_mode():
        mean, variance = model.gpr.predict_f(x)
        noise = model.gpr.likelihood.scale().square()
    mean, variance = (values.cpu().numpy().reshape(D, -1).T for values in (mean, variance))
    return mean, np.sqrt(variance + noise.cpu().numpy())
