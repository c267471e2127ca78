"""gstlearn: a linear model of coregionalisation fitted to variograms, as in geostatistics.

Direct and cross-variograms are computed at 20 lags up to half the longer side of the region. A
nugget, a spherical and a cubic structure with full sill matrices are fitted to them automatically.
Predictions use ordinary cokriging from all readings (unique neighbourhood). The nugget is noise
that can be correlated between outputs at the same site. With a Gaussian structure instead of the
cubic one, the cokriging systems of smooth fields cannot be solved.
"""

import gstlearn as gl
import numpy as np

REQUIREMENTS = ("gstlearn==1.11.1",)
VARIANTS = {"gstlearn, variograms": {}}


def fit(X, Y, seed):
    """Fit the model to variograms. The seed is not used."""
    data = _table(X)
    for d, y in enumerate(Y.T):
        data.addColumns(np.where(np.isnan(y), gl.TEST, y), f"y{d}", gl.ELoc.Z, d)
    reach = np.ptp(X, axis=0).max() / 2
    vario = gl.Vario.computeFromDb(gl.VarioParam.createOmniDirection(20, reach / 20), data)
    model = gl.Model.createFromDb(data)
    if model.fit(vario, [gl.ECov.NUGGET, gl.ECov.SPHERICAL, gl.ECov.CUBIC]):
        raise RuntimeError("gstlearn could not fit its model to the variograms")
    model.setDriftIRF(0)
    return data, model, Y.shape[1]


def predict(model, X_new):
    """Return kriging means and standard deviations, which include the nugget of a new reading."""
    data, model, D = model
    new = _table(X_new)
    if gl.kriging(data, new, model, gl.NeighUnique.create()):
        raise RuntimeError("gstlearn could not krige")
    names = [[f"Kriging.y{d}.{what}" for d in range(D)] for what in ("estim", "stdev")]
    parts = (np.column_stack([new[name] for name in group]) for group in names)
    return tuple(np.where(part < gl.TEST, part, np.nan) for part in parts)


def _table(X):
    table = gl.Db.create()
    for p, x in enumerate(X.T):
        table.addColumns(x, f"x{p}", gl.ELoc.X, p)
    return table
