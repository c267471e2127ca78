"""Subclasses can validate their inputs with scikit-learn's `validate_data`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import validate_data

from emgpr import IndependentGP
from tests.simulated import smooth_table


class Validated(IndependentGP):
    """Reads three columns, and fits the model to the first two."""

    def fit(self, X, y):
        return super().fit(validate_data(self, X)[:, :2], y)

    def predict(self, X):
        return super().predict(validate_data(self, X, reset=False)[:, :2])


def test_a_subclass_can_validate_its_inputs():
    X, Y = smooth_table(np.random.default_rng(0), N=10)
    frame = pd.DataFrame(np.column_stack([X, X[:, 0]]), columns=["east", "north", "copy"])
    model = Validated(RBF(0.4, "fixed"), random_state=0).fit(frame, Y)
    plain = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(X, Y)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["east", "north", "copy"]
    np.testing.assert_allclose(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="missing"):
        model.predict(frame[["east", "north"]])
    model.fit(frame.to_numpy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert (plain.n_features_in_, model.n_features_in_) == (2, 3)
