"""One pass over the data: what was read at any number of places, kept as sums over them."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import JitterWarning
from emgpr.covariance import Basis, Fineness, Sums, basis_on, spectrum
from emgpr.estimators.blocks import Blocks
from emgpr.estimators.door import input_names, placed, refuse_unobserved
from emgpr.estimators.doubts import about_inputs, about_known, about_outputs
from emgpr.estimators.from_sums import Ascent, enough_of_each, shares_of, two_steps
from emgpr.estimators.gathered import is_lazy, refuse_stray_coordinates
from emgpr.estimators.in_waves import InWaves, corners_of
from emgpr.estimators.keeping import all_or_nothing
from emgpr.estimators.passes import LEAST, Table
from emgpr.estimators.settings import Configured, check_one_pass, kernels_for
from emgpr.estimators.stored_sums import StoredSums
from emgpr.execution import RandomState, generator, threads_for
from emgpr.kernels import without_noise
from emgpr.observations import Observations
from emgpr.transforms import Marginals, is_constant, one_each

IDEAL = 1e-6  # share of an output's variance left out, if it costs little
AFFORDABLE, MOST = 1500, 3000  # coefficients: a fifth of a second, and one, for each step
ON_THE_WAY = 600  # and to find the ranges by which a box is measured


class OnePassGP(Configured, StoredSums, InWaves):
    """Multi-output regression from sums over places: one pass over any number of them.

    The model is that of `EMGPR`: latent Gaussian processes, mixed by weights, and noise. Its
    processes are written in waves (a Fourier basis on a box around the region), and then all that
    likelihood and prediction need of the data are sums of waves over places: a few thousand
    numbers, worked out in chunks, once. Learning and predicting cost the same for 10⁷ places as for
    10³, no data are kept, and sums of chunks may come from other processes or machines.

    For up to three inputs, and fields that are smooth or long beside the region: 750 functions of
    two inputs carry length-scales of a twentieth of it if the kernel is RBF, of a fifth if it is
    Matern(nu=2.5). What they leave out is counted as uncertainty (`left_out_`). See
    docs/one-pass.md.

    Parameters
    ----------
    kernel : scikit-learn kernel or list of kernels, default RBF()
        Of the latent processes: RBF, Matern, their sums, and with a ConstantKernel sums and
        products. A list has one for each.
    n_latents : int or None
        Latent processes; None is one for each output.
    rank : int or None
        Weight vectors of each latent; None is 2, or 1 for a single output.
    noise : {"correlated", "independent"}
        Whether noises of the outputs at a place may be correlated.
    box : "auto" or (lows, highs)
        The region, a number for each input (as kernels see them; with longitude and latitude, in
        km on the sphere): places far outside can neither be learned from nor predicted. "auto" is
        around the data, or, with `partial_fit`, around the first chunk.
    tolerance : float
        Share of an output's variance that waves may leave out; less is, where that is cheap.
    n_functions : "auto" or int
        Cosines and sines that may be spent at most. "auto" is 3000 over the number of outputs, or
        over `n_latents` × `rank` if that is less.
    n_start : int
        Sites from which the two steps make a start.
    transform : None, "log", "yeo-johnson", "normal-score", transformer, list or dict
        As in `EMGPR`; with `partial_fit`, learned from the first chunk.
    normalize_y : bool
        Bring outputs to mean 0 and variance 1 first; with `partial_fit`, those of the first chunk.
    crs : str or None
        As in `EMGPR`. Points on the sphere are three inputs.
    max_iter, n_restarts, n_jobs, random_state, verbose
        As in `EMGPR`.

    Attributes
    ----------
    kernels_, noise_, weights_, coregionalization_, variance_shares_, transforms_
        As in `EMGPR`, with one member.
    log_marginal_likelihood_value_ : log-likelihood of all readings, standardised, in waves
    history_ : list of (what was learned, log-likelihood reached)
    converged_, n_iter_ : whether, and after how many steps, the ascent ended
    n_functions_ : cosines and sines in use
    left_out_ : Series, share of each output's variance that they have not
    box_ : (2, P) the region
    n_sites_, n_readings_ : what was learned from

    Examples
    --------
    >>> from emgpr import OnePassGP
    >>> rng = np.random.default_rng(0)
    >>> def chunk(n):
    ...     X = rng.uniform(size=(n, 2))
    ...     f = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1])
    ...     return X, np.column_stack([f, 1 - 2 * f]) + 0.1 * rng.normal(size=(n, 2))
    >>> model = OnePassGP(box=([0, 0], [1, 1]), n_start=100, random_state=0)
    >>> for _ in range(5):
    ...     model = model.partial_fit(*chunk(2000))
    >>> model.n_sites_, model.predict([[0.25, 0.0]]).round(1)
    (10000, array([[ 2., -3.]]))
    """

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel] | None = None,
        *,
        n_latents: int | None = None,
        rank: int | None = None,
        noise: Literal["correlated", "independent"] = "correlated",
        box: Any = "auto",
        tolerance: float = 1e-3,
        n_functions: int | Literal["auto"] = "auto",
        n_start: int = 600,
        transform: Any = None,
        normalize_y: bool = True,
        crs: str | None = None,
        max_iter: int = 120,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_latents = n_latents
        self.rank = rank
        self.noise = noise
        self.box = box
        self.tolerance = tolerance
        self.n_functions = n_functions
        self.n_start = n_start
        self.transform = transform
        self.normalize_y = normalize_y
        self.crs = crs
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs X (N, P) and outputs y (N, D), NaN where not measured."""
        check_one_pass(self)
        with all_or_nothing(self):
            table = self._table(X, y, first=True)
            self._begin(table)
            return self.absorb(table.sums(self))

    def partial_fit(self, X: Any, y: Any, *, learn: bool = True) -> Self:
        """Learn from one more chunk; the first makes the start and, if that is "auto", the box.

        Without `learn`, predictions are conditioned on its readings, and kernels, noise and
        weights stay as they are until `learn()` is called.
        """
        with all_or_nothing(self):
            if not hasattr(self, "_sums"):
                self.start(X, y)
            return self.absorb(self.summed(X, y), learn=learn)

    def start(self, X: Any, y: Any) -> Self:
        """Make a start from a sample of the data: the scale of the outputs, the box and its waves.

        Nothing is counted as read. Then chunks can be summed anywhere (`summed`), by copies of
        this model, and what they sum to is taken in by `absorb`.
        """
        check_one_pass(self)
        with all_or_nothing(self):
            self._begin(self._table(X, y, first=True))
        return self

    def summed(self, X: Any, y: Any) -> Sums:
        """All that is needed of a chunk of data; sums add up with `+`. Needs a start.

        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(300, 1))
        >>> y = np.sin(9 * X) + 0.1 * rng.normal(size=(300, 1))
        >>> model = OnePassGP(n_start=50, random_state=0).start(X, y)
        >>> model.absorb(model.summed(X[:100], y[:100]) + model.summed(X[100:], y[100:])).n_sites_
        300
        """
        self._refuse_no_start()
        table = self._table(X, y, first=False)
        if isinstance(table, Table):  # of others, nobody has seen the rows yet
            for doubt in about_known(table.Y, self._ranges, self.output_names_, "Output"):
                warnings.warn(doubt, UserWarning, stacklevel=3)
        return table.sums(self)

    def absorb(self, sums: Sums, *, learn: bool = True) -> Self:
        """Take in sums, and learn from all that there are, or leave that for later."""
        self._refuse_no_start()
        if not isinstance(sums, Sums):
            raise ValueError(f"sums={sums!r}; expected what summed(X, y) gives.")
        with all_or_nothing(self):
            self._sums = self._sums + sums
            self._refuse_unread()
            self._refuse_awake()
            if learn:
                return self.learn()
            self._hold(self._mixture, self._basis)
        return self

    def learn(self) -> Self:
        """Learn kernels, noise and weights from all readings that were taken in, from these on."""
        self._refuse_no_start()
        with all_or_nothing(self):
            self._refuse_unread()
            learned = self._ascent.learn(
                self._sums, self._mixture, self._basis, self._fineness, self.max_iter, self.verbose
            )
            self.history_, self.n_iter_ = learned.history, learned.n_iter
            self.converged_ = not learned.trouble
            if learned.trouble:
                trouble = f"Learning from sums: {learned.trouble}."
                warnings.warn(trouble, ConvergenceWarning, stacklevel=3)
            self._ascent = replace(self._ascent, start=learned.mixture)
            self._hold(learned.mixture, learned.basis)
            self._answers()
        return self

    def _refuse_no_start(self) -> None:
        if not hasattr(self, "_sums"):
            raise ValueError("This OnePassGP has no start; call start, fit or partial_fit first.")

    def _table(self, X: Any, y: Any, *, first: bool) -> Table | Blocks:
        """What is to be looked at and summed: in memory, or where Dask holds it."""
        refuse_stray_coordinates(X)
        kind = Blocks if is_lazy(X) or is_lazy(y) else Table
        return kind.entered(self, X, y, first=first)

    def _begin(self, table: Table | Blocks) -> None:
        """The scale of the outputs, the box, the two steps on some sites, and the waves."""
        rng, names = generator(self.random_state), self.output_names_
        look = table.look(self)
        refuse_unobserved(look.ranges, table.n_rows, names)
        for doubt in (
            *about_inputs(look.numbers, input_names(self), table.steps[0], self.crs),
            *about_outputs(look.Y, names, table.steps[1], centred=self.normalize_y),
        ):
            warnings.warn(doubt, UserWarning, stacklevel=3)
        self.__dict__.pop("weights_", None)  # nothing is known yet
        self._ranges, self.box_ = look.ranges, corners_of(self.box, look.corners)
        x, Y = placed(self, look.numbers), look.Y
        self.transforms_ = one_each(vars(self)["transform"], names)
        self._scale = Marginals.learned(
            Y, self.transforms_, normalize=self.normalize_y, names=names
        )
        Z = self._scale.forward(Y, names)
        if self.normalize_y:  # what rounding left of a constant would be taken for a signal
            Z = np.where(is_constant(Y) & ~np.isnan(Z), 0.0, Z)
        seen = Observations.from_table(x, Z)
        seen = seen.at(enough_of_each(seen.seen, seen.some(self.n_start), LEAST, rng))
        D = seen.n_tasks
        Q = D if self.n_latents is None else int(self.n_latents)
        rank = min(2 if self.rank is None else int(self.rank), D)
        kernels = kernels_for(self.kernel, Q, seen)
        for kernel in kernels:
            bare, _ = without_noise(kernel)
            if bare is not None:
                spectrum(bare, np.zeros((1, x.shape[1])), 1.0)  # refuses those without
        with warnings.catch_warnings(), threads_for(seen.n_readings):
            # What matters is how the ascent on all readings ends; that is told.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", JitterWarning)
            self._mixture = two_steps(
                seen, kernels, Q, rank, own_kernels=isinstance(self.kernel, list | tuple),
                n_restarts=self.n_restarts, max_iter=self.max_iter, rng=rng, n_jobs=self.n_jobs,
                verbose=self.verbose,
            )  # fmt: skip
        joined = self.noise == "correlated" and D > 1
        self._ascent = Ascent.around(self._mixture, seen, joined, names)
        self._fineness = self._afford()
        self._basis = self._waves(self._fineness)
        self._doubt_waves(refuse=True)
        # Outputs alone do not show the ranges of the latents, by which the box is measured.
        n = ON_THE_WAY // self._n_columns
        coarse = Fineness(max(0.01, self.tolerance), 1e-3, n, n)
        self._basis = self._waves(coarse)
        sums = Sums.of(self._basis.lattice, seen)
        way = self._ascent.learn(
            sums, self._mixture, self._basis, coarse, self.max_iter, self.verbose
        )
        self._mixture = way.mixture
        self._ascent = replace(self._ascent, start=way.mixture)
        self._basis = self._waves(self._fineness)
        self._sums = Sums(self._basis.lattice)

    def _waves(self, fineness: Fineness) -> Basis:
        """Those that the region and the kernels ask for."""
        low, high = self._region()
        shares = shares_of(self._mixture, len(low)).max(axis=0)
        return basis_on(low, high, self._mixture.kernels, shares, fineness)

    @property
    def _n_columns(self) -> int:
        """Coefficients of each function."""
        Q, D, rank = self._mixture.W.shape
        return min(D, Q * rank)

    def _afford(self) -> Fineness:
        """How fine waves may be."""
        if isinstance(self.n_functions, str):
            n = self._n_columns
            return Fineness(self.tolerance, IDEAL, AFFORDABLE // n, MOST // n)
        return Fineness(self.tolerance, IDEAL, int(self.n_functions), int(self.n_functions))
