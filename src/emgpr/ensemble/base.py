"""The signature of the rules that combine the members' predictions."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Array = np.ndarray

Means = Float[Array, "L M D"]  # for L members, M locations and D outputs
Covariances = Float[Array, "L M D D"]
Prior = Float[Array, "M D D"]  # prior covariance of the signals, whose prior mean is zero
Combined = tuple[Float[Array, "M D"], Float[Array, "M D D"]]

Rule = Callable[[Array, Array, Array], tuple[Array, Array]]
