"""EMGPR: the paper's algorithm as a scikit-learn estimator."""

from collections.abc import Sequence
from typing import Literal

from sklearn.gaussian_process.kernels import Kernel

from emgpr.estimators.base import Conditioning, Learner, MultiOutputGP
from emgpr.execution import RandomState


class EMGPR(MultiOutputGP):
    """Ensemble multi-task Gaussian process regression with multiple latent processes.

    Every output is a mixture of latent Gaussian processes plus noise. Step 1
    learns a process from each output alone; step 2 learns, on mini-batches of
    sites, how every output hears every process; predictions of the members of
    this ensemble are averaged.

    Parameters
    ----------
    kernel : kernel, list of kernels, or None
        Any scikit-learn kernel, used for every latent process, or a list with one
        each. None is `RBF()`. Length-scales start from the data, and their bounds too
        unless you set them; a length-scale other than 1 is one more start. The noise needs
        no WhiteKernel, but one added to the kernel sets its start and bounds.
    n_latents : int or None
        Number of latent processes Q; None is one for each output.
    rank : int
        Rank k of each coregionalisation matrix B_q = W_q W_qᵀ.
    batch_size : int, "auto" or None
        Sites in a mini-batch. "auto" is D² as in the paper, but at least three sites
        for every weight vector, and all of them with `refine="joint"` or a single output;
        None learns one set of weights from all sites.
    n_members : int or None
        At most so many members are trained; None trains one for every mini-batch.
    partition : {"random", "strided"}
        How sites are dealt to the mini-batches; "strided" is the paper's.
    conditioning : {"auto", "all", "batch"} or int
        What a member predicts from: all readings, those of its own batch, or this many of
        each output, the nearest. "auto" takes all while that is affordable, then 16
        neighbours with a warning.
    refine : {0, "joint"}
        0 stops after the two steps, as the paper does; "joint" continues to the joint
        maximum likelihood of kernels, noise and weights (with mini-batches: kernels and noise
        that all share, weights of each; batches should then be large).
    latent_learner : "exact", GaussianProcessRegressor or list of those
        Who does step 1: exact maximum likelihood, or scikit-learn's regressor, fitted
        (what it learned is used; with a transform it must have learned from transformed
        outputs) or not (fitted to every output). Its kernel, if it has one, is used.
    transform : {None, "log"}
        "log" for positive, skewed outputs. Predictions come back on your scale.
    normalize_y : bool
        Bring every output to mean 0 and variance 1 first. The kernels have unit
        variance, so switch this off only if yours already are.
    max_iter : int
        Iterations of each optimisation at most.
    n_restarts : int
        Length-scales that step 1 tries as starts, each with three noise levels.
    n_jobs : int or None
        Processes for tasks and members; joblib's meaning.
    random_state : int, RandomState, Generator or None
        Seeds the starts and the partition.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    kernels_ : list of the Q fitted kernels, of unit variance
    noise_ : (D,) noise variance of each output, standardised
    weights_ : (L, Q, D, k) weights of each member
    coregionalization_ : (Q, D, D) W_q W_qᵀ, the mean over members
    log_marginal_likelihood_value_ : sum over members of their batches' log-likelihood
    converged_ : whether every optimisation converged inside its bounds
    n_iter_ : iterations of the longest optimisation
    conditioning_ : what predictions are conditioned on
    batches_ : list of the sites each member learned from

    Examples
    --------
    >>> from emgpr import EMGPR
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()                      # Cd withheld at the 100 validation sites
    >>> model = EMGPR(transform="log", batch_size=9, partition="strided", random_state=0)
    >>> model = model.fit(jura.X, jura.Y)        # NaN: not measured
    >>> cd, std = (a[:, 0] for a in model.predict(jura.X[jura.test], return_std=True))
    >>> print(f"{abs(cd - jura.truth['Cd']).mean():.2f} mg/kg")
    0.40 mg/kg
    """

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel] | None = None,
        *,
        n_latents: int | None = None,
        rank: int = 1,
        batch_size: int | Literal["auto"] | None = "auto",
        n_members: int | None = None,
        partition: Literal["random", "strided"] = "random",
        conditioning: Conditioning = "auto",
        refine: Literal[0, "joint"] = 0,
        latent_learner: Learner = "exact",
        transform: Literal["log"] | None = None,
        normalize_y: bool = True,
        max_iter: int = 120,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel,
            conditioning=conditioning,
            latent_learner=latent_learner,
            transform=transform,
            normalize_y=normalize_y,
            max_iter=max_iter,
            n_restarts=n_restarts,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_latents = n_latents
        self.rank = rank
        self.batch_size = batch_size
        self.n_members = n_members
        self.partition = partition
        self.refine = refine
