"""mogptk: its linear model of coregionalisation, with the kernels of the others.

A squared exponential for each output, weights of rank 1, which mogptk keeps positive, from a
seeded draw; length-scales from 0.1, a noise for each output; 500 iterations of Adam, as mogptk
does unless told otherwise, at rate 0.1.
"""

import mogptk
import numpy as np
import torch

REQUIREMENTS = ("torch==2.13.0", "mogptk==0.5.2")
VARIANTS = {"mogptk, LMC": {}}


def fit(X, Y, seed):
    """A channel for each output, with the sites where it was measured."""
    torch.manual_seed(seed)
    D, P = Y.shape[1], X.shape[1]
    seen = ~np.isnan(Y)
    data = mogptk.DataSet(*(mogptk.Data(X[s], y[s]) for y, s in zip(Y.T, seen.T, strict=True)))
    parts = [mogptk.gpr.SquaredExponentialKernel(order=-1, input_dims=P) for _ in range(D)]
    for part in parts:
        part.lengthscale.assign(0.1)
        part.magnitude.assign(1.0, train=False)  # the weights have it
    kernel = mogptk.gpr.LinearModelOfCoregionalizationKernel(*parts, output_dims=D, input_dims=P)
    kernel.weight.assign(torch.rand(D, D, 1))
    model = mogptk.Model(data, kernel, mogptk.Exact(variance=[0.1] * D))
    model.train("Adam", iters=500, lr=0.1)
    return model, D


def predict(model, X_new):
    """The signal's variance and the noise's; the intervals of 0.5.2 leave the former out."""
    model, D = model
    task = np.repeat(np.arange(D), len(X_new))
    x = torch.as_tensor(np.column_stack([task, np.tile(X_new, (D, 1))]))
    with torch.inference_mode():
        mean, variance = model.gpr.predict_f(x)
        noise = model.gpr.likelihood.scale().square()
    mean, variance = (values.cpu().numpy().reshape(D, -1).T for values in (mean, variance))
    return mean, np.sqrt(variance + noise.cpu().numpy())
