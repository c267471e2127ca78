"""The posterior of outputs that are predicted from the outputs known at the same location."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.exceptions import ConvergenceWarning

from emgpr.arrays import limit_threads
from emgpr.conditional.fit import MEMBERS, FittedRegression, fit_regression
from emgpr.conditional.kernel import RegressionKernel, RegressionRows
from emgpr.conditional.regression import Predicted, Regression
from emgpr.conditional.scores import mixture_weights
from emgpr.kernels import distance_scales
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.prediction import GaussianMixture, LMCPosterior, sample_gaussian
from emgpr.user_warnings import warn

Array = np.ndarray
Question = tuple[int, tuple[int, ...]]  # an output, and the other outputs that are known

MAX_READINGS = 4000  # of an output; covariances of its readings are dense


@dataclass(frozen=True)
class RegressionSet:
    """The covariance of all regressions, and those fitted so far, by output and known outputs.

    Each regression has four sets of parameters, one for each of `MEMBERS`. Predictions are a
    mixture of these, with `weights` by how well each predicts left-out blocks.
    """

    n_sites: int  # number of training sites, which precede readings at new locations
    names: Sequence[str] = ()  # of the outputs, for messages
    kernel: RegressionKernel = field(default_factory=RegressionKernel)
    max_iter: int = 120
    parameter_uncertainty: bool = True
    fitted: dict[Question, tuple[FittedRegression, ...]] = field(default_factory=dict)

    def weights(self, question: Question) -> Float[Array, " members"]:
        """Return the weight of each member in the mixture."""
        return mixture_weights([member.left_out for member in self.fitted[question]])

    def name(self, d: int) -> str:
        """Return the name of an output as it appears in messages, or its number."""
        return repr(self.names[d]) if self.names else str(d)

    def warn_if_not_converged(self, question: Question) -> None:
        """Issue a warning if the search for the parameters of a regression did not converge."""
        d, known = question
        if not all(fitted.converged for fitted in self.fitted[question]):
            warn(
                f"Regression of output {self.name(d)} on known outputs "
                f"{', '.join(self.name(k) for k in known)}: the search for its parameters did not "
                f"converge within max_iter={self.max_iter}; increase max_iter and fit the model "
                "again.",
                ConvergenceWarning,
            )


@dataclass(frozen=True)
class ConditionalPosterior(LMCPosterior):
    """The posterior of independent outputs, except at locations where other outputs are known.

    There, an output that was not measured is predicted by a regression on the known outputs. A
    regression is fitted when it is first needed, to the training rows where its output was
    measured. Values of known outputs that are missing in these rows are imputed by the outputs' own
    processes; their variances increase the noise of the row. Given the known outputs, the other
    outputs are independent of each other.
    """

    regressions: RegressionSet = field(default_factory=lambda: RegressionSet(0))

    @classmethod
    def extending(cls, own: LMCPosterior, regressions: RegressionSet) -> "ConditionalPosterior":
        """Add regressions on known outputs to the posterior of independent outputs."""
        return cls(**{f.name: getattr(own, f.name) for f in fields(own)}, regressions=regressions)

    @property
    def links_samples(self) -> bool:
        """True, because the readings of a sample are used to predict its other outputs."""
        return True

    def condition_on(
        self, x: Float[Array, "M P"], observed: Float[Array, "M D"] | None, *, include_noise: bool
    ) -> tuple[LMCPosterior, Float[Array, "M D"] | None]:
        """Return the posterior given additional readings at x, and the known readings of samples.

        The readings of a sample are known whether or not noise is predicted.
        """
        return super().condition_on(x, observed, include_noise=True)

    def fit_regressions(self, questions: Iterable[Question], execution: Execution) -> None:
        """Fit the regressions that have not been fitted yet to the training readings."""
        table = self.observations.at(np.arange(self.regressions.n_sites))  # without new readings
        missing = [
            question
            for question in questions
            if question not in self.regressions.fitted and not table.constant[question[0]]
        ]
        if missing:
            training = self._given(table)
            data = [training.readings(question) for question in missing]
            fit = partial(_fit, self.regressions.kernel, self.regressions.max_iter)
            with limit_threads(max(len(rows) for rows, _ in data)):
                found = parallel_map(fit, data, execution, label="Regressions on known outputs")
            self.regressions.fitted.update(zip(missing, found, strict=True))
            for question in missing:
                self.regressions.warn_if_not_converged(question)

    def readings(self, question: Question) -> tuple[RegressionRows, Float[Array, " n"]]:
        """Return the rows where an output was measured, with its readings there."""
        d, known = question
        sites = np.flatnonzero(self.observations.observed[d])
        if len(sites) > MAX_READINGS:
            raise ValueError(
                f"Output {self.regressions.name(d)} has {len(sites)} readings; a regression on "
                f"known outputs can use at most {MAX_READINGS}. Fit the model to fewer rows, or "
                "use EMGPR, which predicts from nearby readings."
            )
        values, variances = self.observations.cached("imputed", self._impute)
        rows = RegressionRows.build(
            self.observations.x[sites] / self._unit(d),
            values[sites][:, known],
            variances[sites][:, known],
        )
        return rows, self.observations.y[d, sites]

    def members(self, question: Question) -> list[Regression]:
        """Return the regression of each member, conditioned on all readings of its output."""
        rows, y = self.readings(question)
        members = self.regressions.fitted[question]
        if not self.regressions.parameter_uncertainty:
            members = tuple(FittedRegression(f.theta, f.directions[:0]) for f in members)
        return [Regression(self.regressions.kernel, fitted, rows, y) for fitted in members]

    def predict_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        include_noise: bool,
        with_cov: bool,
        execution: Execution,
    ) -> GaussianMixture:
        """Predict outputs that are not in the sample by regression on those that are."""
        own = super().predict_given(x, sample, include_noise, with_cov, execution)
        mean, cov = own.mean.copy(), own.cov.copy()
        for question, rows, new in self._asked(x, sample, execution):
            predicted = [
                member.predict(new, include_noise=include_noise, with_variance=with_cov)
                for member in self.members(question)
            ]
            _replace(mean, cov, rows, question[0], predicted, self.regressions.weights(question))
        return GaussianMixture(mean, cov)

    def sample_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        n: int,
        rng: np.random.Generator,
        include_noise: bool,
        execution: Execution,
    ) -> Float[Array, "n M D"]:
        """Draw samples from the distribution that `predict_given` predicts."""
        drawn = super().sample_given(x, sample, n, rng, include_noise, execution)
        # With equal weights, a draw uses the same member wherever an output is predicted.
        chosen = rng.uniform(size=(self.n_outputs, n))
        for question, rows, new in self._asked(x, sample, execution):
            ends = np.cumsum(self.regressions.weights(question))[:-1]
            chosen_member = np.searchsorted(ends, chosen[question[0]])
            for i, member in enumerate(self.members(question)):
                draws = np.flatnonzero(chosen_member == i)
                mean, cov = member.joint(new, include_noise=include_noise)
                drawn[draws[:, None], rows, question[0]] = mean + sample_gaussian(
                    cov, len(draws), rng
                )
        return drawn

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict every reading from readings outside its set, given those at the same site.

        The parameters are those fitted to all readings.
        """
        own = super().leave_out(sets, execution=execution)
        sites = np.arange(self.n_sites) if sites is None else sites
        mean, cov = own.mean[:, sites], own.cov[:, sites]
        questions = self._questions_left_out(sets, sites)
        self.fit_regressions(questions, execution)
        for question, rows in questions.items():
            if question not in self.regressions.fitted:
                continue
            d, labels = question[0], sets[question[0], sites[rows]]
            weights = self.regressions.weights(question)
            others = np.arange(self.n_outputs) != d
            shared = np.isin(labels, sets[others][self.observations.observed[others]])
            alone = rows[~shared]
            if len(alone):
                read = np.flatnonzero(self.observations.observed[d])
                at = np.searchsorted(read, sites[alone])
                labels_read = sets[d, read]
                predicted = [m.leave_out(labels_read, at) for m in self.members(question)]
                _replace(mean, cov, alone, d, predicted, weights)
            for label in np.unique(labels[shared]):
                left = rows[labels == label]
                predicted = self._without(sets == label, question, sites[left])
                _replace(mean, cov, left, d, predicted, weights)
        return GaussianMixture(mean, cov)

    def _without(
        self, left_out: Bool[Array, "D N"], question: Question, sites: Int[Array, " m"]
    ) -> list[Predicted]:
        """Predict one output at some sites after removing readings, with the same parameters."""
        table = self.observations
        kept = np.where(left_out.T, np.nan, table.table)
        given = self._given(Observations.from_table(table.x, kept))
        new = given.rows_of(question, table.x[sites], kept[sites])
        return [member.predict(new) for member in given.members(question)]

    def _given(self, observations: Observations) -> "ConditionalPosterior":
        """Return the posterior given other readings, with the same parameters."""
        return replace(self, observations=observations)

    def _questions_left_out(
        self, sets: Int[Array, "D N"], sites: Int[Array, " M"]
    ) -> dict[Question, Int[Array, " m"]]:
        """Group the readings at these sites by output and by the known outputs in other sets."""
        observed, labels = self.observations.observed[:, sites], sets[:, sites]
        questions: dict[Question, Int[Array, " m"]] = {}
        for d in range(self.n_outputs):
            known = (observed & (labels != labels[d])).T
            known[~observed[d]] = False
            questions |= {(d, others): rows for others, rows in _patterns(known)}
        return questions

    def _asked(
        self, x: Float[Array, "M P"], sample: Float[Array, "M D"] | None, execution: Execution
    ) -> list[tuple[Question, Int[Array, " m"], RegressionRows]]:
        """Return the regressions that predict outputs of the sample, with the rows of each."""
        if sample is None:
            return []
        questions = _questions(sample)
        self.fit_regressions(questions, execution)
        return [
            (question, rows, self.rows_of(question, x[rows], sample[rows]))
            for question, rows in questions.items()
            if question in self.regressions.fitted
        ]

    def rows_of(
        self, question: Question, x: Float[Array, "m P"], sample: Float[Array, "m D"]
    ) -> RegressionRows:
        """Return the rows of a regression at new locations where its known outputs are given."""
        d, known = question
        return RegressionRows.build(x / self._unit(d), sample[:, known])

    def _unit(self, d: int) -> Float[Array, " P"]:
        """Return the unit of each input for output d: its length-scales, if it has several."""
        assert self.independent is not None
        return distance_scales(self.independent.kernels[d : d + 1], self.observations.x.shape[1])

    def _impute(self) -> tuple[Float[Array, "N D"], Float[Array, "N D"]]:
        """Return the table with missing values predicted by the own processes, and variances."""
        table = self.observations
        values, variances = table.table, np.zeros((table.n_sites, table.n_outputs))
        sites = np.flatnonzero(~table.observed.all(axis=0))
        if len(sites):
            own = self.without_transfer().predict(table.x[sites])
            missing = ~table.observed[:, sites].T
            values[sites] = np.where(missing, own.mean[0], values[sites])
            marginal = np.einsum("mdd->md", own.cov[0])
            variances[sites] = np.where(missing, marginal, 0.0)
        return values, variances


def _fit(
    kernel: RegressionKernel, max_iter: int, data: tuple[RegressionRows, Float[Array, " n"]]
) -> tuple[FittedRegression, ...]:
    return tuple(fit_regression(kernel, *data, max_iter, *member) for member in MEMBERS)


def _questions(sample: Float[Array, "M D"]) -> dict[Question, Int[Array, " m"]]:
    """Group the outputs that are not in a sample by the outputs that are.

    >>> questions = _questions(np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan]]))
    >>> {key: rows.tolist() for key, rows in questions.items()}
    {(1, (0,)): [0, 2]}
    """
    return {
        (d, known): rows
        for known, rows in _patterns(~np.isnan(sample))
        for d in range(sample.shape[1])
        if d not in known
    }


def _patterns(known: Bool[Array, "M D"]) -> list[tuple[tuple[int, ...], Int[Array, " m"]]]:
    """Return each nonempty set of known outputs, with the rows in which exactly these are known."""
    patterns, pattern_of_row = np.unique(known, axis=0, return_inverse=True)
    return [
        (tuple(np.flatnonzero(pattern).tolist()), np.flatnonzero(pattern_of_row.ravel() == i))
        for i, pattern in enumerate(patterns)
        if pattern.any()
    ]


def _replace(
    mean: Float[Array, "C M D"],
    cov: Float[Array, "C M D D"],
    rows: Int[Array, " m"],
    d: int,
    predicted: list[Predicted],
    weights: Float[Array, " members"],
) -> None:
    """Replace output d in some rows, in place, by the mixture of predictions.

    The mixture is replaced by a Gaussian with its mean and variance, independent of other outputs.
    """
    means, variances = (np.array(part) for part in zip(*predicted, strict=True))
    mean[:, rows, d] = weights @ means
    cov[:, rows, d, :] = 0.0
    cov[:, rows, :, d] = 0.0
    cov[:, rows, d, d] = weights @ (variances + (means - weights @ means) ** 2)
