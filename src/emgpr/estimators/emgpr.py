"""The estimator EMGPR."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import pandas as pd

from emgpr import inspection
from emgpr.declared_parameters import declare_parameters
from emgpr.estimators.multi_output import MultiOutputGP
from emgpr.fitting.defaults import check_combine
from emgpr.parameter_checks import Kernels, Transforms


@declare_parameters
class EMGPR(MultiOutputGP):
    """Ensemble multi-task Gaussian process regression with multiple latent processes.

    Every output is a weighted sum of latent Gaussian processes plus noise. Step 1 fits a process to
    each output separately; then kernels, noise and the weight of every process in every output are
    optimised jointly. (In the paper, step 2 fits the weights only.) The defaults were chosen by
    cross-validation on the training data of many data sets (docs/choices.md). `EMGPR.paper()` is
    the method as published: two steps, with an ensemble whose members are fitted to mini-batches
    and whose predictions are averaged.

    Parameters
    ----------
    kernel : "auto", name, kernel, list of kernels, or None
        "auto" chooses RBF or Matern with nu 5/2, 3/2 or 1/2 for each output according to its
        likelihood in step 1. Two coordinates of one unit share a length-scale, unless the fit
        improves sufficiently with one for each. Other inputs have a length-scale for each column,
        so that their units do not matter. More than ten columns are standardised and share a
        length-scale, unless left-out readings are predicted clearly better with one for each.
        Other values are a scikit-learn kernel for all latent processes, a name ("rbf", "matern12",
        "matern32" or "matern52"), or a list of these for each process; None means `RBF()`.
        Starting values and bounds of length-scales are computed from the data unless you set them;
        if you set a length-scale other than 1, it is used as an additional starting value. A
        WhiteKernel is not needed; if you add it to the kernel, it sets the starting value and
        bounds of the noise.
    n_latents : int, "auto" or None
        Number of latent processes Q. None means one for each output. If there are fewer than five
        readings for each parameter, it means one process whose rank is the number of outputs or,
        with more than 20 outputs or if `rank` is set, fewer processes. "auto" starts with one
        process for each output and removes the processes that cross-validation finds unnecessary.
    rank : int or None
        Rank k of each coregionalisation matrix B_q = W_q W_qᵀ, at most the number of outputs. None
        means 2 if the optimisation continues after the two steps (`refine`) and there are at least
        ten readings for each parameter and ten sites for each latent process, otherwise 1 (or see
        `n_latents`, if there are few readings).
    noise : {"auto", "correlated", "independent"}
        Whether the noise terms of different outputs at a site are correlated. If they are,
        predictions at a location where other outputs were measured also use the noise of these
        readings. "auto" means "correlated" if the optimisation continues after the two steps, there
        are at least five readings for each parameter, and step 1 found noise in every output.
    prior : "weak" or None
        "weak" is a prior with the weight of a few readings. It favours noise unless the readings
        show a signal, which reduces overfitting with few sites or rarely measured outputs. In the
        joint optimisation, it also holds the total variance of every output (the sill) close to the
        variance of its readings. None means maximum likelihood, as in the paper.
    batch_size : int, "auto" or None
        Number of sites in a mini-batch. If the optimisation continues after the two steps
        (`refine`), "auto" means all sites. With `refine=0`, "auto" means D² sites as in the paper,
        but at least three for every weight vector. None means that one set of weights is fitted to
        all sites.
    n_neighbours : int, "auto" or None
        Number of earlier sites on which each site is conditioned in the likelihood of the joint
        optimisation (Vecchia's approximation). "auto" means 15, fewer with more than 8 outputs,
        and up to 30 with up to 4000 sites. None means the exact likelihood, whose cost grows with
        the cube of the number of readings. With mini-batches, the likelihood of each batch is
        exact.
    n_members : int or None
        Maximum number of members; None means one for every mini-batch.
    partition : {"stratified", "random", "strided"}
        How sites are divided into mini-batches. "stratified" batches consist of clusters of
        neighbours from the whole region, so that each contains both close and distant sites;
        "strided" batches are those of the paper.
    combine : {"mean", "average", "poe", "gpoe", "bcm", "rbcm", "grbcm", "barycenter"} or function
        How the members' predictions are combined. "mean" is their mixture, "average" one Gaussian
        with the same mean and covariance. A function takes (means, covs, prior);
        `emgpr.ensemble.check_rule` tests whether it is valid.
    conditioning : {"auto", "all", "batch"} or int
        Readings from which a member predicts: all readings, those of its batch, or the given number
        of nearest readings of each output; a number that is not below the number of sites means
        "all". "auto" uses all readings if that does not take too long. Otherwise, with a warning,
        each location is predicted from 16 readings of each output that lie in all directions from
        it, and from more where this reduces the variance.
    refine : "auto", "joint" or int
        0 stops after the two steps, as in the paper. A number n adds n sweeps, each of which
        optimises kernels and noise, and then the weights. "joint" optimises kernels, noise and
        weights together. If there are mini-batches, all members share kernels and noise, and the
        batches should be large. "auto" means "joint", or 0 if `batch_size` is less than five sites
        for each weight vector.
    transfer : {"auto", "full", "none"}
        With "auto", the predictive distribution of each output is a mixture of up to three models:
        its own process, the joint model of all outputs, and a regression on the outputs that are
        known at the location. Their weights maximise the log density of left-out readings: near
        other readings of the output, and in gaps like those in the table (`stacking_weights_`).
        If the table has no gaps, or with sweeps, `refine=0` or mini-batches, the joint model has no
        weight in gaps. With "full", all outputs are predicted by the joint model, and with "none",
        by their own processes. The parts of a whole are predicted by the joint model. ("safe", the
        default of earlier versions, means "auto".)
    parameter_uncertainty : bool
        Whether predictive distributions include the uncertainty of the kernels, weights, noise and
        means of the outputs, and larger variances because these are estimated. If False, the fitted
        parameters are treated as known, as in the paper, and intervals are too narrow if there are
        few sites. It has no effect on the joint model with sweeps, `refine=0` or mini-batches.
    latent_learner : "auto", name, object with a method learn, regressor or list of regressors
        Method of step 1. "exact" is maximum likelihood; "poe" uses the likelihoods of batches, in a
        time that does not depend on N; "dtc", "fitc", "pitc" and "vfe" use inducing points,
        and divide their sums among the processes if there are many readings; "svi" uses inducing
        points and mini-batches; "variogram" is a least-squares fit to the variogram; "vecchia" uses
        Vecchia's likelihood (docs/large.md). "auto" means "exact" up to 400 readings of an output,
        otherwise "vecchia".
        Other values are an object with a method `learn(x, y, kernel)`, such as
        `emgpr.latents.FITC(500)` or a user-defined one
        (to be tested with `emgpr.latents.check_learner`), a scikit-learn GaussianProcessRegressor
        for all outputs, or a list with one regressor for each output. If a regressor is already
        fitted, its hyper-parameters are used; with an output transform, it must have been fitted to
        transformed outputs. A regressor that has not been fitted is fitted to every output.
        `emgpr.latents.Borrowed` also accepts GPyTorch models.
    output_transform : "auto", name, transformer, list, dict or None
        Transform that makes the outputs approximately Gaussian: "log", "softplus", "yeo-johnson" or
        "normal-score", a scikit-learn transformer with an inverse, a list with one of these for
        each output, or a dict with output names as keys ("auto" for the others). "auto" chooses the
        simplest of these transforms that left-out readings do not clearly contradict. An output
        without negative readings is never predicted to be negative: its transform maps the positive
        numbers to all numbers ("softplus" is the identity away from zero), and if some readings are
        zero, zero has a probability of its own. With None or a transformer, outputs have no bounds
        unless `output_bounds` sets them, and predictions can be negative. Predictions are in
        original units.
    output_bounds : "auto", pair, list, dict or None
        Bounds (lower, upper) that predictions of an output must not cross: a pair for all outputs,
        a list with a pair for each output, or a dict with output names as keys, such as {"sand":
        (0, 100)}. "auto" bounds an output without negative readings by zero; {"T": None} removes
        this bound from output T.
    compositions : list of lists or None
        Names of the outputs that are the parts of a whole, such as [["sand", "silt", "clay"]]. They
        are predicted as shares of the total that the readings have: means and samples sum to it.
    normalize_y : bool
        Whether every output is first standardised to mean 0 and variance 1. The kernels have unit
        variance, so set this to False only if the outputs have unit variance already.
    crs : str or None
        Coordinate reference system of X. For longitude and latitude, "EPSG:4326", the two columns
        are found by name; if that fails, they are the first two. They are replaced with points on
        the sphere, which have three coordinates in km. The x and y of a projected system such as
        "EPSG:32632" are used unchanged. Maps (`predict_grid`) contain the reference system.
        Requires pyproj: `pip install 'emgpr[geo]'`.
    max_iter : int
        Maximum number of iterations of each optimisation.
    n_restarts : int
        Number of starting values of the length-scale in step 1, each combined with the best of
        several noise levels.
    n_jobs : int or None
        Number of CPU processes that fit outputs and members in parallel, as in joblib.
    device : {"cpu", "cuda", "cuda:1", "torch", "auto"}
        Device for array operations, always in 64-bit precision: "cpu" is NumPy, "cuda" torch on a
        GPU (`pip install 'emgpr[torch]'`), "torch" torch on the CPU, and "auto" a GPU if there is
        one, otherwise NumPy. A GPU is used by one process, which handles outputs and members in
        batches. Results are NumPy arrays, and a fitted model can be used on another device after
        `set_params(device=...)`.
    random_state : int, RandomState, Generator or None
        Seed for the starting values and the partition.
    checkpoint : path or None
        File in which a long fit stores finished outputs and members, and the state of the joint
        optimisation. If a fit was killed or interrupted, call `fit` again with the same data
        and parameters. It resumes from this file with identical results, and removes the file at
        the end. Do not use one file for several fits, as in a parameter search (docs/long-fits.md).
    verbose : int
        1 shows progress.

    Attributes
    ----------
    kernels_ : list of the Q fitted kernels, of unit variance
    noise_ : noise of the standardised outputs: (D, D) covariance if correlated, else (D,) variances
    transforms_ : list with the transform of each output
    units_ : dict of the known units of inputs and outputs, from `attrs["units"]` of DataFrames,
        attributes of xarray variables, and headers such as "Cd (mg/kg)"
    weights_ : (L, Q, D, k) weights of each member
    coregionalization_ : (Q, D, D) W_q W_qᵀ, the mean over members
    variance_shares_ : DataFrame, share of each output's variance due to each latent and the noise
    log_marginal_likelihood_value_ : sum over members of the log-likelihoods of their batches
    history_ : list of stages: what was optimised, and the log-likelihood plus log prior that was
        reached, which never decreases
    stacking_weights_ : DataFrame of the weights of the models that predict each output
    converged_ : whether every optimisation converged inside its bounds
    n_iter_ : number of iterations of the longest optimisation
    conditioning_ : readings that predictions are conditioned on: "all", "batch" or a number, which
        is the smallest number for each location if `conditioning` is "auto"
    latent_learner_ : learner of step 1: a name, or the object that was passed
    batches_ : list of the rows that each member was fitted to
    n_rows_ignored_ : number of rows of the training table in which no output was measured
    n_members_failed_ : number of members that failed twice and were left out, with a warning
    posterior_ : posterior distribution of the outputs on the standardised scale
    output_scaler_ : transforms and standardisation of the outputs
    input_spec_ : names of the input columns, reference system and training rows
    resolved_params_ : values used for parameters that are "auto" or None

    Examples
    --------
    >>> from emgpr import EMGPR
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()                      # Cd withheld at the 100 validation sites
    >>> model = EMGPR(random_state=0).fit(jura.X, jura.Y)        # NaN: not measured
    >>> cd, std = (a[:, 0] for a in model.predict(jura.X[jura.test], return_std=True))
    >>> print(f"{abs(cd - jura.truth['Cd']).mean():.2f} mg/kg")
    0.41 mg/kg
    >>> model.transforms_
    ['log', 'softplus', 'log']
    """

    kernel: Kernels = "auto"
    _: KW_ONLY
    n_latents: int | Literal["auto"] | None = None
    rank: int | None = None
    noise: Literal["auto", "independent", "correlated"] = "auto"
    prior: Literal["weak"] | None = "weak"
    batch_size: int | Literal["auto"] | None = "auto"
    n_members: int | None = None
    partition: Literal["stratified", "random", "strided"] = "stratified"
    combine: str | Callable[..., Any] = "mean"
    refine: int | Literal["auto", "joint"] = "auto"
    transfer: Literal["auto", "full", "none"] = "auto"
    output_transform: Transforms = "auto"
    max_iter: int = 250

    @property
    def stacking_weights_(self) -> pd.DataFrame:
        """Weights of the models that predict each output; empty unless `transfer` is "auto".

        The columns are "own" (the output's own process), "joint" (the model of all outputs) and
        "regression" (on the outputs known at the location). There is a row for each output and set
        of known outputs, near the output's own readings and far from them. Where nothing is known,
        the set is empty, and the row "any" is for all distances unless the output has gaps.
        """
        return inspection.stacking_weights(self._fitted("posterior_"), self.output_names_)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a new combination rule takes effect without another fit."""
        if name == "combine" and "posterior_" in vars(self):
            check_combine(value)
            self.posterior_ = self.posterior_.with_rule(value)
        super().__setattr__(name, value)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return an estimator with the settings of the paper, except for `changes`.

        The settings are RBF kernels, two steps, independent noise without a prior, strided batches
        of D² sites, averaged predictions of the members, and no output transform. For two outputs,
        batches have six sites, because four sites cannot determine the weights. For its Jura
        experiment, the paper uses output_transform="log".

        >>> EMGPR.paper(output_transform="log")
        EMGPR(combine='average', kernel=None, latent_learner='exact', max_iter=120,
              n_neighbours=None, noise='independent', output_transform='log',
              parameter_uncertainty=False, partition='strided', prior=None, rank=1,
              refine=0, transfer='full')
        """
        published = {
            "kernel": None,
            "rank": 1,
            "noise": "independent",
            "prior": None,
            "partition": "strided",
            "combine": "average",
            "refine": 0,
            "transfer": "full",
            "n_neighbours": None,
            "parameter_uncertainty": False,
            "latent_learner": "exact",
            "output_transform": None,
            "max_iter": 120,
        }
        return cls(**(published | changes))
