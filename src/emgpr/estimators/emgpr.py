"""EMGPR: the method as a scikit-learn estimator."""

from collections.abc import Callable
from typing import Any, Literal, Self

from emgpr.estimators.base import Conditioning, MultiOutputGP
from emgpr.estimators.learning import Kernels, Learner
from emgpr.execution import RandomState
from emgpr.persistence import PathLike


class EMGPR(MultiOutputGP):
    """Ensemble multi-task Gaussian process regression with multiple latent processes.

    Every output is a mixture of latent Gaussian processes plus noise. Step 1
    learns a process from each output alone; step 2 how every output hears every
    process; then all is learned on jointly. The defaults were chosen by cross-validation on
    the training data of many data sets (docs/choices.md); `EMGPR.paper()` is the method as
    published: two steps, on mini-batches whose members' predictions are averaged.

    Parameters
    ----------
    kernel : "auto", kernel, list of kernels, or None
        "auto" chooses RBF or Matern of nu 5/2, 3/2 or 1/2 for each output by the
        likelihood of step 1, with a length-scale for each input column where that earns its
        parameters. Or any scikit-learn kernel, used for every latent process, or a list with
        one each; None is `RBF()`. Length-scales start from the data, and their bounds too
        unless you set them; a length-scale other than 1 is one more start. The noise needs
        no WhiteKernel, but one added to the kernel sets its start and bounds.
    n_latents : int, "auto" or None
        Number of latent processes Q; None is one for each output, or fewer where there are not
        five readings for each parameter. "auto" starts with one for each output and switches
        off those that cross-validation does not miss.
    rank : int or None
        Rank k of each coregionalisation matrix B_q = W_q W_qᵀ, at most the number of outputs.
        None is 2 if the ascent continues after the two steps (`refine`) and there are ten
        readings for each parameter, and five sites a member for each weight vector; else 1.
    noise : {"auto", "correlated", "independent"}
        Whether the noises of the outputs of a sample are related. If they are, outputs
        measured at a new site inform on the others through their noise too. "auto" is
        correlated if the ascent continues after the two steps, readings are enough (five
        for each parameter) and step 1 found noise in every output.
    prior : "weak" or None
        "weak" thinks an output noise unless its readings say otherwise, as a handful of readings
        would: what is learned from few sites, or of a rarely measured output, is then not
        believed to the letter. None is maximum likelihood, as in the paper.
    batch_size : int, "auto" or None
        Sites in a mini-batch. "auto" learns from all sites with `refine`, or, beyond 3000
        readings, from batches of some 1500 (at most 8, with a warning); with `refine=0` it is
        D² as in the paper, but at least three sites for every weight vector. None learns one
        set of weights from all sites.
    n_members : int or None
        At most so many members are trained; None trains one for every mini-batch.
    partition : {"stratified", "random", "strided"}
        How sites are dealt to the mini-batches. "stratified" gives each clusters of neighbours from
        all over the region, so that it sees short distances and long ones; "strided" is the
        paper's.
    combine : {"mean", "average", "poe", "gpoe", "bcm", "rbcm", "grbcm", "barycenter"} or function
        How the members' beliefs are joined. "mean" is their mixture, "average" one Gaussian of
        the same mean and covariance. A function of yours takes (means, covs, prior);
        `emgpr.ensemble.check_rule` tells whether it can be used.
    conditioning : {"auto", "all", "batch"} or int
        What a member predicts from: all readings, those of its own batch, or this many of
        each output, the nearest. "auto" takes all while that is affordable, then 16
        neighbours with a warning.
    refine : "auto", "joint" or int
        0 stops after the two steps, as the paper does; n makes that many further sweeps over
        (kernels, noise) and weights; "joint" continues to the joint maximum likelihood of
        kernels, noise and weights (with mini-batches: kernels and noise that all share,
        weights of each; batches should then be large). "auto" is "joint", but 0 if
        you set a `batch_size` below five sites for each weight vector.
    transfer : {"safe", "full"}
        "safe" lets an output that transfer does not help, in cross-validation, keep to its
        own process. That is asked, and answered, apart for sites where nothing else is known
        and for those where other outputs are.
    latent_learner : "auto", name, object with a method learn, regressor or list of those
        Who does step 1. "exact" is maximum likelihood; "poe" that of some batches, at a cost that
        does not grow with N; "dtc", "fitc", "pitc" and "vfe" go by inducing points, "variogram" by
        least squares (docs/large.md). "auto" is "exact" up to 2000 readings of an output, then
        "poe", with a warning. Or any object with `learn(x, y, kernel)`: `emgpr.latents.FITC(500)`,
        or one of yours (`emgpr.latents.check_learner`). Or scikit-learn's GaussianProcessRegressor,
        for all outputs or a list with one each: fitted (what it learned is used; with a transform
        it must have learned from transformed outputs) or not (fitted to every output; its kernel,
        if it has one, is used); `emgpr.latents.Borrowed` also takes models of GPyTorch's.
    transform : "auto", "log", "yeo-johnson", "normal-score", transformer, list, dict or None
        What makes the outputs near Gaussian: by name, a scikit-learn transformer with an
        inverse, a list with one for each output, or a dict from outputs to these. "auto"
        gives a positive output the log, and leaves others as they are, unless readings left
        out are clearly likelier under another; with fewer than 20 readings nothing is
        transformed. Predictions come back on your scale.
    normalize_y : bool
        Bring every output to mean 0 and variance 1 first. The kernels have unit
        variance, so switch this off only if yours already are.
    crs : str or None
        What the places in X are: "EPSG:4326" for longitude and latitude, found by the columns'
        names or the first two; kernels then see points on the sphere, three columns in km.
        Or a projected system such as "EPSG:32632", whose x and y are used as they are. Maps carry
        it (`predict_grid`). Needs pyproj: `pip install 'emgpr[geo]'`.
    max_iter : int
        Iterations of each optimisation at most.
    n_restarts : int
        Length-scales that step 1 tries as starts, each with the best of many noise levels.
    n_jobs : int or None
        Processes for tasks and members on the CPU; joblib's meaning.
    device : {"cpu", "cuda", "cuda:1", "torch", "auto"}
        Where the arrays are worked on, in numbers of 64 bits everywhere: "cpu" with NumPy,
        "cuda" on a GPU with torch (`pip install 'emgpr[torch]'`), "torch" on the CPU with torch;
        "auto" on a GPU if there is one, else with NumPy. On a GPU there is one process, and
        tasks and members go in batches. Results are NumPy arrays, and a fitted model can be
        used on another device after `set_params(device=...)`.
    random_state : int, RandomState, Generator or None
        Seeds the starts and the partition.
    checkpoint : path or None
        A file in which a long fit keeps the tasks and members that are finished, and how far the
        joint ascent has come. A fit that was killed or interrupted, called again with the same
        data and settings, goes on from there and ends with the same bits; then the file is
        removed. One fit at a time: do not search over settings with it (docs/long-fits.md).
    verbose : int
        1 shows progress.

    Attributes
    ----------
    kernels_ : list of the Q fitted kernels, of unit variance
    noise_ : noise of the standardised outputs: (D, D) covariance if correlated, else (D,) variances
    transforms_ : list with the transform of each output
    weights_ : (L, Q, D, k) weights of each member
    coregionalization_ : (Q, D, D) W_q W_qᵀ, the mean over members
    variance_shares_ : DataFrame, share of each output's variance from each latent and the noise
    log_marginal_likelihood_value_ : sum over members of their batches' log-likelihood
    history_ : list of (what was learned, log-likelihood reached, less what the prior holds against
        the noise), never falling
    alone_ : dict with the outputs that keep to their own process, by "site" and by "output"
    converged_ : whether every optimisation converged inside its bounds
    n_iter_ : iterations of the longest optimisation
    conditioning_ : what predictions are conditioned on
    latent_learner_ : who did step 1: a name, or what was given
    batches_ : list of the sites each member learned from
    n_rows_ignored_ : rows of the training table in which no output was read
    n_members_failed_ : members that were left out because they failed twice, with a warning

    Examples
    --------
    >>> from emgpr import EMGPR
    >>> from emgpr.datasets import jura_table
    >>> jura = jura_table()                      # Cd withheld at the 100 validation sites
    >>> model = EMGPR(random_state=0).fit(jura.X, jura.Y)        # NaN: not measured
    >>> cd, std = (a[:, 0] for a in model.predict(jura.X[jura.test], return_std=True))
    >>> print(f"{abs(cd - jura.truth['Cd']).mean():.2f} mg/kg")
    0.39 mg/kg
    >>> model.transforms_
    ['log', 'log', 'log']
    """

    def __init__(
        self,
        kernel: Kernels = "auto",
        *,
        n_latents: int | Literal["auto"] | None = None,
        rank: int | None = None,
        noise: Literal["auto", "independent", "correlated"] = "auto",
        prior: Literal["weak"] | None = "weak",
        batch_size: int | Literal["auto"] | None = "auto",
        n_members: int | None = None,
        partition: Literal["stratified", "random", "strided"] = "stratified",
        combine: str | Callable[..., Any] = "mean",
        conditioning: Conditioning = "auto",
        refine: int | Literal["auto", "joint"] = "auto",
        transfer: Literal["full", "safe"] = "safe",
        latent_learner: Learner = "auto",
        transform: Any = "auto",
        normalize_y: bool = True,
        crs: str | None = None,
        max_iter: int = 250,
        n_restarts: int = 5,
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: RandomState = None,
        checkpoint: PathLike | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel,
            conditioning=conditioning,
            latent_learner=latent_learner,
            transform=transform,
            normalize_y=normalize_y,
            crs=crs,
            max_iter=max_iter,
            n_restarts=n_restarts,
            n_jobs=n_jobs,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        self.n_latents = n_latents
        self.rank = rank
        self.noise = noise
        self.prior = prior
        self.batch_size = batch_size
        self.n_members = n_members
        self.partition = partition
        self.combine = combine
        self.refine = refine
        self.transfer = transfer

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the paper, but for those that you change.

        RBF kernels, two steps, independent noise without a prior, strided batches of D² sites (of
        two outputs: six, as four are too few for their weights), the mean of the members, no
        transform (the paper's Jura experiment takes logarithms).

        >>> EMGPR.paper(transform="log")
        EMGPR(combine='average', kernel=None, latent_learner='exact', max_iter=120,
              noise='independent', partition='strided', prior=None, rank=1, refine=0,
              transfer='full', transform='log')
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
            "latent_learner": "exact",
            "transform": None,
            "max_iter": 120,
        }
        return cls(**(published | changes))
