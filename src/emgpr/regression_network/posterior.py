"""The posterior of the outputs of a regression network, from the two blocks of q.

A signal is a product of Gaussian weights and Gaussian nodes, which is not Gaussian. Its mean and
covariance are exact under q; predictive distributions are Gaussians with these moments. Samples are
products of samples of weights and nodes.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import chunks, limit_threads, solve
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations, repeats
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction import GaussianMixture, LMCModel, LMCPosterior, Posterior, sample_gaussian
from emgpr.prediction.joint_samples import check_joint_size
from emgpr.regression_network.nodes import NodePosterior
from emgpr.regression_network.problem import NetworkKernels, NetworkParameters, NetworkProblem
from emgpr.regression_network.terms import Moments, SiteTerms, node_terms
from emgpr.regression_network.updates import weight_posterior
from emgpr.regression_network.weights import WeightPosterior

Array = np.ndarray


@dataclass(frozen=True)
class NetworkPosterior:
    """The posterior given all readings, with independent noise.

    `given` are the moments of the nodes at the sites from which the weights were computed. The
    posterior of the nodes follows from the weights and the observations. If observations are added
    or left out, the nodes are updated once, and the weights are held fixed.
    """

    observations: Observations
    kernels: NetworkKernels
    parameters: NetworkParameters
    given: Moments
    independent: LMCModel

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return self.observations.n_outputs

    @property
    def n_components(self) -> int:
        """Number of components of the predictive distribution: one."""
        return 1

    @property
    def n_sites(self) -> int:
        """Number of sites whose readings are used in predictions."""
        return self.observations.n_sites

    @property
    def extent(self) -> Float[Array, "N P"]:
        """Locations of all sites."""
        return self.observations.x

    @property
    def reference_values(self) -> Float[Array, "N D"]:
        """All readings, NaN where missing."""
        return self.observations.table

    @cached_property
    def weights(self) -> WeightPosterior:
        """Posterior of the weights."""
        problem = NetworkProblem(self.observations, self.kernels)
        with limit_threads(self.n_sites):
            return weight_posterior(problem, self.parameters, self.given)

    @cached_property
    def nodes(self) -> NodePosterior:
        """Posterior of the nodes at the sites."""
        return self._nodes_given(self.observations)

    def for_worker(self) -> "NetworkPosterior":
        """Return a copy without the posteriors of nodes and weights, which are computed again."""
        return replace(self)

    def without_transfer(self) -> Posterior:
        """Return the posterior in which every output is predicted from its own readings only."""
        sites = np.arange(self.n_sites)
        return LMCPosterior(
            self.observations, self.independent, (sites,), "all", independent=self.independent
        )

    def predict(
        self,
        x: Float[Array, "M P"],
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Return the distribution of the outputs at each location."""
        table, nodes = self._given(x, observed)
        D, n_bytes = self.n_outputs, 8.0 * len(nodes.K) ** 2 * table.n_sites
        mean, cov = np.empty((len(x), D)), np.zeros((len(x), D, D))
        with limit_threads(len(nodes.K) * table.n_sites):
            for run in chunks(len(x), n_bytes, 1) if len(x) else []:
                at = slice(run.start, run.stop)
                weights = self.weights.moments_at(x[at])
                cross = self._kernels(table.x, x[at])
                f = nodes.mean_at(cross)
                mean[at] = np.einsum("dmq,mq->md", weights.mean, f)
                if with_cov:
                    cov_f = nodes.covariances_at(cross, np.ones(len(f)))
                    cov[at] = signal_covariances(weights, Moments(f, cov_f))
        if include_noise:
            cov += np.diag(self.parameters.noise)
        return GaussianMixture(mean[None], cov[None])

    def sample(
        self,
        x: Float[Array, "M P"],
        n: int,
        rng: np.random.Generator,
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples for all locations and outputs."""
        D, Q, M = self.n_outputs, len(self.parameters.length_scales), len(x)
        check_joint_size(M, max(D, Q))
        table, nodes = self._given(x, observed)
        with limit_threads(Q * table.n_sites):
            cross = self._kernels(table.x, x)
            cov = nodes.joint_covariance(cross, self._kernels(x, x)).reshape(Q * M, Q * M)
            f = nodes.mean_at(cross).T + sample_gaussian(cov, n, rng).reshape(n, Q, M)
            signal = np.empty((n, M, D))
            for d in range(D):
                mean, cov = self.weights.joint_moments_at(x, d)
                drawn = sample_gaussian(cov.reshape(Q * M, Q * M), n, rng).reshape(n, Q, M)
                signal[:, :, d] = np.einsum("nqm,nqm->nm", mean + drawn, f)
        if include_noise:
            signal += np.sqrt(self.parameters.noise) * rng.normal(size=signal.shape)
        return signal

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict every reading from readings outside its set, with the weights held fixed."""
        table, D, weights = self.observations, self.n_outputs, self._site_weights
        result = GaussianMixture(
            np.zeros((1, self.n_sites, D)), np.tile(np.eye(D), (1, self.n_sites, 1, 1))
        )
        with limit_threads(len(self.nodes.K) * self.n_sites):
            cov = self.nodes.joint_covariance(self.nodes.K, self.nodes.K)
            for label in np.unique(sets[table.observed]):
                left = (sets == label) & table.observed
                at = np.flatnonzero(left.any(axis=0))
                nodes = self._without(left[:, at], at, cov)
                part = Moments(weights.mean[:, at], weights.cov[:, at])
                mean = np.einsum("dmq,mq->md", part.mean, nodes.mean)
                covs = signal_covariances(part, nodes) + np.diag(self.parameters.noise)
                d, i = np.nonzero(left[:, at])
                result.mean[0, at[i], d] = mean[i, d]
                both = left[:, at].T[:, :, None] & left[:, at].T[:, None, :]
                result.cov[0, at] = np.where(both, covs, result.cov[0, at])
        if sites is None:
            return result
        return GaussianMixture(result.mean[:, sites], result.cov[:, sites])

    def correlations(
        self, x: Float[Array, "M P"], *, include_noise: bool = False
    ) -> Float[Array, "M D D"]:
        """Return the prior correlations of the outputs at each location, given the weights."""
        weights, own = self.weights.moments_at(x), np.arange(self.n_outputs)
        cov = np.einsum("dmq,emq->mde", weights.mean, weights.mean)
        cov[:, own, own] = np.einsum("dmqq->md", weights.second)
        if include_noise:
            cov[:, own, own] += self.parameters.noise
        std = np.sqrt(cov[:, own, own])
        return cov / std[:, :, None] / std[:, None, :]

    def _kernels(self, x: Float[Array, "N P"], z: Float[Array, "M P"]) -> Float[Array, "Q N M"]:
        return kernel_matrices(self.kernels.of_nodes(self.parameters.length_scales), x, z)

    def _nodes_given(self, table: Observations) -> NodePosterior:
        """Return the posterior of the nodes given these readings, with the weights held fixed."""
        Q = len(self.parameters.length_scales)
        with limit_threads(Q * table.n_sites):
            terms = node_terms(table, self.weights.moments_at(table.x), self.parameters.noise)
            return NodePosterior.solve(self._kernels(table.x, table.x), terms)

    def _given(
        self, x: Float[Array, "M P"], observed: Float[Array, "M D"] | None
    ) -> tuple[Observations, NodePosterior]:
        """Return the readings and the nodes, given additional readings at x.

        Rows of `observed` that repeat the training readings at a site are not counted twice.
        """
        if observed is None:
            return self.observations, self.nodes
        same = repeats(observed, self.observations.readings_at(x))
        new = Observations.from_table(x, np.where(same[:, None], np.nan, observed))
        table = self.observations.extended_by(new)
        return table, self._nodes_given(table)

    def _without(
        self, left: Bool[Array, "D m"], at: Int[Array, " m"], cov: Float[Array, "Q N Q N"]
    ) -> Moments:
        """Return the moments of the nodes at sites, without the readings marked in `left`.

        With the posterior covariance S and mean m at the sites, and the likelihood terms Δ and b of
        the readings, these are (I − S Δ)⁻¹ S and (I − S Δ)⁻¹ (m − S b).
        """
        Q, m = len(cov), len(at)
        removed = self._terms(left, at)
        S = cov[:, at][:, :, :, at]
        # Axes [site, node] of the second factor are contracted with Δ at the same site.
        product = np.einsum("qipj,jpo->qioj", S, removed.precision).reshape(Q * m, Q * m)
        shift = np.einsum("qipj,jp->qi", S, removed.linear)
        right = np.column_stack(
            [S.reshape(Q * m, Q * m), (self.nodes.mean[at].T - shift).reshape(-1)]
        )
        found = solve(np.eye(Q * m) - product, right)
        joint = found[:, :-1].reshape(Q, m, Q, m)
        return Moments(found[:, -1].reshape(Q, m).T, np.einsum("qipi->iqp", joint))

    def _terms(self, left: Bool[Array, "D m"], at: Int[Array, " m"]) -> SiteTerms:
        weights, table = self._site_weights, self.observations
        part = Observations(table.x[at], np.where(left, table.y[:, at], 0.0), left)
        moments = Moments(weights.mean[:, at], weights.cov[:, at])
        return node_terms(part, moments, self.parameters.noise)

    @cached_property
    def _site_weights(self) -> Moments:
        return self.weights.moments


def signal_covariances(weights: Moments, nodes: Moments) -> Float[Array, "M D D"]:
    """Return the covariance of the signals of all outputs at each location.

    cov[d, e] = m_dᵀ S m_e, plus trace(V_d (S + f fᵀ)) if d = e, where m and V are the moments of
    the weights and f and S those of the nodes.

    >>> weights = Moments(np.array([[[2.0]]]), np.array([[[[0.5]]]]))
    >>> signal_covariances(weights, Moments(np.array([[1.0]]), np.array([[[3.0]]])))
    array([[[14.]]])
    """
    cov = np.einsum("dmq,mqp,emp->mde", weights.mean, nodes.cov, weights.mean, optimize=True)
    own = np.arange(len(weights.mean))
    cov[:, own, own] += np.einsum("dmqp,mqp->md", weights.cov, nodes.second)
    return cov
